/* own_x25519_pairs.h: fresh pairs of X25519 keys (RFC 7748 6.1). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OWN_X25519_KEY_LEN 32u /* bytes of each part, and of a shared secret */

/* A pair that nobody else got or will get. false: out of memory. */
bool own_x25519_pair(uint8_t private[static OWN_X25519_KEY_LEN], uint8_t public[static OWN_X25519_KEY_LEN]);
