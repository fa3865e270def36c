/* test_smtp_service.c: facts of service smtp between a client and a server: what each of them hears, where a checkpoint
 * is, and what moves with the server. */
#include <string.h>

#include <sodium.h>

#include "smtp/command.h"
#include "sslagent/service/smtp/smtp_note.h"
#include "tests/unit/sslagent/service/smtp/smtp_talk.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

START_TEST(a_server_is_wanted_with_the_clients_first_word)
{
	own(&a, 1);
	ck_assert_int_eq(service_place(&a.s), SERVICE_CHECKPOINT);
	ck_assert(!service_wants_backend(&a.s));
	greeted(&a);
	ck_assert_int_eq(service_place(&a.s), SERVICE_CHECKPOINT);
}
END_TEST

/* A successor without a note begins with the same facts. So a later owner has to leave them: there may be a note. */
START_TEST(the_first_owner_leaves_no_note_before_the_first_reply)
{
	own(&a, 1);
	client_says(&a, "EHLO client.example\r\n");
	ck_assert_uint_eq(a.note_len, 0);
	server_begins(&a, OFFERS);
	client_heard(&a, SHOWN);
	ck_assert_uint_gt(a.note_len, 0);
	own(&b, 2);
	client_says(&b, "EHLO client.example\r\n");
	ck_assert_uint_gt(b.note_len, 0);
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

/* The client may read the code of the first line or of the last one. */
START_TEST(a_reply_with_several_codes_gets_that_of_its_last_line)
{
	greeted(&a);
	client_says(&a, MAIL "\r\n");
	server_says(&a, "250-2.1.0 perhaps\r\n251-not\r\n451 4.7.1 later\n");
	client_heard(&a, "451-2.1.0 perhaps\r\n451-not\r\n451 4.7.1 later\r\n");
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

START_TEST(an_extension_that_is_not_known_is_hidden_and_does_not_count)
{
	struct smtp_note note;
	struct smtp_ehlo set;
	uint8_t told[SMTP_TOLD_LEN];

	own(&a, 1);
	client_says(&a, "EHLO client.example\r\n");
	server_begins(&a, "250-backend\r\n250-STARTTLS\r\n250-PRDR\r\n250 SIZE 9\r\n");
	client_heard(&a, "250-mx.example\r\n250 SIZE 9\r\n");
	ck_assert_int_eq(smtp_note_read(a.note, a.note_len, &note), 0);
	smtp_ehlo_clear(&set);
	smtp_ehlo_add(&set, smtp_span_of("SIZE 9"));
	smtp_told(&set, told);
	ck_assert_mem_eq(note.told, told, sizeof told);
	ck_assert_int_eq(resume_at(&b, &a, 2, SERVICE_RESUME_AT_CHECKPOINT, (const char *const[]){ NULL }), 0);
	client_says(&b, "NOOP\r\n");
	server_begins(&b, "250-another\r\n250 SIZE 9\r\n");
	server_heard(&b, "NOOP\r\n");
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

START_TEST(names_and_addresses_may_be_beyond_ascii)
{
	greeted(&a);
	client_says(&a, "NOOP j\xc3\xbcrgen \x01\r\n");
	client_heard(&a, "500 5.5.2 Command has bytes that are not allowed\r\n");
	client_says(&a, "EHLO j\xc3\xbcrgen's pc\r\n");
	server_heard(&a, "EHLO j\xc3\xbcrgen's pc\r\n");
	server_says(&a, OFFERS);
	client_heard(&a, SHOWN);
	client_says(&a, "RCPT TO:<j\xc3\xbcrgen@x.example>\r\n");
	server_heard(&a, "RCPT TO:<j\xc3\xbcrgen@x.example>\r\n");
}
END_TEST

START_TEST(a_listener_that_hides_smtputf8_takes_ascii_only)
{
	static char keyword[] = "SMTPUTF8", *hide[] = { keyword };

	listener.smtp.hide = hide;
	listener.smtp.hide_count = 1;
	greeted(&a);
	client_says(&a, "RCPT TO:<j\xc3\xbcrgen@x.example>\r\n");
	client_heard(&a, "500 5.5.2 Command has bytes that are not allowed\r\n");
	server_heard(&a, "");
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
	server_heard(&a, "XCLIENT ADDR=192.0.2.1 PORT=99 NAME=[UNAVAILABLE]\r\n");
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
	server_heard(&b, "XCLIENT ADDR=192.0.2.1 PORT=99 NAME=[UNAVAILABLE]\r\n");
	server_says(&b, "220 again\r\n");
	server_heard(&b, "EHLO client.example\r\n");
	server_says(&b, "250-backend\r\n250-SIZE 9\r\n250 XCLIENT NAME ADDR PORT\r\n");
	server_heard(&b, "NOOP\r\n");
}
END_TEST

#define GRANTED "250-backend\r\n250-CHUNKING\r\n250 XCLIENT NAME ADDR PORT\r\n"

/* Its first server grants XCLIENT. */
static void greeted_with_helo(struct owner *o)
{
	listener.smtp.xclient = CONF_ON;
	own(o, 1);
	client_says(o, "HELO client.example\r\n");
	server_says(o, "220 backend\r\n");
	server_heard(o, "EHLO mx.example\r\n");
	server_says(o, GRANTED);
	server_heard(o, "XCLIENT ADDR=192.0.2.1 PORT=99 NAME=[UNAVAILABLE]\r\n");
	server_says(o, "220 again\r\n");
	server_heard(o, "HELO client.example\r\n");
	server_says(o, "250 backend\r\n");
	client_heard(o, "250 backend\r\n");
}

static const char *const not_granted[] = {
	"250-backend\r\n250 SIZE 9\r\n",
	"250-backend\r\n250 XCLIENT NAME ADDR\r\n",
	"250-backend\r\n250 XCLIENT NAME PORT\r\n",
};
enum { NOT_GRANTED = sizeof not_granted / sizeof not_granted[0] };

static void greeted_without_grant(const char *offers)
{
	listener.smtp.xclient = CONF_ON;
	own(&a, 1);
	client_says(&a, "EHLO client.example\r\n");
	server_says(&a, "220 backend\r\n");
	server_heard(&a, "EHLO mx.example\r\n");
	server_says(&a, offers);
}

/* Postfix would keep the agent's names for the client. A server that has read a PROXY header has looked for the names
 * of the client itself. */
START_TEST(a_server_is_told_that_the_names_of_a_client_are_not_known)
{
	static const struct {
		const char *offers, *introduction;
		enum conf_switch proxy_v2;
	} rows[] = {
		{ "NAME ADDR PORT PROTO HELO LOGIN REVERSE_NAME",
			"XCLIENT ADDR=192.0.2.1 PORT=99 NAME=[UNAVAILABLE] REVERSE_NAME=[UNAVAILABLE]\r\n", CONF_OFF },
		{ "REVERSE_NAME ADDR PORT", "XCLIENT ADDR=192.0.2.1 PORT=99 REVERSE_NAME=[UNAVAILABLE]\r\n", CONF_OFF },
		{ "ADDR PORT", "XCLIENT ADDR=192.0.2.1 PORT=99\r\n", CONF_OFF },
		{ "NAME ADDR PORT REVERSE_NAME", "XCLIENT ADDR=192.0.2.1 PORT=99\r\n", CONF_ON },
	};
	char reply[128];

	backend.proxy_v2 = rows[_i].proxy_v2;
	snprintf(reply, sizeof reply, "250-backend\r\n250 XCLIENT %s\r\n", rows[_i].offers);
	greeted_without_grant(reply);
	server_heard(&a, rows[_i].introduction);
}
END_TEST

START_TEST(a_server_that_must_know_its_client_gets_no_mail_without_xclient)
{
	greeted_without_grant(not_granted[_i]);
	client_heard(&a, "421 4.3.5 This address is not set up for mail\r\n");
	server_heard(&a, "");
	ck_assert_int_eq(service_is_over(&a.s), SERVICE_OVER);
}
END_TEST

START_TEST(a_server_needs_no_xclient_if_it_knows_its_client_or_may_not)
{
	if (_i)
		listener.smtp.client_address = CONF_CLIENT_ADDRESS_HIDDEN;
	else
		backend.proxy_v2 = CONF_ON;
	greeted_without_grant(not_granted[0]);
	server_heard(&a, "EHLO client.example\r\n");
	server_says(&a, not_granted[0]);
	client_heard(&a, "250-mx.example\r\n250 SIZE 9\r\n");
}
END_TEST

/* HELO has no list of extensions. So an EHLO of our own finds out whether the server grants XCLIENT. */
START_TEST(the_next_server_of_a_client_with_helo_learns_its_address_too)
{
	greeted_with_helo(&a);
	ck_assert_int_eq(resume_at(&b, &a, 2, SERVICE_RESUME_AT_CHECKPOINT, (const char *const[]){ NULL }), 0);
	client_says(&b, "BDAT 2 LAST\r\nhiNOOP\r\n");
	server_says(&b, "220 another\r\n");
	server_heard(&b, "EHLO mx.example\r\n");
	server_says(&b, _i ? not_granted[0] : GRANTED);
	if (_i) {
		client_heard(&b, "421 4.3.5 This address is not set up for mail\r\n");
		return;
	}
	server_heard(&b, "XCLIENT ADDR=192.0.2.1 PORT=99 NAME=[UNAVAILABLE]\r\n");
	server_says(&b, "220 again\r\n");
	server_heard(&b, "HELO client.example\r\n");
	server_says(&b, "250 another\r\n");
	client_heard(&b, "502 5.5.1 Command is not implemented\r\n");
	server_heard(&b, "NOOP\r\n");
}
END_TEST

START_TEST(the_next_server_of_a_client_with_helo_may_need_no_address)
{
	listener.smtp.client_address = CONF_CLIENT_ADDRESS_HIDDEN;
	greeted_with_helo(&a);
	ck_assert_int_eq(resume_at(&b, &a, 2, SERVICE_RESUME_AT_CHECKPOINT, (const char *const[]){ NULL }), 0);
	client_says(&b, "NOOP\r\n");
	server_says(&b, "220 another\r\n");
	server_heard(&b, "EHLO mx.example\r\n");
	server_says(&b, not_granted[0]);
	server_heard(&b, "HELO client.example\r\n");
	server_says(&b, "250 another\r\n");
	server_heard(&b, "NOOP\r\n");
}
END_TEST

START_TEST(a_verdict_is_awaited_from_the_end_of_a_mail_to_its_reply)
{
	static const char *const ends[] = { "hello\r\n.\r\n", "BDAT 3 LAST\r\nabc" };
	static const char *const begins[] = { "RCPT TO:<b@x.example>\r\nDATA\r\n", "RCPT TO:<b@x.example>\r\n" };

	greeted(&a);
	ck_assert(!service_awaits_verdict(&a.s));
	client_says(&a, MAIL "\r\n");
	client_says(&a, begins[_i]);
	server_says(&a, _i ? "250 m\r\n250 r\r\n" : "250 m\r\n250 r\r\n354 go\r\n");
	client_heard(&a, "250 m\r\n");
	client_heard(&a, "250 r\r\n");
	if (_i == 0)
		client_heard(&a, "354 go\r\n");
	ck_assert(!service_awaits_verdict(&a.s));
	client_says(&a, ends[_i]);
	ck_assert(service_awaits_verdict(&a.s));
	server_says(&a, "250-half\r\n");
	ck_assert(service_awaits_verdict(&a.s));
	server_says(&a, "250 taken\r\n");
	ck_assert(!service_awaits_verdict(&a.s));
	client_heard(&a, "250-half\r\n250 taken\r\n");
}
END_TEST

/* The client is silent there, not the server. */
START_TEST(no_verdict_is_awaited_within_a_last_chunk)
{
	greeted(&a);
	client_says(&a, MAIL "\r\nRCPT TO:<b@x.example>\r\n");
	server_says(&a, "250 m\r\n250 r\r\n");
	client_heard(&a, "250 m\r\n");
	client_heard(&a, "250 r\r\n");
	client_says(&a, "BDAT 3 LAST\r\na");
	ck_assert(!service_awaits_verdict(&a.s));
	client_says(&a, "bc");
	ck_assert(service_awaits_verdict(&a.s));
	server_says(&a, "250 taken\r\n");
	ck_assert(!service_awaits_verdict(&a.s));
}
END_TEST

/* The lost owner may have given a server the end of a mail, or has surely not. */
START_TEST(after_a_loss_a_verdict_is_awaited_if_a_server_may_have_the_whole_mail)
{
	static const char *const said[][5] = {
		{ MAIL "\r\n", "RCPT TO:<b@x.example>\r\nDATA\r\n", "hello\r\n", NULL },
		{ MAIL "\r\n", "RCPT TO:<b@x.example>\r\nDATA\r\n", "hello\r\n", ".\r\n", NULL },
	};

	in_content(&a);
	if (_i)
		client_says(&a, ".\r\n");
	resume(&b, &a, said[_i]);
	ck_assert_int_eq(service_awaits_verdict(&b.s), _i);
	server_begins(&b, OFFERS);
	ck_assert_int_eq(service_awaits_verdict(&b.s), _i);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_server_is_wanted_with_the_clients_first_word);
	tcase_add_test(t, the_first_owner_leaves_no_note_before_the_first_reply);
	tcase_add_test(t, behind_implicit_tls_the_banner_is_due);
	tcase_add_test(t, each_reply_is_one_piece);
	tcase_add_test(t, a_reply_with_several_codes_gets_that_of_its_last_line);
	tcase_add_test(t, while_a_reply_waits_nothing_of_the_client_is_used);
	tcase_add_test(t, what_waits_for_the_client_to_read_is_counted_as_kept);
	tcase_add_test(t, at_a_checkpoint_the_greeting_is_repeated_and_nobody_hears_it);
	tcase_add_test(t, a_server_that_offers_something_else_is_none);
	tcase_add_test(t, an_extension_that_is_not_known_is_hidden_and_does_not_count);
	tcase_add_test(t, a_conversation_that_moves_with_its_server_goes_on);
	tcase_add_test(t, names_and_addresses_may_be_beyond_ascii);
	tcase_add_test(t, a_listener_that_hides_smtputf8_takes_ascii_only);
	tcase_add_test(t, a_server_that_leaves_an_idle_client_is_heard);
	tcase_add_test(t, a_state_that_makes_no_sense_is_not_gone_on_with);
	tcase_add_loop_test(t, a_server_that_wants_to_know_the_client_is_told, 0, 2);
	tcase_add_loop_test(t, a_server_is_told_that_the_names_of_a_client_are_not_known, 0, 4);
	tcase_add_loop_test(t, a_server_that_must_know_its_client_gets_no_mail_without_xclient, 0, NOT_GRANTED);
	tcase_add_loop_test(t, a_server_needs_no_xclient_if_it_knows_its_client_or_may_not, 0, 2);
	tcase_add_loop_test(t, the_next_server_of_a_client_with_helo_learns_its_address_too, 0, 2);
	tcase_add_test(t, the_next_server_of_a_client_with_helo_may_need_no_address);
	tcase_add_loop_test(t, a_verdict_is_awaited_from_the_end_of_a_mail_to_its_reply, 0, 2);
	tcase_add_test(t, no_verdict_is_awaited_within_a_last_chunk);
	tcase_add_loop_test(t, after_a_loss_a_verdict_is_awaited_if_a_server_may_have_the_whole_mail, 0, 2);
}

UNIT(smtp_service)
{
	return sodium_init() < 0 ? 1 : run_suite("smtp_service", add);
}
