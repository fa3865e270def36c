/* test_smtp_asked.c: facts of a mail whose owner is lost at its end: the successor asks the server for its fate. */
#include <string.h>

#include <sodium.h>

#include "tests/unit/sslagent/service/smtp/smtp_talk.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

static const char *const whole[] = { MAIL "\r\n", "RCPT TO:<b@x.example>\r\nDATA\r\n", "hello\r\n", ".\r\n", NULL };

static void asked(uint16_t epoch)
{
	in_content(&a);
	client_says(&a, ".\r\n");
	server_heard(&a, ".\r\n");
	ck_assert_int_eq(resume_at(&b, &a, epoch, SERVICE_RESUME_CUT, whole), 0);
	server_begins(&b, OFFERS);
	server_heard(&b, question((uint16_t)(epoch - 1)));
}

START_TEST(what_was_decided_is_told)
{
	asked(2);
	server_says(&b, "250-decided 250-2.0.0 Ok\r\n250 decided 250 2.0.0 queued\r\n");
	client_heard(&b, "250-2.0.0 Ok\r\n250 2.0.0 queued\r\n");
	ck_assert_int_eq(service_place(&b.s), SERVICE_CHECKPOINT);
	server_heard(&b, "");
	client_says(&b, "NOOP\r\n");
	server_heard(&b, "NOOP\r\n");
}
END_TEST

START_TEST(what_was_never_taken_is_said_again)
{
	asked(2);
	server_says(&b, "250 never\r\n");
	server_heard_group(&b, named(MAIL, 2, 2), "RCPT TO:<b@x.example>\r\nDATA\r\n");
	server_says(&b, "250 m\r\n250 r\r\n354 go\r\n");
	server_heard(&b, "hello\r\n.\r\n");
	server_says(&b, "250 taken\r\n");
	client_heard(&b, "250 taken\r\n");
}
END_TEST

START_TEST(what_nobody_knows_gets_421_and_is_not_said_again)
{
	static const char *const answers[] = { "250 unknown\r\n", "550 5.7.0 no\r\n", "250 decided\r\n",
		"250 decided 354 go\r\n" };

	asked(2);
	server_says(&b, answers[_i]);
	client_heard(&b, LOST);
	server_heard(&b, "");
	ck_assert_int_ne(service_is_over(&b.s), SERVICE_NOT_OVER);
}
END_TEST

START_TEST(every_name_that_it_may_have_is_asked_about)
{
	asked(4);
	server_says(&b, "250 never\r\n");
	server_heard(&b, question(2));
	server_says(&b, "250 never\r\n");
	server_heard(&b, question(1));
	server_says(&b, "250 decided 250 ok\r\n");
	client_heard(&b, "250 ok\r\n");
}
END_TEST

/* Of a mail with more owners, the newest eight are asked about, and it is said again only if no others can have it. */
START_TEST(no_more_names_than_eight_are_asked_about)
{
	asked(12);
	for (uint16_t epoch = 11; epoch > 4; epoch--) {
		server_says(&b, "250 never\r\n");
		server_heard(&b, question(epoch - 1));
	}
	server_says(&b, _i ? "250 never\r\n" : "250 decided 250 ok\r\n");
	client_heard(&b, _i ? LOST : "250 ok\r\n");
	client_heard_nothing(&b);
}
END_TEST

/* Epochs before the checkpoint do not matter, though the note is of one. */
START_TEST(a_mail_of_a_session_that_had_many_owners_is_asked_about)
{
	static const char *const begun[] = { MAIL "\r\n", NULL };
	struct owner c = { 0 };

	greeted(&a);
	ck_assert_int_eq(resume_at(&b, &a, 14, SERVICE_RESUME_CUT, begun), 0);
	server_begins(&b, OFFERS);
	server_heard(&b, named(MAIL, 14, 2));
	server_says(&b, "250 m\r\n");
	client_heard(&b, "250 m\r\n");
	client_says(&b, whole[1]);
	server_heard(&b, whole[1]);
	server_says(&b, "250 r\r\n354 go\r\n");
	client_heard(&b, "250 r\r\n");
	client_heard(&b, "354 go\r\n");
	ck_assert_int_eq(resume_at(&c, &b, 15, SERVICE_RESUME_CUT, whole), 0);
	server_begins(&c, OFFERS);
	for (uint16_t epoch = 14; _i && epoch >= 10; epoch--) {
		server_heard(&c, question(epoch));
		server_says(&c, "250 never\r\n");
	}
	if (_i) {
		server_heard_group(&c, named(MAIL, 15, 2), whole[1]);
	} else {
		server_heard(&c, question(14));
		server_says(&c, "250 decided 250 ok\r\n");
		client_heard(&c, "250 ok\r\n");
	}
	service_destroy(&c.s);
}
END_TEST

