/* audit.h: the nonce audit of test builds (design: never two ciphertexts for one key and nonce). Agents record every
 * sealed record, RAgent every record it accepted, in files under $CSSL_AUDIT_DIR that are mapped shared and so survive
 * SIGKILL. tests/lib/nonce_audit.py joins and judges them. Nothing here in other builds. */
#ifndef CSSL_NET_AUDIT_H
#define CSSL_NET_AUDIT_H

#include <stddef.h>
#include <stdint.h>

enum audit_kind { AUDIT_SEALED = 1, AUDIT_ACCEPTED = 2, AUDIT_SEALED_BY_OPENSSL = 3 };

/* On disk, host order (little endian), 80 bytes. A row of zeros ends the file. */
struct audit_row {
	uint8_t kind; /* enum audit_kind */
	uint8_t reserved[3];
	uint32_t epoch;
	uint8_t connection[16];
	uint8_t key_id[16]; /* hash of the key; zero for kind 2 */
	uint8_t nonce[12];  /* the 12 bytes given to the AEAD; zero for kind 2 */
	uint32_t record_len;
	uint8_t record_hash[16]; /* BLAKE2b of the whole record as sent */
	uint8_t pad[8];
};

/* All three do nothing without $CSSL_AUDIT_DIR. The node in the file's name is fault_start()'s. */
#ifdef CSSL_TEST_POINTS
/* @record: one whole record as it goes on the wire, header included. */
void audit_sealed(const uint8_t connection[16], uint32_t epoch, const uint8_t *key, size_t key_len,
	const uint8_t nonce[12], const uint8_t *record, size_t len);
/* The same for a record that OpenSSL sealed before the export. @key NULL: not known, then the audit only knows where
 * the record came from. */
void audit_sealed_by_openssl(const uint8_t connection[16], uint32_t epoch, const uint8_t *key, size_t key_len,
	const uint8_t nonce[12], const uint8_t *record, size_t len);
/* @records: whole records; those of outer type application data (0x17) make one row each. */
void audit_accepted(const uint8_t connection[16], uint32_t epoch, const uint8_t *records, size_t len);
#else
static inline void audit_sealed(const uint8_t connection[16], uint32_t epoch, const uint8_t *key, size_t key_len,
	const uint8_t nonce[12], const uint8_t *record, size_t len)
{
	(void)connection, (void)epoch, (void)key, (void)key_len, (void)nonce, (void)record, (void)len;
}
static inline void audit_sealed_by_openssl(const uint8_t connection[16], uint32_t epoch, const uint8_t *key,
	size_t key_len, const uint8_t nonce[12], const uint8_t *record, size_t len)
{
	(void)connection, (void)epoch, (void)key, (void)key_len, (void)nonce, (void)record, (void)len;
}
static inline void audit_accepted(const uint8_t connection[16], uint32_t epoch, const uint8_t *records, size_t len)
{
	(void)connection, (void)epoch, (void)records, (void)len;
}
#endif

#endif
