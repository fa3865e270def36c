/* test_fields.c: facts of structs as tagged fields. */
#include <string.h>

#include "proto/error.h"
#include "proto/fields.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

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
	FIELD_OF(struct thing, 2, FIELD_INT, i64, FIELD_ANY),
	FIELD_OF(struct thing, 3, FIELD_UINT, u32, FIELD_ANY),
	FIELD_OF(struct thing, 4, FIELD_INT, i16, FIELD_ANY),
	FIELD_OF(struct thing, 5, FIELD_UINT, u16, FIELD_ANY),
	FIELD_OF(struct thing, 6, FIELD_UINT, u8, FIELD_ANY),
	FIELD_OF(struct thing, 7, FIELD_UINT, state, 3),
	FIELD_OF(struct thing, 8, FIELD_BYTES, bytes, 0),
};
#define ROWS (sizeof rows / sizeof rows[0])

static const struct thing sample = { .u64 = UINT64_C(0xf1f2f3f4f5f6f7f8),
	.i64 = -5,
	.u32 = 0xe1e2e3e4,
	.i16 = -1,
	.u16 = 0xd1d2,
	.u8 = 0xc1,
	.state = 3,
	.bytes = "abcde" };

static int store_all(struct thing *t, const uint8_t *in, size_t len)
{
	struct wire_reader r = wire_reader(in, len);
	struct field_item item;
	int result;

	while ((result = field_next(&r, &item)) == 0) {
		result = field_store(t, rows, ROWS, &item);
		if (result != 0)
			return result;
	}
	return result;
}

/* One field @tag of @len bytes. */
static int store_one(struct thing *t, uint16_t tag, const void *value, size_t len)
{
	uint8_t out[64];
	struct wire_writer w = wire_writer(out, sizeof out);

	field_write(&w, tag, value, len);
	return store_all(t, out, (size_t)wire_writer_len(&w));
}

START_TEST(written_fields_are_read_back)
{
	uint8_t out[256];
	struct wire_writer w = wire_writer(out, sizeof out);
	struct thing t = { 0 };

	fields_write(&w, &sample, rows, ROWS);
	ck_assert_int_eq(wire_writer_len(&w), (ptrdiff_t)fields_len(rows, ROWS));
	ck_assert_int_eq(store_all(&t, out, fields_len(rows, ROWS)), FIELDS_END);
	ck_assert_mem_eq(&t, &sample, sizeof t);
}
END_TEST

START_TEST(format_is_the_same_on_every_machine)
{
	static const uint8_t expected[] = { 0, 4, 0, 0, 0, 2, 0xff, 0xff };
	uint8_t out[sizeof expected];
	struct wire_writer w = wire_writer(out, sizeof out);

	fields_write(&w, &sample, &rows[3], 1);
	ck_assert_int_eq(wire_writer_len(&w), sizeof expected);
	ck_assert_mem_eq(out, expected, sizeof expected);
}
END_TEST

START_TEST(cut_anywhere_is_truncated)
{
	uint8_t out[256];
	struct wire_writer w = wire_writer(out, sizeof out);
	size_t len = fields_len(rows, ROWS), at = 0;

	fields_write(&w, &sample, rows, ROWS);
	for (size_t i = 0; i < ROWS; i++) {
		size_t field_len = FIELD_HEADER_LEN + rows[i].size;
		for (size_t cut = 1; cut < field_len; cut++) {
			struct thing t = { 0 };
			ck_assert_int_eq(store_all(&t, out, at + cut), CSSL_E_TRUNCATED);
		}
		at += field_len;
	}
	ck_assert_uint_eq(at, len);
}
END_TEST

START_TEST(member_that_grew_or_shrank_is_read_while_the_value_fits)
{
	struct thing t = { 0 };

	ck_assert_int_eq(store_one(&t, 3, "\x01\x02", 2), FIELDS_END);
	ck_assert_uint_eq(t.u32, 0x0102);
	ck_assert_int_eq(store_one(&t, 5, "\0\0\x03\x04", 4), FIELDS_END);
	ck_assert_uint_eq(t.u16, 0x0304);
	ck_assert_int_eq(store_one(&t, 5, "\0\x01\0\0", 4), CSSL_E_RANGE);
	ck_assert_int_eq(store_one(&t, 2, "\xfe", 1), FIELDS_END);
	ck_assert_int_eq(t.i64, -2);
	ck_assert_int_eq(store_one(&t, 4, "\xff\xff\x80\x00", 4), FIELDS_END);
	ck_assert_int_eq(t.i16, INT16_MIN);
	ck_assert_int_eq(store_one(&t, 4, "\xff\xff\x7f\xff", 4), CSSL_E_RANGE);
	ck_assert_int_eq(store_one(&t, 4, "\x00\x00\x80\x00", 4), CSSL_E_RANGE);
}
END_TEST

START_TEST(value_above_its_range_is_refused_and_changes_nothing)
{
	struct thing t = { .state = 1 };

	ck_assert_int_eq(store_one(&t, 7, "\x04", 1), CSSL_E_RANGE);
	ck_assert_uint_eq(t.state, 1);
	ck_assert_int_eq(store_one(&t, 7, "", 0), CSSL_E_RANGE);
	ck_assert_int_eq(store_one(&t, 1, "123456789", 9), CSSL_E_RANGE);
	ck_assert_int_eq(store_one(&t, 8, "abcd", 4), CSSL_E_RANGE);
}
END_TEST

START_TEST(unknown_tag_is_told)
{
	struct thing t = { 0 };

	ck_assert_int_eq(store_one(&t, 9, "x", 1), FIELD_OTHER);
}
END_TEST

START_TEST(missing_field_leaves_the_member)
{
	struct thing t = sample;

	ck_assert_int_eq(store_one(&t, 6, "\x07", 1), FIELDS_END);
	ck_assert_uint_eq(t.u8, 7);
	ck_assert_uint_eq(t.u64, sample.u64);
}
END_TEST

UNIT(fields)
{
	const TTest *const facts[] = {
		written_fields_are_read_back,
		format_is_the_same_on_every_machine,
		cut_anywhere_is_truncated,
		member_that_grew_or_shrank_is_read_while_the_value_fits,
		value_above_its_range_is_refused_and_changes_nothing,
		unknown_tag_is_told,
		missing_field_leaves_the_member,
	};

	return suite_run("fields", facts, SUITE_LEN(facts));
}
