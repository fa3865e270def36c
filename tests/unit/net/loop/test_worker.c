/* test_worker.c: facts of workers: mailbox, turn ends, threads, the end. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "net/loop/timer.h"
#include "proto/error.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

/* Mailbox */

#define SENDERS  4u
#define MESSAGES 20000u

struct sent {
	unsigned sender, number;
};

static struct sent sent[SENDERS][MESSAGES];
static unsigned next_of[SENDERS], received;

static void on_message(struct worker *of, void *arg)
{
	struct sent *m = arg;

	ck_assert_ptr_eq(of, w);
	if (m->number != next_of[m->sender])
		ck_abort_msg("message %u of sender %u came out of order", m->number, m->sender);
	next_of[m->sender]++;
	received++;
}

static void *send_all(void *arg)
{
	unsigned sender = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < MESSAGES; i++) {
		sent[sender][i] = (struct sent){ sender, i };
		if (worker_post(w, on_message, &sent[sender][i]) != 0)
			return &received;
	}
	return NULL;
}

START_TEST(messages_of_a_sender_arrive_once_and_in_order)
{
	pthread_t threads[SENDERS];
	for (uintptr_t i = 0; i < SENDERS; i++)
		pthread_create(&threads[i], NULL, send_all, (void *)i);
	wait_until(received == SENDERS * MESSAGES);
	for (unsigned i = 0; i < SENDERS; i++) {
		void *result;
		pthread_join(threads[i], &result);
		ck_assert_ptr_null(result);
	}
}
END_TEST

static void count(struct worker *of, void *arg)
{
	(void)of;
	++*(unsigned *)arg;
}

static void post_another(struct worker *of, void *arg)
{
	ck_assert_int_eq(worker_post(of, count, arg), 0);
}

START_TEST(message_posted_before_the_end_is_called_and_after_it_refused)
{
	unsigned calls = 0;
	struct worker *thread = worker_create(1, "thread");
	ck_assert_int_eq(worker_start(thread, NULL, NULL), 0);
	for (unsigned i = 0; i < 1000; i++)
		ck_assert_int_eq(worker_post(thread, post_another, &calls), 0);
	worker_stop(thread);
	int r;
	do
		r = worker_post(thread, count, &calls);
	while (r == 0 && calls < 100000000);
	ck_assert_int_eq(r, CSSL_E_STATE);
	unsigned before = calls;
	ck_assert_int_eq(worker_post(thread, count, &calls), CSSL_E_STATE);
	worker_destroy(thread);
	ck_assert_uint_eq(calls, before);
	ck_assert_uint_ge(calls, 1000);
}
END_TEST

/* Threads */

static int start_result;
static pthread_t start_thread;

static int on_start(struct worker *of, void *arg)
{
	start_thread = pthread_self();
	ck_assert_ptr_eq(arg, &start_result);
	ck_assert_str_eq(worker_name(of), "thread");
	ck_assert_uint_eq(worker_index(of), 3);
	return start_result;
}

START_TEST(start_runs_in_the_new_thread_and_its_result_is_returned)
{
	for (start_result = 0; start_result <= 5; start_result += 5) {
		struct worker *thread = worker_create(3, "thread");
		ck_assert_int_eq(worker_start(thread, on_start, &start_result), start_result);
		ck_assert(!pthread_equal(start_thread, pthread_self()));
		if (start_result == 0)
			worker_stop(thread);
		worker_destroy(thread); /* after a failed start the worker ends by itself */
	}
}
END_TEST

static struct timer *late;
static unsigned ticks;

static void on_tick(void *ctx)
{
	struct worker *of = ctx;

	if (++ticks == 5) {
		timer_stop(late);
		ck_assert_ptr_nonnull(of);
	}
}

static int start_timer(struct worker *of, void *arg)
{
	(void)arg;
	late = timer_start(of, on_tick, of, 1, 1);
	return 0;
}

START_TEST(stopped_worker_ends_only_when_its_last_handle_is_closed)
{
	struct worker *thread = worker_create(1, "thread");
	ck_assert_int_eq(worker_start(thread, start_timer, NULL), 0);
	worker_stop(thread);
	worker_destroy(thread); /* joins */
	ck_assert_uint_eq(ticks, 5);
}
END_TEST

static void stop_self(struct worker *of, void *arg)
{
	(void)arg;
	worker_stop(of);
}

START_TEST(worker_runs_in_the_caller_until_it_is_stopped)
{
	unsigned calls = 0;
	struct worker *here = worker_create(1, "here");
	worker_post(here, count, &calls);
	worker_post(here, stop_self, NULL);
	ck_assert_int_eq(worker_run(here), 0);
	ck_assert_uint_eq(calls, 1);
	worker_destroy(here);
}
END_TEST

