/* handshake_internal.h: the struct that handshake.c, export.c and the callbacks of OpenSSL share. */
#ifndef CSSL_SSLAGENT_HANDSHAKE_INTERNAL_H
#define CSSL_SSLAGENT_HANDSHAKE_INTERNAL_H

#include "proto/client_hello.h"
#include "sslagent/tls/handshake.h"
#include "sslagent/tls/key_schedule.h"
#include "sslagent/tls/own_provider.h"
#include "sslagent/tls/record_bio.h"
#include "sslagent/tls/session_family.h"
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
int handshake_may_move(enum handshake_state from, enum handshake_state to); /* 1 or 0 */
void handshake_move(struct handshake *h, enum handshake_state to);

/* The facts of the client's hello that are needed before OpenSSL reads it. */
struct hello {
	int error;                          /* 0, or why it is refused; then the rest is not its own */
	char server_name[NAME_MAX_LEN + 1]; /* normalized */
	enum { HELLO_TLS12, HELLO_TLS13 } version;
	enum { HELLO_WITHOUT_EMS, HELLO_WITH_EMS } ems; /* extended master secret (RFC 7627) */
};

/* A traffic secret, or as much of a key block as keys may need. */
struct derived {
	uint8_t bytes[KEY_BLOCK_MAX];
	uint8_t len; /* 0: not seen */
};
_Static_assert(KEY_BLOCK_MAX >= TRAFFIC_SECRET_MAX, "both have room");

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

/* Read @session's family, or make it a member of this handshake's (begun when it has none). 0 or negative. */
int handshake_join_family(struct handshake *h, SSL_SESSION *session);

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

#endif
