/* cipher_suite.c: the table. RFC 8446 B.4, RFC 5289, RFC 7905. */
#include "proto/cipher_suite.h"

#include <stddef.h>

#define TLS12 0x0303
#define TLS13 0x0304

/* In TLS 1.2 AES-GCM the fixed part of the nonce is the 4 bytes salt (RFC 5288 3); elsewhere the whole nonce is fixed.
 */
static const struct cipher_suite suites[] = {
	{ 0x1301, TLS13, 16, 12, 32, "TLS_AES_128_GCM_SHA256", "AES-128-GCM", "SHA256" },
	{ 0x1302, TLS13, 32, 12, 48, "TLS_AES_256_GCM_SHA384", "AES-256-GCM", "SHA384" },
	{ 0x1303, TLS13, 32, 12, 32, "TLS_CHACHA20_POLY1305_SHA256", "ChaCha20-Poly1305", "SHA256" },
	{ 0xc02b, TLS12, 16, 4, 32, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "AES-128-GCM", "SHA256" },
	{ 0xc02c, TLS12, 32, 4, 48, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "AES-256-GCM", "SHA384" },
	{ 0xcca9, TLS12, 32, 12, 32, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ChaCha20-Poly1305", "SHA256" },
	{ 0xc02f, TLS12, 16, 4, 32, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "AES-128-GCM", "SHA256" },
	{ 0xc030, TLS12, 32, 4, 48, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "AES-256-GCM", "SHA384" },
	{ 0xcca8, TLS12, 32, 12, 32, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ChaCha20-Poly1305", "SHA256" },
};

#define SUITE_COUNT (sizeof suites / sizeof suites[0])

const struct cipher_suite *cipher_suite_find(uint16_t id)
{
	for (size_t i = 0; i < SUITE_COUNT; i++)
		if (suites[i].id == id)
			return &suites[i];
	return NULL;
}

bool cipher_suite_has_record_nonce(const struct cipher_suite *suite)
{
	return suite->iv_len < AEAD_IV_LEN;
}

const struct cipher_suite *cipher_suites(unsigned *count)
{
	*count = SUITE_COUNT;
	return suites;
}