/* Also by the note of the one that asks. */
START_TEST(who_is_lost_while_it_asks_leaves_the_old_name)
{
	struct owner first;

	asked(2);
	first = b;
	b.s = (struct service){ 0 };
	service_destroy(&a.s);
	a.s = (struct service){ 0 };
	ck_assert_int_eq(resume_at(&b, &first, 3, SERVICE_RESUME_CUT, whole), 0);
	server_begins(&b, OFFERS);
	server_heard(&b, question(2));
	server_says(&b, "250 never\r\n");
	server_heard(&b, question(1));
	service_destroy(&first.s);
}
END_TEST

START_TEST(a_mail_whose_bytes_are_gone_is_asked_about_all_the_same)
{
	in_content(&a);
	ck_assert_int_eq(resume_at(&b, &a, 2, SERVICE_RESUME_BLIND, (const char *const[]){ "tail\r\n.\r\n", NULL }), 0);
	server_begins(&b, OFFERS);
	server_heard(&b, question(1));
	server_says(&b, _i ? "250 never\r\n" : "250 decided 250 ok\r\n");
	if (!_i)
		client_heard(&b, "250 ok\r\n");
	client_heard(&b, LOST);
	client_heard_nothing(&b);
}
END_TEST

/* The mail was taken, and the client has its reply; it waits for another one. */
START_TEST(the_reply_to_a_mail_is_not_given_a_second_time)
{
	in_content(&a);
	client_says(&a, ".\r\nNOOP\r\n");
	server_heard(&a, ".\r\nNOOP\r\n");
	server_says(&a, "250 first\r\n");
	client_heard(&a, "250 first\r\n");
	ck_assert_int_eq(resume_at(&b, &a, 2, SERVICE_RESUME_BLIND, (const char *const[]){ NULL }), 0);
	server_begins(&b, OFFERS);
	server_heard(&b, question(1));
	server_says(&b, "250 decided 250 first\r\n");
	client_heard(&b, LOST);
	client_heard_nothing(&b);
}
END_TEST

#define GROUP MAIL "\r\nRCPT TO:<b@x.example>\r\nBDAT 2 LAST\r\nhi"

/* The client's whole mail comes at once, but ends only when it has been told the replies to MAIL and RCPT. */
static void group_ends(struct owner *o)
{
	greeted(o);
	client_says(o, GROUP);
	server_heard_group(o, named(MAIL, 1, 2), "RCPT TO:<b@x.example>\r\n");
	server_says(o, "250 m\r\n250 r\r\n");
	client_heard(o, "250 m\r\n");
	server_heard(o, "");
	client_heard(o, "250 r\r\n");
	server_heard(o, "BDAT 2 LAST\r\nhi");
}

/* So whatever its owner leaves, the reply to it is the next one. */
START_TEST(a_mail_in_one_group_is_asked_about)
{
	static const char *const said[] = { GROUP, NULL };

	group_ends(&a);
	ck_assert_int_eq(resume_at(&b, &a, 2, _i ? SERVICE_RESUME_BLIND : SERVICE_RESUME_CUT, _i ? &said[1] : said), 0);
	server_begins(&b, OFFERS);
	server_heard(&b, question(1));
	server_says(&b, "250 decided 250 first\r\n");
	client_heard(&b, "250 first\r\n");
	if (_i)
		client_heard(&b, LOST);
	client_heard_nothing(&b);
}
END_TEST

