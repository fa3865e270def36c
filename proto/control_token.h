/* control_token.h: the token that an operator shows to the control API over a network: "cssl_" and 43 characters of
 * base64url for 256 random bits. RAgent keeps a BLAKE2b-256 hash of it. A fast hash is enough, because the token is
 * random. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CONTROL_TOKEN_LEN      48u
#define CONTROL_TOKEN_HASH_LEN 32u

/* Make a new token, terminated. The caller wipes it. */
void control_token_make(char out[static CONTROL_TOKEN_LEN + 1]);

/* Hash @token, which may be any bytes. */
void control_token_hash(const char *token, size_t len, uint8_t out[static CONTROL_TOKEN_HASH_LEN]);
