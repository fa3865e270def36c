/* own_hmac.c: HMAC (RFC 2104) of Finished messages, binders and tickets, over digests that are fetched once: one
 * context for each, where OpenSSL's own looks up the digest, copies parameters and makes four. */
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/params.h>
#include <string.h>

#include "sslagent/tls/own_provider_internal.h"

struct mac {
	const struct own_hash *hash;
	EVP_MD_CTX *ctx;
	uint8_t outer[OWN_BLOCK_MAX]; /* the key, padded */
};

static void *on_mac_new(void *provider)
{
	struct mac *m = OPENSSL_zalloc(sizeof(*m));

	if (m)
		m->ctx = EVP_MD_CTX_new();
	return m;
}

static void on_mac_free(void *mac)
{
	struct mac *m = mac;

	if (!m)
		return;
	EVP_MD_CTX_free(m->ctx);
	OPENSSL_clear_free(m, sizeof(*m));
}

static void *on_mac_dup(void *mac)
{
	const struct mac *from = mac;
	struct mac *m = on_mac_new(NULL);

	if (!m || EVP_MD_CTX_copy_ex(m->ctx, from->ctx) != 1) {
		on_mac_free(m);
		return NULL;
	}
	m->hash = from->hash;
	memcpy(m->outer, from->outer, sizeof(m->outer));
	return m;
}

/* Begin, under the key that is there. 1 or 0. */
static int mac_begin(struct mac *m)
{
	uint8_t inner[OWN_BLOCK_MAX];

	if (!m->hash)
		return 0;
	for (size_t i = 0; i < m->hash->block_len; i++)
		inner[i] = m->outer[i] ^ 0x5c ^ 0x36;
	int ok = EVP_DigestInit_ex2(m->ctx, m->hash->md, NULL) == 1 &&
		 EVP_DigestUpdate(m->ctx, inner, m->hash->block_len) == 1;
	OPENSSL_cleanse(inner, sizeof(inner));
	return ok;
}

static int mac_begin_with(struct mac *m, const uint8_t *key, size_t len)
{
	uint8_t short_key[OWN_HASH_MAX];

	if (!m->hash)
		return 0;
	if (len > m->hash->block_len) {
		if (EVP_DigestInit_ex2(m->ctx, m->hash->md, NULL) != 1 || EVP_DigestUpdate(m->ctx, key, len) != 1 ||
			EVP_DigestFinal_ex(m->ctx, short_key, NULL) != 1)
			return 0;
		key = short_key;
		len = m->hash->len;
	}
	memset(m->outer, 0x5c, sizeof(m->outer));
	for (size_t i = 0; i < len; i++)
		m->outer[i] ^= key[i];
	OPENSSL_cleanse(short_key, sizeof(short_key));
	return mac_begin(m);
}

static int on_mac_set(void *mac, const OSSL_PARAM *params)
{
	const OSSL_PARAM *digest = params ? OSSL_PARAM_locate_const(params, OSSL_MAC_PARAM_DIGEST) : NULL;
	const OSSL_PARAM *key = params ? OSSL_PARAM_locate_const(params, OSSL_MAC_PARAM_KEY) : NULL;
	struct mac *m = mac;

	if (digest && digest->data_type == OSSL_PARAM_UTF8_STRING)
		m->hash = own_hash_named(digest->data);
	return (!digest || m->hash) && (!key || mac_begin_with(m, key->data, key->data_size));
}

static const OSSL_PARAM *on_mac_settable(void *mac, void *provider)
{
	static const OSSL_PARAM params[] = { OSSL_PARAM_utf8_string(OSSL_MAC_PARAM_DIGEST, NULL, 0),
		OSSL_PARAM_octet_string(OSSL_MAC_PARAM_KEY, NULL, 0), OSSL_PARAM_END };
	return params;
}

static int on_mac_get(void *mac, OSSL_PARAM *p)
{
	struct mac *m = mac;
	OSSL_PARAM *size = OSSL_PARAM_locate(p, OSSL_MAC_PARAM_SIZE);

	return !size || (m->hash && OSSL_PARAM_set_size_t(size, m->hash->len));
}

static const OSSL_PARAM *on_mac_gettable(void *mac, void *provider)
{
	static const OSSL_PARAM params[] = { OSSL_PARAM_size_t(OSSL_MAC_PARAM_SIZE, NULL), OSSL_PARAM_END };
	return params;
}

static int on_mac_init(void *mac, const unsigned char *key, size_t len, const OSSL_PARAM *params)
{
	return on_mac_set(mac, params) && (key ? mac_begin_with(mac, key, len) : mac_begin(mac));
}

static int on_mac_update(void *mac, const unsigned char *in, size_t len)
{
	return EVP_DigestUpdate(((struct mac *)mac)->ctx, in, len);
}

static int on_mac_final(void *mac, unsigned char *out, size_t *len, size_t cap)
{
	struct mac *m = mac;
	uint8_t inner[OWN_HASH_MAX];

	if (!m->hash || cap < m->hash->len)
		return 0;
	*len = m->hash->len;
	return EVP_DigestFinal_ex(m->ctx, inner, NULL) == 1 && EVP_DigestInit_ex2(m->ctx, m->hash->md, NULL) == 1 &&
	       EVP_DigestUpdate(m->ctx, m->outer, m->hash->block_len) == 1 &&
	       EVP_DigestUpdate(m->ctx, inner, m->hash->len) == 1 && EVP_DigestFinal_ex(m->ctx, out, NULL) == 1;
}

static const OSSL_DISPATCH mac_functions[] = { { OSSL_FUNC_MAC_NEWCTX, (void (*)(void))on_mac_new },
	{ OSSL_FUNC_MAC_FREECTX, (void (*)(void))on_mac_free }, { OSSL_FUNC_MAC_DUPCTX, (void (*)(void))on_mac_dup },
	{ OSSL_FUNC_MAC_INIT, (void (*)(void))on_mac_init }, { OSSL_FUNC_MAC_UPDATE, (void (*)(void))on_mac_update },
	{ OSSL_FUNC_MAC_FINAL, (void (*)(void))on_mac_final },
	{ OSSL_FUNC_MAC_SETTABLE_CTX_PARAMS, (void (*)(void))on_mac_settable },
	{ OSSL_FUNC_MAC_SET_CTX_PARAMS, (void (*)(void))on_mac_set },
	{ OSSL_FUNC_MAC_GETTABLE_CTX_PARAMS, (void (*)(void))on_mac_gettable },
	{ OSSL_FUNC_MAC_GET_CTX_PARAMS, (void (*)(void))on_mac_get }, { 0, NULL } };
const OSSL_ALGORITHM own_mac_algorithms[] = { { "HMAC", OWN_PROVIDER_PROPERTIES, mac_functions, NULL },
	{ NULL, NULL, NULL, NULL } };
