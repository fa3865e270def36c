/* live_internal.h: the structs that live.c, live_open.c and live_seal.c share. */
#pragma once

#include <openssl/kdf.h>

#include "conf/conf.h"
#include "net/memory/slabs.h"
#include "proto/cipher_suite.h"
#include "proto/sess_obj.h"
#include "proto/tls_record.h"
#include "sslagent/tls/record_aead.h"

struct live;

struct live_pool {
	struct record_aead *aead;
	EVP_KDF_CTX *schedule;
	struct slabs lives;
	uint64_t limit; /* records of one key, for tests; 0: the default, well below the limits of RFC 8446 5.5 */
};

/*
 *            KeyUpdate sealed            close_notify or a fatal alert sealed
 *   UNCOMMITTED <------------- OWNS ----------------------------------------> ENDED
 *        |  ------------------> |                                               |
 *        |      live_committed  |                                               |
 *        +---------------- live_freeze, from any of the three ------------------+---> FROZEN
 */
enum live_state { LIVE_OWNS, LIVE_UNCOMMITTED, LIVE_ENDED, LIVE_FROZEN };
void live_move(struct live *l, enum live_state to);

struct live_direction {
	struct direction_keys keys;
	struct record_key loaded;
	uint32_t generation;
	uint64_t sequence;
};

/* Limits for records that cost the client nothing. RFC 8446 appendix C.3 has no number; OpenSSL ends a connection after
 * 32 empty records in a row. Clients rekey after megabytes or minutes, so one KeyUpdate a second, and some at once, are
 * enough. Each KeyUpdate costs a key derivation, a sealed copy and a frame of the link. */
#define LIVE_KEY_UPDATE_EVERY_MS    1000u
#define LIVE_KEY_UPDATES_AT_ONCE    8u
/* So many in a row may have made the client wait, and for each connection some more: clients that came at once shall
 * not all end, and come again, at once. */
#define LIVE_KEY_UPDATES_PACED      4u
#define LIVE_KEY_UPDATES_PACED_MORE 8u /* fewer than so many */
#define LIVE_DATALESS_RECORDS_PER_S 128u

struct live_rate {
	uint64_t since_ms;
	uint64_t key_updates_paid_ms; /* each KeyUpdate adds LIVE_KEY_UPDATE_EVERY_MS to this time, or to now if that is
					 later */
	uint32_t dataless;
	uint32_t key_updates_paced; /* in a row, behind which the client had to wait */
};

#define KEY_UPDATE_LEN  5u /* type, 24-bit length, request_update (RFC 8446 4.6.3) */
/* RAgent keeps records that are not consumed, and reads on while one more has room in a window. */
#define BEGUN_BYTES_MAX (CONF_WINDOW_MIN - TLS_RECORD_MAX)

enum live_owed { OWES_NOTHING, OWES_KEY_UPDATE };
enum live_asked { ASKED_NOTHING, ASKED_KEY_UPDATE };
enum live_reading { READ_OPEN, READ_CLOSED, READ_FAILED };
enum live_renegotiation { HELLO_NONE, HELLO_WARNING_DUE, HELLO_REFUSED }; /* TLS 1.2 */

struct live {
	struct live_pool *pool;
	const struct cipher_suite *suite;
	struct connection_id connection;
	uint16_t epoch;
	uint16_t max_fragment; /* 0: 2^14 */
	uint32_t remaining_s;  /* as it came */
	uint8_t nonce_base[8]; /* R, TLS 1.2 AES-GCM */
	struct live_direction read, write;
	uint8_t state;        /* enum live_state */
	uint8_t frozen_state; /* enum live_state; in FROZEN: the state before it */
	/* Before the next data record: the client asked, or a lost owner's sequence numbers are in doubt. Moves with
	 * the part. */
	uint8_t owed;          /* enum live_owed */
	uint8_t asked;         /* enum live_asked; by the client, since its last KeyUpdate */
	uint8_t reading;       /* enum live_reading */
	uint8_t renegotiation; /* enum live_renegotiation */
	uint8_t alert_owed;    /* enum tls_alert */
	uint8_t end_reason;    /* enum end_reason */
	/* TLS 1.3: a KeyUpdate whose end has not come. A successor opens its records again. */
	uint8_t begun_len;     /* bytes of it */
	uint8_t begun_records; /* records that had them, at least a byte each */
	uint8_t begun[KEY_UPDATE_LEN];
	uint32_t begun_bytes; /* of those records, padding included: at most BEGUN_BYTES_MAX */
	uint32_t hello_left;  /* bytes of the refused ClientHello still to come */
	struct live_rate rate;
};

static inline bool live_is_tls13(const struct live *l)
{
	return l->suite->protocol_version == TLS13_VERSION_WIRE;
}

/* TLS 1.2 AES-GCM (RFC 5288): 8 bytes of the nonce stand in the record. */
static inline size_t live_explicit_nonce_len(const struct live *l)
{
	return AEAD_IV_LEN - l->suite->iv_len;
}

uint64_t live_limit(const struct live *l);
bool live_tls12_limit_reached(const struct live *l);

/* iv XOR sequence (RFC 8446 5.3, RFC 7905 2). */
void live_nonce_from_sequence(const struct live_direction *d, uint8_t out[static AEAD_IV_LEN]);

/* seq | type | version | length (RFC 5246 6.2.3.3). */
#define TLS12_AD_LEN 13u
void live_tls12_ad(uint64_t sequence, uint8_t type, size_t len, uint8_t out[static TLS12_AD_LEN]);

/* TLS 1.3: to the next generation. 0, or CSSL_E_CRYPTO with nothing changed. */
int live_step_keys(struct live *l, struct live_direction *d);
