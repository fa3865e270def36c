/* live.h: the record layer of a connection that this agent owns. From the end of the handshake on it replaces the SSL
 * object. Opens and seals TLS 1.2 and 1.3 AEAD records (RFC 8446 5, RFC 5246 6.2.3.3, RFC 5288, RFC 7905), follows
 * KeyUpdate (RFC 8446 4.6.3), speaks alerts. It holds some 330 bytes, key material included, in a slab of the worker.
 *
 * Bytes in, bytes out. It has no socket and no clock.
 *
 * At most one live copy of a write key exists: live_freeze() takes the state out and from then on nothing can be sealed
 * or opened; live_destroy() wipes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/end_reason.h"
#include "proto/sess_obj.h"
#include "proto/tls_record.h"
#include "sslagent/tls/tls_library.h"

struct live;

/* Per worker: fetched algorithms (the key schedule of @a), AEAD contexts (busy connections keep theirs, idle ones share
 * them), the slabs. Not thread-safe. */
struct live_pool;
struct live_pool *live_pool_create(enum tls_algorithms a);
void live_pool_destroy(struct live_pool *p); /* every live must have been destroyed */

/* How an ownership begins. */
enum live_start {
	LIVE_CONTINUES, /* after a frozen owner: the next record follows its last */
	LIVE_TAKES_OVER /* the last owner may have sealed records that were never committed: TLS 1.2 AES-GCM goes on
			   (the epoch makes its nonces fresh), TLS 1.3 must say KeyUpdate first and wait for its commit,
			   else CSSL_E_UNSAFE */
};

/* Begin to own, from @part (copied; the caller wipes its own) advanced to the position that RAgent committed: @part's
 * generations may be older than @at's (TLS 1.3 secrets are ratcheted forward, at most LIVE_RATCHET_MAX steps), never
 * newer.
 * @epoch is this ownership's, higher than part->epoch except for the first (both 1). 0 and *out, or: CSSL_E_UNSAFE
 * (could reuse a nonce: TLS 1.2 ChaCha20 taken over, an old epoch, a position before the part's after a frozen owner),
 * CSSL_E_MISMATCH (generations), CSSL_E_RANGE (the part does not fit the suite), CSSL_E_NO_MEMORY, CSSL_E_CRYPTO. */
#define LIVE_RATCHET_MAX 1024u
struct live_position {
	uint32_t read_generation, write_generation;
	uint64_t read_sequence, write_sequence;
};
int live_create(struct live_pool *p, const struct live_part *part, uint16_t cipher_suite,
	const struct live_position *at, uint16_t epoch, enum live_start start, struct live **out);
void live_destroy(struct live *l); /* in any state; wipes */

/* Directions that a close_notify (or a fatal alert of ours) ended: bits. SESS_OBJ does not hold them. A move carries
 * them in LinkLive and SSL_ID, and the new owner sets them after live_create. */
enum live_end { LIVE_READ_CLOSED = 1, LIVE_WRITE_CLOSED = 2 };
unsigned live_ends(const struct live *l);
void live_restore_ends(struct live *l, unsigned ends);

/* The content of a client record. */
enum live_content {
	LIVE_DATA,         /* application data, maybe empty */
	LIVE_KEY_UPDATED,  /* the read generation went up by one */
	LIVE_CLOSE_NOTIFY, /* the client will send nothing more; later records are LIVE_IGNORED (RFC 8446 6.1) */
	LIVE_ALERT,   /* a fatal alert, or a warning that ends the connection: end the connection without an answer */
	LIVE_IGNORED, /* consumed, nothing to do: warning alert, record after close_notify, refused renegotiation; or
			 live_unfinished() */
};

struct live_record {
	enum live_content content;
	uint8_t *data; /* LIVE_DATA: plaintext, in place in the record */
	size_t len;
	uint8_t alert; /* LIVE_ALERT: its description */
};

/* Open one record in place. 0: @out is filled. Negative: the client broke the
 * protocol (or a limit of ours on KeyUpdates or on records without data per second of @now_ms); live_alert_owed() gives
 * the fatal alert to send, live_end_reason() the reason. Then the connection ends: nothing more can be opened.
 * CSSL_E_STATE: frozen or failed before. */
