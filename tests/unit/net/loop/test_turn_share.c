/* test_turn_share.c: facts of the line in which long work waits for its share of a loop turn. */
#include <sched.h>
#include <string.h>

#include "net/loop/turn_share.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

#define LIMIT_NS 1000u
#define LARGE_NS (5 * LIMIT_NS)
#define JOBS     10u

struct job {
	struct turn_waiter waiter;
	uint32_t turn; /* 0: not worked on yet */
	unsigned place;
};

static struct turn_share share;
static struct job jobs[JOBS];
static unsigned worked;
static uint64_t now_ns, cost_ns;
static unsigned yields;

/* In place of libuv's, for this program's own calls. */
uint64_t uv_hrtime(void)
{
	return now_ns;
}

/* In place of the C library's. */
int sched_yield(void)
{
	yields++;
	return 0;
}

static void go_on(void *holder)
{
	struct job *job = holder;

	job->turn = worker_turn(w);
	job->place = ++worked;
	now_ns += cost_ns;
}

static void set_up(void)
{
	turn_share_init(&share, w, LIMIT_NS, LARGE_NS, go_on);
	turn_share_others_came(&share);
	memset(jobs, 0, sizeof jobs);
	worked = 0;
	cost_ns = LIMIT_NS;
}

static void enter_all(void)
{
	for (unsigned i = 0; i < JOBS; i++)
		turn_share_enter(&share, &jobs[i].waiter, 0, &jobs[i]);
}

START_TEST(work_is_free_until_the_turn_has_its_share)
{
	set_up();
	ck_assert(turn_share_is_free(&share));
	now_ns += LIMIT_NS - 1;
	ck_assert(turn_share_is_free(&share));
	now_ns += 1;
	ck_assert(!turn_share_is_free(&share));
	const uint32_t now = worker_turn(w);
	wait_until(worker_turn(w) != now);
	ck_assert(turn_share_is_free(&share));
}
END_TEST

START_TEST(the_share_is_large_while_nobody_else_has_work)
{
	turn_share_init(&share, w, LIMIT_NS, LARGE_NS, go_on);
	ck_assert(turn_share_is_free(&share));
	now_ns += LARGE_NS - 1;
	ck_assert(turn_share_is_free(&share));
	turn_share_others_came(&share);
	ck_assert(!turn_share_is_free(&share));
	share.small_until_ms = worker_now_ms(w); /* it is over */
	ck_assert(turn_share_is_free(&share));
	now_ns += 1;
	ck_assert(!turn_share_is_free(&share));
}
END_TEST

START_TEST(no_work_passes_those_who_wait)
{
	set_up();
	turn_share_enter(&share, &jobs[0].waiter, 0, &jobs[0]);
	ck_assert(!turn_share_is_free(&share));
	wait_until(worked == 1);
	const uint32_t now = worker_turn(w);
	wait_until(worker_turn(w) != now);
	ck_assert(turn_share_is_free(&share));
}
END_TEST

START_TEST(each_turn_does_its_share_in_the_order_of_arrival)
{
	set_up();
	enter_all();
	wait_until(worked == JOBS);
	for (unsigned i = 0; i < JOBS; i++)
		ck_assert_uint_eq(jobs[i].place, i + 1);
	for (unsigned i = 1; i < JOBS; i++)
		ck_assert_uint_eq(jobs[i].turn, jobs[i - 1].turn + 1); /* the loop did not sleep */
}
END_TEST

START_TEST(sources_are_worked_on_in_turn)
{
	set_up();
	for (unsigned i = 0; i < JOBS - 2; i++)
		turn_share_enter(&share, &jobs[i].waiter, TURN_SHARE_LINES - 1, &jobs[i]);
	turn_share_enter(&share, &jobs[JOBS - 2].waiter, 0, &jobs[JOBS - 2]);
	turn_share_enter(&share, &jobs[JOBS - 1].waiter, 5, &jobs[JOBS - 1]);
	wait_until(worked == JOBS);
	ck_assert_uint_eq(jobs[JOBS - 1].place, 1);
	ck_assert_uint_eq(jobs[0].place, 2);
	ck_assert_uint_eq(jobs[JOBS - 2].place, 3);
	for (unsigned i = 1; i < JOBS - 2; i++)
		ck_assert_uint_eq(jobs[i].place, 3 + i);
}
END_TEST

