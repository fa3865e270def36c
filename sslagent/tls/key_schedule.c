/* key_schedule.c: EVP_KDF "TLS13-KDF" and "TLS1-PRF". Each derivation gives all its parameters, and leaves none. */
#include "sslagent/tls/key_schedule.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <string.h>

#include "proto/error.h"

#define TLS12_MASTER_LEN 48u
#define TLS_RANDOM_LEN   32u

EVP_KDF_CTX *key_schedule_create(enum tls_algorithms a)
{
	EVP_KDF *kdf = EVP_KDF_fetch(tls_library(), OSSL_KDF_NAME_TLS1_3_KDF, tls_library_query(a));
	EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;

	EVP_KDF_free(kdf); /* its context holds a reference */
	return ctx;
}

/* HKDF-Expand-Label(secret, label, "", len), RFC 8446 7.1. */
static int key_schedule_expand(EVP_KDF_CTX *k, const struct cipher_suite *suite, const uint8_t *secret,
	const char *label, uint8_t *out, size_t len)
{
	static int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)suite->digest, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, (void *)"tls13 ", 6),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)secret, suite->hash_len),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, (void *)label, strlen(label)),
		OSSL_PARAM_construct_end(),
	};
	const bool done = EVP_KDF_derive(k, out, len, params) == 1;

	EVP_KDF_CTX_reset(k); /* OpenSSL's would keep the secret */
	return done ? 0 : CSSL_E_CRYPTO;
}

int key_schedule_derive(EVP_KDF_CTX *k, const struct cipher_suite *suite, struct direction_keys *d)
{
	const int r = key_schedule_expand(k, suite, d->secret, "key", d->key, suite->key_len);

	d->key_len = suite->key_len;
	d->iv_len = suite->iv_len;
	return r < 0 ? r : key_schedule_expand(k, suite, d->secret, "iv", d->iv, suite->iv_len);
}

int key_schedule_next_secret(EVP_KDF_CTX *k, const struct cipher_suite *suite, const uint8_t *secret, uint8_t *out)
{
	uint8_t next[TRAFFIC_SECRET_MAX];
	const int r = key_schedule_expand(k, suite, secret, "traffic upd", next, suite->hash_len);

	if (r == 0)
		memcpy(out, next, suite->hash_len);
	OPENSSL_cleanse(next, sizeof next);
	return r;
}

static int key_schedule_prf(enum tls_algorithms a, const struct cipher_suite *suite, const struct tls12_secrets *s,
	uint8_t *out, size_t len)
{
	static const char label[] = "key expansion";
	uint8_t seed[sizeof label - 1 + 2 * TLS_RANDOM_LEN];
	EVP_KDF *kdf = EVP_KDF_fetch(tls_library(), OSSL_KDF_NAME_TLS1_PRF, tls_library_query(a));
	EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;

	memcpy(seed, label, sizeof label - 1);
	memcpy(seed + sizeof label - 1, s->server_random, TLS_RANDOM_LEN);
	memcpy(seed + sizeof label - 1 + TLS_RANDOM_LEN, s->client_random, TLS_RANDOM_LEN);
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)suite->digest, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SECRET, (void *)s->master, TLS12_MASTER_LEN),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, seed, sizeof seed),
		OSSL_PARAM_construct_end(),
	};
	bool done = ctx && EVP_KDF_derive(ctx, out, len, params) == 1;
	EVP_KDF_CTX_free(ctx); /* wipes its secret */
	EVP_KDF_free(kdf);
	return done ? 0 : CSSL_E_CRYPTO;
}

static const uint8_t *key_schedule_take(uint8_t *to, uint8_t *to_len, const uint8_t *from, uint8_t len)
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

	at = key_schedule_take(client_write->key, &client_write->key_len, at, suite->key_len);
	at = key_schedule_take(server_write->key, &server_write->key_len, at, suite->key_len);
	at = key_schedule_take(client_write->iv, &client_write->iv_len, at, suite->iv_len);
	key_schedule_take(server_write->iv, &server_write->iv_len, at, suite->iv_len);
}

int key_schedule_expand_block(enum tls_algorithms a, const struct cipher_suite *suite, const struct tls12_secrets *s,
	struct direction_keys *client_write, struct direction_keys *server_write)
{
	uint8_t block[KEY_BLOCK_MAX];
	int r = key_schedule_prf(a, suite, s, block, key_schedule_block_len(suite));

	if (r == 0)
		key_schedule_cut_block(suite, block, client_write, server_write);
	OPENSSL_cleanse(block, sizeof block);
	return r;
}
