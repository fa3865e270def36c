/* test_buffers.c: facts of spare buffers. */
#include <string.h>

#include "net/memory/buffers.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(buffer_has_at_least_what_was_asked_for)
{
	struct buffers b = { 0 };
	uint32_t cap;

	for (size_t len = 1; len < 2000000; len = len * 3 / 2 + 1) {
		void *buffer = buffers_take(&b, len, &cap);
		ck_assert_ptr_nonnull(buffer);
		ck_assert_uint_ge(cap, len);
		ck_assert_uint_le(cap, len < BUFFERS_MIN_LEN ? BUFFERS_MIN_LEN : 2 * len);
		memset(buffer, 1, cap);
		buffers_give(&b, buffer, cap);
	}
	buffers_clear(&b);
}
END_TEST

START_TEST(nonsense_length_gets_nothing)
{
	struct buffers b = { 0 };
	uint32_t cap;

	ck_assert_ptr_null(buffers_take(&b, SIZE_MAX, &cap));
	buffers_give(&b, NULL, 0);
}
END_TEST

#ifndef CSSL_SANITIZED
START_TEST(buffer_given_back_last_is_taken_first)
{
	struct buffers b = { 0 };
	uint32_t cap;
	void *first = buffers_take(&b, 5000, &cap), *second = buffers_take(&b, 5000, &cap);

	buffers_give(&b, first, cap);
	buffers_give(&b, second, cap);
	ck_assert_ptr_eq(buffers_take(&b, 6000, &cap), second);
	ck_assert_ptr_eq(buffers_take(&b, 8000, &cap), first);
	buffers_give(&b, first, cap);
	buffers_give(&b, second, cap);
	buffers_clear(&b);
}
END_TEST

START_TEST(spare_buffers_are_bounded)
{
	struct buffers b = { 0 };
	enum { MANY = 64 };
	void *taken[MANY];
	uint32_t cap = 0;

	for (unsigned i = 0; i < MANY; i++)
		taken[i] = buffers_take(&b, 256 * 1024, &cap);
	for (unsigned i = 0; i < MANY; i++)
		buffers_give(&b, taken[i], cap);
	ck_assert_uint_gt(b.classes[8].count, 1);
	ck_assert_uint_lt(b.classes[8].count, MANY / 2);
	buffers_clear(&b);
}
END_TEST
#endif

UNIT(buffers)
{
	const TTest *facts[] = {
		buffer_has_at_least_what_was_asked_for,
		nonsense_length_gets_nothing,
#ifndef CSSL_SANITIZED
		buffer_given_back_last_is_taken_first,
		spare_buffers_are_bounded,
#endif
	};
	return suite_run("buffers", facts, SUITE_LEN(facts));
}
