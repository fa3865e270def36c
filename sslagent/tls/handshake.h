/* handshake.h: one TLS handshake by OpenSSL on memory BIOs, and the export of its result.
 *
 * The caller feeds whole records, one at a time. So at the end no byte of the client is left inside OpenSSL, and the
 * number of consumed records is exact. At the end handshake_export() takes the state out through public API only (the
 * key schedule's secrets for TLS 1.3, master key and randoms for TLS 1.2) and the SSL object is freed with the
 * handshake, without marking the session bad.
 */
#pragma once

#include "net/limits/handshake_limit.h"
#include "net/loop/turn_share.h"
#include "proto/tls_record.h"
#include "sslagent/tls/client_certificate.h"
#include "sslagent/tls/session_source.h"

struct tls_contexts;
struct tls_listener;
struct handshake;

/* Why a handshake failed, in the order of the counters (counters.h). */
enum refusal {
	REFUSAL_VERSION,
	REFUSAL_CIPHER, /* or group, or signature algorithm */
	REFUSAL_ALPN,
	REFUSAL_CERTIFICATE,
	REFUSAL_ALERT, /* the client's */
	REFUSAL_MESSAGE,
	REFUSAL_TIMEOUT,
	REFUSAL_CLIENT_GONE,
	REFUSAL_HELLO, /* it claims more than CLIENT_HELLO_MAX */
	REFUSAL_OTHER
};

struct handshake_params {
	struct connection_id connection;
	struct client_address client;
	struct worker *worker; /* handed to session_source.share */
};

/* @contexts is referenced until destroy. NULL: out of memory. */
struct handshake *handshake_create(
	struct tls_contexts *contexts, const struct tls_listener *listener, const struct handshake_params *params);
void handshake_destroy(struct handshake *h);

/* Its place in the holder's list of handshakes under way. The holder removes it from the list before destroy. */
struct handshake_place *handshake_place(struct handshake *h);
struct turn_waiter *handshake_waiter(struct handshake *h);

enum handshake_step {
	HANDSHAKE_MORE = 1, /* wants the next record */
	HANDSHAKE_PARKED, /* in the ClientHello: pull the session of handshake_wanted_id(), then handshake_continue() */
	HANDSHAKE_DONE,   /* complete; output drained first, then export */
};

/* Feed one whole record. A step above, or negative: failed (the alert, if any, is in the output; handshake_error() has
 * the cause). */
int handshake_feed(struct handshake *h, const uint8_t *record, size_t len);
/* The next bytes are no record; @bad is what was read as a header. Returns negative, as when a record makes the
 * handshake fail. */
int handshake_violation(struct handshake *h, const struct tls_record_header *bad);
/* The pull has ended so. A session that came may be gone again when the handshake goes on, because others hold it: then
 * it parks once more. */
void handshake_pulled(struct handshake *h, enum session_answer answer);
/* Call it after a pull ended, or when there can be none. If the session is absent, the handshake becomes a full one.
 */
int handshake_continue(struct handshake *h);
/* No record has come for now: between two it needs no buffers for records (33 KB). */
void handshake_rest(struct handshake *h);
bool handshake_is_parked(const struct handshake *h);
const uint8_t *handshake_wanted_id(const struct handshake *h);
const char *handshake_error(const struct handshake *h); /* "": it has not failed */
enum refusal handshake_refusal(const struct handshake *h);
/* Server name and JA4, as far as the hello has come. */
void handshake_hello_facts(const struct handshake *h, struct session_facts *out);

/* The standing of the client certificate of the last session that the client offered and that this agent has. Unless
 * the certificate stands, the handshake is a full one. */
enum certificate_standing handshake_offered_certificate(const struct handshake *h);

/* Records that OpenSSL produced and the caller has not taken yet. At MORE, PARKED and DONE they are whole records.
 */
size_t handshake_output(struct handshake *h, const uint8_t **data);
void handshake_output_taken(struct handshake *h, size_t len);
/* The first of them, at most @max bytes. 0, with an empty run when there is none; CSSL_E_CRYPTO: they are no records.
 */
int handshake_output_run(struct handshake *h, size_t max, const uint8_t **data, struct tls_record_run *run);

/* Take the state out, once, after DONE: facts, the client's certificate and the live part (position: sequence numbers
 * after the tickets OpenSSL wrote; generation 0; epoch 1). The pointers in @out belong to the handshake;
 * handshake_destroy wipes that memory. The session itself was shared through the session source before. CSSL_E_STATE:
 * cannot be exported (bytes inside OpenSSL, output not drained, suite not AEAD). */
struct handshake_facts {
	enum { HANDSHAKE_FULL, HANDSHAKE_RESUMED } kind;
	enum { RESUMED_NOT, RESUMED_BY_ID, RESUMED_BY_PSK, RESUMED_BY_TICKET } by;
	enum { EARLY_DATA_NONE, EARLY_DATA_SKIPPED } early_data; /* early data that the client offered */
	unsigned sessions_refused;     /* made, but not shared: too large, or refused by the source */
	unsigned sessions_without_ems; /* TLS 1.2: made without an extended master secret, and not shared */
};
int handshake_export(struct handshake *h, struct sess_obj *out, struct handshake_facts *facts);
