/* test_keeper_restores.c: facts of lives that end while they restore connections, or right after it: how they are
 * counted, and when the next life restores nothing.
 */
#include "tests/unit/ragent/keeper/keeping.h"
#include "tests/unit/unit.h"

/* The second and third life die before they serve. The fourth finds both counted, and dies while it serves; the fifth
 * finds none. */
static int die_restoring(void *ctx, enum keeper_life life)
{
	const uint64_t deaths = notes_deaths(notes);

	if (deaths == 1 || deaths == 2)
		raise(deaths == 1 ? SIGKILL : SIGTRAP);
	if (deaths == 3 && notes->died_restoring != NOTES_RESTORE_DEATHS)
		return 1;
	notes_set_stage(notes, deaths == 4 ? NOTES_ENDING : NOTES_SERVING);
	if (deaths != 4)
		raise(SIGKILL);
	return notes->died_restoring == 0 ? 11 : 1;
}

START_TEST(deaths_before_a_next_life_serves_are_counted_until_one_serves)
{
	keep_must_end(die_restoring, 11);
}
END_TEST

/* The first life serves, and so does each next one, until something of what was restored happens. */
static int crash_when_all_is_restored(void *ctx, enum keeper_life life)
{
	notes_set_stage(notes, NOTES_SERVING);
	if (life == KEEPER_NEXT_LIFE && notes_forbid_restore(notes)) {
		notes_set_stage(notes, NOTES_ENDING);
		return (int)notes_deaths(notes);
	}
	if (notes_deaths(notes) > 4)
		_exit(0);
	raise(life == KEEPER_FIRST_LIFE ? SIGKILL : SIGTRAP);
	return 0;
}

START_TEST(crashes_right_after_a_restore_count_as_its_deaths)
{
	int status = keep(crash_when_all_is_restored);

	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 1 + NOTES_RESTORE_DEATHS);
}
END_TEST

/* As by a request to the control API. */
static int crash_in_the_main_thread(void *ctx, enum keeper_life life)
{
	notes_set_stage(notes, NOTES_SERVING);
	if (notes_deaths(notes) > NOTES_RESTORE_DEATHS) {
		notes_set_stage(notes, NOTES_ENDING);
		return notes->died_restoring == 0 ? 14 : 1;
	}
	notes_enter_thread(notes, 0);
	abort();
}

START_TEST(a_crash_of_the_main_thread_says_nothing_of_what_was_restored)
{
	keep_must_end(crash_in_the_main_thread, 14);
}
END_TEST

static int hang_when_all_is_restored(void *ctx, enum keeper_life life)
{
	notes_set_stage(notes, NOTES_SERVING);
	if (life == KEEPER_FIRST_LIFE)
		raise(SIGKILL);
	while (notes_deaths(notes) == 1) {
		notes_beat(notes, 0);
		usleep(1000);
	}
	notes_set_stage(notes, NOTES_ENDING);
	return notes->died_restoring == 1 ? 13 : 1;
}

START_TEST(so_do_hangs)
{
	keep_must_end(hang_when_all_is_restored, 13);
}
END_TEST

/* Each life that restores is killed. */
static int be_killed_restoring(void *ctx, enum keeper_life life)
{
	notes_set_stage(notes, life == KEEPER_FIRST_LIFE ? NOTES_SERVING : NOTES_RESTORING);
	if (!notes_forbid_restore(notes))
		raise(SIGKILL);
	notes_set_stage(notes, NOTES_ENDING);
	return (int)notes_deaths(notes);
}

START_TEST(two_kills_while_lives_restore_are_no_reason_to_restore_nothing)
{
	int status = keep(be_killed_restoring);

	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 1 + NOTES_RESTORE_KILLS);
}
END_TEST

static int fail_to_start_then_tell(void *ctx, enum keeper_life life)
{
	if (life == KEEPER_NEXT_LIFE && notes_deaths(notes) < 4)
		return 1;
	notes_set_stage(notes, NOTES_SERVING);
	if (life == KEEPER_FIRST_LIFE)
		raise(SIGKILL);
	notes_set_stage(notes, NOTES_ENDING);
	return notes->died_restoring == 0 ? 12 : 1;
}

START_TEST(a_life_that_cannot_start_says_nothing_of_what_it_restores)
{
	keep_must_end(fail_to_start_then_tell, 12);
}
END_TEST

/* All threads run, and one of them stands. */
static int hang_while_restoring(void *ctx, enum keeper_life life)
{
	if (life == KEEPER_FIRST_LIFE) {
		notes_set_stage(notes, NOTES_SERVING);
		raise(SIGKILL);
	}
	if (notes_deaths(notes) == 2) {
		notes_set_stage(notes, NOTES_ENDING);
		return notes->died_restoring == 1 && notes->last_thread == 1 ? 0 : 1;
	}
	notes_set_stage(notes, NOTES_RESTORING);
	for (;;) {
		notes_beat(notes, 0);
		notes_beat(notes, 2);
		usleep(1000);
	}
}

START_TEST(a_thread_that_hangs_while_others_restore_is_a_hang)
{
	ck_assert_int_eq(keep(hang_while_restoring), 0);
	ck_assert_uint_eq(notes->shared->deaths[DEATH_HUNG], 1);
}
END_TEST

static int connection_a; /* only its address counts */

/* While it restores, it uses bytes of a client that is restored already. */
static int restore_and_crash(enum keeper_life life, void (*how)(void))
{
	if (notes_deaths(notes) == 2) {
		notes_set_stage(notes, NOTES_ENDING);
		return notes->died_restoring == 0 ? 10 : 1;
	}
	notes_set_stage(notes, life == KEEPER_FIRST_LIFE ? NOTES_SERVING : NOTES_RESTORING);
	if (life == KEEPER_NEXT_LIFE)
		atomic_store(&notes->working[0], &connection_a);
	notes_enter_thread(notes, 1);
	how();
	return 1;
}

static int crash_on_a_client_while_restoring(void *ctx, enum keeper_life life)
{
	return restore_and_crash(life, abort);
}

/* Nothing of the process can note which thread it was, as after a stack is used up. */
static void abort_unseen(void)
{
	signal(SIGABRT, SIG_DFL);
	abort();
}

static int crash_unseen_while_restoring(void *ctx, enum keeper_life life)
{
	return restore_and_crash(life, abort_unseen);
}

START_TEST(a_crash_on_bytes_of_a_client_says_nothing_of_what_is_restored)
{
	keep_must_end(crash_on_a_client_while_restoring, 10);
}
END_TEST

START_TEST(such_a_crash_says_nothing_of_it_without_its_thread)
{
	keep_must_end(crash_unseen_while_restoring, 10);
}
END_TEST

UNIT(keeper_restores)
{
	const TTest *const facts[] = {
		deaths_before_a_next_life_serves_are_counted_until_one_serves,
		crashes_right_after_a_restore_count_as_its_deaths,
		a_crash_of_the_main_thread_says_nothing_of_what_was_restored,
		so_do_hangs,
		two_kills_while_lives_restore_are_no_reason_to_restore_nothing,
		a_life_that_cannot_start_says_nothing_of_what_it_restores,
		a_thread_that_hangs_while_others_restore_is_a_hang,
		a_crash_on_bytes_of_a_client_says_nothing_of_what_is_restored,
		such_a_crash_says_nothing_of_it_without_its_thread,
	};

	return suite_run_with("keeper_restores", make_notes, facts, sizeof facts / sizeof facts[0]);
}
