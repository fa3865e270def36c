/* test_window.c: facts of the replay window. */
#include <string.h>

#include "proto/error.h"
#include "proto/datagram.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(window_refuses_a_counter_twice)
{
	struct replay_window w;
	replay_window_init(&w, 0);
	ck_assert_int_eq(replay_window_commit(&w, 5), 0);
	ck_assert_int_eq(replay_window_check(&w, 5), CSSL_E_REPLAY);
	ck_assert_int_eq(replay_window_commit(&w, 5), CSSL_E_REPLAY);
}
END_TEST

START_TEST(window_refuses_what_is_too_old)
{
	struct replay_window w;
	replay_window_init(&w, 0);
	ck_assert_int_eq(replay_window_commit(&w, WINDOW_BITS + 10), 0);
	ck_assert_int_eq(replay_window_check(&w, 10), CSSL_E_REPLAY);
	ck_assert_int_eq(replay_window_check(&w, 11), 0);
}
END_TEST

START_TEST(window_accepts_late_counters_once_in_any_order)
{
	struct replay_window w;
	replay_window_init(&w, 0);
	ck_assert_int_eq(replay_window_commit(&w, 100), 0);
	ck_assert_int_eq(replay_window_commit(&w, 98), 0);
	ck_assert_int_eq(replay_window_commit(&w, 99), 0);
	ck_assert_int_eq(replay_window_commit(&w, 98), CSSL_E_REPLAY);
	ck_assert_int_eq(replay_window_commit(&w, 101), 0);
}
END_TEST

START_TEST(window_accepts_nothing_below_its_first)
{
	struct replay_window w;
	replay_window_init(&w, 5000);
	ck_assert_int_eq(replay_window_check(&w, 4999), CSSL_E_REPLAY);
	ck_assert_int_eq(replay_window_check(&w, 0), CSSL_E_REPLAY);
	ck_assert_int_eq(replay_window_commit(&w, 5001), 0);
	ck_assert_int_eq(replay_window_commit(&w, 5000), 0);
	ck_assert_int_eq(replay_window_check(&w, 4999), CSSL_E_REPLAY);
}
END_TEST

START_TEST(check_changes_nothing)
{
	struct replay_window w, before;
	replay_window_init(&w, 7);
	replay_window_commit(&w, 9);
	before = w;
	replay_window_check(&w, 8);
	replay_window_check(&w, 9);
	replay_window_check(&w, 100000);
	ck_assert_mem_eq(&w, &before, sizeof(w));
}
END_TEST

START_TEST(a_refused_commit_changes_nothing)
{
	struct replay_window w, before;
	replay_window_init(&w, 7);
	replay_window_commit(&w, 5000);
	before = w;
	ck_assert_int_eq(replay_window_commit(&w, 5000), CSSL_E_REPLAY);
	ck_assert_int_eq(replay_window_commit(&w, 1), CSSL_E_REPLAY);
	ck_assert_mem_eq(&w, &before, sizeof(w));
}
END_TEST

START_TEST(window_follows_counters_to_their_end)
{
	struct replay_window w;
	replay_window_init(&w, UINT64_MAX - 2);
	ck_assert_int_eq(replay_window_commit(&w, UINT64_MAX - 1), 0);
	ck_assert_int_eq(replay_window_commit(&w, UINT64_MAX - 2), 0);
	ck_assert_int_eq(replay_window_commit(&w, UINT64_MAX - 1), CSSL_E_REPLAY);
	/* The last counter could not be distinguished from its replay. */
	ck_assert_int_eq(replay_window_commit(&w, UINT64_MAX), CSSL_E_REPLAY);
}
END_TEST

/* The definition, kept as a list of all that was accepted. */
#define STEPS 20000u
struct list {
	uint64_t seen[STEPS];
	unsigned count;
	uint64_t next;
};

static int list_commit(struct list *l, uint64_t counter)
{
	if (counter + WINDOW_BITS < l->next)
		return CSSL_E_REPLAY;
	for (unsigned i = l->count; i-- > 0;) {
		if (l->seen[i] == counter)
			return CSSL_E_REPLAY;
	}
	l->seen[l->count++] = counter;
	l->next = counter + 1 > l->next ? counter + 1 : l->next;
	return 0;
}

/* A fixed sequence: a failure is the same failure the next time. */
static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

START_TEST(window_agrees_with_a_list_of_all_that_was_seen)
{
	static struct list l;
	struct replay_window w;
	uint32_t state = 1;
	unsigned refused = 0;

	replay_window_init(&w, 0);
	for (unsigned i = 0; i < STEPS; i++) {
		/* Mostly near the head, now and then far ahead of it or behind the window. */
		uint64_t reach = next_random(&state) % 50 == 0 ? 3 * WINDOW_BITS : 80;
		uint64_t ahead = next_random(&state) % reach;
		uint64_t behind = next_random(&state) % (2 * reach);
		uint64_t counter = w.next + ahead > behind ? w.next + ahead - behind : 0;
		int expected = list_commit(&l, counter);
		ck_assert_int_eq(replay_window_check(&w, counter), expected);
		ck_assert_int_eq(replay_window_commit(&w, counter), expected);
		refused += expected != 0;
	}
	/* The sequence tries both answers often. */
	ck_assert_uint_gt(refused, STEPS / 20);
	ck_assert_uint_lt(refused, STEPS / 20 * 19);
}
END_TEST

UNIT(window)
{
	const TTest *facts[] = {
		window_refuses_a_counter_twice,
		window_refuses_what_is_too_old,
		window_accepts_late_counters_once_in_any_order,
		window_accepts_nothing_below_its_first,
		check_changes_nothing,
		a_refused_commit_changes_nothing,
		window_follows_counters_to_their_end,
		window_agrees_with_a_list_of_all_that_was_seen,
	};
	return suite_run("window", facts, SUITE_LEN(facts));
}
