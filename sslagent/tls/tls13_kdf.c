/* tls13_kdf.c: HKDF over HMAC over digests that are fetched once. OpenSSL gives all parameters with each derivation, so
 * there is no state between two of them, and no copy of a secret but on the stack. */
#include "sslagent/tls/tls13_kdf.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "proto/error.h"

#define PROVIDER_NAME "cssl"

#define HASH_MAX  48u
#define BLOCK_MAX 128u
#define LABEL_MAX (2u + 1u + 255u + 1u + 255u) /* HkdfLabel */

static struct hash {
	const char *name, *other_name;
	size_t len, block_len;
	EVP_MD *md;
} hashes[] = { { "SHA2-256", "SHA256", 32, 64, NULL }, { "SHA2-384", "SHA384", 48, 128, NULL } };

static _Thread_local tls13_kdf_watcher *watcher;
static _Thread_local void *watcher_ctx;

void tls13_kdf_watch(tls13_kdf_watcher *fn, void *ctx)
{
	watcher = fn;
	watcher_ctx = ctx;
}

/* --- HMAC (RFC 2104) and HKDF (RFC 5869) --- */

struct bytes {
	const uint8_t *data;
	size_t len;
};

/* One of an HMAC's two passes; @pad: 0x36 or 0x5c. The key is not longer than a block. */
static int pass(
	EVP_MD_CTX *ctx, const struct hash *h, struct bytes key, uint8_t pad, const struct bytes parts[3], uint8_t *out)
{
	uint8_t block[BLOCK_MAX];

	memset(block, pad, h->block_len);
	for (size_t i = 0; i < key.len; i++)
		block[i] ^= key.data[i];
	int ok = EVP_DigestInit_ex2(ctx, h->md, NULL) == 1 && EVP_DigestUpdate(ctx, block, h->block_len) == 1;
	for (unsigned i = 0; ok && i < 3; i++)
		ok = parts[i].len == 0 || EVP_DigestUpdate(ctx, parts[i].data, parts[i].len) == 1;
	OPENSSL_cleanse(block, sizeof(block));
	return ok && EVP_DigestFinal_ex(ctx, out, NULL) == 1;
}

/* 1 or 0. */
static int hmac(EVP_MD_CTX *ctx, const struct hash *h, struct bytes key, const struct bytes parts[3], uint8_t *out)
{
	uint8_t short_key[HASH_MAX], inner[HASH_MAX];
	int ok = 1;

	if (key.len > h->block_len) {
		ok = EVP_DigestInit_ex2(ctx, h->md, NULL) == 1 && EVP_DigestUpdate(ctx, key.data, key.len) == 1 &&
		     EVP_DigestFinal_ex(ctx, short_key, NULL) == 1;
		key = (struct bytes){ short_key, h->len };
	}
	ok = ok && pass(ctx, h, key, 0x36, parts, inner) &&
	     pass(ctx, h, key, 0x5c, (const struct bytes[3]){ { inner, h->len } }, out);
	OPENSSL_cleanse(short_key, sizeof(short_key));
	OPENSSL_cleanse(inner, sizeof(inner));
	return ok;
}

static int extract(EVP_MD_CTX *ctx, const struct hash *h, struct bytes salt, struct bytes key, uint8_t *out)
{
	return hmac(ctx, h, salt, (const struct bytes[3]){ key }, out);
}

static int expand(EVP_MD_CTX *ctx, const struct hash *h, struct bytes key, struct bytes info, uint8_t *out, size_t len)
{
	uint8_t block[HASH_MAX];
	struct bytes before = { 0 };
	int ok = len <= 255 * h->len;

	for (uint8_t number = 1; ok && len > 0; number++) {
		size_t n = len < h->len ? len : h->len;
		ok = hmac(ctx, h, key, (const struct bytes[3]){ before, info, { &number, 1 } }, block);
		if (ok)
			memcpy(out, block, n);
		out += n;
		len -= n;
		before = (struct bytes){ block, h->len };
	}
	OPENSSL_cleanse(block, sizeof(block));
	return ok;
}

