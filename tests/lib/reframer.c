/* reframer.c */
#include "tests/lib/reframer.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/record_forge.h"

struct reframer {
	size_t record_len;
	struct record_forge *forge; /* NULL: in the clear */
	uint8_t *records;           /* finished */
	size_t records_len;
	uint8_t type; /* of what waits */
	uint8_t waiting[1u << 20];
	size_t waiting_len;
};

struct reframer *reframer_create(size_t len)
{
	struct reframer *r = calloc(1, sizeof *r);

	if (r)
		r->record_len = len;
	return r;
}

void reframer_destroy(struct reframer *r)
{
	if (!r)
		return;
	record_forge_destroy(r->forge);
	free(r->records);
	free(r);
}

static size_t write_record(struct reframer *r, const uint8_t *content, size_t len, uint8_t *out)
{
	struct forged_record record = { .type = r->type, .content = content, .len = len };

	if (r->forge && r->type != TLS_CHANGE_CIPHER_SPEC) {
		ptrdiff_t n = record_forge_seal(r->forge, &record, out, FORGED_RECORD_MAX);
		if (n < 0)
			abort();
		return (size_t)n;
	}
	tls_record_header_write(out, r->type, TLS12_VERSION_WIRE, (uint16_t)len);
	memcpy(out + TLS_RECORD_HEADER_LEN, content, len);
	return TLS_RECORD_HEADER_LEN + len;
}

static void finish_records(struct reframer *r)
{
	for (size_t used = 0; used < r->waiting_len;) {
		size_t left = r->waiting_len - used, n = left < r->record_len ? left : r->record_len;
		r->records = realloc(r->records, r->records_len + FORGED_RECORD_MAX);
		if (!r->records)
			abort();
		r->records_len += write_record(r, r->waiting + used, n, r->records + r->records_len);
		used += n;
	}
	r->waiting_len = 0;
}

int reframer_seal(struct reframer *r, const struct cipher_suite *suite, const struct direction_keys *keys)
{
	finish_records(r);
	record_forge_destroy(r->forge);
	r->forge = record_forge_create(suite, keys, 0);
	return r->forge ? 0 : -1;
}

void reframer_take(struct reframer *r, uint8_t type, const void *bytes, size_t len)
{
	if (r->type != type)
		finish_records(r);
	if (r->waiting_len + len > sizeof r->waiting)
		abort();
	r->type = type;
	memcpy(r->waiting + r->waiting_len, bytes, len);
	r->waiting_len += len;
}

void reframer_give(struct reframer *r, BIO *out)
{
	finish_records(r);
	if (r->records_len && BIO_write(out, r->records, (int)r->records_len) != (int)r->records_len)
		abort();
	r->records_len = 0;
}
