/* test_held.c: facts of the frames that an agent holds until RAgent has confirmed them. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sslagent/carrier/held.h"

#define LIMIT 4096u

static struct held h;

static void add(enum frame_type type, size_t len)
{
	static uint8_t payload[8192];

	held_add(&h, type, 0, payload, len, LIMIT);
}

static unsigned count(void)
{
	unsigned n = 0;

	for (const struct held_frame *f = h.first; f; f = f->next)
		n++;
	return n;
}

START_TEST(frames_are_held_as_they_were_and_in_order)
{
	h = (struct held){ 0 };
	held_add(&h, FRAME_CONSUMED, FRAME_CHECKPOINT, (const uint8_t *)"consumed", 8, LIMIT);
	held_add(&h, FRAME_DATA, FRAME_RESPONSE_BYTES, (const uint8_t *)"data", 4, LIMIT);
	ck_assert_uint_eq(count(), 2);
	ck_assert_uint_eq(h.first->type, FRAME_CONSUMED);
	ck_assert_uint_eq(h.first->flags, FRAME_CHECKPOINT);
	ck_assert_uint_eq(h.first->number, 1);
	ck_assert_uint_eq(h.last->number, 2);
	ck_assert_uint_eq(h.last->len, 4);
	ck_assert_mem_eq(h.last->payload, "data", 4);
	ck_assert_uint_eq(h.last->flags, FRAME_RESPONSE_BYTES);
	held_clear(&h);
}
END_TEST

START_TEST(a_frame_goes_when_it_and_its_bytes_are_confirmed)
{
	h = (struct held){ 0 };
	add(FRAME_DATA, 100);
	add(FRAME_CONSUMED, 24);
	add(FRAME_DATA, 50);
	held_drained(&h, 100);
	ck_assert_uint_eq(count(), 3);
	held_received(&h, 3);
	ck_assert_uint_eq(held_first(&h), 3);
	ck_assert_uint_eq(held_first_byte(&h), 100);
	held_drained(&h, 149);
	ck_assert_uint_eq(count(), 1);
	held_drained(&h, 150);
	ck_assert_uint_eq(count(), 0);
	ck_assert_uint_eq(h.len, 0);
}
END_TEST

START_TEST(bytes_alone_confirm_no_frame)
{
	h = (struct held){ 0 };
	add(FRAME_DATA, 10);
	held_drained(&h, 10);
	ck_assert_uint_eq(count(), 1);
	held_clear(&h);
}
END_TEST

START_TEST(an_empty_list_begins_with_what_comes_next)
{
	h = (struct held){ .bytes = 7 };
	ck_assert_uint_eq(held_first(&h), 1);
	ck_assert_uint_eq(held_first_byte(&h), 7);
	add(FRAME_DATA, 10);
	ck_assert_uint_eq(held_first_byte(&h), 7);
	held_drained(&h, 17);
	held_received(&h, UINT64_MAX);
	ck_assert_uint_eq(held_first(&h), 2);
	ck_assert_uint_eq(held_first_byte(&h), 17);
}
END_TEST

START_TEST(what_is_too_much_breaks_it_for_good)
{
	h = (struct held){ 0 };
	add(FRAME_DATA, 1000);
	ck_assert_int_eq(h.state, HELD_WHOLE);
	add(FRAME_DATA, LIMIT);
	ck_assert_int_eq(h.state, HELD_BROKEN);
	ck_assert_uint_eq(count(), 0);
	add(FRAME_DATA, 1);
	ck_assert_int_eq(h.state, HELD_BROKEN);
	ck_assert_uint_eq(count(), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("held");
	TCase *c = tcase_create("held");
	SRunner *r = srunner_create(s);

	tcase_add_test(c, frames_are_held_as_they_were_and_in_order);
	tcase_add_test(c, a_frame_goes_when_it_and_its_bytes_are_confirmed);
	tcase_add_test(c, bytes_alone_confirm_no_frame);
	tcase_add_test(c, an_empty_list_begins_with_what_comes_next);
	tcase_add_test(c, what_is_too_much_breaks_it_for_good);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
