/* audit.h: the nonce audit of test builds (law 1). Agents write down each record that they sealed and each ownership
 * that they left; RAgent writes down each record that it accepted. The files are under $CSSL_AUDIT_DIR, mapped shared,
 * so they survive SIGKILL. tests/lib/nonce_audit.py reads and judges them. Other builds do nothing here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum audit_kind {
	AUDIT_SEALED = 1,
	AUDIT_ACCEPTED = 2,
	AUDIT_SEALED_BY_OPENSSL = 3,
	AUDIT_FROZEN = 4, /* the agent froze the connection, and seals nothing more under this epoch */
	AUDIT_LOST = 5,   /* the same, because it lost the link */
	AUDIT_COPIED = 6, /* the owner gave a copy of the keys behind its next KeyUpdate, if the connection can move */
	AUDIT_IN_RING = 7 /* a record was sealed in memory that another process can write */
};

/* On disk, host order (little endian), 80 bytes. A row of zeros ends the file. */
struct audit_row {
	uint8_t kind;   /* enum audit_kind */
	uint8_t type;   /* AUDIT_SEALED: the inner enum tls_content_type; else zero, like suite, key_id and nonce */
	uint16_t suite; /* of the connection; it implies the version of TLS */
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
	const uint8_t *key; /* NULL: not known; the audit then knows only who sealed the record */
	size_t key_len;
	const uint8_t *nonce; /* 12 bytes */
};

/* These do nothing without $CSSL_AUDIT_DIR. The file's name has the node that fault_start() got. */
#ifdef CSSL_TEST_POINTS
bool audit_active(void);
/* @record: one whole record as it goes on the wire, header included. */
void audit_sealed(const struct audit_sealing *s, const uint8_t *record, size_t len);
/* The same for a record that OpenSSL sealed before the export. @record may be any other bytes if those of the record
 * are gone. */
void audit_sealed_by_openssl(const struct audit_sealing *s, const uint8_t *record, size_t len);
/* @how: AUDIT_FROZEN, AUDIT_LOST or AUDIT_IN_RING. */
void audit_left(enum audit_kind how, const uint8_t connection[16], uint32_t epoch);
void audit_copied(const uint8_t connection[16], uint32_t epoch);
/* Another process can write [memory, memory + len), until the next call for @memory with 0. */
void audit_shared(const uint8_t *memory, size_t len);
/* @records: whole records. Each one whose outer type is application data or alert makes a row. */
void audit_accepted(const uint8_t connection[16], uint32_t epoch, const uint8_t *records, size_t len);
#else
#define audit_active()                                  false
/* Not a macro: its argument may be a struct that is written out. */
static inline void audit_sealed(const struct audit_sealing *s, const uint8_t *record, size_t len)
{
}
#define audit_sealed_by_openssl(s, record, len)         ((void)(s), (void)(record), (void)(len))
#define audit_left(how, connection, epoch)              ((void)(connection), (void)(epoch))
#define audit_copied(connection, epoch)                 ((void)(connection), (void)(epoch))
#define audit_shared(memory, len)                       ((void)(memory), (void)(len))
#define audit_accepted(connection, epoch, records, len) ((void)(connection), (void)(records), (void)(len))
#endif
