/* test_wire.c: facts of the cursor. */
#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(written_values_are_read)
{
	uint8_t out[32];
	struct wire_writer w = wire_writer(out, sizeof(out));
	wire_put_u8(&w, 0x01);
	wire_put_u16(&w, 0x0203);
	wire_put_u24(&w, 0x040506);
	wire_put_u32(&w, 0x0708090a);
	wire_put_u64(&w, 0x0b0c0d0e0f101112);
	wire_put_bytes(&w, "tail", 4);
	ck_assert_int_eq(wire_writer_len(&w), 22);

	struct wire_reader r = wire_reader(out, 22);
	ck_assert_uint_eq(wire_u8(&r), 0x01);
	ck_assert_uint_eq(wire_u16(&r), 0x0203);
	ck_assert_uint_eq(wire_u24(&r), 0x040506);
	ck_assert_uint_eq(wire_u32(&r), 0x0708090a);
	ck_assert_uint_eq(wire_u64(&r), 0x0b0c0d0e0f101112);
	ck_assert_mem_eq(wire_bytes(&r, 4), "tail", 4);
	ck_assert_int_eq(wire_reader_end(&r), 0);
}
END_TEST

START_TEST(numbers_are_big_endian)
{
	uint8_t out[8];
	struct wire_writer w = wire_writer(out, sizeof(out));
	wire_put_u64(&w, 0x0102030405060708);
	ck_assert_mem_eq(out, "\1\2\3\4\5\6\7\10", 8);
}
END_TEST

START_TEST(a_reader_that_ran_out_stays_spent)
{
	struct wire_reader r = wire_reader((const uint8_t *)"\1\2\3", 3);
	ck_assert_uint_eq(wire_u32(&r), 0);
	ck_assert_uint_eq(wire_u8(&r), 0);
	ck_assert_ptr_null(wire_bytes(&r, 0));
	ck_assert_uint_eq(wire_left(&r), 0);
	ck_assert_int_eq(wire_reader_end(&r), CSSL_E_TRUNCATED);
}
END_TEST

START_TEST(bytes_left_over_are_an_error)
{
	struct wire_reader r = wire_reader((const uint8_t *)"\1\2\3", 3);
	wire_u16(&r);
	ck_assert_int_eq(wire_reader_end(&r), CSSL_E_TRAILING);
}
END_TEST

START_TEST(a_reader_knows_what_is_left)
{
	struct wire_reader r = wire_reader((const uint8_t *)"\1\2\3", 3);
	ck_assert_uint_eq(wire_left(&r), 3);
	wire_u16(&r);
	ck_assert_uint_eq(wire_left(&r), 1);
}
END_TEST

START_TEST(an_empty_input_is_not_spent)
{
	struct wire_reader r = wire_reader(NULL, 0);
	ck_assert_int_eq(wire_reader_end(&r), 0);
	ck_assert_ptr_nonnull(wire_bytes(&r, 0));
	wire_u8(&r);
	ck_assert_int_eq(wire_reader_end(&r), CSSL_E_TRUNCATED);
}
END_TEST

START_TEST(a_length_near_the_address_space_does_not_wrap)
{
	struct wire_reader r = wire_reader((const uint8_t *)"\1\2\3", 3);
	ck_assert_ptr_null(wire_bytes(&r, SIZE_MAX));
	ck_assert_int_eq(wire_reader_end(&r), CSSL_E_TRUNCATED);

	uint8_t out[4];
	struct wire_writer w = wire_writer(out, sizeof(out));
	wire_put_bytes(&w, "x", SIZE_MAX);
	ck_assert_int_eq(wire_writer_len(&w), CSSL_E_TOO_LONG);
}
END_TEST

START_TEST(a_sub_reader_ends_where_it_was_told)
{
	struct wire_reader r = wire_reader((const uint8_t *)"\1\2\3\4", 4);
	struct wire_reader sub = wire_sub(&r, 2);
	ck_assert_uint_eq(wire_u16(&sub), 0x0102);
	wire_u8(&sub);
	ck_assert_int_eq(wire_reader_end(&sub), CSSL_E_TRUNCATED);
	ck_assert_uint_eq(wire_u16(&r), 0x0304);
}
END_TEST

START_TEST(a_sub_reader_longer_than_the_rest_spends_both)
{
	struct wire_reader r = wire_reader((const uint8_t *)"\1\2", 2);
	struct wire_reader sub = wire_sub(&r, 3);
	ck_assert_int_eq(wire_reader_end(&sub), CSSL_E_TRUNCATED);
	ck_assert_int_eq(wire_reader_end(&r), CSSL_E_TRUNCATED);
}
END_TEST

START_TEST(a_full_writer_writes_nothing_more)
{
	uint8_t out[4];
	memset(out, 0xee, sizeof(out));
	struct wire_writer w = wire_writer(out, 3);
	wire_put_u16(&w, 0x0102);
	wire_put_u16(&w, 0x0304);
	wire_put_u8(&w, 5);
	ck_assert_int_eq(wire_writer_len(&w), CSSL_E_TOO_LONG);
	ck_assert_mem_eq(out, "\1\2\xee\xee", 4);
}
END_TEST

UNIT(wire)
{
	const TTest *facts[] = {
		written_values_are_read,
		numbers_are_big_endian,
		a_reader_that_ran_out_stays_spent,
		bytes_left_over_are_an_error,
		a_reader_knows_what_is_left,
		an_empty_input_is_not_spent,
		a_length_near_the_address_space_does_not_wrap,
		a_sub_reader_ends_where_it_was_told,
		a_sub_reader_longer_than_the_rest_spends_both,
		a_full_writer_writes_nothing_more,
	};
	return suite_run("wire", facts, SUITE_LEN(facts));
}
