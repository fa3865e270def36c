/* own_hkdf.c: the two steps of HKDF. Secrets are on the stack only, and are wiped. */
#include "sslagent/tls/own_hkdf.h"

#include <openssl/crypto.h>
#include <string.h>

/* 1 or 0, as all of these. */
static int hmac(struct own_hmac *h, struct own_bytes key, const struct own_bytes parts[3], uint8_t *out)
{
	int ok = own_hmac_begin(h, key.data, key.len);

	for (unsigned i = 0; ok && i < 3; i++)
		ok = parts[i].len == 0 || EVP_DigestUpdate(h->ctx, parts[i].data, parts[i].len) == 1;
	return ok && own_hmac_end(h, out);
}

int own_hkdf_extract(struct own_hmac *h, struct own_bytes salt, struct own_bytes key, uint8_t *out)
{
	return hmac(h, salt, (const struct own_bytes[3]){ key }, out);
}

int own_hkdf_expand(struct own_hmac *h, struct own_bytes key, struct own_bytes info, uint8_t *out, size_t len)
{
	uint8_t block[OWN_HASH_MAX];
	struct own_bytes before = { 0 };
	int ok = len <= 255 * h->hash->len;

	for (uint8_t number = 1; ok && len > 0; number++) {
		size_t n = len < h->hash->len ? len : h->hash->len;
		ok = hmac(h, key, (const struct own_bytes[3]){ before, info, { &number, 1 } }, block);
		if (ok)
			memcpy(out, block, n);
		out += n;
		len -= n;
		before = (struct own_bytes){ block, h->hash->len };
	}
	OPENSSL_cleanse(block, sizeof block);
	return ok;
}
