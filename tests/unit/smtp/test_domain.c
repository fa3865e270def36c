/* test_domain.c: facts of host names (RFC 5321 4.1.2, 4.1.3). */
#include "smtp/domain.h"

#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const struct row {
	const char *text;
	unsigned flags;
	enum smtp_domain_kind kind;
} rows[] = {
	{ "example.com", 0, SMTP_DOMAIN_NAME },
	{ "a", 0, SMTP_DOMAIN_NAME },
	{ "1.2.3.4", 0, SMTP_DOMAIN_NAME },
	{ "a-b.c", 0, SMTP_DOMAIN_NAME },
	{ "", 0, SMTP_DOMAIN_BAD },
	{ ".", 0, SMTP_DOMAIN_BAD },
	{ "a..b", 0, SMTP_DOMAIN_BAD },
	{ ".a", 0, SMTP_DOMAIN_BAD },
	{ "a.", 0, SMTP_DOMAIN_BAD },
	{ "-a.b", 0, SMTP_DOMAIN_BAD },
	{ "a-.b", 0, SMTP_DOMAIN_BAD },
	{ "-a.b", SMTP_PARSE_LENIENT, SMTP_DOMAIN_NAME },
	{ "a_b", 0, SMTP_DOMAIN_BAD },
	{ "a_b", SMTP_PARSE_LENIENT, SMTP_DOMAIN_NAME },
	{ "a b", SMTP_PARSE_LENIENT, SMTP_DOMAIN_BAD },
	{ "a.b.", SMTP_PARSE_LENIENT, SMTP_DOMAIN_NAME },
	{ "a..", SMTP_PARSE_LENIENT, SMTP_DOMAIN_BAD },
	{ ".", SMTP_PARSE_LENIENT, SMTP_DOMAIN_BAD },
	{ "b\xc3\xbc"
	  "cher.example",
		0, SMTP_DOMAIN_BAD },
	{ "b\xc3\xbc"
	  "cher.example",
		SMTP_PARSE_UTF8, SMTP_DOMAIN_NAME },
	{ "b\xc3.example", SMTP_PARSE_UTF8, SMTP_DOMAIN_BAD },
	{ "[192.0.2.1]", 0, SMTP_DOMAIN_IPV4 },
	{ "[192.0.2.256]", 0, SMTP_DOMAIN_BAD },
	{ "[192.0.2]", 0, SMTP_DOMAIN_BAD },
	{ "[IPv6:2001:db8::1]", 0, SMTP_DOMAIN_IPV6 },
	{ "[ipv6:::1]", 0, SMTP_DOMAIN_IPV6 },
	{ "[IPv6:192.0.2.1]", 0, SMTP_DOMAIN_BAD },
	{ "[2001:db8::1]", 0, SMTP_DOMAIN_GENERAL }, /* RFC 5321 4.1.3 allows any tag, so 2001 is one */
	{ "[x400:abc]", 0, SMTP_DOMAIN_GENERAL },
	{ "[x400:]", 0, SMTP_DOMAIN_BAD },
	{ "[x400:a]b]", 0, SMTP_DOMAIN_BAD },
	{ "[]", 0, SMTP_DOMAIN_BAD },
	{ "[192.0.2.1", 0, SMTP_DOMAIN_BAD },
};

START_TEST(names_and_literals_are_told_apart)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		ck_assert_msg(smtp_domain_kind(smtp_span_of(rows[i].text), rows[i].flags) == rows[i].kind, "%s",
			rows[i].text);
}
END_TEST

START_TEST(labels_and_names_have_their_bounds)
{
	char text[300];
	memset(text, 'a', sizeof text);
	ck_assert_int_eq(smtp_domain_kind((struct smtp_span){ text, 63 }, 0), SMTP_DOMAIN_NAME);
	ck_assert_int_eq(smtp_domain_kind((struct smtp_span){ text, 64 }, 0), SMTP_DOMAIN_BAD);
	for (size_t i = 50; i < sizeof text; i += 50)
		text[i] = '.';
	ck_assert_int_eq(smtp_domain_kind((struct smtp_span){ text, 255 }, 0), SMTP_DOMAIN_NAME);
	ck_assert_int_eq(smtp_domain_kind((struct smtp_span){ text, 256 }, 0), SMTP_DOMAIN_BAD);
}
END_TEST

START_TEST(a_greeting_may_be_any_text_when_lenient)
{
	ck_assert(smtp_domain_is_greeting(smtp_span_of("[192.0.2.1]"), 0));
	ck_assert(!smtp_domain_is_greeting(smtp_span_of("my,pc"), 0));
	ck_assert(smtp_domain_is_greeting(smtp_span_of("my,pc"), SMTP_PARSE_LENIENT));
	ck_assert(!smtp_domain_is_greeting(smtp_span_of("my pc"), 0));
	ck_assert(smtp_domain_is_greeting(smtp_span_of("my pc"), SMTP_PARSE_LENIENT));
	ck_assert(smtp_domain_is_greeting(smtp_span_of("b\xc3\xbc"
						       "cher"),
		SMTP_PARSE_LENIENT));
	ck_assert(!smtp_domain_is_greeting(smtp_span_of("b\xc3"), SMTP_PARSE_LENIENT));
	ck_assert(!smtp_domain_is_greeting(smtp_span_of("a\tb"), SMTP_PARSE_LENIENT));
	ck_assert(!smtp_domain_is_greeting(smtp_span_of(""), SMTP_PARSE_LENIENT));
}
END_TEST

static int is_in(const char *domain, const char *pattern)
{
	return smtp_domain_is_in(smtp_span_of(domain), pattern);
}

START_TEST(a_pattern_is_a_domain_or_its_subdomains)
{
	ck_assert(is_in("A.example", "a.Example"));
	ck_assert(!is_in("x.a.example", "a.example"));
	ck_assert(is_in("x.A.example", "*.a.example"));
	ck_assert(is_in("y.x.a.example", "*.a.example"));
	ck_assert(!is_in("a.example", "*.a.example"));
	ck_assert(!is_in("ba.example", "*.a.example"));
	ck_assert(!is_in("", "a.example"));
	ck_assert(!is_in("", "*.a.example"));
	ck_assert(smtp_domain_pattern_is_good("a.example"));
	ck_assert(smtp_domain_pattern_is_good("*.example"));
	ck_assert(smtp_domain_pattern_is_good("[192.0.2.1]"));
	ck_assert(!smtp_domain_pattern_is_good("*"));
	ck_assert(!smtp_domain_pattern_is_good("*."));
	ck_assert(!smtp_domain_pattern_is_good("x.*.example"));
	ck_assert(!smtp_domain_pattern_is_good(".example"));
	ck_assert(!smtp_domain_pattern_is_good("a.example."));
}
END_TEST

UNIT(domain)
{
	const TTest *facts[] = {
		names_and_literals_are_told_apart,
		labels_and_names_have_their_bounds,
		a_greeting_may_be_any_text_when_lenient,
		a_pattern_is_a_domain_or_its_subdomains,
	};
	return suite_run("domain", facts, SUITE_LEN(facts));
}
