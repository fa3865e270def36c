/* test_signals.c: facts of signals as callbacks. */
#include <signal.h>
#include <unistd.h>

#include "net/loop/signals.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

static struct signals *signals;
static unsigned seen[65];

static void on_signal(void *ctx, int signum)
{
	ck_assert_ptr_eq(ctx, seen);
	seen[signum]++;
}

START_TEST(each_signal_asked_for_is_told)
{
	signals = signals_create(w, (int[]){ SIGTERM, SIGHUP }, 2, on_signal, seen);
	ck_assert_ptr_nonnull(signals);
	raise(SIGTERM);
	wait_until(seen[SIGTERM] == 1);
	raise(SIGHUP);
	wait_until(seen[SIGHUP] == 1);
	signals_destroy(signals);
	signals_destroy(NULL);
}
END_TEST

START_TEST(destroyed_signals_are_ignored)
{
	signals = signals_create(w, (int[]){ SIGTERM, SIGINT }, 2, on_signal, seen);
	signals_destroy(signals);
	raise(SIGTERM); /* would end this process */
	turns(3);
	raise(SIGINT);
	ck_assert_uint_eq(seen[SIGTERM], 0);
}
END_TEST

static void destroy_on_signal(void *ctx, int signum)
{
	on_signal(ctx, signum);
	signals_destroy(signals);
}

START_TEST(signals_may_be_destroyed_from_within)
{
	signals = signals_create(w, (int[]){ SIGUSR1, SIGUSR2 }, 2, destroy_on_signal, seen);
	raise(SIGUSR2);
	wait_until(seen[SIGUSR2] == 1);
	turns(3);
}
END_TEST

START_TEST(impossible_signal_is_refused)
{
	ck_assert_ptr_null(signals_create(w, (int[]){ SIGTERM, SIGKILL }, 2, on_signal, seen));
	ck_assert_ptr_null(signals_create(w, (int[]){ -1 }, 1, on_signal, seen));
	turns(3);
}
END_TEST

START_TEST(write_to_nobody_does_not_kill)
{
	int fds[2];
	ck_assert_int_eq(pipe(fds), 0);
	close(fds[0]);
	ck_assert_int_eq(write(fds[1], "x", 1), -1);
	close(fds[1]);
}
END_TEST

UNIT(signals)
{
	const TTest *facts[] = {
		each_signal_asked_for_is_told,
		destroyed_signals_are_ignored,
		signals_may_be_destroyed_from_within,
		impossible_signal_is_refused,
		write_to_nobody_does_not_kill,
	};
	return worker_suite_run("signals", facts, FACTS_LEN(facts));
}
