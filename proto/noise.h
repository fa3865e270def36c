/* noise.h: the symmetric state of a Noise handshake (noiseprotocol.org, revision 34, 5.2) over BLAKE2b and
 * ChaCha20-Poly1305: a hash of all messages so far, a chaining key from all secrets so far, and the key that seals the
 * next payload. MixKey's HKDF uses keyed BLAKE2b in place of HMAC. Only opening.c uses it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NOISE_HASH_LEN 32u
#define NOISE_KEY_LEN  32u
#define NOISE_TAG_LEN  16u

/* Holds key material: wipe with noise_wipe(). */
struct noise {
	uint8_t hash[NOISE_HASH_LEN];
	uint8_t chaining_key[NOISE_KEY_LEN];
	uint8_t key[NOISE_KEY_LEN];
	uint64_t nonce; /* of @key */
};

void noise_init(struct noise *n, const char *protocol_name);
void noise_wipe(struct noise *n);

void noise_mix_hash(struct noise *n, const uint8_t *data, size_t len);
void noise_mix_key(struct noise *n, const uint8_t *input, size_t len);
void noise_mix_psk(struct noise *n, const uint8_t psk[static NOISE_KEY_LEN]);

/* Seal to @out (@len + NOISE_TAG_LEN bytes) and mix it into the hash. Only after noise_mix_key() or noise_mix_psk(). */
void noise_seal(struct noise *n, const uint8_t *in, size_t len, uint8_t *out);

/* Open @len bytes to @out, which does not overlap @in, and mix them into the hash. 0, CSSL_E_TRUNCATED or CSSL_E_AUTH.
 */
int noise_open(struct noise *n, const uint8_t *in, size_t len, uint8_t *out);

/* Derive the two transport keys: the one for which the initiator sends, and the one for which the responder sends. */
void noise_split(
	const struct noise *n, uint8_t initiator[static NOISE_KEY_LEN], uint8_t responder[static NOISE_KEY_LEN]);
