/* test_keeper.c: facts of the keeper, each with a keeper process and children of its own. A child says by its exit
 * status, and in the notes, what it saw.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/ragent/keeper/keeping.h"
#include "tests/unit/unit.h"

static int die_then_end_in_order(void *ctx, enum keeper_life life)
{
	notes_set_stage(notes, NOTES_SERVING);
	if (life == KEEPER_FIRST_LIFE)
		raise(SIGKILL);
	notes_set_stage(notes, NOTES_ENDING);
	return 7;
}

START_TEST(a_death_is_followed_by_the_next_life)
{
	keep_must_end(die_then_end_in_order, 7);
	ck_assert_uint_eq(notes->shared->deaths[DEATH_KILLED], 1);
	ck_assert_uint_eq(notes_deaths(notes), 1);
	ck_assert_uint_gt(notes->shared->died_ns, 0);
	ck_assert_uint_eq(*abandoned, 0);
}
END_TEST

static int crash_then_fail_then_end(void *ctx, enum keeper_life life)
{
	if (life == KEEPER_NEXT_LIFE && notes_deaths(notes) == 1)
		return 1; /* it could not start */
	notes_set_stage(notes, NOTES_SERVING);
	if (life == KEEPER_FIRST_LIFE)
		abort();
	notes_set_stage(notes, NOTES_ENDING);
	return 0;
}

START_TEST(a_next_life_that_cannot_start_is_followed_too)
{
	ck_assert_int_eq(keep(crash_then_fail_then_end), 0);
	ck_assert_uint_eq(notes->shared->deaths[DEATH_CRASHED], 2);
}
END_TEST

static int die_before_serving(void *ctx, enum keeper_life life)
{
	if (life == KEEPER_FIRST_LIFE)
		raise(SIGKILL);
	return 0;
}

START_TEST(a_first_life_that_never_served_is_followed_by_none)
{
	int status = keep(die_before_serving);

	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGKILL);
	ck_assert_uint_eq(notes_deaths(notes), 0);
	ck_assert_uint_eq(*abandoned, 1);
}
END_TEST

static int die_while_ending(void *ctx, enum keeper_life life)
{
	notes_set_stage(notes, NOTES_SERVING);
	notes_set_stage(notes, NOTES_ENDING);
	raise(SIGKILL);
	return 0;
}

START_TEST(a_process_that_stops_is_followed_by_none)
{
	ck_assert(WIFSIGNALED(keep(die_while_ending)));
	ck_assert_uint_eq(notes_deaths(notes), 0);
	ck_assert_uint_eq(*abandoned, 1);
}
END_TEST

static int end_in_order(void *ctx, enum keeper_life life)
{
	notes_set_stage(notes, NOTES_ENDING);
	return 0;
}

START_TEST(a_process_that_stops_in_order_leaves_no_clients)
{
	ck_assert_int_eq(keep(end_in_order), 0);
	ck_assert_uint_eq(*abandoned, 0);
}
END_TEST

/* It does not get the signal, which it blocks. */
static int die_behind_a_stop(void *ctx, enum keeper_life life)
{
	notes_set_stage(notes, NOTES_SERVING);
	kill(getppid(), SIGTERM);
	usleep(3 * KEEPER_TICK_MS * 1000);
	raise(SIGKILL);
	return 0;
}

START_TEST(clients_of_a_process_that_dies_behind_a_stop_get_no_forged_end)
{
	ck_assert(WIFSIGNALED(keep(die_behind_a_stop)));
	ck_assert_uint_eq(*abandoned, 1);
}
END_TEST

static int die_while_giving(void *ctx, enum keeper_life life)
{
	notes_set_stage(notes, NOTES_SERVING);
	notes_set_stage(notes, NOTES_GIVING);
	raise(SIGKILL);
	return 0;
}

START_TEST(a_process_whose_connections_another_one_may_have_is_followed_by_none)
{
	ck_assert(WIFSIGNALED(keep(die_while_giving)));
	ck_assert_uint_eq(notes_deaths(notes), 0);
	ck_assert_uint_eq(*abandoned, 1); /* what no other process has */
}
END_TEST

