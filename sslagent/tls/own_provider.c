/* own_provider.c: the provider, which has no state but the digests, and its key derivations: the key schedule of
 * TLS 1.3 (RFC 8446 7.1) and the pseudorandom function of TLS 1.2 (RFC 5246 5), as algorithms that OpenSSL fetches:
 * TLS13-KDF and TLS1-PRF. OpenSSL's own look up two algorithms and make five or six contexts for each derivation. A
 * handshake of TLS 1.3 has some twenty, one of TLS 1.2 four. These look up nothing.
 *
 * OpenSSL gives all parameters with each derivation. So no state remains between two of them, and secrets are copied to
 * the stack only. */
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <string.h>
#include <strings.h>

#include "proto/error.h"
#include "sslagent/tls/own_provider_internal.h"

#define LABEL_MAX (2u + 1u + 255u + 1u + 255u) /* HkdfLabel */
#define SEEDS_MAX 8u                           /* label, randoms or a transcript's hash: OpenSSL gives five */

static struct own_hash hashes[] = { { "SHA2-256", "SHA256", 32, 64, NULL }, { "SHA2-384", "SHA384", 48, 128, NULL } };

const struct own_hash *own_hash_named(const char *name)
{
	for (unsigned i = 0; i < sizeof hashes / sizeof hashes[0]; i++)
		if (strcasecmp(name, hashes[i].name) == 0 || strcasecmp(name, hashes[i].other_name) == 0)
			return &hashes[i];
	return NULL;
}

struct derivation {
	struct own_hmac hmac;
	int mode; /* TLS13-KDF, and the next five */
	struct own_bytes key, salt, prefix, label, data;
	struct own_bytes secret;               /* TLS1-PRF, and the seeds: together they are label and seed */
	struct own_bytes seeds[1 + SEEDS_MAX]; /* the first one is for P_hash */
	unsigned seed_count;
};

static _Thread_local own_derivation_watcher *watcher;
static _Thread_local void *watcher_ctx;

void own_derivations_watch(own_derivation_watcher *fn, void *ctx)
{
	watcher = fn;
	watcher_ctx = ctx;
}

static void tell_watcher(const struct derivation *d, const uint8_t *out, size_t len)
{
	static const struct own_bytes labels[] = { [OWN_CLIENT_TRAFFIC] = { (const uint8_t *)"c ap traffic", 12 },
		[OWN_SERVER_TRAFFIC] = { (const uint8_t *)"s ap traffic", 12 },
		[OWN_KEY_BLOCK] = { (const uint8_t *)"key expansion", 13 } };
	const struct own_bytes *label = d->seed_count ? &d->seeds[1] : &d->label;

	for (unsigned i = 0; watcher && i < sizeof labels / sizeof labels[0]; i++)
		if (label->len == labels[i].len && memcmp(label->data, labels[i].data, label->len) == 0)
			watcher(watcher_ctx, (enum own_derived)i, out, len);
}

/* Read OpenSSL's parameters; @d points into them. */
static bool read_params(const OSSL_PARAM *p, struct derivation *d)
{
	const struct {
		const char *name;
		struct own_bytes *to;
	} rows[] = { { OSSL_KDF_PARAM_KEY, &d->key }, { OSSL_KDF_PARAM_SALT, &d->salt },
		{ OSSL_KDF_PARAM_PREFIX, &d->prefix }, { OSSL_KDF_PARAM_LABEL, &d->label },
		{ OSSL_KDF_PARAM_DATA, &d->data }, { OSSL_KDF_PARAM_SECRET, &d->secret } };

	for (; p && p->key; p++) {
		const struct own_bytes value = { p->data, p->data_size };
		for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
			/* the first letter spares most calls: this runs for each secret of each handshake */
			if (p->key[0] == rows[i].name[0] && strcmp(p->key, rows[i].name) == 0)
				*rows[i].to = value;
		if (p->data_type == OSSL_PARAM_UTF8_STRING && strcmp(p->key, OSSL_KDF_PARAM_DIGEST) == 0)
			d->hmac.hash = own_hash_named(p->data);
		else if (p->key[0] == 'm' && strcmp(p->key, OSSL_KDF_PARAM_MODE) == 0 &&
			 !OSSL_PARAM_get_int(p, &d->mode))
			return false;
		else if (strcmp(p->key, OSSL_KDF_PARAM_SEED) == 0 && d->seed_count == SEEDS_MAX)
			return false;
		else if (strcmp(p->key, OSSL_KDF_PARAM_SEED) == 0)
			d->seeds[++d->seed_count] = value;
	}
	return d->hmac.hash != NULL;
}

