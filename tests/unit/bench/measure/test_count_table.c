/* test_count_table.c: facts of the table of executions. */
#include <sodium.h>
#include <stdio.h>

#include "bench/measure/count_table.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(each_id_has_its_own_count)
{
	struct count_table *t = count_table_create();
	ck_assert_int_eq(count_table_add(t, "a"), 1);
	ck_assert_int_eq(count_table_add(t, "b"), 1);
	ck_assert_int_eq(count_table_add(t, "a"), 2);
	ck_assert_uint_eq(count_table_get(t, "a"), 2);
	ck_assert_uint_eq(count_table_get(t, "b"), 1);
	ck_assert_uint_eq(count_table_get(t, "c"), 0);
	count_table_destroy(t);
}
END_TEST

START_TEST(totals_are_over_all_ids)
{
	struct count_table *t = count_table_create();
	for (int i = 0; i < 3; i++)
		count_table_add(t, "thrice");
	count_table_add(t, "once");
	struct count_totals totals = count_table_totals(t);
	ck_assert_uint_eq(totals.ids, 2);
	ck_assert_uint_eq(totals.executions, 4);
	ck_assert_uint_eq(totals.most, 3);
	count_table_destroy(t);
}
END_TEST

START_TEST(counts_survive_growing)
{
	enum { IDS = 20000 };
	struct count_table *t = count_table_create();
	char id[32];
	for (int round = 1; round <= 2; round++) {
		for (int i = 0; i < IDS; i++) {
			snprintf(id, sizeof(id), "id-%d", i);
			ck_assert_int_eq(count_table_add(t, id), round);
		}
	}
	ck_assert_uint_eq(count_table_totals(t).ids, IDS);
	count_table_destroy(t);
}
END_TEST

START_TEST(only_short_plain_ids_are_taken)
{
	struct count_table *t = count_table_create();
	char longest[COUNT_ID_MAX + 2];
	memset(longest, 'x', sizeof(longest));
	longest[COUNT_ID_MAX] = 0;
	ck_assert_int_eq(count_table_add(t, longest), 1);
	ck_assert_uint_eq(count_table_get(t, longest), 1);
	longest[COUNT_ID_MAX] = 'x';
	longest[COUNT_ID_MAX + 1] = 0;
	ck_assert_int_eq(count_table_add(t, longest), CSSL_E_RANGE);
	ck_assert_int_eq(count_table_add(t, ""), CSSL_E_RANGE);
	ck_assert_int_eq(count_table_add(t, "a b"), CSSL_E_RANGE);
	ck_assert_int_eq(count_table_add(t, "\""), CSSL_E_RANGE);
	ck_assert_uint_eq(count_table_get(t, "a b"), 0);
	count_table_destroy(t);
}
END_TEST

START_TEST(destroying_nothing_is_legal)
{
	count_table_destroy(NULL);
}
END_TEST

UNIT(count_table)
{
	const TTest *facts[] = {
		each_id_has_its_own_count,
		totals_are_over_all_ids,
		counts_survive_growing,
		only_short_plain_ids_are_taken,
		destroying_nothing_is_legal,
	};
	if (sodium_init() < 0)
		return 1;
	return suite_run("count_table", facts, SUITE_LEN(facts));
}
