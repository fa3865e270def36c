/* hello_callback.c: OpenSSL has parsed the hello's frame and gives its extensions. The callback runs again after a
 * HelloRetryRequest and after each parking, so each of its actions may run twice. */
#include <openssl/err.h>
#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"
#include "sslagent/tls/handshake_internal.h"

/* A hello may list hundreds of identities; clients offer one or two. */
#define IDENTITIES_MAX 4u

static struct wire_reader hello_extension(SSL *ssl, unsigned type)
{
	const unsigned char *data = NULL;
	size_t len = 0;

	if (SSL_client_hello_get0_ext(ssl, type, &data, &len) != 1)
		return (struct wire_reader){ 0 }; /* spent */
	return wire_reader(data, len);
}

static void read_extended_master_secret(SSL *ssl, struct hello *out)
{
	const unsigned char *data;
	size_t len;
	bool offered = SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_extended_master_secret, &data, &len) == 1;

	out->ems = offered ? HELLO_WITH_EMS : HELLO_WITHOUT_EMS;
}

/* true: this agent has the session; else look further. Notes a session that is elsewhere, unless a pull has ended in
 * vain.
 */
static bool hello_look_for(struct handshake *h, const uint8_t *id, size_t len)
{
	if (len != SESSION_ID_LEN)
		return false;
	enum session_answer answer = handshake_find_session(h, id, len);
	if (answer == SESSION_ELSEWHERE && h->pull == PULL_NOT_NEEDED) {
		memcpy(h->wanted, id, SESSION_ID_LEN);
		h->pull = PULL_WAITS;
		h->pulls++;
	}
	return answer == SESSION_FOUND;
}

/* RFC 8446 4.2.11. */
static bool look_for_identities(struct handshake *h)
{
	struct wire_reader r = hello_extension(h->ssl, TLSEXT_TYPE_psk);
	struct wire_reader list = wire_sub(&r, wire_u16(&r));

	for (unsigned i = 0; i < IDENTITIES_MAX && wire_left(&list) > 0; i++) {
		uint16_t len = wire_u16(&list);
		const uint8_t *id = wire_bytes(&list, len);
		wire_u32(&list); /* obfuscated age */
		if (id && hello_look_for(h, id, len))
			return true;
	}
	return false;
}

static bool look_for_session_id(struct handshake *h)
{
	const unsigned char *id = NULL;
	size_t len = SSL_client_hello_get0_session_id(h->ssl, &id);

	return len > 0 && hello_look_for(h, id, len);
}

/* The session_ticket extension of RFC 5077: may be empty. A client that sends a ticket has invented its session id. */
static bool takes_ticket(struct handshake *h)
{
	const unsigned char *data = NULL;
	size_t len = 0;

	if (h->listener->conf->tls.tls12_tickets != CONF_ON ||
		SSL_client_hello_get0_ext(h->ssl, TLSEXT_TYPE_session_ticket, &data, &len) != 1)
		return false;
	SSL_clear_options(h->ssl, SSL_OP_NO_TICKET);
	return len > 0;
}

static bool has_session(struct handshake *h)
{
	if (h->hello.version == HELLO_TLS13) /* its session id is only there for middleboxes */
		return look_for_identities(h);
	return takes_ticket(h) || look_for_session_id(h);
}

/* OpenSSL has a whole message, and has not looked into it yet. */
void hello_read(struct handshake *h, const uint8_t *message, size_t len)
{
	struct client_hello read;

	h->hello.error = client_hello_read(message, len, &read);
	if (h->hello.error < 0)
		return;
	host_name_normalize(read.server_name ? read.server_name : "", read.server_name_len, h->hello.server_name);
	h->hello.version = read.flags & CLIENT_HELLO_OFFERS_TLS13 && SSL_get_max_proto_version(h->ssl) != TLS1_2_VERSION
				   ? HELLO_TLS13
				   : HELLO_TLS12;
	if (!h->ja4.kind[0]) /* that of the first one, if there is a HelloRetryRequest */
		ja4_make(&read, &h->ja4);
}

static int on_client_hello(SSL *ssl, int *alert, void *arg)
{
	struct handshake *h = handshake_of(ssl);
	SSL_CTX *chosen;

	/* OpenSSL takes some malformed ones; what it says to one of a strange version is good. */
	if (h->hello.error < 0 && h->hello.error != CSSL_E_VERSION) {
		ERR_raise(ERR_LIB_SSL, SSL_R_BAD_EXTENSION);
		*alert = SSL_AD_DECODE_ERROR;
		return SSL_CLIENT_HELLO_ERROR;
	}
	read_extended_master_secret(ssl, &h->hello);
	chosen = tls_listener_choose(h->listener, h->hello.server_name);
	if (SSL_get_SSL_CTX(ssl) != chosen && !SSL_set_SSL_CTX(ssl, chosen)) {
		*alert = SSL_AD_INTERNAL_ERROR;
		return SSL_CLIENT_HELLO_ERROR;
	}
	if (!has_session(h) && h->pull == PULL_WAITS)
		return SSL_CLIENT_HELLO_RETRY;
	if (h->pull == PULL_WAITS)
		h->pull = PULL_NOT_NEEDED; /* another identity is here */
	return SSL_CLIENT_HELLO_SUCCESS;
}

/* Tells OpenSSL that the name was used: it acknowledges it (RFC 6066 3) and notes it in the session. */
static int on_server_name(SSL *ssl, int *alert, void *arg)
{
	return handshake_of(ssl)->hello.server_name[0] ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

void hello_callback_set(SSL_CTX *ctx)
{
	SSL_CTX_set_client_hello_cb(ctx, on_client_hello, NULL);
	SSL_CTX_set_tlsext_servername_callback(ctx, on_server_name);
}
