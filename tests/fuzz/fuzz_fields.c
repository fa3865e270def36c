/* fuzz_fields.c: reads tagged fields into a struct. The stored members must be written so that reading them again
 * gives the same. */
#include <string.h>

#include "proto/fields.h"
#include "tests/fuzz/must.h"

struct thing {
	uint64_t u64;
	int64_t i64;
	uint32_t u32;
	int16_t i16;
	uint16_t u16;
	uint8_t u8, state;
	uint8_t bytes[5];
};

static const struct field rows[] = {
	FIELD_OF(struct thing, 1, FIELD_UINT, u64, FIELD_ANY),
	FIELD_OF(struct thing, 2, FIELD_INT, i64, 0),
	FIELD_OF(struct thing, 3, FIELD_UINT, u32, FIELD_ANY),
	FIELD_OF(struct thing, 4, FIELD_INT, i16, 0),
	FIELD_OF(struct thing, 5, FIELD_UINT, u16, FIELD_ANY),
	FIELD_OF(struct thing, 6, FIELD_UINT, u8, FIELD_ANY),
	FIELD_OF(struct thing, 7, FIELD_UINT, state, 3),
	FIELD_OF(struct thing, 8, FIELD_BYTES, bytes, 0),
};
#define ROWS (sizeof rows / sizeof rows[0])

static void store(struct thing *t, const uint8_t *in, size_t len)
{
	struct wire_reader r = wire_reader(in, len);
	struct field_item item;

	memset(t, 0, sizeof *t);
	while (field_next(&r, &item) == 0) {
		MUST(item.value >= in && item.value + item.len <= in + len);
		field_store(t, rows, ROWS, &item);
	}
	MUST(t->state <= 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct thing once, twice;
	uint8_t out[256];
	struct wire_writer w = wire_writer(out, sizeof out);

	store(&once, in, len);
	fields_write(&w, &once, rows, ROWS);
	MUST(wire_writer_len(&w) == (ptrdiff_t)fields_len(rows, ROWS));
	store(&twice, out, fields_len(rows, ROWS));
	MUST(memcmp(&once, &twice, sizeof once) == 0);
	return 0;
}
