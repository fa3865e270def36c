/* test_turns.c: facts about the order in which senders get their turns. */
#include "smtpproxy/outward/turns.h"

#include <stddef.h>
#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define TURNS 8192u

static struct turns turns;
static struct turn waiting[TURNS];
static unsigned owner[TURNS], count;

static struct client_address sender(unsigned number)
{
	return (struct client_address){ .bytes = { 192, 0, 2, (uint8_t)number }, .len = 4 };
}

static void begin(void)
{
	turns_init(&turns);
	memset(waiting, 0, sizeof waiting);
	count = 0;
}

static void come(unsigned number, unsigned turns_of_it, uint32_t weight)
{
	const struct client_address who = sender(number);
	for (unsigned i = 0; i < turns_of_it; i++) {
		owner[count] = number;
		ck_assert_int_eq(turns_add(&turns, &waiting[count++], &who, weight), 0);
	}
}

/* The next @n turns, as digits of their senders. */
static const char *next(unsigned n)
{
	static char text[TURNS + 1];
	unsigned i = 0;
	for (struct turn *t; i < n && (t = turns_take(&turns)); i++)
		text[i] = (char)('0' + owner[t - waiting]);
	text[i] = '\0';
	return text;
}

START_TEST(a_sender_with_many_sessions_gets_no_more_than_one_with_few)
{
	begin();
	come(1, 20, 1);
	come(2, 3, 1);
	come(3, 5, 1);
	ck_assert_str_eq(next(9), "123123123");
	ck_assert_str_eq(next(6), "131311");
}
END_TEST

START_TEST(the_turns_of_a_sender_come_in_their_order)
{
	begin();
	come(1, 3, 1);
	ck_assert_ptr_eq(turns_first(&turns), &waiting[0]);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_ptr_eq(turns_take(&turns), &waiting[i]);
	ck_assert_ptr_null(turns_take(&turns));
	ck_assert_ptr_null(turns_first(&turns));
}
END_TEST

START_TEST(a_weight_of_two_gets_twice_as_many)
{
	begin();
	come(1, 8, 2);
	come(2, 8, 1);
	ck_assert_str_eq(next(9), "121211211");
}
END_TEST

START_TEST(the_addresses_of_an_ipv6_network_are_one_sender)
{
	struct client_address who = { .bytes = { 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 1 }, .len = 16 };
	begin();
	for (unsigned i = 0; i < 4; i++, count++) {
		who.bytes[15] = (uint8_t)i;
		owner[count] = 1;
		ck_assert_int_eq(turns_add(&turns, &waiting[count], &who, 1), 0);
	}
	who.bytes[7] = 2;
	owner[count] = 2;
	ck_assert_int_eq(turns_add(&turns, &waiting[count++], &who, 1), 0);
	ck_assert_uint_eq(turns.senders, 2);
	ck_assert_str_eq(next(5), "12111");
}
END_TEST

START_TEST(a_turn_that_is_given_up_is_passed_over)
{
	begin();
	come(1, 2, 1);
	come(2, 1, 1);
	turns_remove(&turns, &waiting[0]);
	turns_remove(&turns, &waiting[2]);
	turns_remove(&turns, &waiting[2]);
	ck_assert_ptr_null(waiting[0].sender);
	ck_assert_uint_eq(turns.count, 1);
	ck_assert_uint_eq(turns.senders, 1);
	ck_assert_ptr_eq(turns_take(&turns), &waiting[1]);
	ck_assert_uint_eq(turns.senders, 0);
}
END_TEST

START_TEST(a_sender_that_comes_back_stands_behind_the_others)
{
	begin();
	come(1, 1, 1);
	come(2, 2, 1);
	ck_assert_str_eq(next(1), "1");
	come(1, 1, 1);
	ck_assert_str_eq(next(3), "212");
}
END_TEST

START_TEST(a_sender_that_holds_few_is_next_then_turns_decide)
{
	const char *order[] = { "2", "2", "1", "2" }; /* two of eight places are sure */

	begin();
	turns.places = 8;
	come(1, 16, 1);
	ck_assert_str_eq(next(8), "11111111"); /* nobody else wanted them */
	come(2, 8, 1);
	for (unsigned i = 0; i < SUITE_LEN(order); i++) {
		turns_give_back(&turns, waiting[i].holder);
		ck_assert_str_eq(next(1), order[i]);
	}
}
END_TEST

