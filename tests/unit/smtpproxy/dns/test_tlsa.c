/* test_tlsa.c: facts of the search for TLSA records. */
#include "smtpproxy/dns/tlsa.h"

#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/smtpproxy/dns/fake_resolver.h"
#include "tests/unit/unit.h"

#define EE                                                                                                             \
	"\3\1\1"                                                                                                       \
	"0123456789abcdef0123456789abcdef"
#define PKIX                                                                                                           \
	"\1\1\1"                                                                                                       \
	"0123456789abcdef0123456789abcdef"

static struct tlsa_search s;
static unsigned found;

static void on_found(struct tlsa_search *t)
{
	found++;
}

static void begin(void)
{
	s = (struct tlsa_search){ .on_found = on_found };
	found = 0;
	tlsa_search_begin(&s, NULL, "mx.example", 25);
}

static void ck_end(enum tlsa_verdict verdict)
{
	ck_assert_uint_eq(found, 1);
	ck_assert_int_eq(s.verdict, verdict);
	ck_assert_uint_eq(fake_open(), 0);
	tlsa_search_forget(&s);
	ck_assert_ptr_null(s.set);
}

static void answer_tlsa(const char *name, const char *bytes, enum dns_trust trust)
{
	fake_answer_with(name, DNS_TLSA, trust, name, (struct dns_record){ (const uint8_t *)bytes, sizeof EE - 1 });
}

static void answer_address(enum dns_trust trust, const char *expanded)
{
	fake_answer_with("mx.example", DNS_A, trust, expanded, (struct dns_record){ (const uint8_t *)"\1\2\3\4", 4 });
}

START_TEST(secure_records_are_kept)
{
	answer_address(DNS_SECURE, "mx.example");
	answer_tlsa("_25._tcp.mx.example", EE, DNS_SECURE);
	ck_assert_uint_eq(s.set->count, 1);
	ck_assert_str_eq(s.set->base, "mx.example");
	ck_assert_mem_eq(s.set->at[0].data, &EE[3], 32);
	ck_assert_uint_eq(s.ttl_s, 60);
	ck_end(TLSA_RECORDS);
}
END_TEST

START_TEST(a_set_outlives_its_search)
{
	answer_address(DNS_SECURE, "mx.example");
	answer_tlsa("_25._tcp.mx.example", EE, DNS_SECURE);
	struct tlsa_set *set = tlsa_set_use(s.set);
	ck_end(TLSA_RECORDS);
	ck_assert_uint_eq(set->count, 1);
	tlsa_set_drop(set);
}
END_TEST

START_TEST(records_that_smtp_cannot_use_are_told_apart_from_none)
{
	answer_address(DNS_SECURE, "mx.example");
	answer_tlsa("_25._tcp.mx.example", PKIX, DNS_SECURE);
	ck_end(TLSA_UNUSABLE);
}
END_TEST

START_TEST(records_that_are_not_secure_are_none)
{
	answer_address(DNS_SECURE, "mx.example");
	answer_tlsa("_25._tcp.mx.example", EE, DNS_INSECURE);
	ck_end(TLSA_NONE);
}
END_TEST

START_TEST(a_host_whose_address_is_not_secure_is_not_asked)
{
	answer_address(DNS_INSECURE, "mx.example");
	ck_end(TLSA_NONE);
}
END_TEST

START_TEST(a_host_with_ipv6_only_is_asked)
{
	fake_answer("mx.example", DNS_A, DNS_NO_RECORDS, DNS_SECURE);
	answer_tlsa("_25._tcp.mx.example", EE, DNS_SECURE);
	ck_end(TLSA_RECORDS);
}
END_TEST

START_TEST(the_last_name_of_an_alias_is_asked_first)
{
	answer_address(DNS_SECURE, "real.example");
	answer_tlsa("_25._tcp.real.example", EE, DNS_SECURE);
	ck_assert_str_eq(s.set->base, "real.example");
	ck_end(TLSA_RECORDS);
}
END_TEST

START_TEST(the_first_name_of_an_alias_is_asked_next)
{
	answer_address(DNS_SECURE, "real.example");
	fake_answer("_25._tcp.real.example", DNS_TLSA, DNS_NO_NAME, DNS_SECURE);
	answer_tlsa("_25._tcp.mx.example", EE, DNS_SECURE);
	ck_assert_str_eq(s.set->base, "mx.example");
	ck_end(TLSA_RECORDS);
}
END_TEST

START_TEST(a_secure_alias_of_a_name_that_is_not_secure_is_asked)
{
	answer_address(DNS_INSECURE, "real.example");
	fake_answer_with(
		"mx.example", DNS_CNAME, DNS_SECURE, "mx.example", (struct dns_record){ (const uint8_t *)"\0", 1 });
	answer_tlsa("_25._tcp.mx.example", EE, DNS_SECURE);
	ck_end(TLSA_RECORDS);
}
END_TEST

START_TEST(an_alias_that_is_not_secure_is_not_asked)
{
	answer_address(DNS_INSECURE, "real.example");
	fake_answer_with(
		"mx.example", DNS_CNAME, DNS_INSECURE, "mx.example", (struct dns_record){ (const uint8_t *)"\0", 1 });
	ck_end(TLSA_NONE);
}
END_TEST

static const enum dns_outcome failures[] = { DNS_BOGUS, DNS_FAILED, DNS_TIMED_OUT };

START_TEST(without_an_answer_the_search_fails)
{
	fake_answer("mx.example", DNS_A, failures[_i], DNS_INSECURE);
	ck_end(TLSA_FAILED);
	begin();
	answer_address(DNS_SECURE, "mx.example");
	fake_answer("_25._tcp.mx.example", DNS_TLSA, failures[_i], DNS_INSECURE);
	ck_end(TLSA_FAILED);
}
END_TEST

UNIT(tlsa)
{
	const TTest *facts[] = {
		secure_records_are_kept,
		a_set_outlives_its_search,
		records_that_smtp_cannot_use_are_told_apart_from_none,
		records_that_are_not_secure_are_none,
		a_host_whose_address_is_not_secure_is_not_asked,
		a_host_with_ipv6_only_is_asked,
		the_last_name_of_an_alias_is_asked_first,
		the_first_name_of_an_alias_is_asked_next,
		a_secure_alias_of_a_name_that_is_not_secure_is_asked,
		an_alias_that_is_not_secure_is_not_asked,
	};
	TCase *all = tcase_create("tlsa");
	tcase_add_checked_fixture(all, begin, NULL);
	tcase_add_loop_test(all, without_an_answer_the_search_fails, 0, SUITE_LEN(failures));
	return suite_run_case("tlsa", all, facts, SUITE_LEN(facts));
}
