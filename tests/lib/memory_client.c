/* memory_client.c */
#include "tests/lib/memory_client.h"

#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/cipher_suite.h"
#include "proto/error.h"
#include "sslagent/tls/key_schedule.h"
#include "tests/lib/reframer.h"

struct memory_client {
	SSL_CTX *ctx;
	SSL *ssl;
	BIO *in, *out;
	SSL_SESSION *session;
	unsigned sessions;
	int alert;
	enum memory_client_end end;
	uint8_t secret[TRAFFIC_SECRET_MAX]; /* CLIENT_TRAFFIC_SECRET_N */
	uint8_t secret_len;
	unsigned records; /* written under it */
	/* Records of another length: what OpenSSL writes is dropped. */
	struct reframer *reframer; /* NULL: not asked for */
	BIO *reframed;
	enum { REFRAMES, REFRAMES_NO_MORE } reframing;
};

static int tls12_writing(struct memory_client *c, const struct cipher_suite *suite, struct direction_keys *keys);

static const struct cipher_suite *suite_of(const SSL *ssl)
{
	const SSL_CIPHER *agreed = SSL_get_current_cipher(ssl);

	return cipher_suite_find(SSL_CIPHER_get_protocol_id(agreed ? agreed : SSL_get_pending_cipher(ssl)));
}

static struct memory_client *client_of(const SSL *ssl)
{
	return SSL_get_app_data(ssl);
}

static int on_session(SSL *ssl, SSL_SESSION *session)
{
	struct memory_client *c = client_of(ssl);

	SSL_SESSION_free(c->session);
	c->session = session;
	c->sessions++;
	return 1; /* keeps the reference */
}

static void on_info(const SSL *ssl, int where, int value)
{
	if ((where & SSL_CB_READ_ALERT) == SSL_CB_READ_ALERT)
		client_of(ssl)->alert = value & 0xff;
}

/* The secret in a line of that label; its length, 0: it is another line. */
static uint8_t read_secret(const char *line, const char *label, uint8_t out[static TRAFFIC_SECRET_MAX])
{
	const char *hex = strrchr(line, ' ') + 1;
	uint8_t len = (uint8_t)(strlen(hex) / 2);

	if (strncmp(line, label, strlen(label)) != 0)
		return 0;
	for (size_t i = 0; i < len; i++)
		sscanf(hex + 2 * i, "%2hhx", &out[i]);
	return len;
}

static void on_keylog(const SSL *ssl, const char *line)
{
	struct memory_client *c = client_of(ssl);
	struct direction_keys handshake = { 0 };
	uint8_t secret[TRAFFIC_SECRET_MAX], len = read_secret(line, "CLIENT_TRAFFIC_SECRET_", secret);

	if (len) {
		memcpy(c->secret, secret, len);
		c->secret_len = len;
		c->records = 0;
	}
	handshake.secret_len = read_secret(line, "CLIENT_HANDSHAKE_TRAFFIC_SECRET", handshake.secret);
	if (handshake.secret_len && c->reframer)
		reframer_seal(c->reframer, suite_of(ssl), &handshake);
}

static void reframe(struct memory_client *c, int content_type, const void *buf, size_t len)
{
	struct direction_keys keys = { 0 };

	if (content_type > UINT8_MAX || c->reframing == REFRAMES_NO_MORE)
		return;
	reframer_take(c->reframer, (uint8_t)content_type, buf, len);
	if (content_type == TLS_CHANGE_CIPHER_SPEC && SSL_version(c->ssl) == TLS1_2_VERSION &&
		tls12_writing(c, suite_of(c->ssl), &keys) == 0)
		reframer_seal(c->reframer, suite_of(c->ssl), &keys);
}

/* In TLS 1.2 everything behind ChangeCipherSpec counts. */
static void on_message(int write_p, int version, int content_type, const void *buf, size_t len, SSL *ssl, void *arg)
{
	struct memory_client *c = client_of(ssl);
	const uint8_t *header = buf;

	if (write_p && c->reframer)
		reframe(c, content_type, buf, len);
	if (!write_p || content_type != SSL3_RT_HEADER)
		return;
	c->records++;
	if (header[0] == TLS_CHANGE_CIPHER_SPEC && SSL_version(ssl) == TLS1_2_VERSION)
		c->records = 0;
}

