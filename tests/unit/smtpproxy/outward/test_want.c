/* test_want.c: facts of sessions that wait at a destination. */
#include "smtpproxy/outward/want.h"

#include "smtpproxy/outward/onward.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct worker *worker;
static struct wants all;
static struct turn_end step;
static struct want one, other;
static unsigned failed, told;
static enum smtp_own reason;

static void on_offers(struct want *w)
{
	told++;
}

static void on_failed(struct want *w, enum smtp_own why)
{
	failed++;
	reason = why;
}

static const struct want_ops ops = { .on_offers = on_offers, .on_failed = on_failed };

static struct want want_of(const char *name, uint8_t last)
{
	return (struct want){
		.ops = &ops, .name = name, .weight = 1, .sender = { .bytes = { 192, 0, 2, last }, .len = 4 }
	};
}

static void setup(void)
{
	worker = worker_create(0, "want");
	all = (struct wants){ 0 };
	step = (struct turn_end){ 0 };
	wants_init(&all, worker, &step);
	one = want_of("one.example", 1);
	other = want_of("other.example", 2);
	failed = told = 0;
}

static void teardown(void)
{
	want_nothing(&one);
	want_nothing(&other);
	turn_end_cancel(&step);
	worker_destroy(worker);
}

static bool has_step(void)
{
	const bool has = step.in.le_prev;

	turn_end_cancel(&step);
	return has;
}

START_TEST(each_new_want_asks_for_a_step)
{
	want_offers(&one, &all);
	ck_assert(has_step());
	ck_assert_int_eq(want_turn(&other, &all), 0);
	ck_assert(has_step());
	ck_assert_uint_eq(all.turns.count, 1);
}
END_TEST

START_TEST(all_fail_for_one_reason_whatever_they_wait_for)
{
	want_offers(&one, &all);
	ck_assert_int_eq(want_turn(&other, &all), 0);
	wants_fail(&all, SMTP_OWN_BACKEND_UNREACHABLE);
	ck_assert_uint_eq(failed, 2);
	ck_assert_int_eq(reason, SMTP_OWN_BACKEND_UNREACHABLE);
	ck_assert_int_eq(one.state, WANT_NOTHING);
	ck_assert_int_eq(other.state, WANT_NOTHING);
}
END_TEST

START_TEST(extensions_are_told_to_those_that_wait_for_them)
{
	want_offers(&one, &all);
	ck_assert_int_eq(want_turn(&other, &all), 0);
	wants_tell_offers(&all);
	ck_assert_uint_eq(told, 1);
	ck_assert_int_eq(other.state, WANT_TURN);
}
END_TEST

START_TEST(a_want_is_found_by_its_name)
{
	want_offers(&one, &all);
	ck_assert_int_eq(want_turn(&other, &all), 0);
	ck_assert_ptr_eq(wants_find_named(&all, "one.example"), &one);
	ck_assert_ptr_eq(wants_find_named(&all, "other.example"), &other);
	ck_assert_ptr_null(wants_find_named(&all, "third.example"));
	ck_assert(smtp_span_is(wants_first_name(&all), "other.example")); /* a turn comes before extensions */
	want_nothing(&other);
	ck_assert(smtp_span_is(wants_first_name(&all), "one.example"));
}
END_TEST

START_TEST(only_those_with_another_receiver_are_sent_there)
{
	other.roams = 1;
	ck_assert_int_eq(want_turn(&one, &all), 0);
	ck_assert_int_eq(want_turn(&other, &all), 0);
	wants_send_elsewhere(&all);
	ck_assert_uint_eq(failed, 1);
	ck_assert_int_eq(one.state, WANT_TURN);
	ck_assert_int_eq(other.state, WANT_NOTHING);
}
END_TEST

START_TEST(a_promise_is_given_back)
{
	struct onward o = { .promised = &one };

	ck_assert_int_eq(want_turn(&one, &all), 0);
	ck_assert_ptr_eq(turns_take(&all.turns), &one.turn);
	one.state = WANT_PROMISED;
	one.promised = &o;
	want_nothing(&one);
	ck_assert_ptr_null(o.promised);
	ck_assert_ptr_null(one.turn.holder);
}
END_TEST

START_TEST(the_receiver_has_no_words_about_our_own_memory)
{
	snprintf(all.said, sizeof all.said, "450 Busy");
	ck_assert_str_eq(want_said(&one, SMTP_OWN_OVERLOADED), "");
	want_offers(&one, &all);
	ck_assert_str_eq(want_said(&one, SMTP_OWN_BACKEND_UNREACHABLE), "450 Busy");
}
END_TEST

UNIT(want)
{
	const TTest *facts[] = {
		each_new_want_asks_for_a_step,
		all_fail_for_one_reason_whatever_they_wait_for,
		extensions_are_told_to_those_that_wait_for_them,
		a_want_is_found_by_its_name,
		only_those_with_another_receiver_are_sent_there,
		a_promise_is_given_back,
		the_receiver_has_no_words_about_our_own_memory,
	};
	TCase *tests = tcase_create("want");

	tcase_add_checked_fixture(tests, setup, teardown);
	return suite_run_case("want", tests, facts, SUITE_LEN(facts));
}
