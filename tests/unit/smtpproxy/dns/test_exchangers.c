/* test_exchangers.c: facts of the search for the mail servers of a domain. */
#include "smtpproxy/dns/exchangers.h"

#include <stdio.h>
#include <string.h>

#include "net/socket/address.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/smtpproxy/dns/fake_resolver.h"
#include "tests/unit/unit.h"

static struct exchangers x;
static unsigned found;

static void on_found(struct exchangers *e)
{
	found++;
}

static void begin(void)
{
	x = (struct exchangers){ .on_found = on_found };
	found = 0;
}

static void find(const char *domain)
{
	ck_assert_int_eq(exchangers_find(&x, NULL, NULL, domain, "own.example", 25), 0);
	ck_assert_uint_eq(found, 0);
}

static struct dns_record record_of(const char *bytes, size_t len)
{
	return (struct dns_record){ (const uint8_t *)bytes, len };
}
#define RECORD(bytes) record_of(bytes, sizeof(bytes) - 1)

static void answer_a(const char *name, const char *bytes)
{
	fake_answer_with(name, DNS_A, DNS_SECURE, name, record_of(bytes, 4));
}

static void ck_end(enum exchangers_verdict verdict)
{
	ck_assert_uint_eq(found, 1);
	ck_assert_int_eq(x.verdict, verdict);
	ck_assert_uint_eq(fake_open(), 0);
	exchangers_forget(&x);
}

static void ck_address(unsigned at, const char *text)
{
	char out[ADDRESS_TEXT_MAX];
	ck_assert_str_eq(address_format((const struct sockaddr *)&x.at[at].to, out), text);
}

START_TEST(addresses_come_in_the_order_of_servers_and_ipv6_first)
{
	static const uint8_t v6[16] = { 0x20, 1, 0xd, 0xb8, [15] = 1 };
	find("b.example");
	fake_answer_with("b.example", DNS_MX, DNS_SECURE, "b.example", RECORD("\0\x0a\2mx\7example\0"));
	answer_a("mx.example", "\xc0\0\2\1");
	ck_assert_uint_eq(found, 0);
	fake_answer_with("mx.example", DNS_AAAA, DNS_SECURE, "mx.example", (struct dns_record){ v6, sizeof v6 });
	ck_assert_uint_eq(x.count, 2);
	ck_address(0, "[2001:db8::1]:25");
	ck_address(1, "192.0.2.1:25");
	ck_assert_str_eq(x.hosts.at[x.at[1].host].host, "mx.example");
	ck_assert_int_eq(x.trust, DNS_SECURE);
	ck_end(EXCHANGERS_FOUND);
}
END_TEST

START_TEST(a_domain_without_mx_is_its_own_server)
{
	find("b.example");
	fake_answer("b.example", DNS_MX, DNS_NO_RECORDS, DNS_INSECURE);
	fake_answer("b.example", DNS_AAAA, DNS_NO_RECORDS, DNS_INSECURE);
	answer_a("b.example", "\xc0\0\2\1");
	ck_assert_uint_eq(x.count, 1);
	ck_assert_str_eq(x.hosts.at[0].host, "b.example");
	ck_assert_int_eq(x.trust, DNS_INSECURE);
	ck_end(EXCHANGERS_FOUND);
}
END_TEST

START_TEST(a_null_mx_takes_no_mail)
{
	find("b.example");
	fake_answer_with("b.example", DNS_MX, DNS_INSECURE, "b.example", RECORD("\0\0\0"));
	ck_end(EXCHANGERS_NO_MAIL);
}
END_TEST

START_TEST(our_own_name_is_a_loop)
{
	find("b.example");
	fake_answer_with("b.example", DNS_MX, DNS_INSECURE, "b.example", RECORD("\0\0\3own\7example\0"));
	ck_end(EXCHANGERS_LOOP);
	begin();
	find("Own.example");
	fake_answer("Own.example", DNS_MX, DNS_NO_RECORDS, DNS_INSECURE);
	ck_end(EXCHANGERS_LOOP);
}
END_TEST

