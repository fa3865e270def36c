/* test_preamble.c: facts of the dialogue before STARTTLS (RFC 3207). Whole sessions are said at once, byte by byte, and
 * cut at every place: the replies, the event and the count of bytes are the same. */
#include "smtp/preamble.h"

#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/smtp/written.h"
#include "tests/unit/unit.h"

static struct smtp_ehlo offers;
static struct smtp_preamble_rules rules;

static void set_up(void)
{
	smtp_ehlo_clear(&offers);
	smtp_ehlo_add(&offers, smtp_span_of("PIPELINING"));
	smtp_ehlo_add(&offers, smtp_span_of("SIZE 1000"));
	smtp_ehlo_add(&offers, smtp_span_of("AUTH PLAIN"));
	smtp_ehlo_add(&offers, smtp_span_of("XCLIENT NAME"));
	rules = (struct smtp_preamble_rules){ .tls = SMTP_TLS_REQUIRE, .name = "mx.example", .offers = &offers };
}

struct talk {
	struct smtp_preamble p;
	struct written out;
	enum smtp_preamble_event event;
};

static int goes_on(enum smtp_preamble_event event)
{
	return event == SMTP_PREAMBLE_ON_MORE || event == SMTP_PREAMBLE_ON_REPLY;
}

static void feed(struct talk *t, const char *in, size_t len)
{
	for (size_t at = 0, taken; at < len && goes_on(t->event); at += taken)
		t->event = smtp_preamble_read(&t->p, in + at, len - at, &taken, &t->out.w);
}

static void talk_cut(struct talk *t, const char *in, size_t len, size_t first, size_t second)
{
	t->event = SMTP_PREAMBLE_ON_MORE;
	smtp_preamble_begin(&t->p, &rules, written_begin(&t->out));
	feed(t, in, first);
	feed(t, in + first, second - first);
	feed(t, in + second, len - second);
}

#define BANNER "220 mx.example ESMTP\r\n"
#define EHLO   "250-mx.example\r\n250-PIPELINING\r\n250-SIZE 1000\r\n250 STARTTLS\r\n"
#define FIRST  "530 5.7.0 Must issue a STARTTLS command first\r\n"
#define READY  "220 2.0.0 Ready to start TLS\r\n"

/* Says @in, and compares the replies behind the banner with @replies. */
static struct talk *says_len(const char *in, size_t len, const char *replies, enum smtp_preamble_event event)
{
	static struct talk whole, cut;
	talk_cut(&whole, in, len, len, len);
	ck_assert_str_eq(written_text(&whole.out) + strlen(BANNER), replies);
	ck_assert_int_eq(goes_on(whole.event) && goes_on(event) ? event : whole.event, event);
	for (size_t first = 0; first <= len; first++) {
		size_t second = first + (len - first) / 2;
		talk_cut(&cut, in, len, first, second);
		ck_assert_str_eq(written_text(&cut.out), written_text(&whole.out));
		ck_assert_uint_eq(cut.p.consumed, whole.p.consumed);
		ck_assert_int_eq(cut.p.state, whole.p.state);
		if (whole.event != SMTP_PREAMBLE_ON_MAIL)
			continue;
		ck_assert_uint_eq(cut.p.held.len, whole.p.held.len);
		ck_assert_mem_eq(cut.p.held.at, whole.p.held.at, whole.p.held.len);
	}
	return &whole;
}

static struct talk *says(const char *in, const char *replies, enum smtp_preamble_event event)
{
	return says_len(in, strlen(in), replies, event);
}

START_TEST(the_banner_may_say_more_than_the_name)
{
	struct smtp_preamble p;
	struct written out;
	rules.banner = "ESMTP\r\n250 ok";
	smtp_preamble_begin(&p, &rules, written_begin(&out));
	ck_assert_str_eq(written_text(&out), "220 mx.example ESMTP??250 ok\r\n");
}
END_TEST

START_TEST(starttls_behind_ehlo_is_accepted)
{
	struct talk *t = says("EHLO a.example\r\nSTARTTLS\r\n", EHLO READY, SMTP_PREAMBLE_ON_STARTTLS);
	ck_assert_uint_eq(t->p.consumed, 26);
	ck_assert_int_eq(t->p.state, SMTP_PREAMBLE_TLS);
	ck_assert_str_eq(t->p.name, "a.example");
}
END_TEST

