/* test_smtp_said_again.c: facts of a mail whose owner is lost before its end: the successor says it again. */
#include <string.h>

#include <sodium.h>

#include "tests/unit/sslagent/service/smtp/smtp_talk.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

static const char *const cut[] = { MAIL "\r\n", "RCPT TO:<b@x.example>\r\nDATA\r\n", "hello\r\n", NULL };

START_TEST(what_came_to_no_end_is_said_again_under_a_new_name)
{
	in_content(&a);
	resume(&b, &a, cut);
	server_begins(&b, OFFERS);
	server_heard_group(&b, named(MAIL, 2, 2), "RCPT TO:<b@x.example>\r\nDATA\r\n");
	server_says(&b, "250 other words\r\n250 r\r\n354 go\r\n");
	server_heard(&b, "hello\r\n");
	client_heard_nothing(&b);
	client_says(&b, ".\r\n");
	server_heard(&b, ".\r\n");
	server_says(&b, "250 taken\r\n");
	client_heard(&b, "250 taken\r\n");
	ck_assert_int_eq(service_place(&b.s), SERVICE_CHECKPOINT);
}
END_TEST

START_TEST(a_server_without_pipelining_hears_one_after_the_other)
{
	own(&a, 1);
	client_says(&a, "HELO client.example\r\n");
	server_says(&a, "220 backend\r\n");
	server_heard(&a, "HELO client.example\r\n");
	server_says(&a, "250 backend\r\n");
	client_heard(&a, "250 backend\r\n");
	client_says(&a, MAIL "\r\n");
	server_heard(&a, MAIL "\r\n");
	server_says(&a, "250 m\r\n");
	client_heard(&a, "250 m\r\n");
	resume(&b, &a, (const char *const[]){ MAIL "\r\n", "RCPT TO:<b@x.example>\r\n", NULL });
	server_says(&b, "220 another\r\n");
	server_heard(&b, "HELO client.example\r\n");
	server_says(&b, "250 another\r\n");
	server_heard(&b, MAIL "\r\n");
	server_says(&b, "250 m\r\n");
	server_heard(&b, "RCPT TO:<b@x.example>\r\n");
	client_heard_nothing(&b);
	server_says(&b, "250 r\r\n");
	client_heard(&b, "250 r\r\n");
}
END_TEST

/* ETRN: the document of its extension allows no other place (RFC 2920 3.1). */
static const char *const last[] = { "NOOP\r\n", "VRFY x\r\n", "EXPN x\r\n", "ETRN x\r\n" };
enum { LAST = sizeof last / sizeof last[0] };

START_TEST(behind_a_command_that_ends_a_group_the_others_wait)
{
	greeted(&a);
	client_says(&a, MAIL "\r\n");
	server_says(&a, "250 m\r\n");
	client_heard(&a, "250 m\r\n");
	client_says(&a, last[_i]);
	server_says(&a, "250 n\r\n");
	client_heard(&a, "250 n\r\n");
	client_says(&a, "RCPT TO:<b@x.example>\r\n");
	resume(&b, &a, (const char *const[]){ MAIL "\r\n", last[_i], "RCPT TO:<b@x.example>\r\n", NULL });
	server_begins(&b, OFFERS);
	server_heard_group(&b, named(MAIL, 2, 2), last[_i]);
	server_says(&b, "250 m\r\n");
	server_heard(&b, "");
	server_says(&b, "250 n\r\n");
	server_heard(&b, "RCPT TO:<b@x.example>\r\n");
	client_heard_nothing(&b);
	server_says(&b, "250 r\r\n");
	client_heard(&b, "250 r\r\n");
}
END_TEST

/* Nothing waited when its record came. */
START_TEST(what_the_client_says_next_waits_for_the_end_of_a_group_too)
{
	greeted(&a);
	client_says(&a, MAIL "\r\n");
	server_says(&a, "250 m\r\n");
	client_heard(&a, "250 m\r\n");
	client_says(&a, "NOOP\r\n");
	server_says(&a, "250 n\r\n");
	client_heard(&a, "250 n\r\n");
	resume(&b, &a, (const char *const[]){ MAIL "\r\n", "NOOP\r\n", NULL });
	server_begins(&b, OFFERS);
	server_heard_group(&b, named(MAIL, 2, 2), "NOOP\r\n");
	client_says(&b, "RCPT TO:<b@x.example>\r\n");
	server_heard(&b, "");
	server_says(&b, "250 m\r\n");
	server_heard(&b, "");
	server_says(&b, "250 n\r\n");
	server_heard(&b, "RCPT TO:<b@x.example>\r\n");
	server_says(&b, "250 r\r\n");
	client_heard(&b, "250 r\r\n");
}
END_TEST

