/* tls12_prf.c: P_hash over the HMAC of own_hmac.h. OpenSSL gives all parameters with each derivation, so no state
 * remains between two of them.
 */
#include "sslagent/tls/tls12_prf.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/params.h>
#include <string.h>

#include "sslagent/tls/own_hmac.h"

#define SEEDS_MAX 8u /* label, randoms or a transcript's hash: OpenSSL gives five */

struct prf {
	struct own_hmac hmac;
	struct own_bytes secret;
	struct own_bytes seeds[SEEDS_MAX]; /* together they are label and seed */
	unsigned seed_count;
};

static _Thread_local tls12_prf_watcher *watcher;
static _Thread_local void *watcher_ctx;

void tls12_prf_watch(tls12_prf_watcher *fn, void *ctx)
{
	watcher = fn;
	watcher_ctx = ctx;
}

static int put_seeds(struct prf *p)
{
	int ok = 1;

	for (unsigned i = 0; ok && i < p->seed_count; i++)
		ok = p->seeds[i].len == 0 || EVP_DigestUpdate(p->hmac.ctx, p->seeds[i].data, p->seeds[i].len) == 1;
	return ok;
}

/* P_hash: each block is the HMAC of A(i) and the seed, where A(0) is the seed and A(i) the HMAC of A(i-1). 1 or 0. */
static int expand(struct prf *p, uint8_t *out, size_t len)
{
	const size_t hash_len = p->hmac.hash->len;
	uint8_t a[OWN_HASH_MAX], block[OWN_HASH_MAX];
	int ok = own_hmac_begin(&p->hmac, p->secret.data, p->secret.len) && put_seeds(p) && own_hmac_end(&p->hmac, a);

	while (ok && len > 0) {
		const size_t n = len < hash_len ? len : hash_len;
		ok = own_hmac_again(&p->hmac) && EVP_DigestUpdate(p->hmac.ctx, a, hash_len) == 1 && put_seeds(p) &&
		     own_hmac_end(&p->hmac, block);
		memcpy(out, block, n);
		out += n;
		len -= n;
		if (ok && len > 0)
			ok = own_hmac_again(&p->hmac) && EVP_DigestUpdate(p->hmac.ctx, a, hash_len) == 1 &&
			     own_hmac_end(&p->hmac, a);
	}
	OPENSSL_cleanse(a, sizeof a);
	OPENSSL_cleanse(block, sizeof block);
	return ok;
}

/* The fields of @p point into the parameters. 1 or 0. */
static int read_params(const OSSL_PARAM *at, struct prf *p)
{
	for (; at && at->key; at++) {
		const struct own_bytes value = { at->data, at->data_size };
		if (strcmp(at->key, OSSL_KDF_PARAM_DIGEST) == 0 && at->data_type == OSSL_PARAM_UTF8_STRING)
			p->hmac.hash = own_hash_named(at->data);
		else if (strcmp(at->key, OSSL_KDF_PARAM_SECRET) == 0)
			p->secret = value;
		else if (strcmp(at->key, OSSL_KDF_PARAM_SEED) == 0 && p->seed_count == SEEDS_MAX)
			return 0;
		else if (strcmp(at->key, OSSL_KDF_PARAM_SEED) == 0)
			p->seeds[p->seed_count++] = value;
	}
	return p->hmac.hash && p->secret.data && p->seed_count > 0;
}

static void tell_watcher(const struct prf *p, const uint8_t *out, size_t len)
{
	static const char label[] = "key expansion"; /* the first seed; RFC 5246 6.3 */

	if (watcher && p->seeds[0].len == sizeof label - 1 && memcmp(p->seeds[0].data, label, sizeof label - 1) == 0)
		watcher(watcher_ctx, out, len);
}

static int on_derive(void *kdf, unsigned char *out, size_t len, const OSSL_PARAM params[])
{
	struct prf p = { 0 };

	p.hmac.ctx = read_params(params, &p) ? EVP_MD_CTX_new() : NULL;
	const int ok = p.hmac.ctx && expand(&p, out, len);
	EVP_MD_CTX_free(p.hmac.ctx);
	OPENSSL_cleanse(p.hmac.outer, sizeof p.hmac.outer);
	if (ok)
		tell_watcher(&p, out, len);
	return ok;
}

const OSSL_DISPATCH tls12_prf_functions[] = { { OSSL_FUNC_KDF_NEWCTX, (void (*)(void))own_kdf_new },
	{ OSSL_FUNC_KDF_FREECTX, (void (*)(void))own_kdf_free }, { OSSL_FUNC_KDF_DERIVE, (void (*)(void))on_derive },
	{ 0, NULL } };