START_TEST(worker_that_never_ran_can_be_destroyed)
{
	unsigned calls = 0;
	struct worker *idle = worker_create(1, "idle");
	worker_post(idle, count, &calls);
	worker_destroy(idle);
	ck_assert_uint_eq(calls, 1);
	worker_destroy(NULL);
}
END_TEST

/* Turn ends */

struct end {
	struct turn_end t;
	unsigned calls, order;
	struct end *cancels, *links;
};

static unsigned order;

static void on_end(struct turn_end *t)
{
	struct end *e = (struct end *)t;

	e->calls++;
	e->order = ++order;
	if (e->cancels)
		turn_end_cancel(&e->cancels->t);
	if (e->links)
		worker_at_turn_end(w, &e->links->t);
}

START_TEST(turn_ends_run_once_in_the_order_linked)
{
	struct end ends[3] = { { .t.fn = on_end }, { .t.fn = on_end }, { .t.fn = on_end } };
	for (unsigned i = 0; i < 3; i++)
		worker_at_turn_end(w, &ends[i].t);
	worker_at_turn_end(w, &ends[0].t);
	turns(3);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(ends[i].calls, 1);
		ck_assert_uint_eq(ends[i].order, i + 1);
	}
}
END_TEST

START_TEST(turn_end_may_cancel_another_of_the_same_turn)
{
	struct end last = { .t.fn = on_end }, first = { .t.fn = on_end, .cancels = &last };
	worker_at_turn_end(w, &first.t);
	worker_at_turn_end(w, &last.t);
	turns(2);
	ck_assert_uint_eq(first.calls, 1);
	ck_assert_uint_eq(last.calls, 0);
	turn_end_cancel(&last.t);
}
END_TEST

START_TEST(turn_end_linked_by_another_runs_before_the_loop_sleeps)
{
	struct end last = { .t.fn = on_end }, first = { .t.fn = on_end, .links = &last };
	worker_at_turn_end(w, &first.t);
	turns(1);
	ck_assert_uint_eq(last.calls, 1);
}
END_TEST

START_TEST(turn_end_that_links_itself_for_ever_lets_the_loop_turn)
{
	struct end endless = { .t.fn = on_end };
	endless.links = &endless;
	worker_at_turn_end(w, &endless.t);
	turns(1);
	unsigned calls_a_turn = endless.calls;
	ck_assert_uint_le(calls_a_turn, 8);
	ck_assert_int_eq(uv_backend_timeout(worker_loop(w)), 0); /* it does not sleep */
	turns(10);
	ck_assert_uint_gt(endless.calls, calls_a_turn);
	turn_end_cancel(&endless.t);
	turns(2);
	ck_assert_int_eq(uv_backend_timeout(worker_loop(w)), -1); /* now it does */
}
END_TEST

/* Clocks */

static uint64_t thread_cpu_ms(void)
{
	struct timespec t;

	ck_assert_int_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

START_TEST(busy_share_is_that_of_this_thread)
{
	uint64_t began = now_ms(), cpu = thread_cpu_ms();
	ck_assert_uint_eq(worker_busy_permille(w), 0);
	while (now_ms() < began + 1100)
		;
	uint64_t given = (thread_cpu_ms() - cpu) * 1000 / (now_ms() - began); /* by a machine with other work, too */
	unsigned busy = worker_busy_permille(w);
	ck_assert_uint_ge(busy, given * 3 / 4);
	ck_assert_uint_le(busy, 1001);
	ck_assert_uint_eq(worker_busy_permille(w), busy);
	uint64_t until = now_ms() + 1100;
	wait_until(now_ms() > until); /* mostly asleep in poll */
	ck_assert_uint_lt(worker_busy_permille(w), busy);
}
END_TEST

START_TEST(wall_clock_is_the_system_s)
{
	uint64_t before = (uint64_t)time(NULL);
	uint64_t now = worker_wall_s();
	ck_assert_uint_ge(now, before);
	ck_assert_uint_le(now, (uint64_t)time(NULL));
}
END_TEST

UNIT(worker)
{
	const TTest *facts[] = {
		messages_of_a_sender_arrive_once_and_in_order,
		message_posted_before_the_end_is_called_and_after_it_refused,
		start_runs_in_the_new_thread_and_its_result_is_returned,
		stopped_worker_ends_only_when_its_last_handle_is_closed,
		worker_runs_in_the_caller_until_it_is_stopped,
		worker_that_never_ran_can_be_destroyed,
		turn_ends_run_once_in_the_order_linked,
		turn_end_may_cancel_another_of_the_same_turn,
		turn_end_linked_by_another_runs_before_the_loop_sleeps,
		turn_end_that_links_itself_for_ever_lets_the_loop_turn,
		busy_share_is_that_of_this_thread,
		wall_clock_is_the_system_s,
	};
	return worker_suite_run("worker", facts, FACTS_LEN(facts));
}