START_TEST(case_and_a_trailing_space_do_not_matter)
{
	says("ehlo a\r\nstarttls\r\n", EHLO READY, SMTP_PREAMBLE_ON_STARTTLS);
	says("EHLO a\r\nStartTLS \r\n", EHLO READY, SMTP_PREAMBLE_ON_STARTTLS);
}
END_TEST

START_TEST(bytes_behind_starttls_are_not_read)
{
	struct talk *t =
		says("EHLO a\r\nSTARTTLS\r\nEHLO inj\r\nMAIL FROM:<>\r\n", EHLO READY, SMTP_PREAMBLE_ON_STARTTLS);
	ck_assert_uint_eq(t->p.consumed, 18);
	t = says("EHLO a\r\nSTARTTLS\r\n\x16\x03\x01", EHLO READY, SMTP_PREAMBLE_ON_STARTTLS);
	ck_assert_uint_eq(t->p.consumed, 18);
}
END_TEST

START_TEST(an_argument_of_starttls_leaves_the_channel_clear)
{
	says("EHLO a\r\nSTARTTLS foo\r\nNOOP\r\n", EHLO "501 5.5.4 No argument is allowed\r\n250 2.0.0 Ok\r\n",
		SMTP_PREAMBLE_ON_REPLY);
}
END_TEST

START_TEST(starttls_needs_ehlo)
{
	says("STARTTLS\r\n", "503 5.5.1 Send EHLO first\r\n", SMTP_PREAMBLE_ON_REPLY);
	says("HELO a\r\nSTARTTLS\r\n", "250 mx.example\r\n503 5.5.1 Send EHLO first\r\n", SMTP_PREAMBLE_ON_REPLY);
}
END_TEST

START_TEST(require_answers_530_to_the_rest)
{
	const char *rest[] = { "MAIL FROM:<a@b>\r\n", "MAIL\r\n", "RCPT TO:<a@b>\r\n", "DATA\r\n", "BDAT 0 LAST\r\n",
		"AUTH PLAIN\r\n", "VRFY a\r\n", "EXPN a\r\n", "ETRN a\r\n", "XCLIENT NAME=a\r\n", "XFORWARD NAME=a\r\n",
		"XCSSLTX a/1\r\n" };
	char in[64];
	for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) {
		strcpy(in, "EHLO a\r\n");
		strcat(in, rest[i]);
		says(in, EHLO FIRST, SMTP_PREAMBLE_ON_REPLY);
	}
	says("NOOP\r\nRSET\r\nHELP\r\nQUIT\r\n",
		"250 2.0.0 Ok\r\n250 2.0.0 Ok\r\n214 2.0.0 See RFC 5321\r\n221 2.0.0 Bye\r\n", SMTP_PREAMBLE_ON_END);
}
END_TEST

START_TEST(offer_lets_mail_begin_in_clear)
{
	rules.tls = SMTP_TLS_OFFER;
	struct talk *t = says("HELO a\r\nMAIL FROM:<a@b>\r\nRCPT", "250 mx.example\r\n", SMTP_PREAMBLE_ON_MAIL);
	ck_assert_uint_eq(t->p.consumed, 25);
	ck_assert_uint_eq(t->p.held.len, 17);
	ck_assert_mem_eq(t->p.held.at, "MAIL FROM:<a@b>\r\n", 17);
	says("MAIL FROM:<a@b>\r\n", "503 5.5.1 Send EHLO first\r\n", SMTP_PREAMBLE_ON_REPLY);
	says("EHLO a\r\nAUTH PLAIN x\r\n", EHLO "538 5.7.11 Encryption is required for authentication\r\n",
		SMTP_PREAMBLE_ON_REPLY);
	says("EHLO a\r\nRCPT TO:<a@b>\r\n", EHLO "503 5.5.1 Bad sequence of commands\r\n", SMTP_PREAMBLE_ON_REPLY);
	says("EHLO a\r\nXCLIENT NAME=a\r\n", EHLO "550 5.7.0 Not authorized\r\n", SMTP_PREAMBLE_ON_REPLY);
}
END_TEST

START_TEST(implicit_tls_has_no_preamble)
{
	struct smtp_preamble p;
	struct written out;
	rules.tls = SMTP_TLS_IMPLICIT;
	smtp_preamble_begin(&p, &rules, written_begin(&out));
	ck_assert_str_eq(written_text(&out), "");
	ck_assert_int_eq(p.state, SMTP_PREAMBLE_TLS);
}
END_TEST

