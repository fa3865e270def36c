/* test_scratch.c */
#include <string.h>

#include "proto/error.h"
#include "proto/scratch.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static void *take(struct scratch *s, size_t len)
{
	return s->allocator.alloc(s->allocator.allocator_data, len);
}

START_TEST(pieces_are_aligned_and_apart)
{
	struct scratch s;

	ck_assert_int_eq(scratch_open(&s, 256), 0);
	uint8_t *first = take(&s, 1), *second = take(&s, 17), *third = take(&s, 16);
	ck_assert_uint_eq((uintptr_t)first % 16, 0);
	ck_assert_ptr_eq(second, first + 16);
	ck_assert_ptr_eq(third, second + 32);
	scratch_close(&s);
}
END_TEST

START_TEST(a_piece_that_does_not_fit_is_refused_and_noted)
{
	static const size_t caps[] = { 64, 72, SCRATCH_INSIDE + 64 };
	struct scratch s;

	for (size_t i = 0; i < SUITE_LEN(caps); i++) {
		ck_assert_int_eq(scratch_open(&s, caps[i]), 0);
		ck_assert_ptr_nonnull(take(&s, caps[i] - 32));
		ck_assert_uint_eq(s.refused, 0);
		ck_assert_ptr_null(take(&s, 33));
		ck_assert_uint_eq(s.refused, 33);
		ck_assert_ptr_null(take(&s, SIZE_MAX));
		ck_assert_ptr_nonnull(take(&s, caps[i] % 16 ? 1 : 32));
		scratch_close(&s);
	}
}
END_TEST

START_TEST(a_piece_is_refused_when_its_rounding_does_not_fit)
{
	struct scratch s;

	ck_assert_int_eq(scratch_open(&s, 24), 0);
	ck_assert_ptr_null(take(&s, 20));
	ck_assert_ptr_nonnull(take(&s, 16));
	scratch_close(&s);
}
END_TEST

START_TEST(a_small_one_lives_on_the_stack_and_is_wiped)
{
	static const uint8_t zero[64];
	struct scratch s;

	ck_assert_int_eq(scratch_open(&s, SCRATCH_INSIDE), 0);
	uint8_t *piece = take(&s, 64);
	ck_assert_ptr_eq(piece, s.inside);
	memset(piece, 0x5a, 64);
	s.allocator.free(s.allocator.allocator_data, piece);
	scratch_close(&s);
	ck_assert_mem_eq(s.inside, zero, sizeof(zero));
}
END_TEST

UNIT(scratch)
{
	const TTest *const facts[] = {
		pieces_are_aligned_and_apart,
		a_piece_that_does_not_fit_is_refused_and_noted,
		a_piece_is_refused_when_its_rounding_does_not_fit,
		a_small_one_lives_on_the_stack_and_is_wiped,
	};
	return suite_run("scratch", facts, SUITE_LEN(facts));
}
