/* ticket_callbacks.c: the keys are unique per ticket: the source derives them from a cluster key and the ticket's iv.
 */
#include "sslagent/tls/ticket_callbacks.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/tls/session_callbacks.h"
#include "sslagent/tls/tls_library.h"

#define TICKET_IV_LEN 16

static int use_key(
	const struct ticket_key *key, const unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int seal)
{
	EVP_CIPHER *aes = EVP_CIPHER_fetch(tls_library(), "AES-256-CBC", NULL);
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key->mac_key, sizeof key->mac_key),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA2-256", 0),
		OSSL_PARAM_construct_end(),
	};

	int ok = aes && EVP_MAC_CTX_set_params(mac, params) == 1 &&
		 EVP_CipherInit_ex2(cipher, aes, key->cipher_key, iv, seal, NULL) == 1;
	EVP_CIPHER_free(aes);
	return ok;
}

/* 1: go on; 0: no such key, make a full handshake, or with no ticket in it (RFC 5077 3.3); -1: failed. */
static int on_ticket_key(
	SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int seal)
{
	struct session_source *source = handshake_of(ssl)->listener->source;
	struct ticket_key key;

	if (seal && !handshake_makes_resumable(handshake_of(ssl)))
		return 0;
	if (seal && RAND_bytes_ex(tls_library(), iv, TICKET_IV_LEN, 0) != 1)
		return -1;
	int r = source->ticket_key(source, seal ? NULL : name, iv, &key);
	if (r < 0) /* no key to seal with: this agent has just started, and its peers do not have its key yet */
		return 0;
	if (seal)
		memcpy(name, key.name, sizeof key.name);
	r = use_key(&key, iv, cipher, mac, seal) ? 1 : -1;
	OPENSSL_cleanse(&key, sizeof key);
	return r;
}

/* Called before the client learns of a session, stateful sessions included. Each child gets its listener's full
 * lifetime again; the family's age bounds a chain of resumptions. */
static int on_make_ticket(SSL *ssl, void *arg)
{
	struct handshake *h = handshake_of(ssl);
	SSL_SESSION *session = SSL_get_session(ssl);

	SSL_SESSION_set_timeout(session, (long)h->listener->conf->tls.session_lifetime_s);
	return handshake_join_family(h, session) == 0;
}

static SSL_TICKET_RETURN on_open_ticket(
	SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t name_len, SSL_TICKET_STATUS status, void *arg)
{
	struct handshake *h = handshake_of(ssl);
	struct session_family family;

	if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	if (session_family_read(session, &family) < 0 ||
		!handshake_may_resume(h, session, &family, SSL_SESSION_get0_hostname(session)))
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	h->accepted = OFFER_TICKET;
	return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

void ticket_callbacks_set(SSL_CTX *ctx, const struct tls_listener *l)
{
	SSL_CTX_set_session_ticket_cb(ctx, on_make_ticket, on_open_ticket, NULL);
	if (l->conf->tls.tls12_tickets == CONF_ON)
		SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket_key);
}