/* Those of the first sender never end, so it had the fewest turns at any time. The share is four. */
START_TEST(long_transactions_leave_half_of_their_share_to_the_others)
{
	enum { PLACES = 12, SHARE = 4, STEPS = 300 };
	struct turn *held[PLACES];
	unsigned of_first = 0;

	begin();
	turns.places = PLACES;
	come(1, 20, 1);
	come(2, STEPS, 1);
	come(3, STEPS, 1);
	for (unsigned i = 0; i < PLACES; i++)
		held[i] = turns_take(&turns);
	for (unsigned i = 0; i < STEPS; i++) {
		struct turn **ends = &held[i % PLACES];
		if (owner[*ends - waiting] == 1)
			continue;
		turns_give_back(&turns, (*ends)->holder);
		*ends = turns_take(&turns);
	}
	for (unsigned i = 0; i < PLACES; i++)
		of_first += owner[held[i] - waiting] == 1;
	ck_assert_uint_eq(of_first, PLACES - 2 * (SHARE / 2));
}
END_TEST

START_TEST(a_place_is_given_also_if_all_hold_their_share)
{
	begin();
	turns.places = 3;
	come(1, 3, 1);
	come(2, 3, 1);
	ck_assert_str_eq(next(3), "121");
}
END_TEST

START_TEST(too_many_is_more_than_the_share_while_another_waits_with_less)
{
	begin();
	turns.places = 2;
	come(1, 3, 1);
	ck_assert_str_eq(next(2), "11");
	ck_assert(!turns_has_too_many(&turns, waiting[0].holder)); /* it alone waits */
	come(2, 1, 1);
	ck_assert(turns_has_too_many(&turns, waiting[0].holder));
	turns_give_back(&turns, waiting[0].holder);
	ck_assert(!turns_has_too_many(&turns, waiting[1].holder));
	ck_assert_str_eq(next(1), "2");
	ck_assert(!turns_has_too_many(&turns, waiting[3].holder));
}
END_TEST

/* How many of the next @n transactions are the sender's. Each ends before the next begins. */
static unsigned turns_of(unsigned number, unsigned n)
{
	unsigned found = 0;
	for (unsigned i = 0; i < n; i++) {
		struct turn *t = turns_take(&turns);
		found += owner[t - waiting] == number;
		turns_give_back(&turns, t->holder);
	}
	return found;
}

/* Both hold their share, and one place more is free. */
static const struct {
	unsigned turns, caught_up;
} behind[] = { { 0, 0 }, { 1, 1 }, { 40, 40 }, { 2048, 2048 }, { 2056, 2048 }, { 3000, 2048 } };

START_TEST(a_sender_that_had_fewer_turns_catches_up)
{
	begin();
	turns.places = 3;
	come(1, 3100, 1);
	come(2, 1, 1);
	ck_assert_str_eq(next(2), "12");
	ck_assert_uint_eq(turns_of(1, behind[_i].turns), behind[_i].turns);
	come(2, 2100, 1);
	ck_assert_uint_eq(turns_of(2, behind[_i].caught_up), behind[_i].caught_up);
	const unsigned then = turns_of(2, 20);
	ck_assert_uint_ge(then, 9);
	ck_assert_uint_le(then, 11);
}
END_TEST

START_TEST(a_new_sender_has_nothing_to_catch_up_with)
{
	begin();
	turns.places = 3;
	come(1, 100, 1);
	ck_assert_str_eq(next(1), "1");
	ck_assert_uint_eq(turns_of(1, 50), 50);
	come(2, 60, 1);
	ck_assert_str_eq(next(1), "2"); /* its share */
	const unsigned then = turns_of(2, 20);
	ck_assert_uint_ge(then, 9);
	ck_assert_uint_le(then, 11);
}
END_TEST

START_TEST(a_sender_is_forgotten_with_its_last_connection)
{
	begin();
	come(1, 2, 1);
	ck_assert_str_eq(next(2), "11");
	ck_assert_uint_eq(turns.senders, 0);
	ck_assert_uint_eq(turns.resting, 1);
	turns_give_back(&turns, waiting[0].holder);
	turns_give_back(&turns, NULL);
	ck_assert_uint_eq(turns.resting, 1);
	turns_give_back(&turns, waiting[1].holder);
	ck_assert_uint_eq(turns.resting, 0);
}
END_TEST

UNIT(turns)
{
	const TTest *facts[] = {
		a_sender_with_many_sessions_gets_no_more_than_one_with_few,
		the_turns_of_a_sender_come_in_their_order,
		a_weight_of_two_gets_twice_as_many,
		the_addresses_of_an_ipv6_network_are_one_sender,
		a_turn_that_is_given_up_is_passed_over,
		a_sender_that_comes_back_stands_behind_the_others,
		a_sender_that_holds_few_is_next_then_turns_decide,
		long_transactions_leave_half_of_their_share_to_the_others,
		a_place_is_given_also_if_all_hold_their_share,
		too_many_is_more_than_the_share_while_another_waits_with_less,
		a_new_sender_has_nothing_to_catch_up_with,
		a_sender_is_forgotten_with_its_last_connection,
	};
	TCase *all = tcase_create("turns");
	tcase_add_loop_test(all, a_sender_that_had_fewer_turns_catches_up, 0, SUITE_LEN(behind));
	return suite_run_case("turns", all, facts, SUITE_LEN(facts));
}
