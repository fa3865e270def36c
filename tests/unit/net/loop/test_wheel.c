/* test_wheel.c: facts of the deadline wheel; time is an argument. */
#include <stdlib.h>
#include <string.h>

#include "net/loop/wheel.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define START_MS 123456u

struct alarm {
	struct deadline d;
	uint64_t fired_at_ms; /* 0: not yet */
	unsigned fired;
};

static struct wheel wheel;
static uint64_t clock_ms;

static void on_alarm(struct deadline *d)
{
	struct alarm *a = (struct alarm *)d;

	a->fired_at_ms = clock_ms;
	a->fired++;
}

static void alarm_set(struct alarm *a, uint64_t in_ms)
{
	a->d.fn = a->d.fn ? a->d.fn : on_alarm;
	wheel_set(&wheel, &a->d, clock_ms, in_ms);
}

static void begin(void)
{
	clock_ms = START_MS;
	wheel_init(&wheel, clock_ms);
}

/* Like a loop: wake only when the wheel asks for it. */
static void run_until(uint64_t until_ms)
{
	uint64_t next;

	while ((next = wheel_next_ms(&wheel)) <= until_ms) {
		if (next > clock_ms)
			clock_ms = next;
		wheel_advance(&wheel, clock_ms);
	}
	clock_ms = until_ms;
	wheel_advance(&wheel, clock_ms);
}

START_TEST(deadline_fires_not_early_and_less_than_a_tick_late)
{
	static const uint64_t times[] = { 0, 1, 9, 10, 11, 639, 640, 641, 5000, 40959, 40960, 41000, 3600000, 86400000,
		UINT64_C(31536000000) };

	for (size_t i = 0; i < SUITE_LEN(times); i++) {
		struct alarm a = { 0 };
		begin();
		alarm_set(&a, times[i]);
		run_until(START_MS + times[i] + 2 * WHEEL_TICK_MS);
		ck_assert_uint_eq(a.fired, 1);
		ck_assert_uint_ge(a.fired_at_ms, START_MS + times[i]);
		ck_assert_uint_le(a.fired_at_ms, START_MS + times[i] + WHEEL_TICK_MS);
	}
}
END_TEST

START_TEST(cancelled_deadline_does_not_fire)
{
	struct alarm a = { 0 };
	begin();
	alarm_set(&a, 100);
	deadline_cancel(&a.d);
	ck_assert(!deadline_is_set(&a.d));
	deadline_cancel(&a.d);
	run_until(START_MS + 1000);
	ck_assert_uint_eq(a.fired, 0);
}
END_TEST

START_TEST(empty_wheel_wants_no_wake)
{
	struct alarm a = { 0 };
	begin();
	ck_assert_uint_eq(wheel_next_ms(&wheel), WHEEL_NEVER);
	alarm_set(&a, 50);
	ck_assert_uint_ne(wheel_next_ms(&wheel), WHEEL_NEVER);
	deadline_cancel(&a.d);
	ck_assert_uint_eq(wheel_next_ms(&wheel), WHEEL_NEVER);
}
END_TEST

START_TEST(far_deadline_needs_few_wakes)
{
	struct alarm a = { 0 };
	unsigned wakes = 0;
	begin();
	alarm_set(&a, 3600000);
	for (uint64_t next; (next = wheel_next_ms(&wheel)) != WHEEL_NEVER; wakes++) {
		clock_ms = next;
		wheel_advance(&wheel, clock_ms);
	}
	ck_assert_uint_eq(a.fired, 1);
	ck_assert_uint_le(wakes, WHEEL_LEVELS);
}
END_TEST

START_TEST(deadline_moves_later)
{
	struct alarm a = { 0 };
	begin();
	alarm_set(&a, 100);
	run_until(START_MS + 50);
	alarm_set(&a, 500);
	run_until(START_MS + 540);
	ck_assert_uint_eq(a.fired, 0);
	run_until(START_MS + 570);
	ck_assert_uint_eq(a.fired, 1);
	ck_assert_uint_ge(a.fired_at_ms, START_MS + 550);
}
END_TEST

START_TEST(deadline_moves_earlier)
{
	struct alarm a = { 0 };
	begin();
	alarm_set(&a, 50000);
	alarm_set(&a, 100);
	run_until(START_MS + 120);
	ck_assert_uint_eq(a.fired, 1);
	run_until(START_MS + 60000);
	ck_assert_uint_eq(a.fired, 1);
}
END_TEST

