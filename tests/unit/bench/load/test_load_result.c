/* test_load_result.c: facts of adding up the counts of several generators. */
#include <stdio.h>
#include <string.h>

#include "bench/load/load_result.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct load_result sum, a, b; /* a megabyte each */

static void count_text(struct load_result *r, const char *text, uint64_t times)
{
	tally_row(r->errors, LOAD_ERRORS_MAX, text, strlen(text))->count += times;
}

static uint64_t counted(const struct load_result *r, const char *text)
{
	for (unsigned i = 0; i < LOAD_ERRORS_MAX; i++) {
		if (strcmp(r->errors[i].text, text) == 0)
			return r->errors[i].count;
	}
	return 0;
}

START_TEST(counts_alerts_and_phases_add_up)
{
	a.counts[LOAD_FULL] = 3;
	b.counts[LOAD_FULL] = 4;
	b.alerts[40] = 2;
	histogram_record(&a.phases[LOAD_PHASE_CONNECT], 10);
	histogram_record(&b.phases[LOAD_PHASE_CONNECT], 30);
	load_result_kind.add(&sum, &a);
	load_result_kind.add(&sum, &b);
	ck_assert_uint_eq(sum.counts[LOAD_FULL], 7);
	ck_assert_uint_eq(sum.alerts[40], 2);
	ck_assert_uint_eq(sum.phases[LOAD_PHASE_CONNECT].count, 2);
	ck_assert_uint_eq(sum.phases[LOAD_PHASE_CONNECT].max, 30);
}
END_TEST

START_TEST(the_same_texts_are_one_row)
{
	count_text(&a, "connect: refused", 2);
	count_text(&a, "handshake: cut", 1);
	count_text(&b, "handshake: cut", 5);
	count_text(&b, "handshake", 1); /* a beginning of another is another */
	load_result_kind.add(&sum, &a);
	load_result_kind.add(&sum, &b);
	ck_assert_uint_eq(counted(&sum, "connect: refused"), 2);
	ck_assert_uint_eq(counted(&sum, "handshake: cut"), 6);
	ck_assert_uint_eq(counted(&sum, "handshake"), 1);
}
END_TEST

START_TEST(a_connection_that_was_not_made_is_a_failure)
{
	ck_assert_int_eq(load_result_has_failures(&a), 0);
	a.counts[LOAD_CONNECTIONS] = a.counts[LOAD_CONNECTED] = 2;
	a.counts[LOAD_CLOSED] = 2; /* a server may end an idle connection */
	ck_assert_int_eq(load_result_has_failures(&a), 0);
	a.counts[LOAD_CONNECTED] = 1;
	ck_assert_int_eq(load_result_has_failures(&a), 1);
}
END_TEST

START_TEST(a_wrong_answer_is_a_failure)
{
	a.counts[LOAD_WRONG_BYTES] = 1;
	ck_assert_int_eq(load_result_has_failures(&a), 1);
}
END_TEST

static void forget(void)
{
	memset(&sum, 0, sizeof(sum));
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
}

UNIT(load_result)
{
	const TTest *facts[] = {
		counts_alerts_and_phases_add_up,
		the_same_texts_are_one_row,
		a_connection_that_was_not_made_is_a_failure,
		a_wrong_answer_is_a_failure,
	};

	return suite_run_with("load_result", forget, facts, SUITE_LEN(facts));
}
