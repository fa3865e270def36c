/* cipher_suite.h: the TLS cipher suites that CSSL supports: AEAD suites, in TLS 1.2 those with ECDHE. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cipher_suite {
	uint16_t id; /* IANA value */
	uint16_t protocol_version;
	uint8_t key_len;
	uint8_t iv_len; /* the part that stays for a key: 12; 4 for AES-GCM in TLS 1.2 */
	uint8_t hash_len;
	const char *name;   /* IANA */
	const char *aead;   /* EVP_CIPHER name */
	const char *digest; /* EVP_MD name */
};

#define AEAD_IV_LEN 12u

/* NULL: CSSL does not support it. */
const struct cipher_suite *cipher_suite_find(uint16_t id);

/* 1 for AES-GCM in TLS 1.2: a part of each nonce stands in the record (RFC 5288 3: nonce_explicit). Owners of a
 * connection put their epoch there, so that no two of them have a nonce in common. Else 0. */
bool cipher_suite_has_record_nonce(const struct cipher_suite *suite);

/* The whole table, for loops over it. */
const struct cipher_suite *cipher_suites(unsigned *count);
