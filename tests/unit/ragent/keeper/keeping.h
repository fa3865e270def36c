/* keeping.h: a keeper in a process of its own, which runs a function of the test as its children, one after another. */
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ragent/keeper/keeper.h"
#include "tests/unit/proto/suite.h"

#define THREADS 3u
#define HANG_MS 200u

static struct notes *notes;

static int nothing_to_settle(void *ctx)
{
	return 0;
}

static _Atomic unsigned *abandoned;               /* how often, in a child of the keeper; shared with all */
static _Atomic unsigned *abandoned_without_table; /* in the keeper */

static void on_abandon(void *ctx)
{
	if ((uint32_t)getppid() == notes->shared->keeper)
		atomic_fetch_add(abandoned, 1);
}

static void on_abandon_without_table(void *ctx)
{
	if ((uint32_t)getpid() == notes->shared->keeper)
		atomic_fetch_add(abandoned_without_table, 1);
}

static void on_tick(void *ctx)
{
}

static void (*in_last_child)(void *ctx);

/* How the keeper ended. */
static int keep_with(int (*live)(void *ctx, enum keeper_life life), int (*settle)(void *ctx))
{
	const struct keeper_params p = { .notes = notes,
		.hang_ms = HANG_MS,
		.live = live,
		.settle = settle,
		.tick = on_tick,
		.abandon = in_last_child,
		.abandon_without_table = on_abandon_without_table };
	int status;
	pid_t keeper = fork();

	if (keeper == 0)
		_exit(keeper_run(&p));
	ck_assert_int_eq(waitpid(keeper, &status, 0), keeper);
	return status;
}

static int keep(int (*live)(void *ctx, enum keeper_life life))
{
	return keep_with(live, nothing_to_settle);
}

/* With the exit status that its last child returned. */
static void keep_must_end(int (*live)(void *ctx, enum keeper_life life), int expected)
{
	const int status = keep(live);

	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), expected);
}

static void make_notes(void)
{
	notes = notes_create(THREADS, 1);
	ck_assert_ptr_nonnull(notes);
	abandoned = mmap(NULL, 2 * sizeof *abandoned, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(abandoned, MAP_FAILED);
	abandoned_without_table = abandoned + 1;
	in_last_child = on_abandon;
}
