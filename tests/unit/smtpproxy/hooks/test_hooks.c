/* test_hooks.c: facts of which hook may be asked, after a failure and after a change of the configuration. */
#include "smtpproxy/hooks/hooks.h"

#include <string.h>

#include "hook_peer.h"
#include "tests/unit/unit.h"

static struct hook *a(void)
{
	return hooks_find(&hooks, "a");
}

static void loses(void)
{
	hook_failed(&hooks, a(), "a test");
}

static void rest_is_over(void)
{
	a()->rests_until_ms = worker_now_ms(w);
}

START_TEST(a_good_hook_may_be_asked_by_all)
{
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(hook_may_be_asked(&hooks, a()), 1);
}
END_TEST

START_TEST(a_hook_that_failed_is_left_alone_for_its_rest)
{
	loses();
	ck_assert_int_eq(hook_may_be_asked(&hooks, a()), 0);
	ck_assert_uint_eq(a()->rests_until_ms, worker_now_ms(w) + HOOK_REST_MS);
	a()->rests_until_ms = worker_now_ms(w) + 1;
	ck_assert_int_eq(hook_may_be_asked(&hooks, a()), 0);
}
END_TEST

START_TEST(one_hook_that_failed_does_not_silence_another)
{
	loses();
	ck_assert_int_eq(hook_may_be_asked(&hooks, hooks_find(&hooks, "b")), 1);
}
END_TEST

START_TEST(after_its_rest_one_call_tries_it)
{
	loses();
	rest_is_over();
	ck_assert_int_eq(hook_may_be_asked(&hooks, a()), 1);
	ck_assert_int_eq(hook_may_be_asked(&hooks, a()), 0);
}
END_TEST

START_TEST(an_answer_makes_it_good_again)
{
	loses();
	rest_is_over();
	ck_assert_int_eq(hook_may_be_asked(&hooks, a()), 1);
	hook_answered(a());
	ck_assert_int_eq(hook_may_be_asked(&hooks, a()), 1);
	ck_assert_int_eq(hook_may_be_asked(&hooks, a()), 1);
}
END_TEST

START_TEST(a_trial_that_fails_begins_another_rest)
{
	loses();
	rest_is_over();
	ck_assert_int_eq(hook_may_be_asked(&hooks, a()), 1);
	loses();
	ck_assert_int_eq(hook_may_be_asked(&hooks, a()), 0);
	rest_is_over();
	ck_assert_int_eq(hook_may_be_asked(&hooks, a()), 1);
}
END_TEST

START_TEST(failures_are_counted)
{
	loses();
	loses();
	ck_assert_uint_eq(a()->failed, 2);
	ck_assert_uint_eq(hooks_find(&hooks, "b")->failed, 0);
	ck_assert_uint_eq(counters.hooks_failed, 2);
}
END_TEST

START_TEST(a_new_file_keeps_what_is_known_of_a_hook)
{
	static char name[] = "a";
	struct smtpproxy_hook again = { .name = name, .timeout_ms = 5 };
	const struct conf_smtpproxy file = { .hooks = &again, .hook_count = 1 };
	struct hook *before = a();

	loses();
	ck_assert_int_eq(hooks_prepare(&hooks, &file), 0);
	ck_assert_ptr_eq(a(), before);
	ck_assert_ptr_eq(a()->conf, &hook_confs[0]); /* it does not count yet */
	hooks_follow(&hooks, &file);
	ck_assert_ptr_eq(a()->conf, &again);
	ck_assert_int_eq(a()->state, HOOK_RESTS);
	ck_assert_uint_eq(a()->failed, 1);
}
END_TEST

START_TEST(a_hook_that_the_new_file_does_not_name_stays_for_sessions_of_before)
{
	static char name[] = "c";
	struct smtpproxy_hook other = { .name = name };
	const struct conf_smtpproxy file = { .hooks = &other, .hook_count = 1 };

	ck_assert_int_eq(hooks_prepare(&hooks, &file), 0);
	ck_assert_ptr_null(hooks_find(&hooks, "c")->conf);
	hooks_follow(&hooks, &file);
	ck_assert_ptr_eq(hooks_find(&hooks, "c")->conf, &other);
	ck_assert_ptr_eq(a()->conf, &hook_confs[0]);
}
END_TEST

START_TEST(each_state_has_a_name)
{
	static const char *const names[] = { "good", "rests", "is tried" };

	for (enum hook_state s = HOOK_GOOD; s <= HOOK_TRIED; s++)
		ck_assert_str_eq(hook_state_name(s), names[s]);
}
END_TEST

UNIT(hooks)
{
	const TTest *const facts[] = {
		a_good_hook_may_be_asked_by_all,
		a_hook_that_failed_is_left_alone_for_its_rest,
		one_hook_that_failed_does_not_silence_another,
		after_its_rest_one_call_tries_it,
		an_answer_makes_it_good_again,
		a_trial_that_fails_begins_another_rest,
		failures_are_counted,
		a_new_file_keeps_what_is_known_of_a_hook,
		a_hook_that_the_new_file_does_not_name_stays_for_sessions_of_before,
		each_state_has_a_name,
	};
	TCase *all = tcase_create("hooks");

	tcase_add_checked_fixture(all, hooks_setup, hooks_teardown);
	return suite_run_case("hooks", all, facts, FACTS_LEN(facts));
}
