/* test_filter.c: facts of the hooks of one transaction together: their order, and those that fail. The test is the
 * hooks: milters that want to hear as little as they may. */
#include "smtpproxy/hooks/filter.h"

#include <string.h>
#include <unistd.h>

#include "milter_peer.h"
#include "tests/unit/unit.h"

#define ONLY_MAIL (MILTER_NO_CONNECT | MILTER_NO_HELO)

static void ask_mail(void)
{
	asks(FILTER_MAIL, "s@a.example", "");
}

/* Peer @n is asked about MAIL. */
static void hears_mail(unsigned n)
{
	peer_accept(n);
	peer_hears(n, 'O');
	peer_says_options(n, 6, MILTER_ACTIONS, ONLY_MAIL);
	peer_hears(n, 'M');
}

static void agrees(unsigned n)
{
	peer_says(n, 'c', NULL, 0);
}

static void begin_agreed(const char *names)
{
	filter_begin(names);
	ask_mail();
	for (; *names; names++) {
		hears_mail((unsigned)(*names - 'a'));
		agrees((unsigned)(*names - 'a'));
	}
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
}

static void ends_with(enum filter_verdict expected, const char *beginning)
{
	ck_assert_int_eq(verdict(), expected);
	ck_assert_msg(strncmp(reply, beginning, strlen(beginning)) == 0, "reply: %s", reply);
}

START_TEST(hooks_are_asked_in_the_order_of_the_listener)
{
	filter_begin("ba");
	ask_mail();
	hears_mail(1);
	turns(5);
	ck_assert_int_eq(peer_is_connected(0), 0);
	agrees(1);
	hears_mail(0);
	turns(5);
	ck_assert_uint_eq(verdicts, 0);
	agrees(0);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
}
END_TEST

START_TEST(the_first_that_refuses_decides)
{
	filter_begin("ab");
	ask_mail();
	hears_mail(0);
	peer_says(0, 'r', NULL, 0);
	ends_with(FILTER_REFUSES, "550 ");
	turns(5);
	ck_assert_int_eq(peer_is_connected(1), 0);
	ck_assert_uint_eq(hooks_find(&hooks, "b")->asked, 0);
}
END_TEST

START_TEST(a_discarded_transaction_is_not_shown_to_the_next_hook)
{
	filter_begin("ab");
	ask_mail();
	hears_mail(0);
	peer_says(0, 'd', NULL, 0);
	ck_assert_int_eq(verdict(), FILTER_DISCARDS);
	turns(5);
	ck_assert_int_eq(peer_is_connected(1), 0);
}
END_TEST

START_TEST(the_consent_of_one_does_not_bind_the_other)
{
	filter_begin("ab");
	ask_mail();
	hears_mail(0);
	peer_says(0, 'a', NULL, 0);
	hears_mail(1);
	agrees(1);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	ck_assert_int_eq(filter_holds(filter), 1);
	asks(FILTER_RCPT, "r@b.example", "");
	peer_hears(1, 'R');
	peer_says(1, 't', NULL, 0);
	ends_with(FILTER_REFUSES, "451 4.7.1");
}
END_TEST

START_TEST(the_second_hook_sees_the_changes_of_the_first)
{
	static const char text[] = "A: 1\r\n.\r\n";

	begin_agreed("ab");
	message_is(text, sizeof text - 1);
	asks(FILTER_MESSAGE, NULL, NULL);
	peer_hears(0, 'L');
	agrees(0);
	peer_hears(0, 'N');
	agrees(0);
	peer_hears(0, 'E');
	peer_says(0, 'i', "\0\0\0\0B\0002\0", 8);
	agrees(0);
	peer_hears(1, 'L');
	ck_assert_str_eq(packet.content, "B");
	agrees(1);
	peer_hears(1, 'L');
	ck_assert_str_eq(packet.content, "A");
}
END_TEST

START_TEST(each_transaction_has_connections_of_its_own)
{
	begin_agreed("a");
	filter_begin("a");
	ck_assert_int_eq(peer_is_connected(0), 0);
	ask_mail();
	hears_mail(0);
	ck_assert_uint_eq(hooks_find(&hooks, "a")->asked, 2);
}
END_TEST

