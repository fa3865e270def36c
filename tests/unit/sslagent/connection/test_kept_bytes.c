/* test_kept_bytes.c: facts of plaintext that is kept and wiped. */
#include <stdlib.h>
#include <string.h>

#include "sslagent/connection/kept_bytes.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

static struct kept_bytes *kept;
static uint8_t pattern[4 * HEAD_KEPT_MAX];

static void setup(void)
{
	kept = NULL;
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (uint8_t)(i ^ i >> 8);
}

static void teardown(void)
{
	kept_bytes_wipe(&kept);
}

START_TEST(nothing_needs_no_memory)
{
	ck_assert_int_eq(kept_bytes_add(&kept, pattern, 0), 0);
	ck_assert_ptr_null(kept);
}
END_TEST

START_TEST(pieces_stand_one_behind_the_other)
{
	static const size_t pieces[] = { 1, 119, 1, 4000, HEAD_KEPT_MAX, 3 };
	size_t len = 0;

	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		ck_assert_int_eq(kept_bytes_add(&kept, pattern + len, pieces[i]), 0);
		len += pieces[i];
		ck_assert_uint_eq(kept->len, len);
		ck_assert_uint_ge(kept->cap, len);
		ck_assert_int_eq(memcmp(kept->bytes, pattern, len), 0);
	}
}
END_TEST

START_TEST(a_block_for_a_head_grows_no_larger_than_a_head)
{
	for (size_t len = 0; len < HEAD_KEPT_MAX; len += 512) {
		ck_assert_int_eq(kept_bytes_add(&kept, pattern + len, 512), 0);
		ck_assert_uint_le(kept->cap, HEAD_KEPT_MAX);
	}
}
END_TEST

START_TEST(what_was_wiped_is_gone)
{
	ck_assert_int_eq(kept_bytes_add(&kept, pattern, 100), 0);
	kept_bytes_wipe(&kept);
	ck_assert_ptr_null(kept);
	kept_bytes_wipe(&kept); /* twice is legal */
	ck_assert_int_eq(kept_bytes_add(&kept, pattern + 5, 7), 0);
	ck_assert_uint_eq(kept->len, 7);
	ck_assert_int_eq(memcmp(kept->bytes, pattern + 5, 7), 0);
}
END_TEST

static void add_facts(TCase *t)
{
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, nothing_needs_no_memory);
	tcase_add_test(t, pieces_stand_one_behind_the_other);
	tcase_add_test(t, a_block_for_a_head_grows_no_larger_than_a_head);
	tcase_add_test(t, what_was_wiped_is_gone);
}

UNIT(kept_bytes)
{
	return run_suite("kept_bytes", add_facts);
}
