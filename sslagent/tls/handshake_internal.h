/* handshake_internal.h: the struct that handshake.c, export.c and the callbacks of OpenSSL share. */
#pragma once

#include "proto/client_hello.h"
#include "sslagent/tls/handshake.h"
#include "sslagent/tls/key_schedule.h"
#include "sslagent/tls/own_provider.h"
#include "sslagent/tls/tls_contexts_internal.h"

/*
 *   FEEDING <--> PARKED      FEEDING --> COMPLETE --> EXPORTED
 *   each but EXPORTED --> FAILED
 */
enum handshake_state {
	HANDSHAKE_FEEDING,
	HANDSHAKE_IS_PARKED,
	HANDSHAKE_COMPLETE,
	HANDSHAKE_EXPORTED,
	HANDSHAKE_FAILED
};
void handshake_move(struct handshake *h, enum handshake_state to);

/* The facts of the client's hello that are needed before OpenSSL reads it. */
struct hello {
	int error;                          /* 0, or why it is refused; then the rest is not its own */
	char server_name[NAME_MAX_LEN + 1]; /* normalized */
	enum { HELLO_TLS12, HELLO_TLS13 } version;
	enum { HELLO_WITHOUT_EMS, HELLO_WITH_EMS } ems; /* extended master secret (RFC 7627) */
};

/* OpenSSL's two memory BIOs as one: it reads from the fed record without a copy, and writes into one buffer of whole
 * records. So the bytes of the client that OpenSSL has not read yet are always known. Embedded; zeroed = empty. The
 * holder outlives the BIO. */
struct record_bio {
	const uint8_t *in; /* borrowed while a record is fed */
	size_t in_len;
	uint8_t *out; /* owned */
	size_t out_start, out_end, out_cap;
};

/* A traffic secret, or as much of a key block as keys may need. */
struct derived {
	uint8_t bytes[KEY_BLOCK_MAX];
	uint8_t len; /* 0: not seen */
};
_Static_assert(KEY_BLOCK_MAX >= TRAFFIC_SECRET_MAX, "both have room");

/* A full handshake and all sessions resumed from it. They live in the session's ticket appdata, which OpenSSL carries
 * in i2d, in tickets, and into the sessions it makes from a resumed one: so children inherit them. */
struct session_family {
	uint8_t id[FAMILY_ID_LEN];
	uint64_t since_s; /* on this agent's wall clock */
	struct client_address client;
	enum { FAMILY_UNKNOWN, FAMILY_KNOWN } state;
};

struct handshake {
	SSL *ssl;
	struct record_bio bio;
	struct tls_contexts *contexts; /* referenced */
	const struct tls_listener *listener;
	struct handshake_params params;
	struct handshake_place place;
	struct turn_waiter waiter;
	enum handshake_state state;
	unsigned records; /* fed */
	struct client_hello_watch watch;
	struct hello hello;
	struct ja4 ja4;

	/* Resumption. */
	struct sess_obj found; /* found at the hello, for OpenSSL's later question */
	enum { PULL_NOT_NEEDED, PULL_WAITS, PULL_ENDED } pull;
	unsigned pulls; /* begun */
	uint8_t wanted[SESSION_ID_LEN];
	enum { OFFER_NONE, OFFER_ID, OFFER_PSK, OFFER_TICKET } accepted; /* the last session that OpenSSL was given */
	enum certificate_standing offered_certificate;
	struct session_family family;
	unsigned sessions_refused, sessions_without_ems;
	uint8_t *certificate; /* the client's, DER, OPENSSL_malloc; found when first needed */
	int certificate_len;

	/* Facts for the export that only callbacks see. */
	struct derived derived[OWN_DERIVED_COUNT];
	unsigned records_after_finished; /* ours, TLS 1.3 */
	unsigned sealed_by_client;       /* records behind its ChangeCipherSpec, TLS 1.2 */
	size_t scanned;                  /* of bio.out, TLS 1.2 */
	enum { NONCE_BEFORE_CCS, NONCE_NEXT, NONCE_SEEN } nonce;
	uint8_t finished_nonce[8]; /* R */

	struct live_part part; /* of the export */
	char error[160];
	enum refusal refusal; /* FAILED */
};

/* The facts of this handshake and @session; the certificate of the client (NULL without), DER. */
int handshake_fill_facts(struct handshake *h, SSL_SESSION *session, struct session_facts *out);
const uint8_t *handshake_certificate(struct handshake *h, size_t *len);

/* For SSL_CTX_set_verify(): notes why a certificate is refused, and logs whose it is. RAgent is told the reason only:
 * in TLS 1.3 it does not know whose connection it is. */
int handshake_on_verify(int ok, X509_STORE_CTX *store);

static inline struct handshake *handshake_of(const SSL *ssl)
{
	return SSL_get_app_data(ssl);
}

/* --- record_bio.c --- */

/* For SSL_set_bio, reading and writing. NULL: out of memory. */
BIO *record_bio_create(struct record_bio *b);
/* Frees the output. Call it after the BIO was freed. */
void record_bio_clear(struct record_bio *b);

/* --- export.c --- */

/* TLS 1.3: count our records after the server's Finished (message callback). With OpenSSL's own key schedule, also
 * collect the secrets; otherwise export_watch() collects them. */
void export_callbacks_set(SSL_CTX *ctx, enum tls_algorithms a);

/* With the agent's own key schedule and PRF: traffic secrets and key blocks that this thread derives from now on belong
 * to @h; NULL: to no handshake. Call it before and after each step of OpenSSL. */
void export_watch(struct handshake *h);

/* TLS 1.2: search new output for the explicit nonce of our Finished. Call it after each step of OpenSSL. */
void export_watch_output(struct handshake *h);

/* --- hello_callback.c: runs before OpenSSL reads a ClientHello. It chooses the certificates by server name, parks the
 * handshake if an offered session is still elsewhere, and allows TLS 1.2 tickets where the listener does. --- */

/* A handshake message of the client, with its header: if it is a hello, its facts are noted. */
void hello_read(struct handshake *h, const uint8_t *message, size_t len);
void hello_callback_set(SSL_CTX *ctx);

/* --- session_callbacks.c: OpenSSL's questions about sessions and tickets, answered from the session source. It also
 * shares new sessions through that source. --- */

/* Use an external cache only, ids of the session source, and the lifetime of the listener; TLS 1.2 tickets under the
 * cluster's keys (RFC 5077), for listeners with tls12_tickets; and the family that every session carries. */
void session_callbacks_set(SSL_CTX *ctx, const struct tls_listener *l);

/* Ask the source, unless the last answer was for the same id. FOUND: h->found is filled. */
enum session_answer handshake_find_session(struct handshake *h, const uint8_t *id, size_t len);

/* Read @session's family, or make it a member of this handshake's (begun when it has none). 0 or negative. */
int handshake_join_family(struct handshake *h, SSL_SESSION *session);

/* Read the family of @session. 0; CSSL_E_NOT_FOUND: it has none, or not in this format. */
int session_family_read(SSL_SESSION *session, struct session_family *out);
/* 0 or CSSL_E_NO_MEMORY. */
int session_family_write(SSL_SESSION *session, const struct session_family *family);

/* Begin a new family at @now_s. The caller may fill in its client. */
void session_family_begin(struct session_family *out, uint64_t now_s);
/* The family that @facts describe, on this agent's clock. */
void session_family_from_facts(struct session_family *out, const struct session_facts *facts, uint64_t now_s);
/* 0 when the clock is before the family's beginning. */
uint32_t session_family_age_s(const struct session_family *family, uint64_t now_s);
