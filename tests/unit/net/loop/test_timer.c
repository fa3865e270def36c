/* test_timer.c: facts of timers and deadlines on a real loop; test_wheel.c has the wheel's own. */
#include "net/loop/timer.h"
#include "net/loop/wheel.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

static struct timer *timer;
static unsigned ticks, stop_at;

static void on_tick(void *ctx)
{
	ck_assert_ptr_eq(ctx, &ticks);
	if (++ticks == stop_at)
		timer_stop(timer);
}

START_TEST(timer_repeats_until_it_is_stopped_from_its_own_call)
{
	stop_at = 3;
	timer = timer_start(w, on_tick, &ticks, 0, 1);
	wait_until(ticks == 3);
	turns(10);
	ck_assert_uint_eq(ticks, 3);
	timer_stop(NULL);
}
END_TEST

START_TEST(timer_without_interval_fires_once)
{
	timer = timer_start(w, on_tick, &ticks, 1, 0);
	wait_until(ticks == 1);
	uint64_t until = now_ms() + 10;
	wait_until(now_ms() > until);
	ck_assert_uint_eq(ticks, 1);
	timer_stop(timer);
	timer_stop(timer); /* twice before its handle is closed */
}
END_TEST

START_TEST(timer_can_be_made_faster_and_slower)
{
	ticks = stop_at = 0;
	timer = timer_start(w, on_tick, &ticks, 3600000, 3600000);
	timer_set_every(timer, 1);
	wait_until(ticks >= 3);
	timer_set_every(timer, 3600000);
	unsigned before = ticks;
	uint64_t until = now_ms() + 10;
	wait_until(now_ms() > until);
	ck_assert_uint_eq(ticks, before);
	timer_stop(timer);
}
END_TEST

struct alarm {
	struct deadline d;
	uint64_t fired_at_ms;
};

static void on_alarm(struct deadline *d)
{
	((struct alarm *)d)->fired_at_ms = worker_now_ms(w);
}

START_TEST(deadline_fires_by_the_loop_s_time)
{
	struct alarm a = { .d.fn = on_alarm };
	uint64_t begin = worker_now_ms(w);
	deadline_set(w, &a.d, 35);
	ck_assert(deadline_is_set(&a.d));
	wait_until(a.fired_at_ms);
	ck_assert_uint_ge(a.fired_at_ms, begin + 35);
	ck_assert(!deadline_is_set(&a.d));
}
END_TEST

/* A turn that is longer than a tick, because the wheel's ticks could hide less. */
START_TEST(deadline_in_full_is_not_early_after_a_long_turn)
{
	struct alarm a = { .d.fn = on_alarm };
	uint64_t busy_until = uv_hrtime() + 25000000;
	while (uv_hrtime() < busy_until) {
	}
	uint64_t begin_ns = uv_hrtime();
	deadline_set_in_full(w, &a.d, 20);
	wait_until(a.fired_at_ms);
	ck_assert_uint_ge(uv_hrtime() - begin_ns, 20000000);
}
END_TEST

START_TEST(earlier_deadline_set_later_is_not_slept_over)
{
	struct alarm far = { .d.fn = on_alarm }, near = { .d.fn = on_alarm };
	deadline_set(w, &far.d, 3600000);
	turns(1);
	ck_assert_int_gt(uv_backend_timeout(worker_loop(w)), 1000);
	deadline_set(w, &near.d, 20);
	ck_assert_int_le(uv_backend_timeout(worker_loop(w)), 30);
	wait_until(near.fired_at_ms);
	ck_assert_uint_eq(far.fired_at_ms, 0);
	ck_assert_int_gt(uv_backend_timeout(worker_loop(w)), 1000);
	deadline_cancel(&far.d);
}
END_TEST

START_TEST(worker_without_deadlines_sleeps_without_limit)
{
	struct alarm a = { .d.fn = on_alarm };
	turns(1);
	ck_assert_int_eq(uv_backend_timeout(worker_loop(w)), -1);
	deadline_set(w, &a.d, 5);
	wait_until(a.fired_at_ms);
	ck_assert_int_eq(uv_backend_timeout(worker_loop(w)), -1);
	deadline_set(w, &a.d, 5);
	deadline_cancel(&a.d);
	uint64_t until = now_ms() + 20;
	wait_until(now_ms() > until);
	ck_assert_int_eq(uv_backend_timeout(worker_loop(w)), -1);
}
END_TEST

UNIT(timer)
{
	const TTest *facts[] = {
		timer_repeats_until_it_is_stopped_from_its_own_call,
		timer_without_interval_fires_once,
		timer_can_be_made_faster_and_slower,
		deadline_fires_by_the_loop_s_time,
		deadline_in_full_is_not_early_after_a_long_turn,
		earlier_deadline_set_later_is_not_slept_over,
		worker_without_deadlines_sleeps_without_limit,
	};
	return worker_suite_run("timer", facts, FACTS_LEN(facts));
}
