/* tls_record.h: TLS record headers (RFC 8446 5.1, RFC 5246 6.2.1). RAgent reads nothing else of a record. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TLS_RECORD_HEADER_LEN 5u
#define TLS_PLAINTEXT_MAX     16384u                      /* 2^14 */
#define TLS13_CIPHERTEXT_MAX  (TLS_PLAINTEXT_MAX + 256u)  /* RFC 8446 5.2 */
#define TLS12_CIPHERTEXT_MAX  (TLS_PLAINTEXT_MAX + 2048u) /* RFC 5246 6.2.3 */
#define TLS_RECORD_MAX        (TLS_RECORD_HEADER_LEN + TLS12_CIPHERTEXT_MAX)

#define TLS12_VERSION_WIRE 0x0303u
#define TLS13_VERSION_WIRE 0x0304u

/* The paper's Table 1. */
enum tls_content_type {
	TLS_CHANGE_CIPHER_SPEC = 0x14,
	TLS_ALERT = 0x15,
	TLS_HANDSHAKE = 0x16,
	TLS_APPLICATION_DATA = 0x17,
};
#define TLS_HEARTBEAT 0x18 /* RFC 6520; CSSL refuses it */

/* Alert descriptions that CSSL itself sends (RFC 8446 6, RFC 5246 7.2). */
enum tls_alert {
	TLS_ALERT_CLOSE_NOTIFY = 0,
	TLS_ALERT_UNEXPECTED_MESSAGE = 10,
	TLS_ALERT_BAD_RECORD_MAC = 20,
	TLS_ALERT_RECORD_OVERFLOW = 22,
	TLS_ALERT_ILLEGAL_PARAMETER = 47,
	TLS_ALERT_DECODE_ERROR = 50,
	TLS_ALERT_PROTOCOL_VERSION = 70,
	TLS_ALERT_INTERNAL_ERROR = 80,
	TLS_ALERT_NO_RENEGOTIATION = 100,
};
enum tls_alert_level { TLS_ALERT_WARNING = 1, TLS_ALERT_FATAL = 2 };

struct tls_record_header {
	uint8_t type;     /* enum tls_content_type */
	uint16_t version; /* legacy_record_version */
	uint16_t length;  /* of the fragment behind the header */
};

#define TLS_RECORD_INCOMPLETE 1

/* Look at the record at the head of @in. 0: it is whole and has TLS_RECORD_HEADER_LEN + out->length bytes.
 * TLS_RECORD_INCOMPLETE: it is not whole; @out is filled if the header is whole, else out->type is 0. With @out filled:
 * CSSL_E_TYPE: the type is not 0x14-0x17. CSSL_E_VERSION: the major version is not 3. CSSL_E_TOO_LONG: above
 * TLS12_CIPHERTEXT_MAX. */
int tls_record_scan(const uint8_t *in, size_t len, struct tls_record_header *out);

/* Count the whole records at the head of @in, at most @max bytes of them. Another process may change @in meanwhile. 0,
 * or an error of tls_record_scan() in the record behind them, whose header is then in @bad. */
struct tls_record_run {
	size_t len;
	unsigned records;
	unsigned by_type[4]; /* index: type - 0x14 */
};
int tls_record_scan_run(
	const uint8_t *in, size_t len, size_t max, struct tls_record_run *out, struct tls_record_header *bad);

/* A whole record where it stands in memory. tls_record_take() alone makes one: it looked at the header, so nobody after
 * it has to. The bytes of the header are still needed as additional data (RFC 8446 5.2). */
struct tls_record {
	uint8_t *bytes; /* header and fragment; whose they are is the caller's matter */
	struct tls_record_header header;
};

static inline size_t tls_record_len(const struct tls_record *r)
{
	return TLS_RECORD_HEADER_LEN + r->header.length;
}

#define TLS_RECORD_BATCH 16u
struct tls_record_batch {
	size_t len; /* bytes of the records */
	unsigned count;
	struct tls_record records[TLS_RECORD_BATCH];
};

/* Take the whole records at the head of @in, as many as a batch holds and at most @max bytes of them. 0, or an error of
 * tls_record_scan() in the record behind them, whose header is then in @bad; not if the batch is full. */
int tls_record_take(uint8_t *in, size_t len, size_t max, struct tls_record_batch *out, struct tls_record_header *bad);

void tls_record_header_write(
	uint8_t out[static TLS_RECORD_HEADER_LEN], uint8_t type, uint16_t version, uint16_t length);