static bool own_derive(
	int (*run)(struct derivation *d, uint8_t *out, size_t len), const OSSL_PARAM params[], uint8_t *out, size_t len)
{
	struct derivation d = { .mode = -1 };

	d.hmac.ctx = read_params(params, &d) ? EVP_MD_CTX_new() : NULL;
	const bool ok = d.hmac.ctx && run(&d, out, len);
	EVP_MD_CTX_free(d.hmac.ctx);
	OPENSSL_cleanse(d.hmac.outer, sizeof d.hmac.outer);
	if (ok)
		tell_watcher(&d, out, len);
	return ok;
}

/* --- TLS 1.3 --- */

static size_t own_put(uint8_t *to, struct own_bytes b)
{
	if (b.len > 0)
		memcpy(to, b.data, b.len);
	return b.len;
}

/* HKDF-Expand-Label (RFC 8446 7.1). */
static bool expand_label(struct derivation *d, struct own_bytes key, struct own_bytes context, uint8_t *out, size_t len)
{
	uint8_t info[LABEL_MAX] = { (uint8_t)(len >> 8), (uint8_t)len, (uint8_t)(d->prefix.len + d->label.len) };
	size_t at = 3;

	at += own_put(info + at, d->prefix);
	at += own_put(info + at, d->label);
	info[at++] = (uint8_t)context.len;
	at += own_put(info + at, context);
	return len <= UINT16_MAX && own_hkdf_expand(&d->hmac, key, (struct own_bytes){ info, at }, out, len);
}

/* The next of early, handshake and master secret: from the secret before (the salt) and the new input (the key). */
static bool next_secret(struct derivation *d, uint8_t *out, size_t len)
{
	static const uint8_t zeros[OWN_HASH_MAX];
	const struct own_hash *hash = d->hmac.hash;
	struct own_bytes key = d->key.data ? d->key : (struct own_bytes){ zeros, hash->len };
	uint8_t empty[OWN_HASH_MAX], derived[OWN_HASH_MAX];
	bool ok = len == hash->len;

	if (!ok || !d->salt.data)
		return ok && own_hkdf_extract(&d->hmac, (struct own_bytes){ 0 }, key, out);
	ok = EVP_DigestInit_ex2(d->hmac.ctx, hash->md, NULL) == 1 &&
	     EVP_DigestFinal_ex(d->hmac.ctx, empty, NULL) == 1 &&
	     expand_label(d, d->salt, (struct own_bytes){ empty, hash->len }, derived, hash->len) &&
	     own_hkdf_extract(&d->hmac, (struct own_bytes){ derived, hash->len }, key, out);
	OPENSSL_cleanse(derived, sizeof derived);
	return ok;
}

static int tls13_kdf(struct derivation *d, uint8_t *out, size_t len)
{
	if (d->prefix.len + d->label.len > 255 || d->data.len > 255)
		return 0;
	if (d->mode == EVP_KDF_HKDF_MODE_EXTRACT_ONLY)
		return next_secret(d, out, len);
	return d->mode == EVP_KDF_HKDF_MODE_EXPAND_ONLY && d->key.data && expand_label(d, d->key, d->data, out, len);
}

static int on_tls13_kdf(void *kdf, unsigned char *out, size_t len, const OSSL_PARAM params[])
{
	return own_derive(tls13_kdf, params, out, len);
}

/* --- TLS 1.2 --- */

/* P_hash: each block is the HMAC of A(i) and the seed, where A(0) is the seed and A(i) the HMAC of A(i-1). */
static int tls12_prf(struct derivation *d, uint8_t *out, size_t len)
{
	const size_t hash_len = d->hmac.hash->len;
	uint8_t a[OWN_HASH_MAX], block[OWN_HASH_MAX];
	bool ok = d->secret.data && d->seed_count > 0 && own_hmac_key(&d->hmac, d->secret) &&
		  own_hmac_of(&d->hmac, d->seeds + 1, d->seed_count, a);

	d->seeds[0] = (struct own_bytes){ a, hash_len };
	for (size_t n; ok && len > 0; out += n, len -= n) {
		n = len < hash_len ? len : hash_len;
		ok = own_hmac_of(&d->hmac, d->seeds, 1 + d->seed_count, block) &&
		     (len == n || own_hmac_of(&d->hmac, d->seeds, 1, a));
		if (ok)
			memcpy(out, block, n);
	}
	OPENSSL_cleanse(a, sizeof a);
	OPENSSL_cleanse(block, sizeof block);
	return ok;
}

