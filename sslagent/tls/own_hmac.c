/* own_hmac.c: both passes of HMAC, HKDF over it, and the algorithm HMAC that OpenSSL fetches for Finished messages,
 * binders and tickets: one context for each. OpenSSL's own HMAC looks up the digest, copies parameters and makes four
 * contexts. */
#include "sslagent/tls/own_provider_internal.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/params.h>
#include <string.h>

/* Under the last key. */
static bool own_hmac_begin(struct own_hmac *h)
{
	uint8_t inner[OWN_BLOCK_MAX];

	for (size_t i = 0; i < sizeof inner; i++)
		inner[i] = h->outer[i] ^ 0x5c ^ 0x36;
	bool ok = EVP_DigestInit_ex2(h->ctx, h->hash->md, NULL) == 1 &&
		  EVP_DigestUpdate(h->ctx, inner, h->hash->block_len) == 1;
	OPENSSL_cleanse(inner, sizeof inner);
	return ok;
}

bool own_hmac_key(struct own_hmac *h, struct own_bytes key)
{
	uint8_t hash[OWN_HASH_MAX];
	bool ok = true;

	if (key.len > h->hash->block_len) {
		ok = EVP_DigestInit_ex2(h->ctx, h->hash->md, NULL) == 1 &&
		     EVP_DigestUpdate(h->ctx, key.data, key.len) == 1 && EVP_DigestFinal_ex(h->ctx, hash, NULL) == 1;
		key = (struct own_bytes){ hash, h->hash->len };
	}
	memset(h->outer, 0x5c, sizeof h->outer);
	for (size_t i = 0; ok && i < key.len; i++)
		h->outer[i] ^= key.data[i];
	if (key.data == hash)
		OPENSSL_cleanse(hash, sizeof hash);
	return ok;
}

/* hash->len bytes. */
static bool own_hmac_end(struct own_hmac *h, uint8_t *out)
{
	uint8_t inner[OWN_HASH_MAX];
	bool ok = EVP_DigestFinal_ex(h->ctx, inner, NULL) == 1 && EVP_DigestInit_ex2(h->ctx, h->hash->md, NULL) == 1 &&
		  EVP_DigestUpdate(h->ctx, h->outer, h->hash->block_len) == 1 &&
		  EVP_DigestUpdate(h->ctx, inner, h->hash->len) == 1 && EVP_DigestFinal_ex(h->ctx, out, NULL) == 1;

	OPENSSL_cleanse(inner, sizeof inner);
	return ok;
}

bool own_hmac_of(struct own_hmac *h, const struct own_bytes *parts, unsigned count, uint8_t *out)
{
	bool ok = own_hmac_begin(h);

	for (unsigned i = 0; ok && i < count; i++)
		ok = parts[i].len == 0 || EVP_DigestUpdate(h->ctx, parts[i].data, parts[i].len) == 1;
	return ok && own_hmac_end(h, out);
}

bool own_hkdf_extract(struct own_hmac *h, struct own_bytes salt, struct own_bytes key, uint8_t *out)
{
	return own_hmac_key(h, salt) && own_hmac_of(h, &key, 1, out);
}

bool own_hkdf_expand(struct own_hmac *h, struct own_bytes key, struct own_bytes info, uint8_t *out, size_t len)
{
	uint8_t block[OWN_HASH_MAX], number = 1;
	struct own_bytes parts[3] = { { 0 }, info, { &number, 1 } }; /* the first one: the block before */
	bool ok = len <= 255 * h->hash->len && own_hmac_key(h, key);

	for (size_t n; ok && len > 0; out += n, len -= n, number++) {
		n = len < h->hash->len ? len : h->hash->len;
		ok = own_hmac_of(h, parts, 3, block);
		if (ok)
			memcpy(out, block, n);
		parts[0] = (struct own_bytes){ block, h->hash->len };
	}
	OPENSSL_cleanse(block, sizeof block);
	return ok;
}

