/* test_records.c: facts of the readers of DNS records. */
#include "smtpproxy/dns/records.h"

#include <netinet/in.h>
#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct dns_record record_of(const char *bytes, size_t len)
{
	return (struct dns_record){ (const uint8_t *)bytes, len };
}
#define RECORD(bytes) record_of(bytes, sizeof(bytes) - 1)

START_TEST(mx_has_a_preference_and_a_host_in_lower_case)
{
	struct dns_mx mx;
	ck_assert_int_eq(dns_mx_read(RECORD("\0\x0a\2MX\7example\0"), &mx), 0);
	ck_assert_uint_eq(mx.preference, 10);
	ck_assert_str_eq(mx.host, "mx.example");
}
END_TEST

START_TEST(mx_of_the_root_has_an_empty_host)
{
	struct dns_mx mx;
	ck_assert_int_eq(dns_mx_read(RECORD("\0\0\0"), &mx), 0);
	ck_assert_str_eq(mx.host, "");
}
END_TEST

static const struct {
	const char *bytes;
	size_t len;
	int error;
} bad_mx[] = {
	{ "", 0, CSSL_E_TRUNCATED },
	{ "\0\x0a", 2, CSSL_E_TRUNCATED },
	{ "\0\x0a\2mx", 5, CSSL_E_TRUNCATED },
	{ "\0\x0a\5mx", 5, CSSL_E_TRUNCATED },
	{ "\0\x0a\2mx\0x", 7, CSSL_E_TRAILING },
	{ "\0\x0a\2m \0", 6, CSSL_E_RANGE },
	{ "\0\x0a\2m\r\0", 6, CSSL_E_RANGE },
	{ "\0\x0a\3m.x\0", 7, CSSL_E_RANGE },
};

START_TEST(mx_without_a_host_name_is_refused)
{
	struct dns_mx mx;
	ck_assert_int_eq(dns_mx_read(record_of(bad_mx[_i].bytes, bad_mx[_i].len), &mx), bad_mx[_i].error);
}
END_TEST

START_TEST(a_name_that_is_too_long_is_refused)
{
	uint8_t bytes[2 + 5 * 64 + 1] = { 0, 10 };
	struct dns_mx mx;
	for (size_t i = 0; i < 5; i++) {
		bytes[2 + i * 64] = 63;
		memset(bytes + 3 + i * 64, 'a', 63);
	}
	ck_assert_int_eq(dns_mx_read((struct dns_record){ bytes, sizeof bytes }, &mx), CSSL_E_RANGE);
}
END_TEST

START_TEST(addresses_have_the_length_of_their_type)
{
	struct sockaddr_storage a;
	ck_assert_int_eq(dns_address_read(RECORD("\xc0\0\2\1"), DNS_A, &a), 0);
	ck_assert_uint_eq(ntohl(((struct sockaddr_in *)&a)->sin_addr.s_addr), 0xc0000201);
	ck_assert_int_eq(dns_address_read(RECORD("0123456789abcdef"), DNS_AAAA, &a), 0);
	ck_assert_int_eq(a.ss_family, AF_INET6);
	ck_assert_int_eq(dns_address_read(RECORD("\xc0\0\2\1"), DNS_AAAA, &a), CSSL_E_RANGE);
	ck_assert_int_eq(dns_address_read(RECORD("\xc0\0\2"), DNS_A, &a), CSSL_E_RANGE);
}
END_TEST

#define DIGEST32 "0123456789abcdef0123456789abcdef"

static const struct {
	const char *bytes;
	size_t len;
	int usable;
} tlsas[] = {
	{ "\3\1\1" DIGEST32, 35, 1 },
	{ "\2\0\1" DIGEST32, 35, 1 },
	{ "\3\1\2" DIGEST32 DIGEST32, 67, 1 },
	{ "\3\0\0cert", 7, 1 },
	{ "\0\1\1" DIGEST32, 35, 0 }, /* PKIX-TA */
	{ "\1\1\1" DIGEST32, 35, 0 }, /* PKIX-EE */
	{ "\4\1\1" DIGEST32, 35, 0 },
	{ "\3\2\1" DIGEST32, 35, 0 },
	{ "\3\1\3" DIGEST32, 35, 0 },
	{ "\3\1\2" DIGEST32, 35, 0 },
	{ "\3\1\1" DIGEST32, 34, 0 },
};

START_TEST(tlsa_is_usable_as_rfc_7672_says)
{
	struct dns_tlsa t;
	ck_assert_int_eq(dns_tlsa_read(record_of(tlsas[_i].bytes, tlsas[_i].len), &t), 0);
	ck_assert_int_eq(dns_tlsa_is_usable(&t), tlsas[_i].usable);
}
END_TEST

START_TEST(tlsa_without_data_is_refused)
{
	struct dns_tlsa t;
	ck_assert_int_eq(dns_tlsa_read(RECORD("\3\1\1"), &t), CSSL_E_TRUNCATED);
	ck_assert_int_eq(dns_tlsa_read(RECORD("\3\1"), &t), CSSL_E_TRUNCATED);
}
END_TEST

UNIT(records)
{
	const TTest *facts[] = {
		mx_has_a_preference_and_a_host_in_lower_case,
		mx_of_the_root_has_an_empty_host,
		a_name_that_is_too_long_is_refused,
		addresses_have_the_length_of_their_type,
		tlsa_without_data_is_refused,
	};
	TCase *all = tcase_create("records");
	tcase_add_loop_test(all, mx_without_a_host_name_is_refused, 0, SUITE_LEN(bad_mx));
	tcase_add_loop_test(all, tlsa_is_usable_as_rfc_7672_says, 0, SUITE_LEN(tlsas));
	return suite_run_case("records", all, facts, SUITE_LEN(facts));
}