/* --- the schedule --- */

struct derivation {
	int mode;
	const struct hash *hash;
	struct bytes key, salt, prefix, label, data;
};

static const struct hash *hash_named(const char *name)
{
	for (unsigned i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++)
		if (strcasecmp(name, hashes[i].name) == 0 || strcasecmp(name, hashes[i].other_name) == 0)
			return &hashes[i];
	return NULL;
}

/* What OpenSSL wants, pointing into its parameters. 1 or 0. */
static int read_params(const OSSL_PARAM *p, struct derivation *d)
{
	const struct {
		const char *name;
		struct bytes *to;
	} rows[] = { { OSSL_KDF_PARAM_KEY, &d->key }, { OSSL_KDF_PARAM_SALT, &d->salt },
		{ OSSL_KDF_PARAM_PREFIX, &d->prefix }, { OSSL_KDF_PARAM_LABEL, &d->label },
		{ OSSL_KDF_PARAM_DATA, &d->data } };

	for (; p && p->key; p++) {
		for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			if (strcmp(p->key, rows[i].name) == 0)
				*rows[i].to = (struct bytes){ p->data, p->data_size };
		if (strcmp(p->key, OSSL_KDF_PARAM_DIGEST) == 0 && p->data_type == OSSL_PARAM_UTF8_STRING)
			d->hash = hash_named(p->data);
		else if (strcmp(p->key, OSSL_KDF_PARAM_MODE) == 0 && !OSSL_PARAM_get_int(p, &d->mode))
			return 0;
	}
	return d->hash && d->prefix.len + d->label.len <= 255 && d->data.len <= 255;
}

static size_t put(uint8_t *to, struct bytes b)
{
	if (b.len > 0)
		memcpy(to, b.data, b.len);
	return b.len;
}

/* HKDF-Expand-Label (RFC 8446 7.1). */
static int expand_label(
	EVP_MD_CTX *ctx, const struct derivation *d, struct bytes key, struct bytes context, uint8_t *out, size_t len)
{
	uint8_t info[LABEL_MAX] = { (uint8_t)(len >> 8), (uint8_t)len, (uint8_t)(d->prefix.len + d->label.len) };
	size_t at = 3;

	at += put(info + at, d->prefix);
	at += put(info + at, d->label);
	info[at++] = (uint8_t)context.len;
	at += put(info + at, context);
	return len <= UINT16_MAX && expand(ctx, d->hash, key, (struct bytes){ info, at }, out, len);
}

/* The next of early, handshake and master secret: from the one before (the salt) and what comes in (the key). */
static int next_secret(EVP_MD_CTX *ctx, const struct derivation *d, uint8_t *out, size_t len)
{
	static const uint8_t zeros[HASH_MAX];
	struct bytes key = d->key.data ? d->key : (struct bytes){ zeros, d->hash->len };
	uint8_t empty[HASH_MAX], derived[HASH_MAX];
	int ok = len == d->hash->len;

	if (!ok || !d->salt.data)
		return ok && extract(ctx, d->hash, (struct bytes){ 0 }, key, out);
	ok = EVP_DigestInit_ex2(ctx, d->hash->md, NULL) == 1 && EVP_DigestFinal_ex(ctx, empty, NULL) == 1 &&
	     expand_label(ctx, d, d->salt, (struct bytes){ empty, d->hash->len }, derived, d->hash->len) &&
	     extract(ctx, d->hash, (struct bytes){ derived, d->hash->len }, key, out);
	OPENSSL_cleanse(derived, sizeof(derived));
	return ok;
}

static void tell_watcher(const struct derivation *d, const uint8_t *secret, size_t len)
{
	static const char labels[][12] = { [CLIENT_TRAFFIC] = "c ap traffic", [SERVER_TRAFFIC] = "s ap traffic" };

	for (unsigned i = 0; watcher && i < 2; i++)
		if (d->label.len == sizeof(labels[i]) && memcmp(d->label.data, labels[i], sizeof(labels[i])) == 0)
			watcher(watcher_ctx, (enum traffic_direction)i, secret, len);
}

