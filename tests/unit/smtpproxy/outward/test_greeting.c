/* test_greeting.c: facts of the dialogue with a receiver before a transaction. */
#include "smtpproxy/outward/greeting.h"

#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct greeting g;
static char said[1024];
static enum greeting_event last;

static void begin(enum smtpproxy_tls tls)
{
	greeting_end(&g);
	ck_assert_int_eq(greeting_begin(&g, tls, smtp_span_of("mx.sender.example")), 0);
}

static const char *write_out(struct wire_writer *w, uint8_t *out)
{
	const ptrdiff_t len = wire_writer_len(w);
	ck_assert_int_ge(len, 0);
	memcpy(said, out, (size_t)len);
	said[len] = '\0';
	return said;
}

/* Our words when the receiver says @text. The text comes in pieces of @piece bytes. */
static const char *hear(const char *text, size_t piece)
{
	uint8_t out[2 * GREETING_OUT_MAX];
	struct wire_writer w = wire_writer(out, sizeof out);
	size_t at = 0, len = strlen(text);
	last = GREETING_ON_MORE;
	while (at < len && last == GREETING_ON_MORE) {
		const size_t left = len - at < piece ? len - at : piece;
		size_t taken;
		last = greeting_read(&g, text + at, left, &taken, &w);
		at += taken;
	}
	return write_out(&w, out);
}

START_TEST(a_receiver_is_greeted_and_ready)
{
	for (size_t piece = 1; piece < 40; piece += 13) {
		begin(SMTPPROXY_TLS_MAY);
		ck_assert_str_eq(hear("220-mx\r\n220 mx ESMTP\r\n", piece), "EHLO mx.sender.example\r\n");
		ck_assert_str_eq(hear("250-mx at your service\r\n250-CHUNKING\r\n250 SIZE 1000\r\n", piece), "");
		ck_assert_int_eq(last, GREETING_ON_READY);
		ck_assert(smtp_ehlo_has(&g.words->offers, SMTP_CAP_CHUNKING));
		ck_assert_uint_eq(smtp_ehlo_size(&g.words->offers), 1000);
		ck_assert_uint_eq(g.words->offers.count, 2);
	}
}
END_TEST

/* In pieces of each length, and in both cases (RFC 5321 2.4). */
static const char *const offers[] = { "250-mx\r\n250-STARTTLS\r\n250 DSN\r\n",
	"250-mx\r\n250-starttls\r\n250 DSN\r\n" };
#define PIECES_MAX 40u

START_TEST(starttls_is_used_where_it_is_offered)
{
	const size_t piece = (size_t)_i / 2 + 1;
	uint8_t out[GREETING_OUT_MAX];
	struct wire_writer w = wire_writer(out, sizeof out);
	begin(SMTPPROXY_TLS_MAY);
	hear("220 mx\r\n", piece);
	ck_assert_str_eq(hear(offers[_i % 2], piece), "STARTTLS\r\n");
	hear("220 go\r\n", piece);
	ck_assert_int_eq(last, GREETING_ON_TLS);
	greeting_secured(&g, &w);
	ck_assert_str_eq(write_out(&w, out), "EHLO mx.sender.example\r\n");
	hear("250-mx\r\n250 SMTPUTF8\r\n", piece);
	ck_assert_int_eq(last, GREETING_ON_READY);
	ck_assert(!smtp_ehlo_has(
		&g.words->offers, SMTP_CAP_DSN)); /* an extension that was offered in clear does not count */
}
END_TEST

START_TEST(without_tls_none_is_asked_for)
{
	begin(SMTPPROXY_TLS_NONE);
	hear("220 mx\r\n", 99);
	ck_assert_str_eq(hear("250-mx\r\n250 STARTTLS\r\n", 99), "");
	ck_assert_int_eq(last, GREETING_ON_READY);
}
END_TEST

START_TEST(a_refused_starttls_is_no_way_into_the_clear)
{
	begin(SMTPPROXY_TLS_ENCRYPT);
	hear("220 mx\r\n250-mx\r\n250 STARTTLS\r\n", 99);
	hear("454 4.7.0 not now\r\n", 99);
	ck_assert_int_eq(last, GREETING_ON_OVER);
	ck_assert_int_eq(g.why, SMTP_OWN_BACKEND_NO_TLS);
	begin(SMTPPROXY_TLS_ENCRYPT);
	hear("220 mx\r\n250 mx\r\n", 99);
	ck_assert_int_eq(last, GREETING_ON_OVER);
	ck_assert_int_eq(g.why, SMTP_OWN_BACKEND_NO_TLS);
	begin(SMTPPROXY_TLS_MAY);
	hear("220 mx\r\n250-mx\r\n250 STARTTLS\r\n", 99);
	hear("454 4.7.0 not now\r\n", 99);
	ck_assert_int_eq(last, GREETING_ON_READY);
}
END_TEST

START_TEST(a_receiver_without_ehlo_hears_helo)
{
	begin(SMTPPROXY_TLS_MAY);
	hear("220 mx\r\n", 99);
	ck_assert_str_eq(hear("502 what?\r\n", 99), "HELO mx.sender.example\r\n");
	hear("250 mx\r\n", 99);
	ck_assert_int_eq(last, GREETING_ON_READY);
	ck_assert_uint_eq(g.words->offers.count, 0);
}
END_TEST

