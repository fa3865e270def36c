/* aead.c: AES-256-GCM and ChaCha20-Poly1305. One context does both directions: each operation gives the direction with
 * the nonce and leaves the key schedule alone. */
#include "proto/aead.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "proto/error.h"

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
static int run(struct aead_key *k, const struct aead_message *m, enum aead_direction direction, uint8_t *out)
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
	const int r = run(k, m, AEAD_SEALS, out);

	return r ? r : aead_context_seal(k->cipher, k->context, tag);
}

int aead_open(struct aead_key *k, const struct aead_message *m, const uint8_t tag[static AEAD_TAG_LEN], uint8_t *out)
{
	int r = run(k, m, AEAD_OPENS, out);

	if (r == 0)
		r = aead_context_open(k->cipher, k->context, tag);
	if (r && m->len > 0)
		OPENSSL_cleanse(out, m->len);
	return r;
}
