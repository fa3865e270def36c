/* seal.h: seals what leaves the gateway for a Redis. A part of its own, because it has the keys: XChaCha20-Poly1305
 * under a subkey of the gateway's key file, with a random nonce. The gateway's name, the kind and the id are associated
 * data, so that a Redis can neither read a message nor hand it out under another id.
 *
 *   sealed = key id (16 bytes, padded with 0) | nonce (24) | ciphertext | tag (16)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/agents_key.h"

#define SEAL_OVERHEAD (16u + 24u + 16u)

#define SEAL_PRINT_LEN 32u /* characters of a key's fingerprint */

/* Derives the subkeys; @ring is not kept. @name: the gateway's, at most 64 characters. NULL: out of memory. */
struct seal *seal_create(const struct key_ring *ring, const char *name);
void seal_destroy(struct seal *s); /* wipes; NULL is legal */

/* The fingerprint of the key that seals. */
const char *seal_print(const struct seal *s);
/* True: the key of that fingerprint is in the ring. Else what it sealed cannot be opened. */
bool seal_has(const struct seal *s, const char *print);

/* @out has room for @len + SEAL_OVERHEAD bytes. It may overlap @plain only at @plain == @out + 40. */
void seal_seal(const struct seal *s, char kind, uint64_t id, const uint8_t *plain, size_t len, uint8_t *out);

/* Opens into @out, which has room for @len - SEAL_OVERHEAD. 0; CSSL_E_TRUNCATED; CSSL_E_KEY_UNKNOWN; CSSL_E_AUTH: it
 * was changed, or belongs to another id, kind or gateway. */
int seal_open(const struct seal *s, char kind, uint64_t id, const uint8_t *sealed, size_t len, uint8_t *out);
