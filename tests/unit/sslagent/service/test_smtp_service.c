/* test_smtp_service.c: facts of service smtp between a client and a server that the test plays: what each of them
 * hears, where a checkpoint is, and what a successor does of which the lost owner left only its note. */
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "conf/conf.h"
#include "sslagent/counters.h"
#include "sslagent/service/service.h"
#include "tests/unit/sslagent/suite_of.h"

#define LOST    "421 4.3.2 This server was lost and another took over, try again\r\n"
#define CHANGED "421 4.3.2 The mail server behind has changed, try again\r\n"

static char host[] = "mx.example";
static struct conf_listener listener;
static struct service_blocks blocks;
static struct agent_counters *counters;

/* An owner. */
static struct owner {
	struct service s;
	uint64_t record;
	unsigned sealed; /* replies since the checkpoint, as RAgent counts them */
	uint8_t note[SERVICE_NOTE_MAX];
	size_t note_len;
} a, b;

static void setup(void)
{
	listener = (struct conf_listener){ .name = host, .service = CONF_SMTP, .smtp = { .hostname = host } };
	service_blocks_init(&blocks);
	counters = agent_counters_create(1);
	counters_use(counters_of(counters, 0));
}

static void teardown(void)
{
	service_destroy(&a.s);
	service_destroy(&b.s);
	service_blocks_clear(&blocks);
	counters_use(NULL);
	agent_counters_destroy(counters);
}

static void own(struct owner *o, uint16_t epoch)
{
	static const uint8_t id[2] = { 0x0a, 0x1b };
	const struct service_owner owner = {
		.id = id, .id_len = sizeof id, .epoch = epoch, .client = "192.0.2.1", .client_port = 99
	};

	service_destroy(&o->s);
	*o = (struct owner){ 0 };
	service_init(&o->s, CONF_SMTP, &blocks);
	service_of_listener(&o->s, &listener);
	ck_assert_int_eq(service_own(&o->s, &owner), 0);
}

/* As a connection does before anything is seen outside. */
static void leave_note(struct owner *o)
{
	uint8_t note[SERVICE_NOTE_MAX];
	const size_t len = service_note(&o->s, note);

	if (len == 0)
		return;
	memcpy(o->note, note, len);
	o->note_len = len;
}

static void client_says(struct owner *o, const char *words)
{
	service_at_record(&o->s, ++o->record);
	service_from_client(&o->s, (const uint8_t *)words, strlen(words));
	leave_note(o);
	if (service_wants_backend(&o->s))
		ck_assert_int_eq(service_backend_begins(&o->s), 0);
}

static void server_says(struct owner *o, const char *words)
{
	service_backend_says(&o->s, (const uint8_t *)words, strlen(words));
}

static void server_heard(struct owner *o, const char *words)
{
	const uint8_t *data;
	const size_t len = service_for_backend(&o->s, &data);

	leave_note(o);
	ck_assert_uint_eq(len, strlen(words));
	ck_assert_mem_eq(data ? data : (const uint8_t *)"", words, len);
	service_given_to_backend(&o->s);
}

static void server_heard_group(struct owner *o, const char *first, const char *others)
{
	char all[1000];

	snprintf(all, sizeof all, "%s%s", first, others);
	server_heard(o, all);
}

/* One record. */
static void client_heard(struct owner *o, const char *words)
{
	const uint8_t *data;
	const size_t len = service_for_client(&o->s, &data);

	leave_note(o);
	ck_assert_uint_gt(len, 0);
	ck_assert_msg(len == strlen(words) && memcmp(data, words, len) == 0, "%.*s", (int)len, data);
	service_from_backend(&o->s, data, len);
	o->sealed++;
	if (service_place(&o->s) != SERVICE_CHECKPOINT)
		return;
	service_at_checkpoint(&o->s);
	o->sealed = 0;
}

static void client_heard_nothing(struct owner *o)
{
	const uint8_t *data;

	ck_assert_uint_eq(service_for_client(&o->s, &data), 0);
}

#define OFFERS "250-backend\r\n250-SIZE 1000\r\n250-PIPELINING\r\n250-CHUNKING\r\n250 XCSSLTX 5f\r\n"
#define SHOWN  "250-mx.example\r\n250-SIZE 1000\r\n250-PIPELINING\r\n250 CHUNKING\r\n"

