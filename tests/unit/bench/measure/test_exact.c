/* test_exact.c: facts of results that are read again. */
#include "bench/measure/exact.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

enum { FIRST, SECOND, EMPTY, LEN };

static const struct report_name names[LEN] = { { "first", "" }, { "second", "" }, { "empty", "" } };
static struct histogram written[LEN], read[LEN]; /* a quarter of a megabyte each */

/* As a file has it. */
static json_t *through_text(json_t *object)
{
	char *text = json_dumps(object, JSON_COMPACT);
	json_t *again = json_loads(text, 0, NULL);
	ck_assert_ptr_nonnull(again);
	free(text);
	json_decref(object);
	return again;
}

static int read_text(const char *text)
{
	json_t *from = json_loads(text, 0, NULL);
	ck_assert_ptr_nonnull(from);
	int r = exact_histograms(from, "latency", names, read, LEN);
	json_decref(from);
	return r;
}

START_TEST(a_histogram_is_read_as_it_was)
{
	uint64_t x = 88172645463325252u;
	for (unsigned i = 0; i < 20000; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		histogram_record(&written[FIRST], x >> (x % 60));
	}
	histogram_record(&written[SECOND], 0);
	histogram_record(&written[SECOND], UINT64_MAX);
	json_t *from = through_text(json_pack("{s:o}", "latency", exact_histograms_json(names, written, LEN)));
	ck_assert_ptr_null(json_object_get(json_object_get(from, "latency"), "empty"));
	ck_assert_int_eq(exact_histograms(from, "latency", names, read, LEN), 0);
	ck_assert_mem_eq(read, written, sizeof written);
	json_decref(from);
}
END_TEST

START_TEST(what_is_no_histogram_is_refused)
{
	ck_assert_int_eq(read_text("{\"latency\":{}}"), 0);
	ck_assert_int_lt(read_text("{}"), 0);
	ck_assert_int_lt(read_text("{\"latency\":[]}"), 0);
	ck_assert_int_lt(read_text("{\"latency\":{\"first\":{}}}"), 0);
	ck_assert_int_lt(read_text("{\"latency\":{\"first\":{\"values\":\"1:1 \",\"sum_ns\":1,\"min_ns\":1}}}"), 0);
	static const char *const bad[] = { "", "1", "1:", "1:1", "1 1 ", ":1 ", "1:-1 ", "-1:1 ", "x:1 ", "1:1 2",
		"1:1  2:1 " };
	char text[200];
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		memset(read, 0, sizeof read);
		snprintf(text, sizeof text,
			"{\"latency\":{\"first\":{\"values\":\"%s\",\"sum_ns\":1,\"min_ns\":1,\"max_ns\":1}}}", bad[i]);
		ck_assert_msg(read_text(text) < 0, "%s", bad[i]);
	}
}
END_TEST

START_TEST(counts_have_to_be_there)
{
	uint64_t counts[LEN];
	json_t *from = json_pack("{s:{s:i, s:i, s:i}}", "counts", "first", 3, "second", 4, "empty", 0);
	ck_assert_int_eq(exact_counts(from, "counts", names, counts, LEN), 0);
	ck_assert_uint_eq(counts[SECOND], 4);
	json_object_del(json_object_get(from, "counts"), "empty");
	ck_assert_int_lt(exact_counts(from, "counts", names, counts, LEN), 0);
	json_decref(from);
}
END_TEST

START_TEST(a_tally_is_read_text_by_text)
{
	struct tally rows[4] = { 0 };
	json_t *from = json_pack("{s:{s:i, s:i}}", "errors", "connect: refused", 3, "others", 4);
	ck_assert_int_eq(exact_tally(from, "errors", rows, 4), 0);
	ck_assert_uint_eq(tally_row(rows, 4, "connect: refused", strlen("connect: refused"))->count, 3);
	ck_assert_int_lt(exact_tally(from, "suites", rows, 4), 0);
	json_decref(from);
}
END_TEST

START_TEST(what_never_began_has_no_time)
{
	ck_assert_int_eq(exact_wall_ns(1000, 0), 0);
	ck_assert_int_eq(exact_wall_ns(1000, 5), 1005);
}
END_TEST

static void forget(void)
{
	memset(written, 0, sizeof written);
	memset(read, 0, sizeof read);
}

UNIT(exact)
{
	const TTest *facts[] = {
		a_histogram_is_read_as_it_was,
		what_is_no_histogram_is_refused,
		counts_have_to_be_there,
		a_tally_is_read_text_by_text,
		what_never_began_has_no_time,
	};

	return suite_run_with("exact", forget, facts, SUITE_LEN(facts));
}
