/* tls_record.c: reads record headers only. tls_record_scan_run() sees every record that passes RAgent, so its loop
 * has one exit for all reasons to stop. The reason is found afterwards, once for each run. */
#include "proto/tls_record.h"

#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"

#define TYPES 4u

static int type_index(uint8_t type)
{
	return (uint8_t)(type - TLS_CHANGE_CIPHER_SPEC);
}

int tls_record_scan(const uint8_t *in, size_t len, struct tls_record_header *out)
{
	if (len < TLS_RECORD_HEADER_LEN) {
		*out = (struct tls_record_header){ 0 };
		return TLS_RECORD_INCOMPLETE;
	}
	out->type = in[0];
	out->version = wire_load_u16(in + 1);
	out->length = wire_load_u16(in + 3);
	if (type_index(out->type) >= (int)TYPES)
		return CSSL_E_TYPE;
	/* Check only the major version: a first hello has 3.1, all later records have 3.3 (RFC 8446 5.1). */
	if (out->version >> 8 != TLS12_VERSION_WIRE >> 8)
		return CSSL_E_VERSION;
	if (out->length > TLS12_CIPHERTEXT_MAX)
		return CSSL_E_TOO_LONG;
	return len - TLS_RECORD_HEADER_LEN < out->length ? TLS_RECORD_INCOMPLETE : 0;
}

int tls_record_scan_run(
	const uint8_t *in, size_t len, size_t max, struct tls_record_run *out, struct tls_record_header *bad)
{
	size_t end = len < max ? len : max;
	size_t at = 0;
	unsigned by_type[TYPES] = { 0 };

	while (end - at >= TLS_RECORD_HEADER_LEN) {
		uint8_t p[TLS_RECORD_HEADER_LEN];
		wire_take_copy(p, in + at, sizeof p);
		int type = type_index(p[0]);
		size_t length = wire_load_u16(p + 3);
		if (type >= (int)TYPES || p[1] != TLS12_VERSION_WIRE >> 8 || length > TLS12_CIPHERTEXT_MAX ||
			end - at - TLS_RECORD_HEADER_LEN < length)
			break;
		by_type[type]++;
		at += TLS_RECORD_HEADER_LEN + length;
	}
	out->len = at;
	out->records = by_type[0] + by_type[1] + by_type[2] + by_type[3];
	memcpy(out->by_type, by_type, sizeof by_type);

	int r = tls_record_scan(in + at, end - at, bad);
	return r < 0 ? r : 0;
}

int tls_record_take(uint8_t *in, size_t len, size_t max, struct tls_record_batch *out, struct tls_record_header *bad)
{
	size_t end = len < max ? len : max;
	size_t at = 0;
	unsigned n = 0;
	int r = 0;

	while (n < TLS_RECORD_BATCH) {
		struct tls_record *record = &out->records[n];
		r = tls_record_scan(in + at, end - at, &record->header);
		if (r != 0)
			break;
		record->bytes = in + at;
		at += tls_record_len(record);
		n++;
	}
	if (r < 0)
		*bad = out->records[n].header;
	out->count = n;
	out->len = at;
	return r < 0 ? r : 0;
}

void tls_record_header_write(uint8_t out[static TLS_RECORD_HEADER_LEN], uint8_t type, uint16_t version, uint16_t length)
{
	out[0] = type;
	wire_store_u16(out + 1, version);
	wire_store_u16(out + 3, length);
}
