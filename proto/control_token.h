/* control_token.h: the token by which an operator is known to the control API over a network: "cssl_" and 43 characters
 * of base64url, 256 random bits. What RAgent keeps of it is a hash (BLAKE2b-256); the token is random enough that a
 * fast one will do. */
#ifndef CSSL_PROTO_CONTROL_TOKEN_H
#define CSSL_PROTO_CONTROL_TOKEN_H

#include <stddef.h>
#include <stdint.h>

#define CONTROL_TOKEN_LEN      48u
#define CONTROL_TOKEN_HASH_LEN 32u

/* A new one, terminated. The caller wipes it. */
void control_token_make(char out[static CONTROL_TOKEN_LEN + 1]);

/* Of whatever somebody shows as a token. */
void control_token_hash(const char *token, size_t len, uint8_t out[static CONTROL_TOKEN_HASH_LEN]);

#endif