static void greeted(struct owner *o)
{
	own(o, 1);
	client_says(o, "EHLO client.example\r\n");
	server_heard(o, "");
	server_says(o, "220 backend\r\n");
	server_heard(o, "EHLO client.example\r\n");
	server_says(o, OFFERS);
	client_heard(o, SHOWN);
}

#define MAIL "MAIL FROM:<a@x.example>"

/* The number of a mail in an epoch: its MAIL begins @from bytes behind the beginning of record @record. */
static unsigned long long number_of(uint16_t epoch, uint64_t record, size_t from)
{
	return (unsigned long long)((uint64_t)epoch << 48 | record << 14 | (from + strlen(MAIL "\r\n") - 1));
}

static const char *named_at(uint16_t epoch, uint64_t record, size_t from)
{
	static char line[200];

	snprintf(line, sizeof line, MAIL " XCSSLTX=0a1b/%llu\r\n", number_of(epoch, record, from));
	return line;
}

/* The first one of record @record. */
static const char *named(const char *command, uint16_t epoch, uint64_t record)
{
	return named_at(epoch, record, 0);
}

/* MAIL in record 2, RCPT, DATA, and the content up to its dot. */
static void in_content(struct owner *o)
{
	greeted(o);
	client_says(o, MAIL "\r\n");
	server_heard(o, named(MAIL, 1, 2));
	server_says(o, "250 m\r\n");
	client_heard(o, "250 m\r\n");
	client_says(o, "RCPT TO:<b@x.example>\r\nDATA\r\n");
	server_heard(o, "RCPT TO:<b@x.example>\r\nDATA\r\n");
	server_says(o, "250 r\r\n354 go\r\n");
	client_heard(o, "250 r\r\n");
	client_heard(o, "354 go\r\n");
	client_says(o, "hello\r\n");
	server_heard(o, "hello\r\n");
}

/* @to continues what @from left: records from 2 on, as many as there are in @said. */
static int resume_at(struct owner *to, const struct owner *from, uint16_t epoch, int how, const char *const *said)
{
	own(to, epoch);
	const struct service_resumption r = { .note = from->note,
		.len = from->note_len,
		.replies = from->sealed,
		.at_checkpoint = from->sealed == 0,
		.from = how };
	int result = service_resume(&to->s, &r);
	if (result < 0)
		return result;
	to->record = 1;
	to->sealed = from->sealed;
	memcpy(to->note, from->note, from->note_len);
	to->note_len = from->note_len;
	for (; *said; said++) {
		service_at_record(&to->s, ++to->record);
		service_from_client(&to->s, (const uint8_t *)*said, strlen(*said));
	}
	if (how == SERVICE_RESUME_CUT)
		service_heard_all(&to->s);
	if (service_wants_backend(&to->s))
		ck_assert_int_eq(service_backend_begins(&to->s), 0);
	return 0;
}

static void resume(struct owner *to, const struct owner *from, const char *const *said)
{
	ck_assert_int_eq(resume_at(to, from, 2, SERVICE_RESUME_CUT, said), 0);
}

/* Up to the reply to EHLO. */
static void server_begins(struct owner *o, const char *offers)
{
	server_says(o, "220 another\r\n");
	server_heard(o, "EHLO client.example\r\n");
	server_says(o, offers);
}

START_TEST(a_server_is_wanted_with_the_clients_first_word)
{
	own(&a, 1);
	ck_assert_int_eq(service_place(&a.s), SERVICE_CHECKPOINT);
	ck_assert(!service_wants_backend(&a.s));
	greeted(&a);
	ck_assert_int_eq(service_place(&a.s), SERVICE_CHECKPOINT);
}
END_TEST

START_TEST(behind_implicit_tls_the_banner_is_due)
{
	listener.smtp.starttls = SMTP_TLS_IMPLICIT;
	own(&a, 1);
	ck_assert_int_ne(service_place(&a.s), SERVICE_CHECKPOINT);
	ck_assert(service_wants_backend(&a.s));
	ck_assert_int_eq(service_backend_begins(&a.s), 0);
	server_says(&a, "220 backend ESMTP\r\n");
	client_heard(&a, "220 mx.example ESMTP\r\n");
	ck_assert_int_eq(service_place(&a.s), SERVICE_CHECKPOINT);
}
END_TEST