START_TEST(a_reply_of_another_class_ends_it)
{
	in_content(&a);
	resume(&b, &a, cut);
	server_begins(&b, OFFERS);
	server_heard_group(&b, named(MAIL, 2, 2), "RCPT TO:<b@x.example>\r\nDATA\r\n");
	server_says(&b, "450 not now\r\n");
	client_heard(&b, CHANGED);
	ck_assert_int_ne(service_is_over(&b.s), SERVICE_NOT_OVER);
}
END_TEST

START_TEST(a_refusal_that_the_client_has_got_is_expected_again)
{
	greeted(&a);
	client_says(&a, MAIL "\r\n");
	server_heard(&a, named(MAIL, 1, 2));
	server_says(&a, "250 m\r\n");
	client_heard(&a, "250 m\r\n");
	client_says(&a, "RCPT TO:<b@x.example>\r\n");
	server_heard(&a, "RCPT TO:<b@x.example>\r\n");
	server_says(&a, "550 no\r\n");
	client_heard(&a, "550 no\r\n");
	resume(&b, &a, (const char *const[]){ MAIL "\r\n", "RCPT TO:<b@x.example>\r\n", NULL });
	server_begins(&b, OFFERS);
	server_heard_group(&b, named(MAIL, 2, 2), "RCPT TO:<b@x.example>\r\n");
	server_says(&b, "250 m\r\n");
	server_says(&b, _i ? "250 yes\r\n" : "554 no\r\n");
	if (_i)
		client_heard(&b, CHANGED);
	else
		client_heard_nothing(&b);
}
END_TEST

#define TWO_OF_THREE MAIL "\r\nRCPT TO:<b@x.example>\r\nRCPT TO:<c@x.example>\r\n"

START_TEST(no_chunk_is_said_again_before_the_replies_in_front_of_it_were_compared)
{
	static const char *const said[] = { TWO_OF_THREE, "BDAT 2 LAST\r\nhi", NULL };

	greeted(&a);
	client_says(&a, said[0]);
	service_given_to_backend(&a.s);
	server_says(&a, "250 m\r\n250 r\r\n550 no\r\n");
	client_heard(&a, "250 m\r\n");
	client_heard(&a, "250 r\r\n");
	client_heard(&a, "550 no\r\n");
	client_says(&a, said[1]);
	server_heard(&a, said[1]);
	resume(&b, &a, said);
	server_begins(&b, OFFERS);
	server_heard(&b, question(1));
	server_says(&b, "250 never\r\n");
	server_heard_group(&b, named(MAIL, 2, 2), &TWO_OF_THREE[strlen(MAIL "\r\n")]);
	server_says(&b, "250 m\r\n250 r\r\n");
	server_heard(&b, "");
	server_says(&b, _i ? "250 yes\r\n" : "550 no\r\n");
	server_heard(&b, _i ? "" : said[1]);
	if (_i)
		client_heard(&b, CHANGED);
	else
		client_heard_nothing(&b);
}
END_TEST

#define ONE_RCPT "RCPT TO:<b@x.example>\r\n"
#define ONE_MAIL MAIL "\r\n" ONE_RCPT "BDAT 2 LAST\r\nhi"

/* Up to the reply to its end. What the client sent behind it goes on then. */
static void one_mail(struct owner *o)
{
	server_heard_group(o, named(MAIL, 1, 2), ONE_RCPT);
	server_says(o, "250 m\r\n250 r\r\n");
	client_heard(o, "250 m\r\n");
	client_heard(o, "250 r\r\n");
	service_given_to_backend(&o->s);
	server_says(o, "250 first\r\n");
	client_heard(o, "250 first\r\n");
}

START_TEST(a_mail_in_chunks_that_was_answered_is_not_said_again)
{
	static const char *const said[] = { ONE_MAIL "NOOP\r\n", NULL };

	greeted(&a);
	client_says(&a, said[0]);
	one_mail(&a);
	resume(&b, &a, said);
	server_begins(&b, OFFERS);
	server_heard(&b, "NOOP\r\n");
	client_heard_nothing(&b);
}
END_TEST