/* The stop must not hide that. */
static int share_and_stop(void *ctx, enum keeper_life life)
{
	notes_set_stage(notes, NOTES_SERVING);
	notes_share(notes, 1);
	notes_set_stage(notes, NOTES_ENDING);
	raise(SIGKILL);
	return 0;
}

START_TEST(a_stop_amid_a_handover_does_not_hide_what_is_shared)
{
	ck_assert(WIFSIGNALED(keep(share_and_stop)));
	ck_assert_uint_eq(*abandoned, 1);
	ck_assert_uint_eq(notes->shared->shared_worker, 2);
}
END_TEST

/* The table may be what it crashes at. */
static void crash_at_the_end(void *ctx)
{
	on_abandon(ctx);
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

START_TEST(if_the_last_child_crashes_the_keeper_resets_the_clients)
{
	in_last_child = crash_at_the_end;
	ck_assert(WIFSIGNALED(keep(die_while_ending)));
	ck_assert_uint_eq(*abandoned, 1);
	ck_assert_uint_eq(*abandoned_without_table, 1);
}
END_TEST

static void hang_at_the_end(void *ctx)
{
	sleep(3);
}

START_TEST(a_last_child_that_hangs_is_killed)
{
	const uint64_t began_ns = notes_now_ns();

	in_last_child = hang_at_the_end;
	ck_assert(WIFSIGNALED(keep(die_while_ending)));
	ck_assert_uint_eq(*abandoned_without_table, 1);
	ck_assert_uint_lt(notes_now_ns() - began_ns, 2000000000);
}
END_TEST

/* For longer than it may stand still. */
static void work_long_at_the_end(void *ctx)
{
	for (unsigned ms = 0; ms < 2 * HANG_MS; ms++) {
		notes_beat_all(notes);
		usleep(1000);
	}
	on_abandon(ctx);
}

START_TEST(a_last_child_has_as_much_time_as_it_makes_progress)
{
	in_last_child = work_long_at_the_end;
	ck_assert(WIFSIGNALED(keep(die_while_ending)));
	ck_assert_uint_eq(*abandoned, 1);
	ck_assert_uint_eq(*abandoned_without_table, 0);
}
END_TEST

/* Ordered twice, the second time to end at once. */
static void hear_orders_at_the_end(void *ctx)
{
	for (unsigned order = 0; order < 2; order++) {
		kill((pid_t)notes->shared->keeper, SIGTERM);
		usleep(10000);
	}
	for (unsigned ms = 0; ms < 3000; ms++) {
		notes_beat_all(notes);
		usleep(1000);
	}
}

START_TEST(a_second_order_to_stop_ends_the_last_child_at_once)
{
	const uint64_t began_ns = notes_now_ns();

	in_last_child = hear_orders_at_the_end;
	ck_assert(WIFSIGNALED(keep(die_while_ending)));
	ck_assert_uint_eq(*abandoned_without_table, 1);
	ck_assert_uint_lt(notes_now_ns() - began_ns, 2000000000);
}
END_TEST

START_TEST(only_a_process_that_gives_goes_on_serving)
{
	notes_set_stage(notes, NOTES_ENDING);
	notes_go_on_serving(notes);
	ck_assert_uint_eq(notes->shared->stage, NOTES_ENDING);
	notes_set_stage(notes, NOTES_GIVING);
	notes_go_on_serving(notes);
	ck_assert_uint_eq(notes->shared->stage, NOTES_SERVING);
}
END_TEST

static int leave_a_descriptor(void *ctx, enum keeper_life life)
{
	if (life == KEEPER_NEXT_LIFE) {
		notes_set_stage(notes, NOTES_ENDING);
		return fcntl(notes->sockets[0].fd, F_GETFD) < 0;
	}
	notes_add_socket(notes, "left", 0, open("/dev/null", O_RDONLY | O_CLOEXEC));
	notes_set_stage(notes, NOTES_SERVING);
	raise(SIGKILL);
	return 1;
}

START_TEST(a_descriptor_outlives_the_process_that_opened_it)
{
	ck_assert_int_eq(keep(leave_a_descriptor), 0);
	ck_assert_uint_eq(notes->shared->socket_count, 1);
	ck_assert_int_gt(notes->sockets[0].fd, 2);
}
END_TEST

/* One thread goes on, the other one does not. */
static int hang_in_one_thread(void *ctx, enum keeper_life life)
{
	notes_set_stage(notes, NOTES_SERVING);
	if (life == KEEPER_NEXT_LIFE) {
		notes_set_stage(notes, NOTES_ENDING);
		return 0;
	}
	for (;;) {
		notes_beat(notes, 0);
		usleep(1000);
	}
}

START_TEST(a_process_with_a_thread_that_hangs_is_killed)
{
	ck_assert_int_eq(keep(hang_in_one_thread), 0);
	ck_assert_uint_eq(notes->shared->deaths[DEATH_HUNG], 1);
}
END_TEST

/* One thread does the work of the start, for longer than a thread that serves may stand still. */
static int start_slowly(void *ctx, enum keeper_life life)
{
	if (life == KEEPER_FIRST_LIFE) {
		notes_set_stage(notes, NOTES_SERVING);
		raise(SIGKILL);
	}
	for (unsigned ms = 0; ms < 3 * HANG_MS; ms++) {
		notes_beat(notes, 0);
		usleep(1000);
	}
	notes_set_stage(notes, NOTES_ENDING);
	return 0;
}

START_TEST(a_start_in_which_one_thread_works_is_no_hang)
{
	ck_assert_int_eq(keep(start_slowly), 0);
	ck_assert_uint_eq(notes->shared->deaths[DEATH_HUNG], 0);
}
END_TEST

/* Whatever it writes there, the keeper goes on. */
static int scribble_into_the_notes(void *ctx, enum keeper_life life)
{
	if (life == KEEPER_NEXT_LIFE) {
		notes_set_stage(notes, NOTES_ENDING);
		return notes_socket_count(notes) <= notes->socket_cap ? 8 : 1;
	}
	memset(notes->shared, 0xff, sizeof *notes->shared);
	notes_set_stage(notes, NOTES_SERVING);
	usleep(3 * KEEPER_TICK_MS * 1000);
	raise(SIGKILL);
	return 1;
}

START_TEST(a_child_that_scribbles_into_the_notes_does_the_keeper_no_harm)
{
	keep_must_end(scribble_into_the_notes, 8);
}
END_TEST

static int connection_a, connection_b; /* only their addresses count */

/* Worker 0 crashes, while the other thread works on a connection, too. */
static int crash_in_a_worker(void *ctx, enum keeper_life life)
{
	if (life == KEEPER_NEXT_LIFE) {
		notes_set_stage(notes, NOTES_ENDING);
		return notes_blamed(notes, 0) == &connection_a && notes_blamed(notes, 1) == NULL ? 9 : 1;
	}
	notes_set_stage(notes, NOTES_SERVING);
	atomic_store(&notes->working[0], &connection_a);
	atomic_store(&notes->working[1], &connection_b);
	notes_enter_thread(notes, 1);
	abort();
}

START_TEST(only_the_connection_of_the_thread_that_crashed_is_blamed)
{
	keep_must_end(crash_in_a_worker, 9);
}
END_TEST

#ifndef CSSL_SANITIZED
static int fill_the_stack(unsigned depth)
{
	volatile char room[4096];

	room[depth % sizeof room] = 1;
	return depth == 0 ? 0 : fill_the_stack(depth + 1) + room[0];
}

static int fill_the_stack_of_a_worker(void *ctx, enum keeper_life life)
{
	if (life == KEEPER_NEXT_LIFE) {
		notes_set_stage(notes, NOTES_ENDING);
		return notes->last_thread == 1 ? 9 : 1;
	}
	notes_set_stage(notes, NOTES_SERVING);
	notes_enter_thread(notes, 1);
	return fill_the_stack(1);
}

START_TEST(a_thread_whose_stack_is_full_is_known_too)
{
	keep_must_end(fill_the_stack_of_a_worker, 9);
}
END_TEST
#endif

static volatile sig_atomic_t got_signal;

static void on_signal(int signum)
{
	got_signal = signum;
}

/* It has the keeper's word that it comes once: the keeper gets it from itself here. */
static int ask_to_stop(void *ctx, enum keeper_life life)
{
	signal(SIGTERM, on_signal);
	keeper_take_signals();
	notes_set_stage(notes, NOTES_SERVING);
	kill(getppid(), SIGTERM);
	while (!got_signal) {
		notes_beat(notes, 0);
		notes_beat(notes, 1);
		usleep(1000);
	}
	return 5; /* would be a death if nobody had asked */
}

START_TEST(a_signal_to_the_keeper_goes_to_its_child)
{
	keep_must_end(ask_to_stop, 5);
	ck_assert_uint_eq(notes_deaths(notes), 0);
}
END_TEST

/* A SIGHUP without a handler would kill it. */
static int get_a_signal_early(void *ctx, enum keeper_life life)
{
	kill(getppid(), SIGHUP);
	for (unsigned i = 0; i < 50; i++)
		usleep(2000);
	signal(SIGHUP, on_signal);
	keeper_take_signals();
	notes_set_stage(notes, NOTES_ENDING);
	return got_signal == SIGHUP ? 6 : 1;
}

START_TEST(a_signal_waits_until_the_child_can_handle_it)
{
	keep_must_end(get_a_signal_early, 6);
}
END_TEST

static int cannot_settle(void *ctx)
{
	return -1;
}

static int wait_for_ever(void *ctx, enum keeper_life life)
{
	pause();
	return 0;
}

START_TEST(a_keeper_that_cannot_give_up_its_privileges_ends_with_its_child)
{
	int status = keep_with(wait_for_ever, cannot_settle);

	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), EXIT_FAILURE);
}
END_TEST