START_TEST(each_reply_is_one_piece)
{
	greeted(&a);
	client_says(&a, "NOOP\r\nHELP\r\n");
	server_heard(&a, "NOOP\r\nHELP\r\n");
	server_says(&a, "250 n\r\n214-one\r\n");
	client_heard(&a, "250 n\r\n");
	client_heard_nothing(&a);
	server_says(&a, "214 two\r\n");
	client_heard(&a, "214-one\r\n214 two\r\n");
	ck_assert_int_eq(service_place(&a.s), SERVICE_CHECKPOINT);
}
END_TEST

#define ALREADY "554 5.5.1 TLS is already active\r\n"

START_TEST(while_a_reply_waits_nothing_of_the_client_is_used)
{
	greeted(&a);
	service_taken(&a.s);
	client_says(&a, "STARTTLS\r\nSTARTTLS\r\nNOOP\r\n");
	for (unsigned i = 0; i < 1000; i++)
		client_says(&a, "STARTTLS\r\n");
	ck_assert_uint_eq(service_taken(&a.s), strlen("STARTTLS\r\n"));
	client_heard(&a, ALREADY);
	ck_assert_uint_eq(service_taken(&a.s), strlen("STARTTLS\r\n"));
	server_heard(&a, "");
	client_heard(&a, ALREADY);
	server_heard(&a, "NOOP\r\n");
	ck_assert_int_eq(service_place(&a.s), SERVICE_ANSWERING);
}
END_TEST

START_TEST(what_waits_for_the_client_to_read_is_counted_as_kept)
{
	greeted(&a);
	const size_t before = service_kept_len(&a.s);
	for (unsigned i = 0; i < 1000; i++)
		client_says(&a, "\r\n");
	ck_assert_uint_ge(service_kept_len(&a.s), before + 1000 * strlen("\r\n"));
}
END_TEST

START_TEST(at_a_checkpoint_the_greeting_is_repeated_and_nobody_hears_it)
{
	greeted(&a);
	ck_assert_int_eq(resume_at(&b, &a, 2, SERVICE_RESUME_AT_CHECKPOINT, (const char *const[]){ NULL }), 0);
	ck_assert_int_eq(service_place(&b.s), SERVICE_CHECKPOINT);
	client_says(&b, "NOOP\r\n");
	server_begins(&b, OFFERS);
	client_heard_nothing(&b);
	server_heard(&b, "NOOP\r\n");
	server_says(&b, "250 n\r\n");
	client_heard(&b, "250 n\r\n");
}
END_TEST

START_TEST(a_server_that_offers_something_else_is_none)
{
	greeted(&a);
	ck_assert_int_eq(resume_at(&b, &a, 2, SERVICE_RESUME_AT_CHECKPOINT, (const char *const[]){ NULL }), 0);
	client_says(&b, "NOOP\r\n");
	server_begins(&b, "250-another\r\n250 SIZE 1000\r\n");
	client_heard(&b, CHANGED);
	ck_assert_int_eq(service_is_over(&b.s), SERVICE_OVER);
}
END_TEST

static const char *const cut[] = { MAIL "\r\n", "RCPT TO:<b@x.example>\r\nDATA\r\n", "hello\r\n", NULL };
static const char *const whole[] = { MAIL "\r\n", "RCPT TO:<b@x.example>\r\nDATA\r\n", "hello\r\n", ".\r\n", NULL };

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

static const char *question_at(uint16_t epoch, uint64_t record, size_t from)
{
	static char line[100];

	snprintf(line, sizeof line, "XCSSLTX 0a1b/%llu 5f\r\n", number_of(epoch, record, from));
	return line;
}

/* About the first mail of record 2. */
static const char *question(uint16_t epoch)
{
	return question_at(epoch, 2, 0);
}

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

