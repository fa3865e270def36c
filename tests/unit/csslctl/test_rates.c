/* test_rates.c: facts of rates between two looks. */
#include "csslctl/rates.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct rates rates_between(const char *before, const char *after, uint64_t ms)
{
	struct rates r = { json_loads(before, 0, NULL), json_loads(after, 0, NULL), ms };
	ck_assert_ptr_nonnull(r.before);
	ck_assert_ptr_nonnull(r.after);
	return r;
}

static void rates_free(struct rates *r)
{
	json_decref((json_t *)r->before);
	json_decref((json_t *)r->after);
}

START_TEST(a_rate_is_growth_per_second)
{
	struct rates r =
		rates_between("{\"ragent\": {\"x\": 10}, \"agents\": {\"a1\": {\"x\": 0}, \"a2\": {\"x\": 5}}}",
			"{\"ragent\": {\"x\": 20}, \"agents\": {\"a1\": {\"x\": 100}, \"a2\": {\"x\": 6}}}", 500);
	ck_assert_double_eq(rate_of(&r, NULL, "x"), 20);
	ck_assert_double_eq(rate_of(&r, "a1", "x"), 200);
	rates_free(&r);
}
END_TEST

START_TEST(a_process_that_began_anew_has_no_rate)
{
	struct rates r =
		rates_between("{\"agents\": {\"a1\": {\"x\": 1000}}}", "{\"agents\": {\"a1\": {\"x\": 3}}}", 1000);
	ck_assert_double_eq(rate_of(&r, "a1", "x"), 0);
	rates_free(&r);
}
END_TEST

START_TEST(a_counter_that_is_new_has_no_rate)
{
	struct rates r = rates_between("{\"agents\": {\"a1\": {\"error\": \"down\"}}}",
		"{\"agents\": {\"a1\": {\"x\": 3}, \"a2\": {\"x\": 9}}}", 1000);
	ck_assert_double_eq(rate_of(&r, "a1", "x"), 0);
	ck_assert_double_eq(rate_of(&r, "a2", "x"), 0);
	ck_assert_double_eq(rate_of(&r, "a3", "x"), 0);
	ck_assert_double_eq(rate_of(&r, NULL, "x"), 0);
	rates_free(&r);
}
END_TEST

START_TEST(no_time_is_no_rate)
{
	struct rates r = rates_between("{\"ragent\": {\"x\": 1}}", "{\"ragent\": {\"x\": 3}}", 0);
	ck_assert_double_eq(rate_of(&r, NULL, "x"), 0);
	rates_free(&r);
}
END_TEST

UNIT(rates)
{
	const TTest *facts[] = { a_rate_is_growth_per_second, a_process_that_began_anew_has_no_rate,
		a_counter_that_is_new_has_no_rate, no_time_is_no_rate };
	return suite_run("rates", facts, SUITE_LEN(facts));
}