static const struct {
	enum dns_outcome mx;
	enum exchangers_verdict verdict;
} ends[] = {
	{ DNS_NO_NAME, EXCHANGERS_NO_DOMAIN },
	{ DNS_BOGUS, EXCHANGERS_BOGUS },
	{ DNS_FAILED, EXCHANGERS_FAILED },
	{ DNS_TIMED_OUT, EXCHANGERS_FAILED },
};

START_TEST(without_an_answer_for_mx_no_address_is_asked_for)
{
	begin();
	find("b.example");
	fake_answer("b.example", DNS_MX, ends[_i].mx, DNS_INSECURE);
	ck_end(ends[_i].verdict);
}
END_TEST

static const struct {
	enum dns_outcome a, aaaa;
	enum exchangers_verdict verdict;
} without[] = {
	{ DNS_NO_RECORDS, DNS_NO_RECORDS, EXCHANGERS_NO_ADDRESS },
	{ DNS_NO_NAME, DNS_NO_NAME, EXCHANGERS_NO_ADDRESS },
	{ DNS_NO_RECORDS, DNS_FAILED, EXCHANGERS_FAILED },
	{ DNS_TIMED_OUT, DNS_NO_RECORDS, EXCHANGERS_FAILED },
	{ DNS_BOGUS, DNS_NO_RECORDS, EXCHANGERS_BOGUS },
};

START_TEST(only_a_sure_answer_says_that_there_is_no_address)
{
	begin();
	find("b.example");
	fake_answer_with("b.example", DNS_MX, DNS_SECURE, "b.example", RECORD("\0\x0a\2mx\7example\0"));
	fake_answer("mx.example", DNS_A, without[_i].a, DNS_INSECURE);
	fake_answer("mx.example", DNS_AAAA, without[_i].aaaa, DNS_INSECURE);
	ck_end(without[_i].verdict);
}
END_TEST

START_TEST(a_cut_leaves_better_servers_only)
{
	struct sockaddr_storage to = { 0 };
	struct exchanger at[4] = { { to, 0 }, { to, 1 }, { to, 2 }, { to, 3 } };
	struct exchangers e = { .at = at, .count = 4 };
	for (unsigned i = 0; i < 4; i++)
		e.hosts.at[i].preference = (uint16_t)(i == 2 ? 1 : i); /* 0, 1, 1, 3 */
	exchangers_cut(&e, 2);
	ck_assert_uint_eq(e.count, 1);
	exchangers_cut(&e, 0);
	ck_assert_uint_eq(e.count, 0);
}
END_TEST

START_TEST(a_search_that_is_forgotten_asks_nothing_more)
{
	find("b.example");
	fake_answer_with("b.example", DNS_MX, DNS_SECURE, "b.example", RECORD("\0\x0a\2mx\7example\0"));
	ck_assert_uint_eq(fake_open(), 2);
	exchangers_forget(&x);
	ck_assert_uint_eq(fake_open(), 0);
	ck_assert_uint_eq(found, 0);
}
END_TEST

UNIT(exchangers)
{
	const TTest *facts[] = {
		addresses_come_in_the_order_of_servers_and_ipv6_first,
		a_domain_without_mx_is_its_own_server,
		a_null_mx_takes_no_mail,
		our_own_name_is_a_loop,
		a_cut_leaves_better_servers_only,
		a_search_that_is_forgotten_asks_nothing_more,
	};
	TCase *all = tcase_create("exchangers");
	tcase_add_checked_fixture(all, begin, NULL);
	tcase_add_loop_test(all, without_an_answer_for_mx_no_address_is_asked_for, 0, SUITE_LEN(ends));
	tcase_add_loop_test(all, only_a_sure_answer_says_that_there_is_no_address, 0, SUITE_LEN(without));
	return suite_run_case("exchangers", all, facts, SUITE_LEN(facts));
}