int live_open(struct live *l, const struct tls_record *record, uint64_t now_ms, struct live_record *out);
enum tls_alert live_alert_owed(const struct live *l);
/* After a negative live_open, LIVE_ALERT or LIVE_LIMIT_REACHED: RECORD_VIOLATION, RENEGOTIATION, KEY_UPDATE_FLOOD,
 * ALERT_RECEIVED, KEY_LIMIT. Otherwise DONE. */
enum end_reason live_end_reason(const struct live *l);

/* More KeyUpdates were opened than may come: so many milliseconds from @now_ms no record should be opened; 0: it may. A
 * KeyUpdate that is opened all the same is a KEY_UPDATE_FLOOD, and so are too many in a row that made the client wait.
 */
uint64_t live_key_update_wait_ms(const struct live *l, uint64_t now_ms);

/* A refused renegotiation (TLS 1.2), a requested KeyUpdate or a reached usage limit makes a reply due. */
enum live_due {
	LIVE_NOTHING_DUE,
	LIVE_WARNING_DUE,    /* say live_seal_alert(no_renegotiation, warning) */
	LIVE_KEY_UPDATE_DUE, /* before the next data record: live_seal_key_update() (or one alert, and nothing more) */
	LIVE_WAITS_FOR_COMMIT, /* nothing may be sealed until live_committed() */
	LIVE_LIMIT_REACHED     /* TLS 1.2: close_notify and end */
};
enum live_due live_due(const struct live *l);

/* Bytes a record adds around its plaintext, and the most plaintext one record may carry. */
size_t live_overhead(const struct live *l);
size_t live_fragment_max(const struct live *l);

/* Seal @len (<= live_fragment_max) bytes of application data into @out, which has room for len + live_overhead. @data
 * may stand where the plaintext will be in @out (out + live_plaintext_offset): sealed in place, no copy. Record bytes;
 * CSSL_E_STATE (frozen, a live_due that must come first, or a close_notify or fatal alert was sealed); CSSL_E_CRYPTO.
 */
size_t live_plaintext_offset(const struct live *l);
ptrdiff_t live_seal(struct live *l, const uint8_t *data, size_t len, uint8_t *out);
#define LIVE_SMALL_RECORD_MAX 64u /* enough for the two below */
ptrdiff_t live_seal_alert(struct live *l, enum tls_alert_level level, enum tls_alert description,
	uint8_t out[static LIVE_SMALL_RECORD_MAX]);

/* TLS 1.3, when due or at will: seal KeyUpdate and step the write generation. A fresh sealed copy must be on its way to
 * RAgent before this record is; the frame has FRAME_LAST_OF_WRITE_GENERATION. Nothing can be sealed afterwards until
 * live_committed() with that generation. */
ptrdiff_t live_seal_key_update(struct live *l, uint8_t out[static LIVE_SMALL_RECORD_MAX]);
void live_committed(struct live *l, uint32_t write_generation);

/* The live part as it is now, or as it would be after a KeyUpdate sealed now; for a fresh sealed copy. Wipe it. 0 or
 * CSSL_E_CRYPTO. */
enum live_moment { LIVE_NOW, LIVE_AFTER_KEY_UPDATE };
int live_describe(const struct live *l, enum live_moment moment, struct live_part *out);

/* Freeze, and write the live part. After it only live_destroy is legal. Legal in every state. The part
 * carries a KeyUpdate that is still due, a takeover's too; it does not carry a due warning. */
void live_freeze(struct live *l, struct live_part *out);

/* The read sequence is that of the first unfinished record, if there is one. */
struct live_position live_position(const struct live *l);
/* So many of the records that were opened last have a message whose end has not come (RFC 8446 5.1): at most four. They
 * are not consumed, because only this owner has what they said. */
unsigned live_unfinished(const struct live *l);
/* Is the epoch a part of each nonce (TLS 1.2 with AES-GCM)? */
bool live_has_record_nonce(const struct live *l);
