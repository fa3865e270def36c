/* aead.c: EVP finds a cipher; then its provider is asked for the functions. A key's one context does both directions:
 * each operation gives the direction with the nonce and leaves the key schedule alone. */
#include "proto/aead.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "proto/error.h"

#define NAME_MAX_LEN 64u

struct aead_cipher {
	EVP_CIPHER *evp; /* keeps the provider loaded */
	const OSSL_PROVIDER *provider;
	const OSSL_ALGORITHM *offered; /* all ciphers of the provider */
	size_t key_len;                /* bytes */
	OSSL_FUNC_cipher_newctx_fn *create;
	OSSL_FUNC_cipher_freectx_fn *free;
	OSSL_FUNC_cipher_encrypt_init_fn *begin[2]; /* by enum aead_direction; both have the same type */
	OSSL_FUNC_cipher_update_fn *update;
	OSSL_FUNC_cipher_final_fn *final;
	OSSL_FUNC_cipher_get_ctx_params_fn *get;
	OSSL_FUNC_cipher_set_ctx_params_fn *set;
};

/* --- finding the functions --- */

/* @names: of one algorithm, with colons between them. */
static int has_name(const EVP_CIPHER *cipher, const char *names)
{
	const size_t len = strcspn(names, ":");
	char first[NAME_MAX_LEN];

	if (len >= sizeof first)
		return 0;
	memcpy(first, names, len);
	first[len] = '\0';
	return EVP_CIPHER_is_a(cipher, first);
}

static void cipher_take(struct aead_cipher *c, const OSSL_DISPATCH *f)
{
	switch (f->function_id) {
	case OSSL_FUNC_CIPHER_NEWCTX: c->create = OSSL_FUNC_cipher_newctx(f); break;
	case OSSL_FUNC_CIPHER_FREECTX: c->free = OSSL_FUNC_cipher_freectx(f); break;
	case OSSL_FUNC_CIPHER_ENCRYPT_INIT: c->begin[AEAD_SEALS] = OSSL_FUNC_cipher_encrypt_init(f); break;
	case OSSL_FUNC_CIPHER_DECRYPT_INIT: c->begin[AEAD_OPENS] = OSSL_FUNC_cipher_decrypt_init(f); break;
	case OSSL_FUNC_CIPHER_UPDATE: c->update = OSSL_FUNC_cipher_update(f); break;
	case OSSL_FUNC_CIPHER_FINAL: c->final = OSSL_FUNC_cipher_final(f); break;
	case OSSL_FUNC_CIPHER_GET_CTX_PARAMS: c->get = OSSL_FUNC_cipher_get_ctx_params(f); break;
	case OSSL_FUNC_CIPHER_SET_CTX_PARAMS: c->set = OSSL_FUNC_cipher_set_ctx_params(f); break;
	default: break;
	}
}

static bool is_whole(const struct aead_cipher *c)
{
	return c->create && c->free && c->begin[AEAD_SEALS] && c->begin[AEAD_OPENS] && c->update && c->final &&
	       c->get && c->set;
}

static bool take_functions(struct aead_cipher *c)
{
	const OSSL_ALGORITHM *a = c->offered;

	while (a && a->algorithm_names && !has_name(c->evp, a->algorithm_names))
		a++;
	if (!a || !a->algorithm_names)
		return false;
	for (const OSSL_DISPATCH *f = a->implementation; f->function_id; f++)
		cipher_take(c, f);
	return is_whole(c);
}

struct aead_cipher *aead_cipher_fetch(OSSL_LIB_CTX *library, const char *name)
{
	struct aead_cipher *c = calloc(1, sizeof *c);
	int no_cache; /* the functions are there as long as the provider, whatever it says: EVP keeps them, too */

	if (!c)
		return NULL;
	c->evp = EVP_CIPHER_fetch(library, name, NULL);
	if (c->evp) {
		c->provider = EVP_CIPHER_get0_provider(c->evp);
		c->key_len = (size_t)EVP_CIPHER_get_key_length(c->evp);
		c->offered = OSSL_PROVIDER_query_operation(c->provider, OSSL_OP_CIPHER, &no_cache);
	}
	if (c->evp && take_functions(c))
		return c;
	aead_cipher_free(c);
	return NULL;
}

void aead_cipher_free(struct aead_cipher *c)
{
	if (!c)
		return;
	if (c->offered)
		OSSL_PROVIDER_unquery_operation(c->provider, OSSL_OP_CIPHER, c->offered);
	EVP_CIPHER_free(c->evp);
	free(c);
}

/* --- contexts --- */

struct aead_context *aead_context_create(const struct aead_cipher *c)
{
	return c->create(OSSL_PROVIDER_get0_provider_ctx(c->provider));
}

void aead_context_free(const struct aead_cipher *c, struct aead_context *x)
{
	if (x)
		c->free(x);
}

int aead_context_begin(const struct aead_cipher *c, struct aead_context *x, enum aead_direction direction,
	const uint8_t *key, const uint8_t *nonce)
{
	const size_t key_len = key ? c->key_len : 0, nonce_len = nonce ? AEAD_NONCE_LEN : 0;

	return c->begin[direction](x, key, key_len, nonce, nonce_len, NULL) == 1 ? 0 : CSSL_E_CRYPTO;
}

