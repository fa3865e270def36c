/* key_schedule.c: EVP_KDF "TLS13-KDF" and "TLS1-PRF". For TLS 1.3, one context per hash is kept. OpenSSL's context
 * keeps its parameters: all but secret and label are set once, and the secret is overwritten after each use. The
 * agent's own context keeps nothing: each derivation gives it all parameters. */
#include "sslagent/tls/key_schedule.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/tls/tls_library.h"

#define TLS12_MASTER_LEN 48u
#define TLS_RANDOM_LEN   32u

enum hash { HASH_SHA256, HASH_SHA384, HASH_COUNT };
static const char *const hash_names[] = { [HASH_SHA256] = "SHA2-256", [HASH_SHA384] = "SHA2-384" };
#define HASH_LEN(h) ((h) == HASH_SHA256 ? 32u : 48u)

struct key_schedule {
	EVP_KDF_CTX *expand[HASH_COUNT]; /* TLS 1.3 */
	enum tls_algorithms algorithms;
};

/* Write the parameters that all derivations with @hash share. Returns the place after them. */
static OSSL_PARAM *put_common(OSSL_PARAM *p, enum hash hash)
{
	static int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;

	*p++ = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
	*p++ = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)hash_names[hash], 0);
	*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, (void *)"tls13 ", 6);
	return p;
}

static EVP_KDF_CTX *expand_context(EVP_KDF *kdf, enum hash hash)
{
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);
	OSSL_PARAM params[4];

	*put_common(params, hash) = OSSL_PARAM_construct_end();
	if (ctx && EVP_KDF_CTX_set_params(ctx, params) != 1) {
		EVP_KDF_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

struct key_schedule *key_schedule_create(enum tls_algorithms a)
{
	struct key_schedule *k = calloc(1, sizeof *k);
	EVP_KDF *tls13 = EVP_KDF_fetch(tls_library(), "TLS13-KDF", tls_library_query(a));

	if (k)
		k->algorithms = a;
	for (unsigned h = 0; k && tls13 && h < HASH_COUNT; h++)
		k->expand[h] = expand_context(tls13, (enum hash)h);
	EVP_KDF_free(tls13); /* its contexts hold references */
	if (k && k->expand[HASH_SHA256] && k->expand[HASH_SHA384])
		return k;
	key_schedule_destroy(k);
	return NULL;
}

void key_schedule_destroy(struct key_schedule *k)
{
	if (!k)
		return;
	for (unsigned h = 0; h < HASH_COUNT; h++)
		EVP_KDF_CTX_free(k->expand[h]);
	free(k);
}

static enum hash hash_of(const struct cipher_suite *suite)
{
	return suite->hash_len == HASH_LEN(HASH_SHA384) ? HASH_SHA384 : HASH_SHA256;
}

/* HKDF-Expand-Label(secret, label, "", len), RFC 8446 7.1. */
static int expand(const struct key_schedule *k, const struct cipher_suite *suite, const uint8_t *secret,
	const char *label, uint8_t *out, size_t len)
{
	const enum hash hash = hash_of(suite);
	OSSL_PARAM params[6], *p = params;

	if (k->algorithms == TLS_ALGORITHMS_OWN)
		p = put_common(p, hash);
	*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)secret, suite->hash_len);
	*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, (void *)label, strlen(label));
	*p = OSSL_PARAM_construct_end();
	return EVP_KDF_derive(k->expand[hash], out, len, params) == 1 ? 0 : CSSL_E_CRYPTO;
}

static int forget_secret(const struct key_schedule *k, const struct cipher_suite *suite)
{
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)"", 1),
		OSSL_PARAM_construct_end(),
	};

	if (k->algorithms == TLS_ALGORITHMS_OWN)
		return 0;
	return EVP_KDF_CTX_set_params(k->expand[hash_of(suite)], params) == 1 ? 0 : CSSL_E_CRYPTO;
}

int key_schedule_derive(struct key_schedule *k, const struct cipher_suite *suite, struct direction_keys *d)
{
	int failed = expand(k, suite, d->secret, "key", d->key, suite->key_len) |
		     expand(k, suite, d->secret, "iv", d->iv, suite->iv_len) | forget_secret(k, suite);

	d->key_len = suite->key_len;
	d->iv_len = suite->iv_len;
	return failed ? CSSL_E_CRYPTO : 0;
}

int key_schedule_next_secret(
	struct key_schedule *k, const struct cipher_suite *suite, const uint8_t *secret, uint8_t *out)
{
	uint8_t next[TRAFFIC_SECRET_MAX];
	int failed = expand(k, suite, secret, "traffic upd", next, suite->hash_len) | forget_secret(k, suite);

	if (!failed)
		memcpy(out, next, suite->hash_len);
	OPENSSL_cleanse(next, sizeof next);
	return failed ? CSSL_E_CRYPTO : 0;
}

static int prf(EVP_KDF *kdf, const struct cipher_suite *suite, const struct tls12_secrets *s, uint8_t *out, size_t len)
{
	static const char label[] = "key expansion";
	uint8_t seed[sizeof label - 1 + 2 * TLS_RANDOM_LEN];
	EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;

	memcpy(seed, label, sizeof label - 1);
	memcpy(seed + sizeof label - 1, s->server_random, TLS_RANDOM_LEN);
	memcpy(seed + sizeof label - 1 + TLS_RANDOM_LEN, s->client_random, TLS_RANDOM_LEN);
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)hash_names[hash_of(suite)], 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SECRET, (void *)s->master, TLS12_MASTER_LEN),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, seed, sizeof seed),
		OSSL_PARAM_construct_end(),
	};
	int done = ctx && EVP_KDF_derive(ctx, out, len, params) == 1;
	EVP_KDF_CTX_free(ctx); /* wipes its secret */
	return done ? 0 : CSSL_E_CRYPTO;
}

static const uint8_t *take(uint8_t *to, uint8_t *to_len, const uint8_t *from, uint8_t len)
{
	memcpy(to, from, len);
	*to_len = len;
	return from + len;
}

size_t key_schedule_block_len(const struct cipher_suite *suite)
{
	return 2 * ((size_t)suite->key_len + suite->iv_len);
}

void key_schedule_cut_block(const struct cipher_suite *suite, const uint8_t *block, struct direction_keys *client_write,
	struct direction_keys *server_write)
{
	const uint8_t *at = block;

	at = take(client_write->key, &client_write->key_len, at, suite->key_len);
	at = take(server_write->key, &server_write->key_len, at, suite->key_len);
	at = take(client_write->iv, &client_write->iv_len, at, suite->iv_len);
	take(server_write->iv, &server_write->iv_len, at, suite->iv_len);
}

int key_schedule_expand_block(enum tls_algorithms a, const struct cipher_suite *suite, const struct tls12_secrets *s,
	struct direction_keys *client_write, struct direction_keys *server_write)
{
	uint8_t block[KEY_BLOCK_MAX];
	int r = prf(tls_library_prf(a), suite, s, block, key_schedule_block_len(suite));

	if (r == 0)
		key_schedule_cut_block(suite, block, client_write, server_write);
	OPENSSL_cleanse(block, sizeof block);
	return r;
}