START_TEST(bad_lines_are_refused)
{
	says("NOOP\nNOOP\r\n", "500 5.5.2 Lines must end with <CR><LF>\r\n250 2.0.0 Ok\r\n", SMTP_PREAMBLE_ON_REPLY);
	says("NO\rOP\r\n", "500 5.5.2 Lines must end with <CR><LF>\r\n", SMTP_PREAMBLE_ON_REPLY);
	says("NOOP \x1b\r\n", "500 5.5.2 Command has bytes that are not allowed\r\n", SMTP_PREAMBLE_ON_REPLY);
	says_len("NO\0OP\r\n", 7, "500 5.5.2 Command has bytes that are not allowed\r\n", SMTP_PREAMBLE_ON_REPLY);
}
END_TEST

START_TEST(a_line_that_is_too_long_ends_the_session)
{
	char in[SMTP_PREAMBLE_LINE_MAX + 10];
	memset(in, 'a', sizeof in);
	struct talk *t = says_len(in, sizeof in, "500 5.5.2 Line is too long\r\n", SMTP_PREAMBLE_ON_END);
	ck_assert_uint_eq(t->p.consumed, SMTP_PREAMBLE_LINE_MAX);
}
END_TEST

START_TEST(errors_and_commands_are_bounded)
{
	rules.errors_max = 3;
	says("X\r\nX\r\nX\r\nX\r\n",
		"500 5.5.1 Command is not known\r\n500 5.5.1 Command is not known\r\n421 4.7.0 Too many "
		"errors\r\n",
		SMTP_PREAMBLE_ON_END);
	rules.commands_max = 1;
	says("NOOP\r\nNOOP\r\n", "250 2.0.0 Ok\r\n421 4.7.0 Too many commands without mail\r\n", SMTP_PREAMBLE_ON_END);
}
END_TEST

START_TEST(other_protocols_are_sent_away)
{
	const char *sent_away = "421 4.7.0 This is a mail server\r\n";
	says("GET / HTTP/1.1\r\nHost: a\r\n", sent_away, SMTP_PREAMBLE_ON_END);
	says("POST / HTTP/1.1\r\nHost: a\r\n", sent_away, SMTP_PREAMBLE_ON_END);
	says("CONNECT a:25 HTTP/1.1\r\n", sent_away, SMTP_PREAMBLE_ON_END);
}
END_TEST

START_TEST(no_reply_is_longer_than_its_bound)
{
	struct talk t;
	char name[SMTP_DOMAIN_MAX + 1];
	uint8_t room[SMTP_PREAMBLE_REPLY_MAX];
	size_t taken;
	memset(name, 'a', SMTP_DOMAIN_MAX);
	name[SMTP_DOMAIN_MAX] = 0;
	rules.name = name;
	smtp_ehlo_clear(&offers);
	for (unsigned i = 0; i < SMTP_EHLO_LINES_MAX; i++)
		smtp_ehlo_add(&offers, smtp_span_of("X2345678901234567890123456789 12"));
	smtp_preamble_begin(&t.p, &rules, written_begin(&t.out));
	struct wire_writer w = wire_writer(room, sizeof room);
	ck_assert_int_eq(smtp_preamble_read(&t.p, "EHLO a\r\n", 8, &taken, &w), SMTP_PREAMBLE_ON_REPLY);
	ck_assert_int_gt(wire_writer_len(&w), 1024);
}
END_TEST

UNIT(preamble)
{
	const TTest *facts[] = {
		the_banner_may_say_more_than_the_name,
		starttls_behind_ehlo_is_accepted,
		case_and_a_trailing_space_do_not_matter,
		bytes_behind_starttls_are_not_read,
		an_argument_of_starttls_leaves_the_channel_clear,
		starttls_needs_ehlo,
		require_answers_530_to_the_rest,
		offer_lets_mail_begin_in_clear,
		implicit_tls_has_no_preamble,
		bad_lines_are_refused,
		a_line_that_is_too_long_ends_the_session,
		errors_and_commands_are_bounded,
		other_protocols_are_sent_away,
		no_reply_is_longer_than_its_bound,
	};
	return suite_run_with("preamble", set_up, facts, SUITE_LEN(facts));
}
