/* aead.c: AES-256-GCM and ChaCha20-Poly1305 by EVP. One context does both directions: each operation gives the
 * direction with the nonce and leaves the key schedule alone. */
#include "proto/aead.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "proto/error.h"

struct aead_key {
	EVP_CIPHER_CTX *context;
};

enum direction { OPENING = 0, SEALING = 1 }; /* the values that EVP_CipherInit_ex takes */

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
	EVP_CIPHER *cipher = name ? EVP_CIPHER_fetch(NULL, name, NULL) : NULL;
	struct aead_key *k = calloc(1, sizeof *k);

	if (!cipher || !k)
		goto failed;
	k->context = EVP_CIPHER_CTX_new();
	if (!k->context || EVP_CipherInit_ex(k->context, cipher, NULL, secret, NULL, SEALING) != 1)
		goto failed;
	EVP_CIPHER_free(cipher);
	return k;
failed:
	EVP_CIPHER_free(cipher);
	aead_key_destroy(k);
	return NULL;
}

void aead_key_destroy(struct aead_key *k)
{
	if (!k)
		return;
	EVP_CIPHER_CTX_free(k->context);
	free(k);
}

int aead_key_replace(struct aead_key *k, const uint8_t secret[static AEAD_SECRET_LEN])
{
	return EVP_CipherInit_ex(k->context, NULL, NULL, secret, NULL, SEALING) == 1 ? 0 : CSSL_E_CRYPTO;
}

/* All but the tag, for both directions. */
static int run(struct aead_key *k, const struct aead_message *m, enum direction direction, uint8_t *out)
{
	int n;

	assert(m->len <= INT_MAX && m->ad_len <= INT_MAX);
	if (EVP_CipherInit_ex(k->context, NULL, NULL, NULL, m->nonce, direction) != 1)
		return CSSL_E_CRYPTO;
	if (m->ad_len > 0 && EVP_CipherUpdate(k->context, NULL, &n, m->ad, (int)m->ad_len) != 1)
		return CSSL_E_CRYPTO;
	if (m->len > 0 && EVP_CipherUpdate(k->context, out, &n, m->in, (int)m->len) != 1)
		return CSSL_E_CRYPTO;
	return 0;
}

int aead_seal(struct aead_key *k, const struct aead_message *m, uint8_t *out, uint8_t tag[static AEAD_TAG_LEN])
{
	uint8_t nothing[1];
	int n, r = run(k, m, SEALING, out);

	if (r)
		return r;
	if (EVP_CipherFinal_ex(k->context, nothing, &n) != 1 ||
		EVP_CIPHER_CTX_ctrl(k->context, EVP_CTRL_AEAD_GET_TAG, AEAD_TAG_LEN, tag) != 1)
		return CSSL_E_CRYPTO;
	return 0;
}

int aead_open(struct aead_key *k, const struct aead_message *m, const uint8_t tag[static AEAD_TAG_LEN], uint8_t *out)
{
	uint8_t nothing[1];
	int n, r = run(k, m, OPENING, out);

	if (!r && EVP_CIPHER_CTX_ctrl(k->context, EVP_CTRL_AEAD_SET_TAG, AEAD_TAG_LEN, (uint8_t *)tag) != 1)
		r = CSSL_E_CRYPTO;
	if (!r && EVP_CipherFinal_ex(k->context, nothing, &n) != 1)
		r = CSSL_E_AUTH;
	if (r && m->len > 0)
		OPENSSL_cleanse(out, m->len);
	return r;
}