static int set_suite(SSL_CTX *ctx, uint16_t id)
{
	const struct cipher_suite *suite = cipher_suite_find(id);
	const uint8_t wire[2] = { (uint8_t)(id >> 8), (uint8_t)id };
	const SSL_CIPHER *cipher;

	if (!suite)
		return 0;
	if (suite->protocol_version == TLS1_3_VERSION)
		return SSL_CTX_set_ciphersuites(ctx, suite->name);
	SSL *any = SSL_new(ctx);
	cipher = SSL_CIPHER_find(any, wire);
	int ok = cipher && SSL_CTX_set_cipher_list(ctx, SSL_CIPHER_get_name(cipher));
	SSL_free(any);
	return ok;
}

static int set_alpn(SSL *ssl, const char *alpn)
{
	unsigned char wire[256];
	unsigned len = 0;
	char copy[256], *at = copy, *name;

	snprintf(copy, sizeof(copy), "%s", alpn);
	while ((name = strsep(&at, ","))) {
		wire[len++] = (unsigned char)strlen(name);
		memcpy(wire + len, name, strlen(name));
		len += (unsigned)strlen(name);
	}
	return SSL_set_alpn_protos(ssl, wire, len) == 0;
}

static int fragment_code(unsigned len)
{
	int code = 0;

	for (unsigned n = 256; n < len; n *= 2)
		code++;
	return code;
}

static int configure_context(SSL_CTX *ctx, const struct memory_client_config *config)
{
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, on_session);
	SSL_CTX_set_info_callback(ctx, on_info);
	SSL_CTX_set_keylog_callback(ctx, on_keylog);
	SSL_CTX_set_msg_callback(ctx, on_message);
	if (config->tickets == CLIENT_NO_TICKETS)
		SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	if (config->ems == CLIENT_WITHOUT_EMS)
		SSL_CTX_set_options(ctx, SSL_OP_NO_EXTENDED_MASTER_SECRET);
	if (config->ccs == CLIENT_NO_CCS)
		SSL_CTX_clear_options(ctx, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
	if (config->ca) {
		X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), config->ca);
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	}
	return (!config->version || (SSL_CTX_set_min_proto_version(ctx, config->version) &&
					    SSL_CTX_set_max_proto_version(ctx, config->version))) &&
	       (!config->suite || set_suite(ctx, config->suite)) &&
	       (!config->groups || SSL_CTX_set1_groups_list(ctx, config->groups));
}

/* A copy: OpenSSL marks the one it resumed from as used up, and tests use sessions again. */
static int set_session(SSL *ssl, SSL_SESSION *session)
{
	SSL_SESSION *copy = SSL_SESSION_dup(session);
	int ok = copy && SSL_set_session(ssl, copy);

	SSL_SESSION_free(copy);
	return ok;
}

static int configure(SSL *ssl, const struct memory_client_config *config)
{
	return (!config->server_name || SSL_set_tlsext_host_name(ssl, config->server_name)) &&
	       (!config->alpn || set_alpn(ssl, config->alpn)) &&
	       (!config->max_fragment ||
		       SSL_set_tlsext_max_fragment_length(ssl, (uint8_t)fragment_code(config->max_fragment))) &&
	       (!config->certificate || SSL_use_cert_and_key(ssl, config->certificate, config->key, NULL, 1)) &&
	       (!config->resume || set_session(ssl, config->resume));
}

struct memory_client *memory_client_create(const struct memory_client_config *config)
{
	struct memory_client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->alert = -1;
	c->ctx = SSL_CTX_new(TLS_client_method());
	if (!c->ctx || !configure_context(c->ctx, config))
		goto fail;
	c->ssl = SSL_new(c->ctx);
	c->in = BIO_new(BIO_s_mem());
	c->out = BIO_new(BIO_s_mem());
	if (!c->ssl || !c->in || !c->out)
		goto fail;
	SSL_set_bio(c->ssl, c->in, c->out);
	c->reframer = config->record_len ? reframer_create(config->record_len) : NULL;
	c->reframed = BIO_new(BIO_s_mem());
	if (!c->reframed || (config->record_len && !c->reframer))
		goto fail;
	SSL_set_app_data(c->ssl, c);
	SSL_set_connect_state(c->ssl);
	if (configure(c->ssl, config))
		return c;
fail:
	memory_client_destroy(c);
	return NULL;
}

void memory_client_destroy(struct memory_client *c)
{
	if (!c)
		return;
	if (c->ssl)
		SSL_set_shutdown(
			c->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); /* else its session is marked bad */
	SSL_free(c->ssl);                                                   /* and its BIOs */
	SSL_CTX_free(c->ctx);
	SSL_SESSION_free(c->session);
	reframer_destroy(c->reframer);
	BIO_free(c->reframed);
	free(c);
}

SSL *memory_client_ssl(struct memory_client *c)
{
	return c->ssl;
}