static int on_derive(void *kdf, unsigned char *out, size_t len, const OSSL_PARAM params[])
{
	struct derivation d = { .mode = -1 };
	EVP_MD_CTX *ctx = read_params(params, &d) ? EVP_MD_CTX_new() : NULL;
	int ok = 0;

	if (ctx && d.mode == EVP_KDF_HKDF_MODE_EXTRACT_ONLY)
		ok = next_secret(ctx, &d, out, len);
	else if (ctx && d.mode == EVP_KDF_HKDF_MODE_EXPAND_ONLY && d.key.data)
		ok = expand_label(ctx, &d, d.key, d.data, out, len);
	EVP_MD_CTX_free(ctx);
	if (ok)
		tell_watcher(&d, out, len);
	return ok;
}

/* --- HMAC as an algorithm of its own --- */

struct mac {
	const struct hash *hash;
	EVP_MD_CTX *ctx;
	uint8_t outer[BLOCK_MAX]; /* the key, padded */
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
	uint8_t inner[BLOCK_MAX];

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
	uint8_t short_key[HASH_MAX];

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
		m->hash = hash_named(digest->data);
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
	uint8_t inner[HASH_MAX];

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
static const OSSL_ALGORITHM macs[] = { { "HMAC", "provider=" PROVIDER_NAME, mac_functions, NULL },
	{ NULL, NULL, NULL, NULL } };

/* --- the provider --- */

static void *on_new(void *provider)
{
	return provider; /* nothing is kept, but NULL means failure */
}

static void on_free(void *kdf)
{
}

static const OSSL_DISPATCH kdf_functions[] = { { OSSL_FUNC_KDF_NEWCTX, (void (*)(void))on_new },
	{ OSSL_FUNC_KDF_FREECTX, (void (*)(void))on_free }, { OSSL_FUNC_KDF_DERIVE, (void (*)(void))on_derive },
	{ 0, NULL } };
static const OSSL_ALGORITHM kdfs[] = { { OSSL_KDF_NAME_TLS1_3_KDF, "provider=" PROVIDER_NAME, kdf_functions, NULL },
	{ NULL, NULL, NULL, NULL } };

static const OSSL_ALGORITHM *on_query(void *provider, int operation, int *no_cache)
{
	*no_cache = 0;
	return operation == OSSL_OP_KDF ? kdfs : operation == OSSL_OP_MAC ? macs : NULL;
}

static const OSSL_DISPATCH provider_functions[] = { { OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))on_query },
	{ 0, NULL } };

static int on_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out, void **provider)
{
	*out = provider_functions;
	*provider = hashes;
	return 1;
}

static OSSL_PROVIDER *own; /* until the process ends */
static int loaded = CSSL_E_CRYPTO;

/* Default properties of OpenSSL's configuration may rule it out (fips=yes): then no connection could be exported. */
static int is_what_contexts_get(void)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_TLS1_3_KDF, TLS13_KDF_QUERY);
	int is = kdf && strcmp(OSSL_PROVIDER_get0_name(EVP_KDF_get0_provider(kdf)), PROVIDER_NAME) == 0;

	EVP_KDF_free(kdf);
	return is;
}

static void load(void)
{
	for (unsigned i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++) {
		hashes[i].md = EVP_MD_fetch(NULL, hashes[i].name, NULL);
		if (!hashes[i].md)
			return;
	}
	/* Beside the providers that are there by default or by OpenSSL's configuration. */
	if (OSSL_PROVIDER_add_builtin(NULL, PROVIDER_NAME, on_init) != 1)
		return;
	own = OSSL_PROVIDER_try_load(NULL, PROVIDER_NAME, 1);
	if (own && is_what_contexts_get())
		loaded = 0;
}

int tls13_kdf_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	return loaded;
}
