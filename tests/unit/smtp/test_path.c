/* test_path.c: facts of paths (RFC 5321 4.1.2, RFC 6531 3.3). */
#include "smtp/path.h"

#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct smtp_path path;
static struct smtp_span rest;

static int take(const char *text, unsigned flags)
{
	rest = smtp_span_of(text);
	return smtp_path_take(&rest, flags, &path);
}

START_TEST(the_null_path_has_no_mailbox)
{
	ck_assert_int_eq(take("<> SIZE=1", 0), 0);
	ck_assert_int_eq(path.kind, SMTP_PATH_NULL);
	ck_assert_uint_eq(path.mailbox.len, 0);
	ck_assert(smtp_span_is(rest, " SIZE=1"));
}
END_TEST

START_TEST(a_mailbox_has_a_local_part_and_a_domain)
{
	ck_assert_int_eq(take("<a.b+c@example.com>", 0), 0);
	ck_assert_int_eq(path.kind, SMTP_PATH_MAILBOX);
	ck_assert(smtp_span_is(path.local, "a.b+c"));
	ck_assert(smtp_span_is(path.domain, "example.com"));
	ck_assert_int_eq(path.domain_kind, SMTP_DOMAIN_NAME);
	ck_assert_uint_eq(rest.len, 0);
}
END_TEST

START_TEST(quotes_hide_marks_in_a_local_part)
{
	ck_assert_int_eq(take("<\"a>@ \\\"b\"@example.com>", 0), 0);
	ck_assert(smtp_span_is(path.local, "\"a>@ \\\"b\""));
	ck_assert(smtp_span_is(path.domain, "example.com"));
}
END_TEST

START_TEST(a_source_route_is_told_apart)
{
	ck_assert_int_eq(take("<@one.example,@[IPv6:::1]:a@b>", 0), 0);
	ck_assert(smtp_span_is(path.route, "@one.example,@[IPv6:::1]:"));
	ck_assert(smtp_span_is(path.mailbox, "a@b"));
}
END_TEST

START_TEST(postmaster_needs_no_domain)
{
	ck_assert_int_eq(take("<PostMaster>", 0), 0);
	ck_assert_int_eq(path.kind, SMTP_PATH_POSTMASTER);
	ck_assert_int_eq(take("<root>", 0), CSSL_E_RANGE);
	ck_assert_int_eq(take("<root>", SMTP_PARSE_LENIENT), 0);
	ck_assert_int_eq(path.kind, SMTP_PATH_MAILBOX);
}
END_TEST

START_TEST(utf8_is_read_where_it_is_allowed)
{
	const char *text = "<\xe7\x94\xa8\xe6\x88\xb7@\xe4\xbe\x8b.example>";
	ck_assert_int_eq(take(text, 0), CSSL_E_RANGE);
	ck_assert_int_eq(take(text, SMTP_PARSE_UTF8), 0);
	ck_assert_int_eq(path.utf8, 1);
	ck_assert_int_eq(take("<\xff@b>", SMTP_PARSE_UTF8), CSSL_E_RANGE);
	ck_assert_int_eq(take("<a@b>", SMTP_PARSE_UTF8), 0);
	ck_assert_int_eq(path.utf8, 0);
}
END_TEST

START_TEST(a_bad_path_is_refused)
{
	const char *bad[] = { "", "<", "<a@b", "a@b>", "a@b", "<a>", "<@b>", "<a@>", "<a@b@c>", "<a b@c>", "<.a@b>",
		"<a.@b>", "<a..b@c>", "<\"a@b>", "<\"a\"b@c>", "<a@[1.2.3.4>", "<a@b c>", "<@a:>", "<@a>", "<a:b@c>",
		"<a\x01@b>", "<\"\\\x01\"@b>", "<\"a\\\"@b>", "<a(b)@c>", "<<a@b>>" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_msg(take(bad[i], 0) == CSSL_E_RANGE, "%s", bad[i]);
}
END_TEST

START_TEST(a_lenient_parser_reads_the_forms_of_real_senders)
{
	const char *good[] = { "a@b", "<a..b@c>", "<.a@b>", "<a@b_c>", "<a>", "< a@b >", "<a@b.c.>" };
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		ck_assert_msg(take(good[i], SMTP_PARSE_LENIENT) == 0, "%s", good[i]);
	ck_assert_int_eq(take("< a@b.c. >", SMTP_PARSE_LENIENT), 0);
	ck_assert(smtp_span_is(path.mailbox, "a@b.c") && smtp_span_is(path.domain, "b.c"));
	ck_assert_int_eq(take("a@b SIZE=1", SMTP_PARSE_LENIENT), 0);
	ck_assert(smtp_span_is(rest, " SIZE=1"));
	ck_assert_int_eq(take("", SMTP_PARSE_LENIENT), CSSL_E_RANGE);
}
END_TEST

START_TEST(local_parts_and_paths_have_their_bounds)
{
	char text[400] = "<";
	memset(text + 1, 'a', 65);
	strcpy(text + 65, "@b>");
	ck_assert_int_eq(take(text, 0), 0);
	strcpy(text + 65, "a@b>");
	ck_assert_int_eq(take(text, 0), CSSL_E_RANGE);
	ck_assert_int_eq(take(text, SMTP_PARSE_LENIENT), 0);

	strcpy(text, "<a@");
	for (size_t at = 3; at < 300; at++)
		text[at] = at % 50 ? 'b' : '.';
	strcpy(text + 255, ">");
	ck_assert_int_eq(take(text, 0), 0);
	strcpy(text + 255, "b>");
	ck_assert_int_eq(take(text, 0), CSSL_E_RANGE);
}
END_TEST

UNIT(path)
{
	const TTest *facts[] = {
		the_null_path_has_no_mailbox,
		a_mailbox_has_a_local_part_and_a_domain,
		quotes_hide_marks_in_a_local_part,
		a_source_route_is_told_apart,
		postmaster_needs_no_domain,
		utf8_is_read_where_it_is_allowed,
		a_bad_path_is_refused,
		a_lenient_parser_reads_the_forms_of_real_senders,
		local_parts_and_paths_have_their_bounds,
	};
	return suite_run("path", facts, SUITE_LEN(facts));
}
