/* test_line_name.c: facts of the names of the queue's lines. */
#include "smtpproxy/envelope/envelope.h"

#include <string.h>

#include "net/socket/address.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct smtpproxy_queue conf;
static char name[LINE_NAME_MAX + 1];

static void begin(void)
{
	conf = (struct smtpproxy_queue){ .port = 25 };
}

START_TEST(a_line_is_named_after_the_domain_in_lower_case)
{
	ck_assert_int_eq(line_name_of(&conf, smtp_span_of("\"a@b\"@C.Example"), name), 0);
	ck_assert_str_eq(name, "c.example");
	ck_assert_int_eq(line_name_of(&conf, smtp_span_of("a@[IPv6:2001:DB8::1]"), name), 0);
	ck_assert_str_eq(name, "[ipv6:2001:db8::1]");
}
END_TEST

START_TEST(a_mailbox_without_a_domain_has_no_line)
{
	ck_assert_int_eq(line_name_of(&conf, smtp_span_of("postmaster"), name), CSSL_E_NOT_FOUND);
	ck_assert_int_eq(line_name_of(&conf, smtp_span_of("a@"), name), CSSL_E_NOT_FOUND);
}
END_TEST

START_TEST(with_a_next_hop_all_mail_has_one_line)
{
	ck_assert_int_eq(address_parse("192.0.2.1:25", &conf.next_hop), 0);
	ck_assert_int_eq(line_name_of(&conf, smtp_span_of("a@b.example"), name), 0);
	ck_assert_str_eq(name, "192.0.2.1:25");
	ck_assert_int_eq(line_name_of(&conf, smtp_span_of("postmaster"), name), 0);
}
END_TEST

START_TEST(only_an_address_with_a_port_is_a_next_hop)
{
	static const char *const others[] = { "b.example", "[192.0.2.1]", "[ipv6:2001:db8::1]", "192.0.2.1",
		"b.example:25" };
	struct sockaddr_storage out;
	ck_assert_int_eq(line_name_address("192.0.2.1:25", &out), 0);
	ck_assert_uint_eq(address_port((const struct sockaddr *)&out), 25);
	ck_assert_int_eq(line_name_address("[2001:db8::1]:25", &out), 0);
	for (size_t i = 0; i < SUITE_LEN(others); i++)
		ck_assert_msg(line_name_address(others[i], &out) == CSSL_E_NOT_FOUND, "%s", others[i]);
}
END_TEST

static char domain[] = "B.example", below[] = "*.b.example";
static struct smtpproxy_domain known[] = { { .domain = domain }, { .domain = below } };

static void know(size_t count)
{
	conf.domains = known;
	conf.domain_count = count;
}

START_TEST(the_file_knows_domains_without_their_subdomains)
{
	know(1);
	ck_assert_ptr_eq(line_name_domain(&conf, "b.example"), &known[0]);
	ck_assert_ptr_null(line_name_domain(&conf, "x.b.example"));
	know(2);
	ck_assert_ptr_eq(line_name_domain(&conf, "b.example"), &known[0]);
	ck_assert_ptr_eq(line_name_domain(&conf, "y.x.b.example"), &known[1]);
}
END_TEST

START_TEST(beside_a_next_hop_a_domain_of_the_file_has_its_own_line)
{
	know(2);
	ck_assert_int_eq(address_parse("192.0.2.1:25", &conf.next_hop), 0);
	ck_assert_int_eq(line_name_of(&conf, smtp_span_of("a@B.example"), name), 0);
	ck_assert_str_eq(name, "b.example");
	ck_assert_int_eq(line_name_of(&conf, smtp_span_of("a@x.b.example"), name), 0);
	ck_assert_str_eq(name, "x.b.example");
	ck_assert_int_eq(line_name_of(&conf, smtp_span_of("a@c.example"), name), 0);
	ck_assert_str_eq(name, "192.0.2.1:25");
	ck_assert_int_eq(line_name_of(&conf, smtp_span_of("postmaster"), name), 0);
	ck_assert_str_eq(name, "192.0.2.1:25");
}
END_TEST

UNIT(line_name)
{
	const TTest *facts[] = {
		a_line_is_named_after_the_domain_in_lower_case,
		a_mailbox_without_a_domain_has_no_line,
		with_a_next_hop_all_mail_has_one_line,
		only_an_address_with_a_port_is_a_next_hop,
		the_file_knows_domains_without_their_subdomains,
		beside_a_next_hop_a_domain_of_the_file_has_its_own_line,
	};
	return suite_run_with("line_name", begin, facts, SUITE_LEN(facts));
}