/* --- as an algorithm; its hash is NULL until OpenSSL names one --- */

static void *on_mac_new(void *provider)
{
	struct own_hmac *m = OPENSSL_zalloc(sizeof *m);

	if (m)
		m->ctx = EVP_MD_CTX_new();
	return m;
}

static void on_mac_free(void *mac)
{
	struct own_hmac *m = mac;

	if (!m)
		return;
	EVP_MD_CTX_free(m->ctx);
	OPENSSL_clear_free(m, sizeof *m);
}

static bool own_hmac_begin_with(struct own_hmac *m, const uint8_t *key, size_t len)
{
	return m->hash && own_hmac_key(m, (struct own_bytes){ key, len }) && own_hmac_begin(m);
}

static int on_mac_set(void *mac, const OSSL_PARAM *params)
{
	const OSSL_PARAM *digest = params ? OSSL_PARAM_locate_const(params, OSSL_MAC_PARAM_DIGEST) : NULL;
	const OSSL_PARAM *key = params ? OSSL_PARAM_locate_const(params, OSSL_MAC_PARAM_KEY) : NULL;
	struct own_hmac *m = mac;

	if (digest && digest->data_type == OSSL_PARAM_UTF8_STRING)
		m->hash = own_hash_named(digest->data);
	return (!digest || m->hash) && (!key || own_hmac_begin_with(m, key->data, key->data_size));
}

static const OSSL_PARAM *on_mac_settable(void *mac, void *provider)
{
	static const OSSL_PARAM params[] = { OSSL_PARAM_utf8_string(OSSL_MAC_PARAM_DIGEST, NULL, 0),
		OSSL_PARAM_octet_string(OSSL_MAC_PARAM_KEY, NULL, 0), OSSL_PARAM_END };
	return params;
}

static int on_mac_get(void *mac, OSSL_PARAM *p)
{
	struct own_hmac *m = mac;
	OSSL_PARAM *size = OSSL_PARAM_locate(p, OSSL_MAC_PARAM_SIZE);

	return !size || (m->hash && OSSL_PARAM_set_size_t(size, m->hash->len));
}

static int on_mac_init(void *mac, const unsigned char *key, size_t len, const OSSL_PARAM *params)
{
	struct own_hmac *m = mac;

	if (!on_mac_set(m, params))
		return 0;
	return key ? own_hmac_begin_with(m, key, len) : m->hash && own_hmac_begin(m);
}

static int on_mac_update(void *mac, const unsigned char *in, size_t len)
{
	return EVP_DigestUpdate(((struct own_hmac *)mac)->ctx, in, len);
}

static int on_mac_final(void *mac, unsigned char *out, size_t *len, size_t cap)
{
	struct own_hmac *m = mac;

	if (!m->hash || cap < m->hash->len)
		return 0;
	*len = m->hash->len;
	return own_hmac_end(m, out);
}

static const OSSL_DISPATCH mac_functions[] = { { OSSL_FUNC_MAC_NEWCTX, (void (*)(void))on_mac_new },
	{ OSSL_FUNC_MAC_FREECTX, (void (*)(void))on_mac_free }, { OSSL_FUNC_MAC_INIT, (void (*)(void))on_mac_init },
	{ OSSL_FUNC_MAC_UPDATE, (void (*)(void))on_mac_update }, { OSSL_FUNC_MAC_FINAL, (void (*)(void))on_mac_final },
	{ OSSL_FUNC_MAC_SETTABLE_CTX_PARAMS, (void (*)(void))on_mac_settable },
	{ OSSL_FUNC_MAC_SET_CTX_PARAMS, (void (*)(void))on_mac_set },
	{ OSSL_FUNC_MAC_GET_CTX_PARAMS, (void (*)(void))on_mac_get }, { 0, NULL } };
const OSSL_ALGORITHM own_mac_algorithms[] = { { "HMAC", OWN_PROVIDER_PROPERTIES, mac_functions, NULL },
	{ NULL, NULL, NULL, NULL } };
