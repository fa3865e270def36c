/* noise.c: implements noise.h. Every operation mixes its bytes into the hash, which is the associated data of all
 * later operations. */
#include "proto/noise.h"

#include <sodium.h>
#include <string.h>

#include "proto/error.h"

#define PRK_LEN 64u

_Static_assert(NOISE_KEY_LEN == crypto_aead_chacha20poly1305_ietf_KEYBYTES, "keys fit the AEAD");
_Static_assert(NOISE_TAG_LEN == crypto_aead_chacha20poly1305_ietf_ABYTES, "tags fit the AEAD");

/* Extract with the chaining key, then expand to @count outputs of 32 bytes, each bound to the one before (RFC 5869). */
static void noise_expand(
	const struct noise *n, const uint8_t *input, size_t len, uint8_t out[][NOISE_KEY_LEN], unsigned count)
{
	crypto_generichash_state state;
	uint8_t prk[PRK_LEN];

	crypto_generichash(prk, sizeof prk, input, len, n->chaining_key, NOISE_KEY_LEN);
	for (unsigned i = 0; i < count; i++) {
		uint8_t number = (uint8_t)(i + 1);
		crypto_generichash_init(&state, prk, sizeof prk, NOISE_KEY_LEN);
		if (i > 0)
			crypto_generichash_update(&state, out[i - 1], NOISE_KEY_LEN);
		crypto_generichash_update(&state, &number, 1);
		crypto_generichash_final(&state, out[i], NOISE_KEY_LEN);
	}
	sodium_memzero(prk, sizeof prk);
	sodium_memzero(&state, sizeof state);
}

static void noise_use_key(struct noise *n, const uint8_t key[static NOISE_KEY_LEN])
{
	memcpy(n->key, key, NOISE_KEY_LEN);
	/* So the nonce is fresh: no key seals before its sender has mixed in an ephemeral key (law 1). */
	n->nonce = 0;
}

void noise_init(struct noise *n, const char *protocol_name)
{
	sodium_memzero(n, sizeof *n);
	crypto_generichash(n->hash, NOISE_HASH_LEN, (const uint8_t *)protocol_name, strlen(protocol_name), NULL, 0);
	memcpy(n->chaining_key, n->hash, NOISE_KEY_LEN);
}

void noise_wipe(struct noise *n)
{
	sodium_memzero(n, sizeof *n);
}

void noise_mix_hash(struct noise *n, const uint8_t *data, size_t len)
{
	crypto_generichash_state state;

	crypto_generichash_init(&state, NULL, 0, NOISE_HASH_LEN);
	crypto_generichash_update(&state, n->hash, NOISE_HASH_LEN);
	crypto_generichash_update(&state, data, len);
	crypto_generichash_final(&state, n->hash, NOISE_HASH_LEN);
}

void noise_mix_key(struct noise *n, const uint8_t *input, size_t len)
{
	uint8_t out[2][NOISE_KEY_LEN];

	noise_expand(n, input, len, out, 2);
	memcpy(n->chaining_key, out[0], NOISE_KEY_LEN);
	noise_use_key(n, out[1]);
	sodium_memzero(out, sizeof out);
}

void noise_mix_psk(struct noise *n, const uint8_t psk[static NOISE_KEY_LEN])
{
	uint8_t out[3][NOISE_KEY_LEN];

	noise_expand(n, psk, NOISE_KEY_LEN, out, 3);
	memcpy(n->chaining_key, out[0], NOISE_KEY_LEN);
	noise_mix_hash(n, out[1], NOISE_KEY_LEN);
	noise_use_key(n, out[2]);
	sodium_memzero(out, sizeof out);
}

static void noise_nonce_write(uint8_t out[static crypto_aead_chacha20poly1305_ietf_NPUBBYTES], uint64_t nonce)
{
	memset(out, 0, 4);
	for (unsigned i = 0; i < 8; i++)
		out[4 + i] = (uint8_t)(nonce >> (8 * i));
}

void noise_seal(struct noise *n, const uint8_t *in, size_t len, uint8_t *out)
{
	uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];

	noise_nonce_write(nonce, n->nonce++);
	crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, in, len, n->hash, NOISE_HASH_LEN, NULL, nonce, n->key);
	noise_mix_hash(n, out, len + NOISE_TAG_LEN);
}

int noise_open(struct noise *n, const uint8_t *in, size_t len, uint8_t *out)
{
	uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];

	if (len < NOISE_TAG_LEN)
		return CSSL_E_TRUNCATED;
	noise_nonce_write(nonce, n->nonce++);
	if (crypto_aead_chacha20poly1305_ietf_decrypt(
		    out, NULL, NULL, in, len, n->hash, NOISE_HASH_LEN, nonce, n->key) != 0)
		return CSSL_E_AUTH;
	noise_mix_hash(n, in, len);
	return 0;
}

void noise_split(
	const struct noise *n, uint8_t initiator[static NOISE_KEY_LEN], uint8_t responder[static NOISE_KEY_LEN])
{
	uint8_t out[2][NOISE_KEY_LEN];

	noise_expand(n, NULL, 0, out, 2);
	memcpy(initiator, out[0], NOISE_KEY_LEN);
	memcpy(responder, out[1], NOISE_KEY_LEN);
	sodium_memzero(out, sizeof out);
}