static int on_tls12_prf(void *kdf, unsigned char *out, size_t len, const OSSL_PARAM params[])
{
	return own_derive(tls12_prf, params, out, len);
}

/* --- as algorithms --- */

static void *on_new(void *provider)
{
	return provider; /* there is no state, but NULL would mean failure */
}

static void own_on_free(void *kdf)
{
}

static const OSSL_DISPATCH tls13_kdf_functions[] = { { OSSL_FUNC_KDF_NEWCTX, (void (*)(void))on_new },
	{ OSSL_FUNC_KDF_FREECTX, (void (*)(void))own_on_free }, { OSSL_FUNC_KDF_DERIVE, (void (*)(void))on_tls13_kdf },
	{ 0, NULL } };
static const OSSL_DISPATCH tls12_prf_functions[] = { { OSSL_FUNC_KDF_NEWCTX, (void (*)(void))on_new },
	{ OSSL_FUNC_KDF_FREECTX, (void (*)(void))own_on_free }, { OSSL_FUNC_KDF_DERIVE, (void (*)(void))on_tls12_prf },
	{ 0, NULL } };
static const OSSL_ALGORITHM kdf_algorithms[] = { { OSSL_KDF_NAME_TLS1_3_KDF, OWN_PROVIDER_PROPERTIES,
							 tls13_kdf_functions, NULL },
	{ OSSL_KDF_NAME_TLS1_PRF, OWN_PROVIDER_PROPERTIES, tls12_prf_functions, NULL }, { NULL, NULL, NULL, NULL } };

/* --- the provider --- */

static const OSSL_ALGORITHM *on_query(void *provider, int operation, int *no_cache)
{
	static const OSSL_ALGORITHM *const of_operation[] = { [OSSL_OP_KDF] = kdf_algorithms,
		[OSSL_OP_MAC] = own_mac_algorithms,
		[OSSL_OP_KEYMGMT] = own_key_algorithms,
		[OSSL_OP_KEYEXCH] = own_exchange_algorithms };

	*no_cache = 0;
	return (unsigned)operation < sizeof of_operation / sizeof of_operation[0] ? of_operation[operation] : NULL;
}

static int on_capabilities(void *provider, const char *capability, OSSL_CALLBACK *callback, void *callback_ctx)
{
	return strcasecmp(capability, "TLS-GROUP") != 0 || own_x25519_group(callback, callback_ctx);
}

static const OSSL_DISPATCH provider_functions[] = { { OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))on_query },
	{ OSSL_FUNC_PROVIDER_GET_CAPABILITIES, (void (*)(void))on_capabilities }, { 0, NULL } };

static int on_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out, void **provider)
{
	*out = provider_functions;
	*provider = hashes;
	return 1;
}

static OSSL_PROVIDER *provider; /* until the process ends */

/* Default properties of OpenSSL's configuration may exclude it (fips=yes): then no connection could be exported. */
static bool is_what_contexts_get(OSSL_LIB_CTX *library)
{
	EVP_KDF *kdf = EVP_KDF_fetch(library, OSSL_KDF_NAME_TLS1_3_KDF, "?" OWN_PROVIDER_PROPERTIES);
	bool is = kdf && strcmp(OSSL_PROVIDER_get0_name(EVP_KDF_get0_provider(kdf)), OWN_PROVIDER_NAME) == 0;

	EVP_KDF_free(kdf);
	return is;
}

int own_provider_load(OSSL_LIB_CTX *library)
{
	for (unsigned i = 0; i < sizeof hashes / sizeof hashes[0]; i++) {
		hashes[i].md = EVP_MD_fetch(library, hashes[i].name, NULL);
		if (!hashes[i].md)
			return CSSL_E_CRYPTO;
	}
	/* Add it beside the providers of OpenSSL's default or configuration. */
	if (OSSL_PROVIDER_add_builtin(library, OWN_PROVIDER_NAME, on_init) != 1)
		return CSSL_E_CRYPTO;
	provider = OSSL_PROVIDER_try_load(library, OWN_PROVIDER_NAME, 1);
	return provider && is_what_contexts_get(library) ? 0 : CSSL_E_CRYPTO;
}
