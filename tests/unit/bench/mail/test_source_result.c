/* test_source_result.c: facts of the results of several processes and hosts. */
#include "bench/mail/source_result.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct source_result sum, a, b; /* three megabytes each */

static void reply(struct source_result *r, unsigned receiver, const char *address, unsigned code, unsigned times)
{
	strcpy(r->receivers[receiver].address, address);
	while (times-- > 0)
		reply_codes_count(&r->receivers[receiver].replies, code);
}

static uint64_t replies(const struct source_result *r, unsigned receiver, unsigned code)
{
	return r->receivers[receiver].replies.counts[code - REPLY_CODE_MIN];
}

static void note(struct source_result *r, const char *what, unsigned times)
{
	while (times-- > 0)
		tally_note(r->errors, SOURCE_ERRORS_MAX, "RCPT", what);
}

static void add_both(void)
{
	source_result_add(&sum, &a);
	source_result_add(&sum, &b);
}

START_TEST(counts_errors_and_latencies_add_up)
{
	a.counts[SOURCE_SENT] = 3;
	b.counts[SOURCE_SENT] = 4;
	note(&a, "550 No", 2);
	note(&b, "450 Later", 1);
	note(&b, "550 No", 5);
	histogram_record(&a.phases[SOURCE_PHASE_MESSAGE], 10);
	histogram_record(&b.phases[SOURCE_PHASE_MESSAGE], 30);
	add_both();
	ck_assert_uint_eq(sum.counts[SOURCE_SENT], 7);
	ck_assert_str_eq(sum.errors[0].text, "RCPT: 550 No");
	ck_assert_uint_eq(sum.errors[0].count, 7);
	ck_assert_uint_eq(sum.errors[1].count, 1);
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

START_TEST(the_time_is_from_the_first_begin_to_the_last_end)
{
	a.begin_ns = 100, a.end_ns = 500;
	b.begin_ns = 90, b.end_ns = 400;
	add_both();
	ck_assert_uint_eq(sum.begin_ns, 90);
	ck_assert_uint_eq(sum.end_ns, 500);
}
END_TEST

START_TEST(one_that_never_began_has_no_part_in_the_time)
{
	a.begin_ns = 100, a.end_ns = 500;
	add_both();
	ck_assert_uint_eq(sum.begin_ns, 100);
}
END_TEST

START_TEST(replies_are_added_by_receiver_in_whatever_order)
{
	reply(&a, 0, "192.0.2.1:25", 250, 3);
	reply(&a, 1, "192.0.2.2:25", 421, 2);
	reply(&b, 0, "192.0.2.2:25", 421, 5);
	reply(&b, 1, "192.0.2.1:25", 599, 1);
	add_both();
	ck_assert_str_eq(sum.receivers[0].address, "192.0.2.1:25");
	ck_assert_uint_eq(replies(&sum, 0, 250), 3);
	ck_assert_uint_eq(replies(&sum, 0, 599), 1);
	ck_assert_uint_eq(replies(&sum, 1, 421), 7);
	ck_assert_str_eq(sum.receivers[2].address, "");
}
END_TEST

START_TEST(replies_of_too_many_receivers_go_to_the_last)
{
	char address[ADDRESS_TEXT_MAX];
	for (unsigned i = 0; i < SOURCE_TARGETS_MAX; i++) {
		snprintf(address, sizeof address, "192.0.2.%u:25", i);
		reply(&a, i, address, 250, 1);
	}
	reply(&b, 0, "198.51.100.1:25", 250, 6);
	add_both();
	ck_assert_uint_eq(replies(&sum, SOURCE_TARGETS_MAX - 1, 250), 7);
}
END_TEST

/* What source_result_json() prints. */
static json_t *printed(const struct source_result *r)
{
	FILE *file = tmpfile();
	fflush(stdout);
	const int saved = dup(STDOUT_FILENO);
	dup2(fileno(file), STDOUT_FILENO);
	ck_assert_int_eq(source_result_json(r), 0);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(file);
	json_t *out = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL);
	fclose(file);
	ck_assert_ptr_nonnull(out);
	return out;
}

START_TEST(a_result_in_json_is_read_as_it_was)
{
	a.counts[SOURCE_SENT] = 5;
	a.begin_ns = 100, a.end_ns = 500, a.epoch_ns = 1000;
	note(&a, "550 No", 2);
	reply(&a, 0, "[2001:db8::1]:25", 250, 3);
	histogram_record(&a.phases[SOURCE_PHASE_CONNECT], 123456789);
	json_t *json = printed(&a);
	ck_assert_int_eq(source_result_read(json, &b), 0);
	json_decref(json);
	ck_assert_uint_eq(b.begin_ns, 1100);
	ck_assert_uint_eq(b.end_ns, 1500);
	a.begin_ns = 1100, a.end_ns = 1500, a.epoch_ns = 0;
	ck_assert_mem_eq(&b, &a, sizeof a);
}
END_TEST

START_TEST(a_part_of_a_result_is_refused)
{
	static const char *const parts[] = { "counts", "errors", "suites", "receivers", "exact" };
	for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		json_t *json = printed(&a);
		json_object_del(json, parts[i]);
		memset(&b, 0, sizeof b);
		ck_assert_int_lt(source_result_read(json, &b), 0);
		json_decref(json);
	}
}
END_TEST

START_TEST(a_code_that_is_none_is_refused)
{
	json_t *json = printed(&a), *receivers = json_object_get(json, "receivers");
	json_object_set_new(receivers, "192.0.2.1:25", json_pack("{s:i}", "600", 1));
	ck_assert_int_lt(source_result_read(json, &b), 0);
	json_decref(json);
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
		counts_errors_and_latencies_add_up,
		percentiles_of_a_sum_are_those_of_all_values,
		the_time_is_from_the_first_begin_to_the_last_end,
		one_that_never_began_has_no_part_in_the_time,
		replies_are_added_by_receiver_in_whatever_order,
		replies_of_too_many_receivers_go_to_the_last,
		a_result_in_json_is_read_as_it_was,
		a_part_of_a_result_is_refused,
		a_code_that_is_none_is_refused,
	};

	return suite_run_with("source_result", forget, facts, SUITE_LEN(facts));
}