/* Two owners in a row are lost; the second one began in the middle of a record. */
START_TEST(a_mail_in_the_middle_of_a_record_has_the_same_name_for_all)
{
	static const char *const said[] = { ONE_MAIL ONE_MAIL, NULL };
	const size_t second = strlen(ONE_MAIL);
	struct owner c = { 0 };

	greeted(&a);
	client_says(&a, said[0]);
	one_mail(&a);
	server_heard_group(&a, named_at(1, 2, second), ONE_RCPT);
	resume(&b, &a, said);
	server_begins(&b, OFFERS);
	server_heard(&b, question_at(1, 2, second));
	server_says(&b, "250 never\r\n");
	server_heard_group(&b, named_at(2, 2, second), ONE_RCPT);
	ck_assert_int_eq(resume_at(&c, &b, 3, SERVICE_RESUME_CUT, said), 0);
	server_begins(&c, OFFERS);
	server_heard(&c, question_at(2, 2, second));
	service_destroy(&c.s);
}
END_TEST

START_TEST(a_password_is_not_said_again)
{
	greeted(&a);
	client_says(&a, "AUTH PLAIN AGEAYg==\r\n");
	server_heard(&a, "AUTH PLAIN AGEAYg==\r\n");
	ck_assert_int_eq(
		resume_at(&b, &a, 2, SERVICE_RESUME_CUT, (const char *const[]){ "AUTH PLAIN AGEAYg==\r\n", NULL }), 0);
	client_heard(&b, LOST);
	service_destroy(&b.s);
	server_says(&a, "235 ok\r\n");
	client_heard(&a, "235 ok\r\n");
	ck_assert(!service_may_begin_anew(&a.s));
	ck_assert_int_eq(resume_at(&b, &a, 2, SERVICE_RESUME_AT_CHECKPOINT, (const char *const[]){ NULL }), 0);
	client_heard(&b, LOST);
}
END_TEST

/* Behind a checkpoint, where the session has only the note, too. */
START_TEST(a_verb_of_an_extension_that_nobody_knows_counts_as_auth)
{
	own(&a, 1);
	client_says(&a, "EHLO client.example\r\n");
	server_begins(&a, "250-backend\r\n250 XFOO\r\n");
	client_heard(&a, "250-mx.example\r\n250 XFOO\r\n");
	ck_assert_int_eq(service_place(&a.s), SERVICE_CHECKPOINT);
	client_says(&a, "XFOO 1\r\n");
	server_heard(&a, "XFOO 1\r\n");
	ck_assert_int_eq(resume_at(&b, &a, 2, SERVICE_RESUME_CUT, (const char *const[]){ "XFOO 1\r\n", NULL }), 0);
	client_heard(&b, LOST);
	service_destroy(&b.s);
	server_says(&a, "250 ok\r\n");
	client_heard(&a, "250 ok\r\n");
	ck_assert_int_eq(service_place(&a.s), SERVICE_CHECKPOINT);
	ck_assert(!service_may_begin_anew(&a.s));
	ck_assert_int_eq(resume_at(&b, &a, 2, SERVICE_RESUME_AT_CHECKPOINT, (const char *const[]){ NULL }), 0);
	client_heard(&b, LOST);
}
END_TEST

START_TEST(replies_that_took_several_records_cannot_be_told_apart)
{
	greeted(&a);
	client_says(&a, "HELP\r\n" MAIL "\r\n");
	server_says(&a, "214 very long\r\n");
	service_splits_reply(&a.s);
	client_heard(&a, "214 very long\r\n");
	ck_assert_int_lt(resume_at(&b, &a, 2, SERVICE_RESUME_CUT, (const char *const[]){ NULL }), 0);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, what_came_to_no_end_is_said_again_under_a_new_name);
	tcase_add_test(t, a_server_without_pipelining_hears_one_after_the_other);
	tcase_add_loop_test(t, behind_a_command_that_ends_a_group_the_others_wait, 0, LAST);
	tcase_add_test(t, what_the_client_says_next_waits_for_the_end_of_a_group_too);
	tcase_add_test(t, a_reply_of_another_class_ends_it);
	tcase_add_loop_test(t, a_refusal_that_the_client_has_got_is_expected_again, 0, 2);
	tcase_add_loop_test(t, no_chunk_is_said_again_before_the_replies_in_front_of_it_were_compared, 0, 2);
	tcase_add_test(t, a_mail_in_chunks_that_was_answered_is_not_said_again);
	tcase_add_test(t, a_mail_in_the_middle_of_a_record_has_the_same_name_for_all);
	tcase_add_test(t, a_password_is_not_said_again);
	tcase_add_test(t, a_verb_of_an_extension_that_nobody_knows_counts_as_auth);
	tcase_add_test(t, replies_that_took_several_records_cannot_be_told_apart);
}

UNIT(smtp_said_again)
{
	return sodium_init() < 0 ? 1 : run_suite("smtp_said_again", add);
}