static void on_alarm_again(struct deadline *d)
{
	on_alarm(d);
	wheel_set(&wheel, d, clock_ms, 0);
}

START_TEST(deadline_set_anew_from_its_own_call_fires_once_a_tick)
{
	struct alarm a = { .d.fn = on_alarm_again };
	begin();
	alarm_set(&a, 0);
	run_until(START_MS + 20 * WHEEL_TICK_MS);
	ck_assert_uint_ge(a.fired, 19);
	ck_assert_uint_le(a.fired, 21);
	deadline_cancel(&a.d);
}
END_TEST

static struct alarm victims[3];

static void on_alarm_cancels_victims(struct deadline *d)
{
	on_alarm(d);
	for (size_t i = 0; i < SUITE_LEN(victims); i++)
		if (&victims[i].d != d)
			deadline_cancel(&victims[i].d);
}

START_TEST(deadline_may_cancel_others_due_at_the_same_time)
{
	begin();
	memset(victims, 0, sizeof victims);
	for (size_t i = 0; i < SUITE_LEN(victims); i++) {
		victims[i].d.fn = on_alarm_cancels_victims;
		alarm_set(&victims[i], 100);
	}
	run_until(START_MS + 1000);
	ck_assert_uint_eq(victims[0].fired + victims[1].fired + victims[2].fired, 1);
}
END_TEST

START_TEST(late_loop_fires_everything_that_is_due)
{
	static struct alarm many[500];
	begin();
	memset(many, 0, sizeof many);
	for (size_t i = 0; i < SUITE_LEN(many); i++)
		alarm_set(&many[i], i * 37);
	clock_ms += 500 * 37 + WHEEL_TICK_MS;
	wheel_advance(&wheel, clock_ms);
	for (size_t i = 0; i < SUITE_LEN(many); i++)
		ck_assert_uint_eq(many[i].fired, 1);
	ck_assert_uint_eq(wheel_next_ms(&wheel), WHEEL_NEVER);
}
END_TEST

#define CROWD 300u
#define STEPS 20000u

/* Sets, moves and cancels at random, with a plain list of times as the judge. */
START_TEST(wheel_agrees_with_a_list_of_times)
{
	static struct alarm crowd[CROWD];
	static uint64_t due_ms[CROWD]; /* 0: not set */
	unsigned fired = 0;

	begin();
	srandom(7);
	memset(crowd, 0, sizeof crowd);
	memset(due_ms, 0, sizeof due_ms);
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned i = (unsigned)random() % CROWD;
		if (random() % 4 == 0) {
			deadline_cancel(&crowd[i].d);
			due_ms[i] = 0;
		} else {
			uint64_t in_ms = (uint64_t)random() % (random() % 8 ? 3000 : 10000000);
			alarm_set(&crowd[i], in_ms);
			due_ms[i] = clock_ms + in_ms;
		}
		run_until(clock_ms + (uint64_t)random() % (random() % 50 ? 15 : 60000));
		for (unsigned k = 0; k < CROWD; k++) {
			if (crowd[k].fired) {
				ck_assert_uint_ne(due_ms[k], 0);
				ck_assert_uint_ge(crowd[k].fired_at_ms, due_ms[k]);
				ck_assert_uint_le(crowd[k].fired_at_ms, due_ms[k] + WHEEL_TICK_MS);
				fired += crowd[k].fired;
				crowd[k].fired = 0;
				due_ms[k] = 0;
			}
			if (due_ms[k] && due_ms[k] + WHEEL_TICK_MS <= clock_ms)
				ck_abort_msg("a deadline did not fire");
		}
	}
	ck_assert_uint_gt(fired, STEPS / 4);
}
END_TEST

UNIT(wheel)
{
	const TTest *facts[] = {
		deadline_fires_not_early_and_less_than_a_tick_late,
		cancelled_deadline_does_not_fire,
		empty_wheel_wants_no_wake,
		far_deadline_needs_few_wakes,
		deadline_moves_later,
		deadline_moves_earlier,
		deadline_set_anew_from_its_own_call_fires_once_a_tick,
		deadline_may_cancel_others_due_at_the_same_time,
		late_loop_fires_everything_that_is_due,
		wheel_agrees_with_a_list_of_times,
	};
	return suite_run("wheel", facts, SUITE_LEN(facts));
}
