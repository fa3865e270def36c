/* audit.h: the nonce audit of test builds (law 1). Agents record every sealed record and every ownership that they
 * leave, RAgent every record that it accepted, in files under $CSSL_AUDIT_DIR that are mapped shared and so survive
 * SIGKILL. tests/lib/nonce_audit.py joins and judges them. Nothing here in other builds. */
#ifndef CSSL_NET_AUDIT_H
#define CSSL_NET_AUDIT_H

#include <stddef.h>
#include <stdint.h>

enum audit_kind {
	AUDIT_SEALED = 1,
	AUDIT_ACCEPTED = 2,
	AUDIT_SEALED_BY_OPENSSL = 3,
	AUDIT_FROZEN = 4, /* from here on this agent seals nothing under this epoch: it froze the connection */
	AUDIT_LOST = 5    /* likewise: it lost the link */
};

/* On disk, host order (little endian), 80 bytes. A row of zeros ends the file. */
struct audit_row {
	uint8_t kind; /* enum audit_kind */
	uint8_t type; /* sealed: what the record holds, enum tls_content_type; else zero, as suite, key_id and nonce */
	uint16_t suite; /* of the connection: this tells the version of TLS, too */
	uint32_t epoch;
	uint8_t connection[16];
	uint8_t key_id[16]; /* hash of the key */
	uint8_t nonce[12];  /* the 12 bytes given to the AEAD */
	uint32_t record_len;
	uint8_t record_hash[16]; /* BLAKE2b of the whole record as sent; zero where there is none */
	uint64_t at_ns;          /* CLOCK_MONOTONIC: one clock for all processes of a test */
};

struct audit_sealing {
	const uint8_t *connection; /* 16 bytes */
	uint32_t epoch;
	uint16_t suite;
	uint8_t type;
	const uint8_t *key; /* NULL: not known, then the audit only knows where the record came from */
	size_t key_len;
	const uint8_t *nonce; /* 12 bytes */
};

/* All of them do nothing without $CSSL_AUDIT_DIR. The node in the file's name is fault_start()'s. */
#ifdef CSSL_TEST_POINTS
int audit_active(void); /* 1 or 0 */
/* @record: one whole record as it goes on the wire, header included. */
void audit_sealed(const struct audit_sealing *s, const uint8_t *record, size_t len);
/* The same for a record that OpenSSL sealed before the export; @record may be whatever stands for it, where its bytes
 * are gone. */
void audit_sealed_by_openssl(const struct audit_sealing *s, const uint8_t *record, size_t len);
/* @how: AUDIT_FROZEN or AUDIT_LOST. */
void audit_left(enum audit_kind how, const uint8_t connection[16], uint32_t epoch);
/* @records: whole records; application data and alerts, by their outer type, make one row each. */
void audit_accepted(const uint8_t connection[16], uint32_t epoch, const uint8_t *records, size_t len);
#else
static inline int audit_active(void)
{
	return 0;
}
static inline void audit_sealed(const struct audit_sealing *s, const uint8_t *record, size_t len)
{
	(void)s, (void)record, (void)len;
}
static inline void audit_sealed_by_openssl(const struct audit_sealing *s, const uint8_t *record, size_t len)
{
	(void)s, (void)record, (void)len;
}
static inline void audit_left(enum audit_kind how, const uint8_t connection[16], uint32_t epoch)
{
	(void)how, (void)connection, (void)epoch;
}
static inline void audit_accepted(const uint8_t connection[16], uint32_t epoch, const uint8_t *records, size_t len)
{
	(void)connection, (void)epoch, (void)records, (void)len;
}
#endif

#endif
