/* moves.h: does a table of states allow a move? One that it does not allow ends the process, so it is tried in another.
 */
#pragma once

#include <check.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static inline bool move_is_allowed(void (*move)(int from, int to), int from, int to)
{
	int status;
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		close(STDERR_FILENO); /* the assertion's words */
		signal(SIGABRT, SIG_DFL);
		move(from, to);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGABRT);
	return WIFEXITED(status);
}