START_TEST(refusals_for_now_and_for_good_differ)
{
	begin(SMTPPROXY_TLS_MAY);
	hear("421 4.7.0 too many connections\r\n", 99);
	ck_assert_int_eq(last, GREETING_ON_REFUSED);
	begin(SMTPPROXY_TLS_MAY);
	hear("554 no mail here\r\n", 99);
	ck_assert_int_eq(last, GREETING_ON_OVER);
	ck_assert_int_eq(g.why, SMTP_OWN_RECEIVER_REFUSES);
	begin(SMTPPROXY_TLS_MAY);
	hear("220 mx\r\n421 4.3.2 shutting down\r\n", 99);
	ck_assert_int_eq(last, GREETING_ON_REFUSED);
}
END_TEST

START_TEST(a_refused_name_says_nothing_of_the_receiver)
{
	static const struct {
		const char *reply;
		enum smtp_own why;
	} rows[] = {
		{ "550 5.7.1 who are you\r\n", SMTP_OWN_NAME_REFUSED },
		{ "554 5.7.1 not you\r\n", SMTP_OWN_NAME_REFUSED },
		{ "450 4.7.1 cannot find your name\r\n", SMTP_OWN_NAME_REFUSED_NOW },
	};
	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		begin(SMTPPROXY_TLS_MAY);
		hear("220 mx\r\n", 99);
		hear(rows[i].reply, 99);
		if (last == GREETING_ON_MORE) /* HELO was tried */
			hear(rows[i].reply, 99);
		ck_assert_int_eq(last, GREETING_ON_NAME);
		ck_assert_int_eq(g.why, rows[i].why);
	}
}
END_TEST

START_TEST(a_bad_reply_ends_the_dialogue)
{
	static const char *const bad[] = { "HTTP/1.1 400 Bad Request\r\n", "220-a\r\nb\r\n", "22\r\n" };
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		begin(SMTPPROXY_TLS_NONE);
		hear(bad[i], 99);
		ck_assert_int_eq(last, GREETING_ON_OVER);
		ck_assert_int_eq(g.why, SMTP_OWN_BACKEND_BROKEN);
	}
}
END_TEST

START_TEST(a_receiver_is_understood_however_it_writes)
{
	static char line[4096 + 1];

	memset(line, 'x', sizeof line - 1);
	begin(SMTPPROXY_TLS_ENCRYPT);
	hear("220-a\r\r\n250 b\n250-mx\n250-XLONG ", 99);
	hear(line, 99);
	hear("\n220-DSN\n251 STARTTLS\n", 99);
	ck_assert_int_eq(g.state, GREETING_STARTTLS);
	hear("250OK\n", 99);
	ck_assert_int_eq(last, GREETING_ON_TLS);
	ck_assert_uint_eq(g.has, SMTP_CAP_BIT(SMTP_CAP_DSN) | SMTP_CAP_BIT(SMTP_CAP_STARTTLS));
	begin(SMTPPROXY_TLS_NONE);
	hear("220-wait\r\n554 no\r\n", 99);
	ck_assert_int_eq(g.why, SMTP_OWN_RECEIVER_REFUSES);
}
END_TEST

START_TEST(another_sender_gives_its_own_name)
{
	uint8_t out[GREETING_OUT_MAX];
	struct wire_writer w = wire_writer(out, sizeof out);
	begin(SMTPPROXY_TLS_NONE);
	hear("220 mx\r\n250-mx\r\n250 DSN\r\n", 99);
	greeting_rest(&g);
	ck_assert_ptr_null(g.words);
	greeting_renew(&g, smtp_span_of("other.example"), &w);
	ck_assert_str_eq(write_out(&w, out), "EHLO other.example\r\n");
	hear("250-mx\r\n250 SIZE\r\n", 99);
	ck_assert_int_eq(last, GREETING_ON_READY);
	ck_assert(!smtp_ehlo_has(&g.words->offers, SMTP_CAP_DSN));
}
END_TEST

START_TEST(the_text_of_the_extensions_stays_where_a_key_is_among_them)
{
	begin(SMTPPROXY_TLS_NONE);
	hear("220 mx\r\n", 99);
	hear("250-mx\r\n250-DSN\r\n250 XCSSLTX k1\r\n", 99);
	greeting_rest(&g);
	ck_assert(smtp_span_is(smtp_ehlo_params(&g.words->offers, SMTP_CAP_XCSSLTX), "k1"));
	ck_assert(g.has & SMTP_CAP_BIT(SMTP_CAP_DSN));
	greeting_end(&g);
}
END_TEST

UNIT(greeting)
{
	const TTest *facts[] = {
		a_receiver_is_greeted_and_ready,
		without_tls_none_is_asked_for,
		a_refused_starttls_is_no_way_into_the_clear,
		a_receiver_without_ehlo_hears_helo,
		refusals_for_now_and_for_good_differ,
		a_refused_name_says_nothing_of_the_receiver,
		a_bad_reply_ends_the_dialogue,
		a_receiver_is_understood_however_it_writes,
		another_sender_gives_its_own_name,
		the_text_of_the_extensions_stays_where_a_key_is_among_them,
	};
	TCase *all = tcase_create("greeting");

	tcase_add_loop_test(all, starttls_is_used_where_it_is_offered, 0, 2 * PIECES_MAX);
	return suite_run_case("greeting", all, facts, SUITE_LEN(facts));
}
