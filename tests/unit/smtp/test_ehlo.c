/* test_ehlo.c: facts of capability sets. */
#include "smtp/ehlo.h"

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/smtp/written.h"
#include "tests/unit/unit.h"

static struct smtp_ehlo set_of(const char *lines)
{
	struct smtp_ehlo set;
	struct smtp_span rest = smtp_span_of(lines);
	smtp_ehlo_clear(&set);
	while (rest.len > 0)
		ck_assert_int_eq(smtp_ehlo_add(&set, smtp_span_until(&rest, '\n')), 0);
	return set;
}

START_TEST(keywords_and_parameters_are_found)
{
	struct smtp_ehlo set = set_of("PIPELINING\nsize 10240000\nAUTH PLAIN LOGIN\nX-ODD a b\nSTARTTLS");
	ck_assert(smtp_ehlo_has(&set, SMTP_CAP_PIPELINING));
	ck_assert(smtp_ehlo_has(&set, SMTP_CAP_SIZE));
	ck_assert(smtp_ehlo_has(&set, SMTP_CAP_OTHER));
	ck_assert(!smtp_ehlo_has(&set, SMTP_CAP_DSN));
	ck_assert_uint_eq(smtp_ehlo_size(&set), 10240000);
	ck_assert(smtp_ehlo_lists(&set, SMTP_CAP_AUTH, "login"));
	ck_assert(!smtp_ehlo_lists(&set, SMTP_CAP_AUTH, "LOG"));
	ck_assert_uint_eq(smtp_ehlo_params(&set, SMTP_CAP_PIPELINING).len, 0);
}
END_TEST

START_TEST(the_old_form_of_auth_is_understood)
{
	struct smtp_ehlo set = set_of("AUTH=LOGIN PLAIN");
	ck_assert(smtp_ehlo_has(&set, SMTP_CAP_AUTH));
	ck_assert(smtp_ehlo_lists(&set, SMTP_CAP_AUTH, "PLAIN"));
}
END_TEST

START_TEST(a_size_without_a_number_is_no_limit)
{
	struct smtp_ehlo set = set_of("SIZE");
	ck_assert_uint_eq(smtp_ehlo_size(&set), 0);
	set = set_of("SIZE x");
	ck_assert_uint_eq(smtp_ehlo_size(&set), 0);
}
END_TEST

START_TEST(a_line_without_a_capability_is_left_out)
{
	struct smtp_ehlo set;
	smtp_ehlo_clear(&set);
	const char *bad[] = { "", " ", "-X", "A_B", "A\tB", "SIZE 1\x80", "SIZE\r", "A/B c" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_msg(smtp_ehlo_add(&set, smtp_span_of(bad[i])) == CSSL_E_RANGE, "%s", bad[i]);
	ck_assert_uint_eq(set.count, 0);
}
END_TEST

START_TEST(a_set_is_bounded)
{
	struct smtp_ehlo set;
	char text[1100];
	smtp_ehlo_clear(&set);
	for (unsigned i = 0; i < SMTP_EHLO_LINES_MAX; i++)
		ck_assert_int_eq(smtp_ehlo_add(&set, smtp_span_of("X")), 0);
	ck_assert_int_eq(smtp_ehlo_add(&set, smtp_span_of("X")), CSSL_E_FULL);
	smtp_ehlo_clear(&set);
	memset(text, 'A', sizeof text);
	ck_assert_int_eq(smtp_ehlo_add(&set, (struct smtp_span){ text, SMTP_EHLO_TEXT_MAX + 1 }), CSSL_E_FULL);
	ck_assert_int_eq(smtp_ehlo_add(&set, (struct smtp_span){ text, SMTP_EHLO_TEXT_MAX }), 0);
}
END_TEST

START_TEST(a_filter_hides_what_clients_must_not_see)
{
	struct smtp_ehlo set = set_of(
		"PIPELINING\nSTARTTLS\nXCLIENT NAME ADDR\nXFORWARD NAME\nXCSSLTX\nX-ODD\nburl imap\nPRDR\nATRN\nDSN");
	struct written out;
	smtp_ehlo_keep(&set, SMTP_CAP_ALL & ~SMTP_CAPS_HIDDEN);
	smtp_ehlo_write(written_begin(&out), "mx.example", &set);
	ck_assert_str_eq(written_text(&out), "250-mx.example\r\n250-PIPELINING\r\n250-X-ODD\r\n250 DSN\r\n");
	smtp_ehlo_keep(&set, SMTP_CAP_BIT(SMTP_CAP_SIZE));
	smtp_ehlo_write(written_begin(&out), "mx.example", &set);
	ck_assert_str_eq(written_text(&out), "250 mx.example\r\n");
}
END_TEST

START_TEST(binarymime_goes_with_chunking)
{
	struct smtp_ehlo set = set_of("CHUNKING\nBINARYMIME\n8BITMIME");
	smtp_ehlo_keep(&set, SMTP_CAP_ALL);
	ck_assert(smtp_ehlo_has(&set, SMTP_CAP_BINARYMIME));
	smtp_ehlo_keep(&set, SMTP_CAP_ALL & ~SMTP_CAP_BIT(SMTP_CAP_CHUNKING));
	ck_assert(!smtp_ehlo_has(&set, SMTP_CAP_BINARYMIME));
	ck_assert(smtp_ehlo_has(&set, SMTP_CAP_8BITMIME));
}
END_TEST

static const char *lines_of(const struct smtp_ehlo *set, struct written *out)
{
	smtp_ehlo_write(written_begin(out), "mx.example", set);
	return written_text(out);
}

START_TEST(two_servers_can_do_what_both_offer)
{
	struct smtp_ehlo a = set_of("SIZE 1000\nDSN\nCHUNKING\nX-A\nX-B"), b = set_of("X-B\nSIZE 100\nDSN\nSMTPUTF8");
	struct smtp_ehlo both = set_of("SIZE 100\nDSN\nX-B");
	const struct smtp_ehlo first = a;
	struct written found, expected;
	smtp_ehlo_narrow(&a, &b);
	ck_assert_str_eq(lines_of(&a, &found), lines_of(&both, &expected));
	smtp_ehlo_narrow(&b, &first);
	both = set_of("X-B\nSIZE 100\nDSN");
	ck_assert_str_eq(lines_of(&b, &found), lines_of(&both, &expected));
	b = set_of("SIZE\nDSN");
	smtp_ehlo_narrow(&a, &b);
	ck_assert_uint_eq(smtp_ehlo_size(&a), 100); /* no number is no limit */
}
END_TEST

UNIT(ehlo)
{
	const TTest *facts[] = {
		keywords_and_parameters_are_found,
		the_old_form_of_auth_is_understood,
		a_size_without_a_number_is_no_limit,
		a_line_without_a_capability_is_left_out,
		a_set_is_bounded,
		a_filter_hides_what_clients_must_not_see,
		binarymime_goes_with_chunking,
		two_servers_can_do_what_both_offer,
	};
	return suite_run("ehlo", facts, SUITE_LEN(facts));
}
