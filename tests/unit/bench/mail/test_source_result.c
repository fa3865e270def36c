/* test_source_result.c: facts of the results of several processes and hosts. */
#include "bench/mail/source_result.h"

#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct source_result sum, a, b; /* three megabytes each */

static void add_both(void)
{
	result_add(&source_result_kind, &sum, &a);
	result_add(&source_result_kind, &sum, &b);
}

START_TEST(counts_texts_and_latencies_add_up)
{
	a.mails = 10;
	b.mails = 11;
	a.counts[SOURCE_SENT] = 3;
	b.counts[SOURCE_SENT] = 4;
	tally_note(a.errors, SOURCE_ERRORS_MAX, "RCPT", "550 No");
	tally_note(b.errors, SOURCE_ERRORS_MAX, "RCPT", "450 Later");
	tally_note(b.errors, SOURCE_ERRORS_MAX, "RCPT", "550 No");
	tally_row(a.replies, SOURCE_REPLIES_MAX, "250 one", 7)->count = 5;
	tally_row(b.replies, SOURCE_REPLIES_MAX, "250 two", 7)->count = 6;
	histogram_record(&a.phases[SOURCE_PHASE_MESSAGE], 10);
	histogram_record(&b.phases[SOURCE_PHASE_MESSAGE], 30);
	add_both();
	ck_assert_uint_eq(sum.mails, 21);
	ck_assert_uint_eq(sum.counts[SOURCE_SENT], 7);
	ck_assert_str_eq(sum.errors[0].text, "RCPT: 550 No");
	ck_assert_uint_eq(sum.errors[0].count, 2);
	ck_assert_uint_eq(sum.errors[1].count, 1);
	ck_assert_str_eq(sum.replies[1].text, "250 two");
	ck_assert_uint_eq(sum.replies[1].count, 6);
	ck_assert_uint_eq(sum.phases[SOURCE_PHASE_MESSAGE].count, 2);
	ck_assert_uint_eq(sum.phases[SOURCE_PHASE_MESSAGE].max, 30);
}
END_TEST

START_TEST(percentiles_of_a_sum_are_those_of_all_values)
{
	static struct histogram all;
	for (uint64_t ns = 1; ns < 4000000; ns += 977) {
		histogram_record(&(ns % 3 ? &a : &b)->phases[SOURCE_PHASE_END], ns);
		histogram_record(&all, ns);
	}
	add_both();
	ck_assert_mem_eq(&sum.phases[SOURCE_PHASE_END], &all, sizeof all);
}
END_TEST

/* A file may have any bytes. */
START_TEST(a_stranger_s_result_can_be_added)
{
	memset(&a, 0xff, sizeof a);
	memset(&b, 'x', sizeof b);
	add_both();
	for (unsigned i = 0; i < SOURCE_ERRORS_MAX; i++)
		ck_assert_ptr_nonnull(memchr(sum.errors[i].text, 0, TALLY_TEXT_MAX));
	ck_assert_uint_le(histogram_percentile(&sum.phases[SOURCE_PHASE_END], 99.9), UINT64_MAX);
}
END_TEST

static void forget(void)
{
	memset(&sum, 0, sizeof sum);
	memset(&a, 0, sizeof a);
	memset(&b, 0, sizeof b);
}

UNIT(source_result)
{
	const TTest *facts[] = {
		counts_texts_and_latencies_add_up,
		percentiles_of_a_sum_are_those_of_all_values,
		a_stranger_s_result_can_be_added,
	};

	return suite_run_with("source_result", forget, facts, SUITE_LEN(facts));
}