void memory_client_feed(struct memory_client *c, const void *bytes, size_t len)
{
	if (len > 0)
		BIO_write(c->in, bytes, (int)len);
}

/* In TLS 1.3 sequence numbers begin anew behind the handshake, and OpenSSL's records can go. */
static void collect_reframed(struct memory_client *c)
{
	if (!c->reframer || c->reframing == REFRAMES_NO_MORE)
		return;
	reframer_give(c->reframer, c->reframed);
	BIO_reset(c->out);
	if (SSL_is_init_finished(c->ssl) && SSL_version(c->ssl) == TLS1_3_VERSION)
		c->reframing = REFRAMES_NO_MORE;
}

/* The bytes that go out next. The reframed records go first. */
static BIO *next_output(struct memory_client *c)
{
	collect_reframed(c);
	return BIO_pending(c->reframed) > 0 ? c->reframed : c->out;
}

size_t memory_client_output(struct memory_client *c, const uint8_t **bytes)
{
	char *data = NULL;
	long len = BIO_get_mem_data(next_output(c), &data);

	*bytes = (const uint8_t *)data;
	return (size_t)len;
}

void memory_client_output_taken(struct memory_client *c, size_t len)
{
	char sink[4096];
	BIO *out = next_output(c);

	while (len > 0) {
		int n = BIO_read(out, sink, (int)(len < sizeof(sink) ? len : sizeof(sink)));
		if (n <= 0)
			abort();
		len -= (size_t)n;
	}
}

static int ended(struct memory_client *c, int result)
{
	int error = SSL_get_error(c->ssl, result);

	if (error == SSL_ERROR_WANT_READ)
		return 0;
	if (error == SSL_ERROR_ZERO_RETURN)
		c->end = CLIENT_CLOSE_NOTIFY;
	else
		c->end = c->alert >= 0 ? CLIENT_ALERT : CLIENT_FAILED;
	return -1;
}

int memory_client_handshake(struct memory_client *c)
{
	ERR_clear_error();
	int r = SSL_do_handshake(c->ssl);
	collect_reframed(c);
	return r == 1 ? 1 : ended(c, r);
}

void memory_client_write(struct memory_client *c, const void *data, size_t len)
{
	ERR_clear_error();
	if (c->reframer && c->reframing == REFRAMES)
		reframer_take(c->reframer, TLS_APPLICATION_DATA, data, len);
	else if (len > 0 && SSL_write(c->ssl, data, (int)len) != (int)len)
		c->end = CLIENT_FAILED;
}

ptrdiff_t memory_client_read(struct memory_client *c, void *out, size_t cap)
{
	ERR_clear_error();
	int n = SSL_read(c->ssl, out, (int)cap);
	return n > 0 ? n : ended(c, n);
}

enum memory_client_end memory_client_end(const struct memory_client *c)
{
	return c->end;
}

int memory_client_alert(const struct memory_client *c)
{
	return c->alert;
}

void memory_client_update_keys(struct memory_client *c, int request)
{
	SSL_key_update(c->ssl, request ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
	SSL_do_handshake(c->ssl);
}

void memory_client_close(struct memory_client *c)
{
	SSL_shutdown(c->ssl);
}

SSL_SESSION *memory_client_session(struct memory_client *c)
{
	if (c->session)
		SSL_SESSION_up_ref(c->session);
	return c->session;
}

unsigned memory_client_sessions(const struct memory_client *c)
{
	return c->sessions;
}

static int tls12_writing(struct memory_client *c, const struct cipher_suite *suite, struct direction_keys *keys)
{
	uint8_t master[48], client[32], server[32];
	struct direction_keys unused = { 0 };

	SSL_SESSION_get_master_key(SSL_get0_session(c->ssl), master, sizeof(master));
	SSL_get_client_random(c->ssl, client, sizeof(client));
	SSL_get_server_random(c->ssl, server, sizeof(server));
	return key_schedule_expand_block(
		TLS_ALGORITHMS_OPENSSL, suite, &(struct tls12_secrets){ master, client, server }, keys, &unused);
}

int memory_client_writing(struct memory_client *c, struct direction_keys *keys, uint64_t *sequence)
{
	const struct cipher_suite *suite = suite_of(c->ssl);

	*keys = (struct direction_keys){ .secret_len = c->secret_len };
	*sequence = c->records;
	if (suite->protocol_version == TLS12_VERSION_WIRE)
		return tls12_writing(c, suite, keys);
	memcpy(keys->secret, c->secret, c->secret_len);
	return 0;
}