/* The mail was taken; the client waits for the reply to its MAIL. */
START_TEST(the_reply_to_a_mail_is_not_given_to_a_command_before_its_end)
{
	greeted(&a);
	client_says(&a, MAIL "\r\nRCPT TO:<b@x.example>\r\nBDAT 2 LAST\r\nhi");
	server_heard_group(&a, named(MAIL, 1, 2), "RCPT TO:<b@x.example>\r\nBDAT 2 LAST\r\nhi");
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

#define ONE_MAIL MAIL "\r\nRCPT TO:<b@x.example>\r\nBDAT 2 LAST\r\nhi"

START_TEST(a_mail_in_chunks_that_was_answered_is_not_said_again)
{
	static const char *const said[] = { ONE_MAIL "NOOP\r\n", NULL };

	greeted(&a);
	client_says(&a, said[0]);
	service_given_to_backend(&a.s);
	server_says(&a, "250 m\r\n250 r\r\n250 first\r\n");
	client_heard(&a, "250 m\r\n");
	client_heard(&a, "250 r\r\n");
	client_heard(&a, "250 first\r\n");
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
	service_given_to_backend(&a.s);
	server_says(&a, "250 m\r\n250 r\r\n250 first\r\n");
	client_heard(&a, "250 m\r\n");
	client_heard(&a, "250 r\r\n");
	client_heard(&a, "250 first\r\n");
	server_heard_group(&a, named_at(1, 2, second), &ONE_MAIL[strlen(MAIL "\r\n")]);
	resume(&b, &a, said);
	server_begins(&b, OFFERS);
	server_heard(&b, question_at(1, 2, second));
	server_says(&b, "250 never\r\n");
	server_heard_group(&b, named_at(2, 2, second), &ONE_MAIL[strlen(MAIL "\r\n")]);
	ck_assert_int_eq(resume_at(&c, &b, 3, SERVICE_RESUME_CUT, said), 0);
	server_begins(&c, OFFERS);
	server_heard(&c, question_at(2, 2, second));
	service_destroy(&c.s);
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

START_TEST(a_conversation_that_moves_with_its_server_goes_on)
{
	uint8_t *state;
	size_t len;

	greeted(&a);
	client_says(&a, "NOOP\r\n");
	ck_assert_int_lt(service_save(&a.s, &state, &len), 0);
	server_heard(&a, "NOOP\r\n");
	server_says(&a, "250 n\r\n");
	client_heard(&a, "250 n\r\n");
	ck_assert_int_eq(service_save(&a.s, &state, &len), 0);
	service_of_listener(&b.s, &listener);
	service_restore(&b.s, CONF_SMTP, &blocks, state, len);
	free(state);
	ck_assert(service_stands_between(&b.s));
	client_says(&b, "BDAT 2\r\nhi");
	server_heard(&b, "BDAT 2\r\nhi");
}
END_TEST

START_TEST(a_server_that_leaves_an_idle_client_is_heard)
{
	greeted(&a);
	server_says(&a, "421 idle for too long\r\n");
	client_heard(&a, "421 idle for too long\r\n");
	ck_assert_int_eq(service_is_over(&a.s), SERVICE_OVER);
	greeted(&b);
	service_backend_gone(&b.s);
	client_heard(&b, "421 4.4.2 The mail server behind was lost, try again\r\n");
}
END_TEST

START_TEST(a_state_that_makes_no_sense_is_not_gone_on_with)
{
	service_of_listener(&b.s, &listener);
	service_restore(&b.s, CONF_SMTP, &blocks, (const uint8_t *)"nonsense", 8);
	ck_assert(!service_stands_between(&b.s));
}
END_TEST

START_TEST(a_server_that_wants_to_know_the_client_is_told)
{
	listener.smtp.xclient = CONF_ON;
	own(&a, 1);
	client_says(&a, "EHLO client.example\r\n");
	server_says(&a, "220 backend\r\n");
	server_heard(&a, "EHLO mx.example\r\n");
	server_says(&a, "250-backend\r\n250 XCLIENT NAME ADDR PORT\r\n");
	server_heard(&a, "XCLIENT ADDR=192.0.2.1 PORT=99\r\n");
	server_says(&a, _i ? "550 no\r\n" : "220 again\r\n");
	if (_i) {
		client_heard(&a, "421 4.4.1 The mail server behind does not answer, try again later\r\n");
		return;
	}
	server_heard(&a, "EHLO client.example\r\n");
	server_says(&a, "250-backend\r\n250-SIZE 9\r\n250 XCLIENT NAME ADDR PORT\r\n");
	client_heard(&a, "250-mx.example\r\n250 SIZE 9\r\n");
	ck_assert_int_eq(resume_at(&b, &a, 2, SERVICE_RESUME_AT_CHECKPOINT, (const char *const[]){ NULL }), 0);
	client_says(&b, "NOOP\r\n");
	server_begins(&b, "250-backend\r\n250 XCLIENT NAME ADDR PORT\r\n");
	server_heard(&b, "XCLIENT ADDR=192.0.2.1 PORT=99\r\n");
	server_says(&b, "220 again\r\n");
	server_heard(&b, "EHLO client.example\r\n");
	server_says(&b, "250-backend\r\n250-SIZE 9\r\n250 XCLIENT NAME ADDR PORT\r\n");
	server_heard(&b, "NOOP\r\n");
}
END_TEST

START_TEST(two_mails_in_one_group_are_asked_about_one_after_the_other)
{
	static const char *const said[] = {
		MAIL "\r\nRCPT TO:<b@x.example>\r\nBDAT 2 LAST\r\nhi" MAIL "\r\nRCPT TO:<b@x.example>\r\n", NULL
	};

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
	tcase_add_test(t, a_server_is_wanted_with_the_clients_first_word);
	tcase_add_test(t, behind_implicit_tls_the_banner_is_due);
	tcase_add_test(t, each_reply_is_one_piece);
	tcase_add_test(t, while_a_reply_waits_nothing_of_the_client_is_used);
	tcase_add_test(t, what_waits_for_the_client_to_read_is_counted_as_kept);
	tcase_add_test(t, at_a_checkpoint_the_greeting_is_repeated_and_nobody_hears_it);
	tcase_add_test(t, a_server_that_offers_something_else_is_none);
	tcase_add_test(t, what_came_to_no_end_is_said_again_under_a_new_name);
	tcase_add_test(t, a_server_without_pipelining_hears_one_after_the_other);
	tcase_add_test(t, a_reply_of_another_class_ends_it);
	tcase_add_loop_test(t, a_refusal_that_the_client_has_got_is_expected_again, 0, 2);
	tcase_add_test(t, what_was_decided_is_told);
	tcase_add_test(t, what_was_never_taken_is_said_again);
	tcase_add_loop_test(t, what_nobody_knows_gets_421_and_is_not_said_again, 0, 4);
	tcase_add_test(t, every_name_that_it_may_have_is_asked_about);
	tcase_add_test(t, who_is_lost_while_it_asks_leaves_the_old_name);
	tcase_add_loop_test(t, a_mail_whose_bytes_are_gone_is_asked_about_all_the_same, 0, 2);
	tcase_add_test(t, the_reply_to_a_mail_is_not_given_a_second_time);
	tcase_add_test(t, the_reply_to_a_mail_is_not_given_to_a_command_before_its_end);
	tcase_add_test(t, a_mail_begins_when_the_client_has_the_reply_to_the_one_before);
	tcase_add_loop_test(t, no_chunk_is_said_again_before_the_replies_in_front_of_it_were_compared, 0, 2);
	tcase_add_test(t, a_mail_in_chunks_that_was_answered_is_not_said_again);
	tcase_add_test(t, a_mail_in_the_middle_of_a_record_has_the_same_name_for_all);
	tcase_add_test(t, a_server_that_does_not_remember_is_not_asked);
	tcase_add_test(t, a_password_is_not_said_again);
	tcase_add_test(t, replies_that_took_several_records_cannot_be_told_apart);
	tcase_add_test(t, a_conversation_that_moves_with_its_server_goes_on);
	tcase_add_test(t, a_server_that_leaves_an_idle_client_is_heard);
	tcase_add_test(t, a_state_that_makes_no_sense_is_not_gone_on_with);
	tcase_add_loop_test(t, a_server_that_wants_to_know_the_client_is_told, 0, 2);
	tcase_add_test(t, two_mails_in_one_group_are_asked_about_one_after_the_other);
}

int main(void)
{
	return sodium_init() < 0 ? 1 : run_suite("smtp_service", add);
}
