/* hello_maker.c: two SSL objects, each the other's peer. The first bytes that the client writes are its hello. */
#include "tests/unit/proto/hello_maker.h"

#include <check.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <string.h>

struct pair {
	SSL_CTX *client_context, *server_context;
	SSL *client, *server;
};

static X509 *certificate_make(EVP_PKEY *key)
{
	X509 *x = X509_new();
	X509_set_version(x, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_NAME_add_entry_by_txt(
		X509_get_subject_name(x), "CN", MBSTRING_ASC, (const uint8_t *)HELLO_SERVER_NAME, -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	X509_set_pubkey(x, key);
	ck_assert_int_gt(X509_sign(x, key, EVP_sha256()), 0);
	return x;
}

static SSL_CTX *context_make(const SSL_METHOD *method, const struct hello_kind *kind)
{
	SSL_CTX *c = SSL_CTX_new(method);
	ck_assert_ptr_nonnull(c);
	SSL_CTX_set_min_proto_version(c, kind->version);
	SSL_CTX_set_max_proto_version(c, kind->version);
	SSL_CTX_set_options(c, kind->options);
	if (kind->suites)
		ck_assert_int_eq(SSL_CTX_set_cipher_list(c, kind->suites), 1);
	return c;
}

static SSL_CTX *server_context_make(const struct hello_kind *kind)
{
	SSL_CTX *c = context_make(TLS_server_method(), kind);
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = certificate_make(key);
	ck_assert_int_eq(SSL_CTX_use_certificate(c, certificate), 1);
	ck_assert_int_eq(SSL_CTX_use_PrivateKey(c, key), 1);
	SSL_CTX_set_session_id_context(c, (const uint8_t *)"t", 1);
	X509_free(certificate);
	EVP_PKEY_free(key);
	return c;
}

/* As many names of ten bytes as asked for. */
static void offer_alpn(SSL *client, unsigned names)
{
	uint8_t list[11 * 200 + 1]; /* the last one's terminating zero */
	ck_assert_uint_le(names, 200);
	for (unsigned i = 0; i < names; i++)
		snprintf((char *)list + 11u * i, 12, "\nprotocol%02u", i % 100);
	if (names)
		ck_assert_int_eq(SSL_set_alpn_protos(client, list, 11 * names), 0);
}

static SSL *client_make(SSL_CTX *context, const struct hello_kind *kind)
{
	SSL *s = SSL_new(context);
	SSL_set_bio(s, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_connect_state(s);
	if (kind->server_name)
		ck_assert_int_eq(SSL_set_tlsext_host_name(s, kind->server_name), 1);
	if (kind->fragment)
		ck_assert_int_eq(SSL_set_max_send_fragment(s, kind->fragment), 1);
	offer_alpn(s, kind->alpn_names);
	return s;
}

/* The client's first flight; it stays in the client's BIO too. */
static void take_hello(SSL *client, struct hello *out)
{
	char *bytes;
	ck_assert_int_le(SSL_do_handshake(client), 0);
	out->len = (size_t)BIO_get_mem_data(SSL_get_wbio(client), &bytes);
	ck_assert_uint_gt(out->len, 0);
	ck_assert_uint_le(out->len, sizeof(out->bytes));
	memcpy(out->bytes, bytes, out->len);
}

static void carry(SSL *from, SSL *to)
{
	uint8_t bytes[4096];
	int len;
	while ((len = BIO_read(SSL_get_wbio(from), bytes, sizeof(bytes))) > 0)
		ck_assert_int_eq(BIO_write(SSL_get_rbio(to), bytes, len), len);
}

/* To the end of the handshake, and the client reads the tickets behind it. */
static void shake(const struct pair *p)
{
	uint8_t byte;
	for (unsigned turn = 0; turn < 4; turn++) {
		SSL_do_handshake(p->client);
		carry(p->client, p->server);
		SSL_do_handshake(p->server);
		carry(p->server, p->client);
	}
	ck_assert_int_eq(SSL_is_init_finished(p->client) && SSL_is_init_finished(p->server), 1);
	ck_assert_int_le(SSL_read(p->client, &byte, 1), 0);
}

static void pair_start(struct pair *p, const struct hello_kind *kind)
{
	p->client = client_make(p->client_context, kind);
	p->server = SSL_new(p->server_context);
	SSL_set_bio(p->server, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_accept_state(p->server);
}

/* In order: OpenSSL forgets a session whose connection was not closed. */
static void pair_stop(struct pair *p)
{
	SSL_set_shutdown(p->client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_set_shutdown(p->server, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(p->client);
	SSL_free(p->server);
}

void hello_fresh(const struct hello_kind *kind, struct hello *out)
{
	SSL_CTX *context = context_make(TLS_client_method(), kind);
	SSL *client = client_make(context, kind);
	take_hello(client, out);
	SSL_free(client);
	SSL_CTX_free(context);
}

void hello_resuming(const struct hello_kind *kind, struct hello *out, SSL_SESSION **session)
{
	struct pair p = { .client_context = context_make(TLS_client_method(), kind),
		.server_context = server_context_make(kind) };
	pair_start(&p, kind);
	shake(&p);
	*session = SSL_get1_session(p.client);
	pair_stop(&p);

	pair_start(&p, kind);
	ck_assert_int_eq(SSL_set_session(p.client, *session), 1);
	take_hello(p.client, out);
	shake(&p);
	ck_assert_int_eq(SSL_session_reused(p.server), 1);
	pair_stop(&p);
	SSL_CTX_free(p.client_context);
	SSL_CTX_free(p.server_context);
}
