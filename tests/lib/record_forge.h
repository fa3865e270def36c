/* record_forge.h: seals TLS records as a client holding valid keys could, legal or not: any outer and inner type, any
 * length, any padding, a wrong tag. For unit tests, fuzzers and tlsprobe. */
#pragma once

#include "proto/cipher_suite.h"
#include "proto/sess_obj.h"
#include "proto/tls_record.h"

struct record_forge;

/* The client's writing side: @keys are its client_write, @sequence that of the next record. NULL: out of memory, or
 * keys that do not fit. */
struct record_forge *record_forge_create(
	const struct cipher_suite *suite, const struct direction_keys *keys, uint64_t sequence);
void record_forge_destroy(struct record_forge *f);

struct forged_record {
	uint8_t type;       /* TLS 1.3: inner; 0 leaves the inner type out (all zeros) */
	uint8_t outer_type; /* TLS 1.3: 0 means application_data */
	uint16_t version;   /* 0 means 0x0303 */
	const void *content;
	size_t len;
	size_t padding; /* TLS 1.3: zeros behind the type */
	enum { FORGED_TAG_RIGHT, FORGED_TAG_WRONG } tag;
};
/* Suites by what matters in a test. */
#define TLS13_AES_128  0x1301
#define TLS13_AES_256  0x1302
#define TLS13_CHACHA20 0x1303
#define TLS12_AES_128  0xc02b
#define TLS12_AES_256  0xc02c
#define TLS12_CHACHA20 0xcca9

#define FORGED_RECORD_MAX (TLS_RECORD_HEADER_LEN + 65535u)

/* Bytes written to @out, or a negative error. */
ptrdiff_t record_forge_seal(struct record_forge *f, const struct forged_record *r, uint8_t *out, size_t cap);
/* TLS 1.3: as after a KeyUpdate. */
int record_forge_step(struct record_forge *f);
uint64_t record_forge_sequence(const struct record_forge *f);
