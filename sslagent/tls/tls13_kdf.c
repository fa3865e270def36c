/* tls13_kdf.c: labels and secrets over the HKDF of own_hkdf.h, over digests that are fetched once. OpenSSL gives all
 * parameters with each derivation, so there is no state between two of them, and secrets are copied to the stack only.
 */
#include "sslagent/tls/tls13_kdf.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <string.h>

#include "sslagent/tls/own_hkdf.h"

#define LABEL_MAX (2u + 1u + 255u + 1u + 255u) /* HkdfLabel */

static _Thread_local tls13_kdf_watcher *watcher;
static _Thread_local void *watcher_ctx;

void tls13_kdf_watch(tls13_kdf_watcher *fn, void *ctx)
{
	watcher = fn;
	watcher_ctx = ctx;
}

/* --- the schedule --- */

struct derivation {
	int mode;
	struct own_hmac hmac;
	struct own_bytes key, salt, prefix, label, data;
};

/* Read OpenSSL's parameters; @d points into them. 1 or 0. */
static int read_params(const OSSL_PARAM *p, struct derivation *d)
{
	const struct {
		const char *name;
		struct own_bytes *to;
	} rows[] = { { OSSL_KDF_PARAM_KEY, &d->key }, { OSSL_KDF_PARAM_SALT, &d->salt },
		{ OSSL_KDF_PARAM_PREFIX, &d->prefix }, { OSSL_KDF_PARAM_LABEL, &d->label },
		{ OSSL_KDF_PARAM_DATA, &d->data } };

	for (; p && p->key; p++) {
		for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
			if (p->key[0] == rows[i].name[0] && strcmp(p->key, rows[i].name) == 0)
				*rows[i].to = (struct own_bytes){ p->data, p->data_size };
		if (p->data_type == OSSL_PARAM_UTF8_STRING && strcmp(p->key, OSSL_KDF_PARAM_DIGEST) == 0)
			d->hmac.hash = own_hash_named(p->data);
		else if (p->key[0] == 'm' && strcmp(p->key, OSSL_KDF_PARAM_MODE) == 0 &&
			 !OSSL_PARAM_get_int(p, &d->mode))
			return 0;
	}
	return d->hmac.hash && d->prefix.len + d->label.len <= 255 && d->data.len <= 255;
}

static size_t put(uint8_t *to, struct own_bytes b)
{
	if (b.len > 0)
		memcpy(to, b.data, b.len);
	return b.len;
}

/* HKDF-Expand-Label (RFC 8446 7.1). */
static int expand_label(struct derivation *d, struct own_bytes key, struct own_bytes context, uint8_t *out, size_t len)
{
	uint8_t info[LABEL_MAX] = { (uint8_t)(len >> 8), (uint8_t)len, (uint8_t)(d->prefix.len + d->label.len) };
	size_t at = 3;

	at += put(info + at, d->prefix);
	at += put(info + at, d->label);
	info[at++] = (uint8_t)context.len;
	at += put(info + at, context);
	return len <= UINT16_MAX && own_hkdf_expand(&d->hmac, key, (struct own_bytes){ info, at }, out, len);
}

/* The next of early, handshake and master secret: from the secret before (the salt) and the new input (the key). */
static int next_secret(struct derivation *d, uint8_t *out, size_t len)
{
	static const uint8_t zeros[OWN_HASH_MAX];
	const struct own_hash *hash = d->hmac.hash;
	EVP_MD_CTX *ctx = d->hmac.ctx;
	struct own_bytes key = d->key.data ? d->key : (struct own_bytes){ zeros, hash->len };
	uint8_t empty[OWN_HASH_MAX], derived[OWN_HASH_MAX];
	int ok = len == hash->len;

	if (!ok || !d->salt.data)
		return ok && own_hkdf_extract(&d->hmac, (struct own_bytes){ 0 }, key, out);
	ok = EVP_DigestInit_ex2(ctx, hash->md, NULL) == 1 && EVP_DigestFinal_ex(ctx, empty, NULL) == 1 &&
	     expand_label(d, d->salt, (struct own_bytes){ empty, hash->len }, derived, hash->len) &&
	     own_hkdf_extract(&d->hmac, (struct own_bytes){ derived, hash->len }, key, out);
	OPENSSL_cleanse(derived, sizeof derived);
	return ok;
}

static void tell_watcher(const struct derivation *d, const uint8_t *secret, size_t len)
{
	static const char labels[][12] = { [CLIENT_TRAFFIC] = "c ap traffic", [SERVER_TRAFFIC] = "s ap traffic" };

	for (unsigned i = 0; watcher && i < 2; i++)
		if (d->label.len == sizeof labels[i] && memcmp(d->label.data, labels[i], sizeof labels[i]) == 0)
			watcher(watcher_ctx, (enum traffic_direction)i, secret, len);
}

static int on_derive(void *kdf, unsigned char *out, size_t len, const OSSL_PARAM params[])
{
	struct derivation d = { .mode = -1 };
	int ok = 0;

	d.hmac.ctx = read_params(params, &d) ? EVP_MD_CTX_new() : NULL;
	if (d.hmac.ctx && d.mode == EVP_KDF_HKDF_MODE_EXTRACT_ONLY)
		ok = next_secret(&d, out, len);
	else if (d.hmac.ctx && d.mode == EVP_KDF_HKDF_MODE_EXPAND_ONLY && d.key.data)
		ok = expand_label(&d, d.key, d.data, out, len);
	EVP_MD_CTX_free(d.hmac.ctx);
	OPENSSL_cleanse(d.hmac.outer, sizeof d.hmac.outer);
	if (ok)
		tell_watcher(&d, out, len);
	return ok;
}

/* --- as an algorithm --- */

const OSSL_DISPATCH tls13_kdf_functions[] = { { OSSL_FUNC_KDF_NEWCTX, (void (*)(void))own_kdf_new },
	{ OSSL_FUNC_KDF_FREECTX, (void (*)(void))own_kdf_free }, { OSSL_FUNC_KDF_DERIVE, (void (*)(void))on_derive },
	{ 0, NULL } };