/* The mail was taken; the replies before did not reach RAgent. */
START_TEST(the_reply_to_a_mail_is_not_given_to_a_command_before_its_end)
{
	group_ends(&a);
	a.sealed = 0;
	ck_assert_int_eq(resume_at(&b, &a, 2, SERVICE_RESUME_BLIND, (const char *const[]){ NULL }), 0);
	server_begins(&b, OFFERS);
	server_heard(&b, question(1));
	server_says(&b, "250 decided 250 first\r\n");
	client_heard(&b, LOST);
	client_heard_nothing(&b);
}
END_TEST

START_TEST(a_mail_begins_when_the_client_has_the_reply_to_the_one_before)
{
	in_content(&a);
	client_says(&a, ".\r\n" MAIL "\r\nRCPT TO:<b@x.example>\r\n");
	server_heard(&a, ".\r\n");
	server_says(&a, "250 first\r\n");
	server_heard(&a, "");
	client_heard(&a, "250 first\r\n");
	server_heard_group(&a, named_at(1, 5, strlen(".\r\n")), "RCPT TO:<b@x.example>\r\n");
}
END_TEST

START_TEST(a_server_that_does_not_remember_is_not_asked)
{
	own(&a, 1);
	client_says(&a, "EHLO client.example\r\n");
	server_says(&a, "220 backend\r\n");
	server_heard(&a, "EHLO client.example\r\n");
	server_says(&a, "250 backend\r\n");
	client_heard(&a, "250 mx.example\r\n");
	client_says(&a, MAIL "\r\nRCPT TO:<b@x.example>\r\nDATA\r\n");
	server_heard(&a, MAIL "\r\nRCPT TO:<b@x.example>\r\nDATA\r\n");
	server_says(&a, "250 m\r\n250 r\r\n354 go\r\n");
	client_heard(&a, "250 m\r\n");
	client_heard(&a, "250 r\r\n");
	client_heard(&a, "354 go\r\n");
	resume(&b, &a, (const char *const[]){ MAIL "\r\nRCPT TO:<b@x.example>\r\nDATA\r\n", "x\r\n.\r\n", NULL });
	client_heard(&b, LOST);
}
END_TEST

START_TEST(two_mails_in_one_group_are_asked_about_one_after_the_other)
{
	static const char *const said[] = { GROUP MAIL "\r\nRCPT TO:<b@x.example>\r\n", NULL };

	greeted(&a);
	client_says(&a, said[0]);
	service_given_to_backend(&a.s);
	server_says(&a, "250 m\r\n250 r\r\n");
	client_heard(&a, "250 m\r\n");
	client_heard(&a, "250 r\r\n");
	resume(&b, &a, said);
	server_begins(&b, OFFERS);
	server_heard(&b, question(1));
	server_says(&b, "250 decided 250 first\r\n");
	client_heard(&b, "250 first\r\n");
	const uint8_t *data;
	ck_assert_uint_gt(service_for_backend(&b.s, &data), 0); /* the second mail begins */
	ck_assert_mem_eq(data, MAIL, strlen(MAIL));
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, what_was_decided_is_told);
	tcase_add_test(t, what_was_never_taken_is_said_again);
	tcase_add_loop_test(t, what_nobody_knows_gets_421_and_is_not_said_again, 0, 4);
	tcase_add_test(t, every_name_that_it_may_have_is_asked_about);
	tcase_add_loop_test(t, no_more_names_than_eight_are_asked_about, 0, 2);
	tcase_add_loop_test(t, a_mail_of_a_session_that_had_many_owners_is_asked_about, 0, 2);
	tcase_add_test(t, who_is_lost_while_it_asks_leaves_the_old_name);
	tcase_add_loop_test(t, a_mail_whose_bytes_are_gone_is_asked_about_all_the_same, 0, 2);
	tcase_add_test(t, the_reply_to_a_mail_is_not_given_a_second_time);
	tcase_add_loop_test(t, a_mail_in_one_group_is_asked_about, 0, 2);
	tcase_add_test(t, the_reply_to_a_mail_is_not_given_to_a_command_before_its_end);
	tcase_add_test(t, a_mail_begins_when_the_client_has_the_reply_to_the_one_before);
	tcase_add_test(t, a_server_that_does_not_remember_is_not_asked);
	tcase_add_test(t, two_mails_in_one_group_are_asked_about_one_after_the_other);
}

UNIT(smtp_asked)
{
	return sodium_init() < 0 ? 1 : run_suite("smtp_asked", add);
}
