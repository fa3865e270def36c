/* test_connection_table.c: facts of a worker's table of connections by id. */
#include <stdlib.h>
#include <string.h>

#include "sslagent/connection/connection.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define MANY 515

static struct table table;
static struct connection connections[MANY];

static void setup(void)
{
	table = (struct table){ 0 };
	memset(connections, 0, sizeof connections);
	for (unsigned i = 0; i < MANY; i++)
		memcpy(connections[i].id.bytes, &i, sizeof i);
}

static void teardown(void)
{
	table_clear(&table);
}

static void add(unsigned i)
{
	ck_assert_int_eq(connection_table_add(&table, &connections[i]), 0);
}

static struct connection *find(unsigned i)
{
	return connection_table_find(&table, &connections[i].id);
}

START_TEST(an_empty_table_finds_nothing)
{
	ck_assert_ptr_null(find(0));
}
END_TEST

START_TEST(what_was_added_is_found_however_many_there_are)
{
	for (unsigned i = 0; i < MANY; i++)
		add(i);
	ck_assert_uint_eq(table.count, MANY);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_ptr_eq(find(i), &connections[i]);
}
END_TEST

START_TEST(what_was_removed_is_gone_and_the_others_are_not)
{
	for (unsigned i = 0; i < MANY; i++)
		add(i);
	for (unsigned i = 0; i < MANY; i += 2)
		table_remove(&table, &connections[i].by_id);
	ck_assert_uint_eq(table.count, MANY / 2);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_ptr_eq(find(i), i % 2 ? &connections[i] : NULL);
}
END_TEST

START_TEST(ids_with_the_same_head_are_told_apart)
{
	for (unsigned i = 0; i < 10; i++) {
		memset(connections[i].id.bytes, 0x77, CONNECTION_ID_LEN);
		connections[i].id.bytes[CONNECTION_ID_LEN - 1] = (uint8_t)i;
		add(i);
	}
	for (unsigned i = 0; i < 10; i++)
		ck_assert_ptr_eq(find(i), &connections[i]);
}
END_TEST

/* A frozen connection and the one that adopts it here: the newer is found, and either may go first. */
START_TEST(of_two_with_the_same_id_the_newer_is_found)
{
	connections[1].id = connections[0].id;
	add(0);
	add(1);
	ck_assert_ptr_eq(find(0), &connections[1]);
	table_remove(&table, &connections[_i].by_id);
	ck_assert_ptr_eq(find(0), &connections[1 - _i]);
	table_remove(&table, &connections[1 - _i].by_id);
	ck_assert_ptr_null(find(0));
}
END_TEST

static void add_facts(TCase *t)
{
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, an_empty_table_finds_nothing);
	tcase_add_test(t, what_was_added_is_found_however_many_there_are);
	tcase_add_test(t, what_was_removed_is_gone_and_the_others_are_not);
	tcase_add_test(t, ids_with_the_same_head_are_told_apart);
	tcase_add_loop_test(t, of_two_with_the_same_id_the_newer_is_found, 0, 2);
}

UNIT(connection_table)
{
	return run_suite("connection_table", add_facts);
}
