/* test_table.c: facts of slots, and of what the next process finds in them. */
#include <sys/wait.h>
#include <unistd.h>

#include "ragent/keeper/table.h"
#include "tests/unit/proto/suite.h"

#define SLOTS     (3 * TABLE_RUN)
#define SAVED_LEN 100u

static struct table *table;

static void make_table(void)
{
	table = table_create(SLOTS, SAVED_LEN);
	ck_assert_ptr_nonnull(table);
}

static struct slot_pool pool_of(uint32_t worker)
{
	struct slot_pool p;

	ck_assert_int_eq(slot_pool_init(&p, table, worker), 0);
	return p;
}

START_TEST(a_slot_that_was_given_back_is_taken_again)
{
	struct slot_pool p = pool_of(0);
	struct table_slot *first = slot_pool_take(&p);

	ck_assert_uint_eq(first->state, SLOT_VOID);
	slot_pool_give(&p, first);
	ck_assert_uint_eq(first->state, SLOT_FREE);
	ck_assert_ptr_eq(slot_pool_take(&p), first);
	slot_pool_clear(&p);
}
END_TEST

START_TEST(two_workers_have_no_slot_in_common)
{
	struct slot_pool a = pool_of(0), b = pool_of(1);

	for (unsigned i = 0; i < TABLE_RUN; i++) {
		ck_assert_uint_eq(slot_pool_take(&a)->worker, 0);
		ck_assert_uint_eq(slot_pool_take(&b)->worker, 1);
	}
	slot_pool_clear(&a);
	slot_pool_clear(&b);
}
END_TEST

START_TEST(the_table_gives_no_more_than_it_has)
{
	struct slot_pool p = pool_of(0);

	for (unsigned i = 0; i < SLOTS; i++)
		ck_assert_ptr_nonnull(slot_pool_take(&p));
	for (unsigned i = 0; i < 2 * TABLE_RUN; i++)
		ck_assert_ptr_null(slot_pool_take(&p));
	ck_assert_ptr_null(table_slot(table, SLOTS));
	slot_pool_clear(&p);
}
END_TEST

START_TEST(without_a_table_there_is_no_slot)
{
	struct slot_pool p;

	ck_assert_int_eq(slot_pool_init(&p, NULL, 0), 0);
	ck_assert_ptr_null(slot_pool_take(&p));
	slot_pool_clear(&p);
}
END_TEST

/* In a process that dies: one slot SAVED, one VOID. */
static void die_with_slots(void)
{
	struct slot_pool p = pool_of(0);
	struct table_slot *saved = slot_pool_take(&p);

	saved->cookie = 7;
	saved->saved[SAVED_LEN - 1] = 9;
	table_slot_saved(saved);
	slot_pool_take(&p);
	_exit(0);
}

static struct table_slot *only_saved(void)
{
	struct table_slot *s, *found = NULL;

	for (uint32_t i = 0; (s = table_slot(table, i)) != NULL; i++) {
		if (s->state != SLOT_SAVED)
			continue;
		ck_assert_ptr_null(found);
		found = s;
	}
	return found;
}

START_TEST(the_next_process_finds_what_was_saved_and_nothing_else)
{
	pid_t process = fork();

	if (process == 0)
		die_with_slots();
	waitpid(process, NULL, 0);
	struct table_slot *s = only_saved();
	ck_assert_ptr_nonnull(s);
	ck_assert_uint_eq(s->cookie, 7);
	ck_assert_uint_eq(s->saved[SAVED_LEN - 1], 9);
}
END_TEST

START_TEST(all_but_saved_slots_with_a_descriptor_are_free_again)
{
	pid_t process = fork();

	if (process == 0)
		die_with_slots();
	waitpid(process, NULL, 0);
	struct table_slot *s = only_saved();
	s->fd = 5;
	struct slot_pool p = pool_of(0);
	ck_assert_uint_eq(p.free_count, TABLE_RUN - 1);
	slot_pool_clear(&p);
	s->fd = -1; /* its client is gone */
	p = pool_of(0);
	ck_assert_uint_eq(p.free_count, TABLE_RUN);
	ck_assert_uint_eq(s->state, SLOT_FREE);
	slot_pool_clear(&p);
}
END_TEST

int main(void)
{
	const TTest *const facts[] = {
		a_slot_that_was_given_back_is_taken_again,
		two_workers_have_no_slot_in_common,
		the_table_gives_no_more_than_it_has,
		without_a_table_there_is_no_slot,
		the_next_process_finds_what_was_saved_and_nothing_else,
		all_but_saved_slots_with_a_descriptor_are_free_again,
	};

	return suite_run_with("table", make_table, facts, sizeof facts / sizeof facts[0]);
}