int aead_context_ad(const struct aead_cipher *c, struct aead_context *x, const uint8_t *ad, size_t len)
{
	size_t n;

	return c->update(x, NULL, &n, len, ad, len) == 1 ? 0 : CSSL_E_CRYPTO;
}

int aead_context_run(const struct aead_cipher *c, struct aead_context *x, const uint8_t *in, size_t len, uint8_t *out)
{
	size_t n;

	return c->update(x, out, &n, len, in, len) == 1 ? 0 : CSSL_E_CRYPTO;
}

int aead_context_seal(const struct aead_cipher *c, struct aead_context *x, uint8_t tag[static AEAD_TAG_LEN])
{
	OSSL_PARAM params[] = { OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, AEAD_TAG_LEN),
		OSSL_PARAM_construct_end() };
	uint8_t nothing[1];
	size_t n;

	return c->final(x, nothing, &n, sizeof nothing) == 1 && c->get(x, params) == 1 ? 0 : CSSL_E_CRYPTO;
}

int aead_context_open(const struct aead_cipher *c, struct aead_context *x, const uint8_t tag[static AEAD_TAG_LEN])
{
	const OSSL_PARAM params[] = { OSSL_PARAM_construct_octet_string(
					      OSSL_CIPHER_PARAM_AEAD_TAG, (uint8_t *)tag, AEAD_TAG_LEN),
		OSSL_PARAM_construct_end() };
	uint8_t nothing[1];
	size_t n;

	if (c->set(x, params) != 1)
		return CSSL_E_CRYPTO;
	return c->final(x, nothing, &n, sizeof nothing) == 1 ? 0 : CSSL_E_AUTH;
}

/* --- keys --- */

struct aead_key {
	struct aead_cipher *cipher;
	struct aead_context *context;
};

enum aead aead_preferred(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul"))
		return AEAD_AES_256_GCM;
#elif defined(__aarch64__)
	if ((getauxval(AT_HWCAP) & (HWCAP_AES | HWCAP_PMULL)) == (HWCAP_AES | HWCAP_PMULL))
		return AEAD_AES_256_GCM;
#endif
	return AEAD_CHACHA20_POLY1305;
}

enum aead aead_agree(enum aead a, enum aead b)
{
	return a == AEAD_AES_256_GCM && b == AEAD_AES_256_GCM ? AEAD_AES_256_GCM : AEAD_CHACHA20_POLY1305;
}

static const char *cipher_name(enum aead aead)
{
	switch (aead) {
	case AEAD_AES_256_GCM: return "AES-256-GCM";
	case AEAD_CHACHA20_POLY1305: return "ChaCha20-Poly1305";
	}
	return NULL;
}

struct aead_key *aead_key_create(enum aead aead, const uint8_t secret[static AEAD_SECRET_LEN])
{
	const char *name = cipher_name(aead);
	struct aead_key *k = name ? calloc(1, sizeof *k) : NULL;

	if (!k)
		return NULL;
	k->cipher = aead_cipher_fetch(NULL, name);
	if (k->cipher)
		k->context = aead_context_create(k->cipher);
	if (k->context && aead_key_replace(k, secret) == 0)
		return k;
	aead_key_destroy(k);
	return NULL;
}

void aead_key_destroy(struct aead_key *k)
{
	if (!k)
		return;
	if (k->cipher)
		aead_context_free(k->cipher, k->context);
	aead_cipher_free(k->cipher);
	free(k);
}

int aead_key_replace(struct aead_key *k, const uint8_t secret[static AEAD_SECRET_LEN])
{
	return aead_context_begin(k->cipher, k->context, AEAD_SEALS, secret, NULL);
}

/* All but the tag, for both directions. */
static int aead_run(struct aead_key *k, const struct aead_message *m, enum aead_direction direction, uint8_t *out)
{
	int r = aead_context_begin(k->cipher, k->context, direction, NULL, m->nonce);

	if (r == 0 && m->ad_len > 0)
		r = aead_context_ad(k->cipher, k->context, m->ad, m->ad_len);
	if (r == 0 && m->len > 0)
		r = aead_context_run(k->cipher, k->context, m->in, m->len, out);
	return r;
}

int aead_seal(struct aead_key *k, const struct aead_message *m, uint8_t *out, uint8_t tag[static AEAD_TAG_LEN])
{
	const int r = aead_run(k, m, AEAD_SEALS, out);

	return r ? r : aead_context_seal(k->cipher, k->context, tag);
}

int aead_open(struct aead_key *k, const struct aead_message *m, const uint8_t tag[static AEAD_TAG_LEN], uint8_t *out)
{
	int r = aead_run(k, m, AEAD_OPENS, out);

	if (r == 0)
		r = aead_context_open(k->cipher, k->context, tag);
	if (r && m->len > 0)
		OPENSSL_cleanse(out, m->len);
	return r;
}