START_TEST(a_turn_gives_the_processor_away_once_and_only_while_some_wait)
{
	set_up();
	yields = 0;
	enter_all();
	wait_until(worked == JOBS);
	ck_assert_uint_eq(yields, JOBS - 1);
	turn_share_enter(&share, &jobs[0].waiter, 0, &jobs[0]);
	wait_until(worked == JOBS + 1);
	ck_assert_uint_eq(yields, JOBS - 1);
}
END_TEST

START_TEST(short_work_shares_a_turn)
{
	set_up();
	cost_ns = LIMIT_NS / 5;
	enter_all();
	wait_until(worked == JOBS);
	ck_assert_uint_eq(jobs[4].turn, jobs[0].turn);
	ck_assert_uint_eq(jobs[5].turn, jobs[0].turn + 1);
	ck_assert_uint_eq(jobs[9].turn, jobs[5].turn);
}
END_TEST

static struct turn_end other = { 0 };

static void take_long(struct turn_end *t)
{
	turn_share_is_free(&share); /* the share begins */
	now_ns += 10 * LIMIT_NS;
	if (worked < JOBS)
		worker_at_turn_end(w, t);
}

START_TEST(one_goes_on_each_turn_whatever_else_takes_long)
{
	set_up();
	enter_all();
	other.fn = take_long;
	worker_at_turn_end(w, &other);
	wait_until(worked == JOBS);
	for (unsigned i = 1; i < JOBS; i++)
		ck_assert_uint_eq(jobs[i].turn, jobs[i - 1].turn + 1);
}
END_TEST

START_TEST(one_that_waits_keeps_its_place)
{
	set_up();
	enter_all();
	turn_share_enter(&share, &jobs[0].waiter, 0, &jobs[0]);
	wait_until(worked == JOBS);
	ck_assert_uint_eq(jobs[0].place, 1);
}
END_TEST

START_TEST(one_that_left_is_not_worked_on)
{
	set_up();
	enter_all();
	turn_share_leave(&share, &jobs[0].waiter);
	turn_share_leave(&share, &jobs[4].waiter);
	turn_share_leave(&share, &jobs[JOBS - 1].waiter);
	turn_share_leave(&share, &jobs[JOBS - 1].waiter);
	ck_assert(!turn_waiter_waits(&jobs[4].waiter) && turn_waiter_waits(&jobs[5].waiter));
	turn_share_enter(&share, &jobs[4].waiter, 0, &jobs[4]);
	wait_until(worked == JOBS - 2);
	ck_assert_uint_eq(jobs[0].turn, 0);
	ck_assert_uint_eq(jobs[JOBS - 1].turn, 0);
	ck_assert_uint_eq(jobs[4].place, JOBS - 2);
}
END_TEST

static uint32_t answered_turn;

static void answer(struct turn_end *t)
{
	(void)t;
	answered_turn = worker_turn(w);
	ck_assert_uint_eq(worked, 0);
}

START_TEST(the_output_of_the_turn_goes_first)
{
	struct turn_end output = { .fn = answer };

	set_up();
	enter_all();
	worker_at_turn_end(w, &output);
	wait_until(worked == JOBS);
	ck_assert_uint_eq(answered_turn, jobs[0].turn);
}
END_TEST

START_TEST(without_an_init_there_is_no_bound)
{
	struct turn_share none = { 0 };

	ck_assert(turn_share_is_free(&none));
}
END_TEST

UNIT(turn_share)
{
	const TTest *facts[] = {
		work_is_free_until_the_turn_has_its_share,
		the_share_is_large_while_nobody_else_has_work,
		no_work_passes_those_who_wait,
		each_turn_does_its_share_in_the_order_of_arrival,
		sources_are_worked_on_in_turn,
		a_turn_gives_the_processor_away_once_and_only_while_some_wait,
		short_work_shares_a_turn,
		one_goes_on_each_turn_whatever_else_takes_long,
		one_that_waits_keeps_its_place,
		one_that_left_is_not_worked_on,
		the_output_of_the_turn_goes_first,
		without_an_init_there_is_no_bound,
	};
	return worker_suite_run("turn_share", facts, FACTS_LEN(facts));
}