START_TEST(a_listener_without_hooks_agrees)
{
	filter_begin("");
	ck_assert_int_eq(filter_holds(filter), 0);
	ask_mail();
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
}
END_TEST

/* Failures */

static const struct {
	enum smtpproxy_on_failure on_failure;
	enum filter_verdict verdict;
	const char *reply;
} policies[] = {
	{ SMTPPROXY_TEMPFAIL, FILTER_REFUSES, "451 4.3.0 A filter does not answer, try again later\r\n" },
	{ SMTPPROXY_REJECT, FILTER_REFUSES, "554 5.3.0 A filter does not answer\r\n" },
	{ SMTPPROXY_ACCEPT, FILTER_CONTINUES, "" },
};

START_TEST(on_failure_says_what_becomes_of_the_mail)
{
	for (size_t i = 0; i < FACTS_LEN(policies); i++) {
		hook_confs[0].on_failure = policies[i].on_failure;
		filter_begin("a");
		hooks_find(&hooks, "a")->state = HOOK_GOOD;
		ask_mail();
		peer_accept(0);
		peer_close(0);
		ends_with(policies[i].verdict, policies[i].reply);
	}
}
END_TEST

START_TEST(a_hook_that_cannot_be_reached_fails)
{
	struct sockaddr_storage nowhere;

	close(socket_listen(OVER_TCP4, &nowhere));
	hook_confs[0].address = nowhere;
	filter_begin("a");
	ask_mail();
	ends_with(FILTER_REFUSES, "451 4.3.0");
	ck_assert_int_eq(address_parse("unix:/nonexistent/socket", &hook_confs[0].address), 0);
	filter_begin("a");
	hooks_find(&hooks, "a")->state = HOOK_GOOD;
	ask_mail();
	ends_with(FILTER_REFUSES, "451 4.3.0");
	ck_assert_uint_eq(counters.hooks_failed, 2);
}
END_TEST

START_TEST(one_that_may_fail_leaves_the_verdict_to_the_next)
{
	hook_confs[0].on_failure = SMTPPROXY_ACCEPT;
	filter_begin("ab");
	ask_mail();
	peer_accept(0);
	peer_close(0);
	hears_mail(1);
	peer_says(1, 'r', NULL, 0);
	ends_with(FILTER_REFUSES, "550 5.7.1");
}
END_TEST

START_TEST(the_next_transaction_does_not_wait_for_a_hook_that_has_just_failed)
{
	filter_begin("a");
	ask_mail();
	peer_accept(0);
	peer_close(0);
	ends_with(FILTER_REFUSES, "451 4.3.0");
	filter_begin("a");
	ask_mail();
	ends_with(FILTER_REFUSES, "451 4.3.0");
	ck_assert_int_eq(peer_is_connected(0), 0);
	ck_assert_uint_eq(counters.hooks_failed, 1);
}
END_TEST

START_TEST(one_transaction_tries_it_after_its_rest_and_its_answer_makes_it_good)
{
	hook_failed(&hooks, hooks_find(&hooks, "a"), "a test");
	hooks_find(&hooks, "a")->rests_until_ms = worker_now_ms(w);
	filter_begin("a");
	ask_mail();
	hears_mail(0);
	ck_assert_int_eq(hooks_find(&hooks, "a")->state, HOOK_TRIED);
	agrees(0);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	ck_assert_int_eq(hooks_find(&hooks, "a")->state, HOOK_GOOD);
}
END_TEST

START_TEST(a_trial_that_nobody_waits_for_any_more_leaves_it_to_the_next_one)
{
	hook_failed(&hooks, hooks_find(&hooks, "a"), "a test");
	hooks_find(&hooks, "a")->rests_until_ms = worker_now_ms(w);
	filter_begin("a");
	ask_mail();
	hears_mail(0);
	filter_begin("a");
	ask_mail();
	hears_mail(0);
	agrees(0);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
}
END_TEST

