/* control_token.c: random bytes as text, and their hash. */
#include "proto/control_token.h"

#include <sodium.h>
#include <string.h>

#define PREFIX     "cssl_" /* by which a token that leaked is found in files and logs */
#define PREFIX_LEN (sizeof PREFIX - 1)
#define RANDOM_LEN 32u

void control_token_make(char out[static CONTROL_TOKEN_LEN + 1])
{
	uint8_t random[RANDOM_LEN];

	randombytes_buf(random, sizeof random);
	memcpy(out, PREFIX, PREFIX_LEN);
	sodium_bin2base64(out + PREFIX_LEN, CONTROL_TOKEN_LEN + 1 - PREFIX_LEN, random, sizeof random,
		sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	sodium_memzero(random, sizeof random);
}

void control_token_hash(const char *token, size_t len, uint8_t out[static CONTROL_TOKEN_HASH_LEN])
{
	crypto_generichash(out, CONTROL_TOKEN_HASH_LEN, (const uint8_t *)token, len, NULL, 0);
}
