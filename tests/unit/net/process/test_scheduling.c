/* test_scheduling.c: facts of the scheduling of a process. Each has a process of its own. */
#include <sched.h>

#include "net/process/scheduling.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

static int in_worker;

static int look(struct worker *of, void *arg)
{
	in_worker = sched_getscheduler(0);
	return 1; /* ends the worker */
}

START_TEST(threads_started_later_take_turns)
{
	ck_assert_int_eq(sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 }), 0);
	scheduling_take_turns();
	ck_assert_int_eq(sched_getscheduler(0), SCHED_BATCH);
	struct worker *later = worker_create(1, "later");
	ck_assert_int_eq(worker_start(later, look, NULL), 1);
	worker_destroy(later);
	ck_assert_int_eq(in_worker, SCHED_BATCH);
}
END_TEST

START_TEST(a_policy_that_was_chosen_stays)
{
	ck_assert_int_eq(sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ 0 }), 0);
	scheduling_take_turns();
	ck_assert_int_eq(sched_getscheduler(0), SCHED_IDLE);
}
END_TEST

START_TEST(a_thread_hurries_for_a_while)
{
	ck_assert_int_eq(sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 }), 0);
	scheduling_take_turns();
	scheduling_hurry();
	ck_assert_int_eq(sched_getscheduler(0), SCHED_OTHER);
	scheduling_hurry();
	scheduling_calm();
	ck_assert_int_eq(sched_getscheduler(0), SCHED_BATCH);
}
END_TEST

START_TEST(a_thread_that_takes_no_turns_stays_as_it_is)
{
	ck_assert_int_eq(sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 }), 0);
	scheduling_hurry();
	scheduling_calm();
	ck_assert_int_eq(sched_getscheduler(0), SCHED_OTHER);
}
END_TEST

UNIT(scheduling)
{
	const TTest *facts[] = {
		threads_started_later_take_turns,
		a_thread_hurries_for_a_while,
		a_thread_that_takes_no_turns_stays_as_it_is,
		a_policy_that_was_chosen_stays,
	};
	return worker_suite_run("scheduling", facts, FACTS_LEN(facts));
}