START_TEST(short_lives_in_a_row_are_followed_by_longer_and_longer_pauses)
{
	ck_assert_uint_eq(keeper_pause_ms(0), 0);
	for (unsigned i = 1; i < 100; i++)
		ck_assert_uint_ge(keeper_pause_ms(i), keeper_pause_ms(i - 1));
	ck_assert_uint_ge(keeper_pause_ms(99), 1000);
	ck_assert_uint_le(keeper_pause_ms(UINT32_MAX), 10000);
}
END_TEST

START_TEST(there_is_room_for_as_many_sockets_as_were_announced)
{
	ck_assert_int_eq(notes_add_socket(notes, "one", 0, 5), 0);
	ck_assert_int_lt(notes_add_socket(notes, "two", 0, 6), 0);
	ck_assert_str_eq(notes->sockets[0].key, "one");
	ck_assert_int_eq(notes_add_socket(NULL, "without a keeper", 0, 5), 0);
}
END_TEST

UNIT(keeper)
{
	const TTest *const facts[] = {
		a_death_is_followed_by_the_next_life,
		a_next_life_that_cannot_start_is_followed_too,
		a_first_life_that_never_served_is_followed_by_none,
		a_process_that_stops_is_followed_by_none,
		a_process_that_stops_in_order_leaves_no_clients,
		clients_of_a_process_that_dies_behind_a_stop_get_no_forged_end,
		a_process_whose_connections_another_one_may_have_is_followed_by_none,
		a_stop_amid_a_handover_does_not_hide_what_is_shared,
		if_the_last_child_crashes_the_keeper_resets_the_clients,
		a_last_child_that_hangs_is_killed,
		a_last_child_has_as_much_time_as_it_makes_progress,
		a_second_order_to_stop_ends_the_last_child_at_once,
		only_a_process_that_gives_goes_on_serving,
		a_descriptor_outlives_the_process_that_opened_it,
		a_process_with_a_thread_that_hangs_is_killed,
		a_start_in_which_one_thread_works_is_no_hang,
		a_child_that_scribbles_into_the_notes_does_the_keeper_no_harm,
		only_the_connection_of_the_thread_that_crashed_is_blamed,
#ifndef CSSL_SANITIZED
		a_thread_whose_stack_is_full_is_known_too,
#endif
		a_signal_to_the_keeper_goes_to_its_child,
		a_signal_waits_until_the_child_can_handle_it,
		a_keeper_that_cannot_give_up_its_privileges_ends_with_its_child,
		short_lives_in_a_row_are_followed_by_longer_and_longer_pauses,
		there_is_room_for_as_many_sockets_as_were_announced,
	};

	return suite_run_with("keeper", make_notes, facts, sizeof facts / sizeof facts[0]);
}