START_TEST(a_hook_that_is_lost_between_questions_fails_each_later_one)
{
	begin_agreed("a");
	peer_close(0);
	wait_until(counters.hooks_failed == 1);
	for (unsigned i = 0; i < 2; i++) {
		asks(FILTER_RCPT, "r@b.example", "");
		ends_with(FILTER_REFUSES, "451 4.3.0");
	}
	ck_assert_int_eq(peer_is_connected(0), 0);
	ck_assert_uint_eq(counters.hooks_failed, 1);
}
END_TEST

START_TEST(one_that_may_fail_and_is_lost_between_questions_is_done_without)
{
	hook_confs[0].on_failure = SMTPPROXY_ACCEPT;
	begin_agreed("ab");
	peer_close(0);
	wait_until(counters.hooks_failed == 1);
	asks(FILTER_RCPT, "r@b.example", "");
	peer_hears(1, 'R');
	agrees(1);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
}
END_TEST

/* Time and ends */

START_TEST(all_hooks_share_the_time_of_one_question)
{
	uint64_t first_ms;

	filter_facts.most_ms[FILTER_MAIL] = 10000;
	hook_confs[0].on_failure = SMTPPROXY_ACCEPT;
	filter_begin("ab");
	ask_mail();
	first_ms = limit_ms(0);
	ck_assert_uint_le(first_ms, worker_now_ms(w) + 10010);
	wait_until(worker_now_ms(w) > first_ms - 10000 + 30);
	is_late(0);
	peer_accept(1);
	peer_hears(1, 'O');
	ck_assert_uint_le(limit_ms(1), first_ms + 10);
	is_late(1);
	ends_with(FILTER_REFUSES, "451 4.3.0");
	ck_assert_uint_eq(counters.hooks_failed, 2);
}
END_TEST

START_TEST(a_hook_that_is_not_asked_has_no_time_limit)
{
	begin_agreed("a");
	ck_assert_uint_eq(limit_ms(0), 0);
	asks(FILTER_RCPT, "r@b.example", "");
	ck_assert_uint_ne(limit_ms(0), 0);
	peer_hears(0, 'R');
	agrees(0);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	ck_assert_uint_eq(limit_ms(0), 0);
}
END_TEST

START_TEST(who_has_left_gets_no_verdict)
{
	filter_begin("a");
	ask_mail();
	hears_mail(0);
	peer_says(0, 'r', NULL, 0);
	filter_leave(filter);
	filter = NULL;
	ck_assert_int_eq(read_to_end(peer_fd(0)) <= 0, 1);
	ck_assert_uint_eq(verdicts, 0);
	filter_begin("");
	ask_mail(); /* its verdict is due at the end of this turn */
	filter_leave(filter);
	filter = NULL;
	turns(3);
	ck_assert_uint_eq(verdicts, 0);
}
END_TEST

UNIT(filter)
{
	const TTest *const facts[] = {
		hooks_are_asked_in_the_order_of_the_listener,
		the_first_that_refuses_decides,
		a_discarded_transaction_is_not_shown_to_the_next_hook,
		the_consent_of_one_does_not_bind_the_other,
		the_second_hook_sees_the_changes_of_the_first,
		each_transaction_has_connections_of_its_own,
		a_listener_without_hooks_agrees,
		on_failure_says_what_becomes_of_the_mail,
		a_hook_that_cannot_be_reached_fails,
		one_that_may_fail_leaves_the_verdict_to_the_next,
		the_next_transaction_does_not_wait_for_a_hook_that_has_just_failed,
		one_transaction_tries_it_after_its_rest_and_its_answer_makes_it_good,
		a_trial_that_nobody_waits_for_any_more_leaves_it_to_the_next_one,
		a_hook_that_is_lost_between_questions_fails_each_later_one,
		one_that_may_fail_and_is_lost_between_questions_is_done_without,
		all_hooks_share_the_time_of_one_question,
		a_hook_that_is_not_asked_has_no_time_limit,
		who_has_left_gets_no_verdict,
	};
	TCase *all = tcase_create("filter");

	tcase_add_checked_fixture(all, hooks_setup, hooks_teardown);
	return suite_run_case("filter", all, facts, FACTS_LEN(facts));
}
