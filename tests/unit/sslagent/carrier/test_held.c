/* test_held.c: facts of the frames that an agent holds until RAgent has confirmed them. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sslagent/carrier/held.h"
#include "tests/unit/unit.h"

#define LIMIT 16384u

static struct held h;
static struct buffers buffers;

static void add_text(enum frame_type type, uint8_t flags, const char *text)
{
	uint8_t *room = held_room(&h, &buffers, strlen(text), LIMIT);

	ck_assert_ptr_nonnull(room);
	memcpy(room, text, strlen(text));
	ck_assert_ptr_nonnull(held_add(&h, type, flags, strlen(text)));
}

/* 1: it is held. */
static int add(enum frame_type type, size_t len)
{
	uint8_t *room = held_room(&h, &buffers, len, LIMIT);

	if (room)
		memset(room, 'x', len);
	return held_add(&h, type, 0, len) != NULL;
}

static unsigned count(void)
{
	struct held_walk w = { 0 };
	unsigned n = 0;

	while (held_next(&h, &w))
		n++;
	return n;
}

static void clear(void)
{
	held_clear(&h, &buffers);
	buffers_clear(&buffers);
}

START_TEST(frames_are_held_as_they_were_and_in_order)
{
	h = (struct held){ 0 };
	add_text(FRAME_CONSUMED, FRAME_CHECKPOINT, "consumed");
	add_text(FRAME_DATA, FRAME_RESPONSE_BYTES, "data");
	struct held_walk w = { 0 };
	const struct held_frame *first = held_next(&h, &w), *last = held_next(&h, &w);
	ck_assert_ptr_null(held_next(&h, &w));
	ck_assert_uint_eq(first->type, FRAME_CONSUMED);
	ck_assert_uint_eq(first->flags, FRAME_CHECKPOINT);
	ck_assert_uint_eq(first->number, 1);
	ck_assert_mem_eq(first->wire + FRAME_HEADER_LEN, "consumed", 8);
	ck_assert_uint_eq(last->number, 2);
	ck_assert_uint_eq(last->len, 4);
	ck_assert_mem_eq(last->wire + FRAME_HEADER_LEN, "data", 4);
	ck_assert_uint_eq(last->flags, FRAME_RESPONSE_BYTES);
	clear();
}
END_TEST

static uint64_t first_frame(void)
{
	uint64_t bytes;

	return held_first(&h, &bytes);
}

static uint64_t first_byte(void)
{
	uint64_t bytes;

	held_first(&h, &bytes);
	return bytes;
}

START_TEST(a_frame_goes_when_it_and_its_bytes_are_confirmed)
{
	h = (struct held){ 0 };
	add(FRAME_DATA, 100);
	add(FRAME_CONSUMED, 24);
	add(FRAME_DATA, 50);
	held_confirm(&h, &buffers, 100, 0);
	ck_assert_uint_eq(count(), 3);
	held_confirm(&h, &buffers, 100, 3);
	ck_assert_uint_eq(first_frame(), 3);
	ck_assert_uint_eq(first_byte(), 100);
	held_confirm(&h, &buffers, 149, 3);
	ck_assert_uint_eq(count(), 1);
	held_confirm(&h, &buffers, 150, 3);
	ck_assert_uint_eq(count(), 0);
	ck_assert_uint_eq(h.len, 0);
	clear();
}
END_TEST

/* They fill several blocks, which go back as soon as nothing in them is needed. */
START_TEST(frames_are_in_runs_and_go_in_runs)
{
	h = (struct held){ 0 };
	for (unsigned i = 0; i < 40; i++) {
		ck_assert(add(FRAME_DATA, 50));
		ck_assert(add(FRAME_CONSUMED, 24));
	}
	const size_t all = h.len;
	ck_assert_uint_lt(all, LIMIT * 2);
	for (unsigned i = 1; i <= 40; i++) {
		held_confirm(&h, &buffers, i * 50, 80);
		ck_assert_uint_eq(count(), 80 - 2 * i);
		ck_assert_uint_eq(first_frame(), 2 * i + 1);
		ck_assert_uint_eq(first_byte(), i * 50);
	}
	ck_assert_uint_lt(h.len, all);
	ck_assert_uint_eq(h.len, 0);
	clear();
}
END_TEST

START_TEST(room_need_not_be_used_up_or_used)
{
	h = (struct held){ 0 };
	ck_assert_ptr_nonnull(held_room(&h, &buffers, 500, LIMIT));
	ck_assert_ptr_nonnull(held_room(&h, &buffers, 1500, LIMIT));
	ck_assert_ptr_nonnull(held_add(&h, FRAME_DATA, 0, 10));
	ck_assert_ptr_null(held_add(&h, FRAME_DATA, 0, 10));
	ck_assert_uint_eq(count(), 1);
	ck_assert_uint_eq(h.bytes, 10);
	held_confirm(&h, &buffers, 10, 1);
	ck_assert_uint_eq(h.len, 0);
	clear();
}
END_TEST

START_TEST(bytes_alone_confirm_no_frame)
{
	h = (struct held){ 0 };
	add(FRAME_DATA, 10);
	held_confirm(&h, &buffers, 10, 0);
	ck_assert_uint_eq(count(), 1);
	clear();
}
END_TEST

START_TEST(an_empty_list_begins_with_what_comes_next)
{
	h = (struct held){ .bytes = 7 };
	ck_assert_uint_eq(first_frame(), 1);
	ck_assert_uint_eq(first_byte(), 7);
	add(FRAME_DATA, 10);
	ck_assert_uint_eq(first_byte(), 7);
	held_confirm(&h, &buffers, 17, UINT64_MAX);
	ck_assert_uint_eq(first_frame(), 2);
	ck_assert_uint_eq(first_byte(), 17);
	clear();
}
END_TEST

START_TEST(what_is_too_much_breaks_it_for_good)
{
	h = (struct held){ 0 };
	ck_assert(add(FRAME_DATA, 1000));
	ck_assert_int_eq(h.state, HELD_WHOLE);
	ck_assert(!add(FRAME_DATA, LIMIT));
	ck_assert_int_eq(h.state, HELD_BROKEN);
	ck_assert_uint_eq(count(), 0);
	ck_assert(!add(FRAME_DATA, 1));
	ck_assert_int_eq(h.state, HELD_BROKEN);
	ck_assert_uint_eq(count(), 0);
	ck_assert_uint_eq(h.len, 0);
	clear();
}
END_TEST

UNIT(held)
{
	Suite *s = suite_create("held");
	TCase *c = tcase_create("held");
	SRunner *r = srunner_create(s);

	tcase_add_test(c, frames_are_held_as_they_were_and_in_order);
	tcase_add_test(c, a_frame_goes_when_it_and_its_bytes_are_confirmed);
	tcase_add_test(c, frames_are_in_runs_and_go_in_runs);
	tcase_add_test(c, room_need_not_be_used_up_or_used);
	tcase_add_test(c, bytes_alone_confirm_no_frame);
	tcase_add_test(c, an_empty_list_begins_with_what_comes_next);
	tcase_add_test(c, what_is_too_much_breaks_it_for_good);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
