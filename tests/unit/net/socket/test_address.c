/* test_address.c: facts of addresses as text. */
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "net/socket/address.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const char *formatted(const char *text)
{
	static char out[ADDRESS_TEXT_MAX];
	struct sockaddr_storage a;

	if (address_parse(text, &a) != 0)
		return NULL;
	return address_format((struct sockaddr *)&a, out);
}

START_TEST(addresses_come_back_as_they_were_written)
{
	static const char *const texts[] = { "127.0.0.1:443", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:443",
		"[::]:1", "[2001:db8::1]:8443", "unix:/run/cssl/link.sock", "unix:relative" };

	for (size_t i = 0; i < SUITE_LEN(texts); i++)
		ck_assert_str_eq(formatted(texts[i]), texts[i]);
}
END_TEST

START_TEST(a_malformed_address_is_refused)
{
	static const char *const texts[] = { "", ":", ":443", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
		"127.0.0.1:-1", "127.0.0.1: 1", "127.0.0.1:+1", "127.0.0.1:1x", "127.0.0.1:0443", "127.0.0:1",
		"127.0.0.256:1", "localhost:1", "::1:443", "[::1]", "[::1]443", "[::1:443", "::1]:443", "[127.0.0.1]:1",
		"[]:1", "[::1]x:1", "[fe80::1%lo]:1", "unix:", "*:443", "127.0.0.1:99999999999999999999",
		"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0001]:1" };
	struct sockaddr_storage a;

	for (size_t i = 0; i < SUITE_LEN(texts); i++)
		ck_assert_msg(address_parse(texts[i], &a) == CSSL_E_CONFIG, "%s", texts[i]);
}
END_TEST

START_TEST(unix_path_is_as_long_as_the_kernel_takes_and_no_longer)
{
	char text[5 + 109] = "unix:";
	struct sockaddr_storage a;
	char out[ADDRESS_TEXT_MAX];

	memset(text + 5, 'p', 107);
	ck_assert_int_eq(address_parse(text, &a), 0);
	ck_assert_str_eq(address_format((struct sockaddr *)&a, out), text);
	ck_assert_uint_eq(address_len((struct sockaddr *)&a), sizeof(struct sockaddr_un));
	text[5 + 107] = 'p';
	ck_assert_int_eq(address_parse(text, &a), CSSL_E_CONFIG);
}
END_TEST

START_TEST(host_has_no_port)
{
	struct sockaddr_storage a;
	char out[ADDRESS_TEXT_MAX];

	ck_assert_int_eq(address_parse_host("10.1.2.3", &a), 0);
	ck_assert_str_eq(address_format((struct sockaddr *)&a, out), "10.1.2.3:0");
	ck_assert_int_eq(address_parse_host("::1", &a), 0);
	ck_assert_str_eq(address_format((struct sockaddr *)&a, out), "[::1]:0");
	ck_assert_int_eq(address_parse_host("10.1.2.3:4", &a), CSSL_E_CONFIG);
	ck_assert_int_eq(address_parse_host("[::1]", &a), CSSL_E_CONFIG);
	ck_assert_int_eq(address_parse_host("", &a), CSSL_E_CONFIG);
}
END_TEST

START_TEST(port_is_set_and_read)
{
	struct sockaddr_storage a;

	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(address_parse(i ? "[::1]:1" : "127.0.0.1:1", &a), 0);
		address_set_port((struct sockaddr *)&a, 51000);
		ck_assert_uint_eq(address_port((struct sockaddr *)&a), 51000);
	}
	ck_assert_int_eq(address_parse("unix:/x", &a), 0);
	address_set_port((struct sockaddr *)&a, 51000);
	ck_assert_uint_eq(address_port((struct sockaddr *)&a), 0);
}
END_TEST

START_TEST(address_bytes_fold_mapped_ipv4)
{
	struct sockaddr_storage a;
	uint8_t bytes[16];

	address_parse("1.2.3.4:5", &a);
	ck_assert_uint_eq(address_bytes((struct sockaddr *)&a, bytes), 4);
	ck_assert_mem_eq(bytes, "\1\2\3\4", 4);
	address_parse("[::ffff:1.2.3.4]:5", &a);
	ck_assert_uint_eq(address_bytes((struct sockaddr *)&a, bytes), 4);
	ck_assert_mem_eq(bytes, "\1\2\3\4", 4);
	address_parse("[::1]:5", &a);
	ck_assert_uint_eq(address_bytes((struct sockaddr *)&a, bytes), 16);
	address_parse("unix:/x", &a);
	ck_assert_uint_eq(address_bytes((struct sockaddr *)&a, bytes), 0);
}
END_TEST

START_TEST(any_address_is_all_zero_whatever_its_port)
{
	static const struct {
		const char *text;
		int is_any;
	} rows[] = { { "0.0.0.0:443", 1 }, { "[::]:0", 1 }, { "0.0.0.1:443", 0 }, { "127.0.0.1:0", 0 },
		{ "[::1]:443", 0 }, { "unix:/x", 0 } };
	struct sockaddr_storage a;

	for (size_t i = 0; i < SUITE_LEN(rows); i++) {
		ck_assert_int_eq(address_parse(rows[i].text, &a), 0);
		ck_assert_msg(address_is_any((struct sockaddr *)&a) == rows[i].is_any, "%s", rows[i].text);
	}
}
END_TEST

static int has(const char *net, const char *host)
{
	struct address_net n;
	struct sockaddr_storage a;

	ck_assert_msg(address_net_parse(net, &n) == 0, "%s", net);
	ck_assert_msg(address_parse_host(host, &a) == 0, "%s", host);
	return address_net_has(&n, (struct sockaddr *)&a);
}

START_TEST(net_has_its_addresses_and_no_others)
{
	ck_assert(has("10.0.0.0/8", "10.255.0.1"));
	ck_assert(!has("10.0.0.0/8", "11.0.0.1"));
	ck_assert(has("192.168.4.0/22", "192.168.7.255"));
	ck_assert(!has("192.168.4.0/22", "192.168.8.0"));
	ck_assert(!has("192.168.4.0/22", "192.168.3.255"));
	ck_assert(has("0.0.0.0/0", "9.9.9.9"));
	ck_assert(!has("0.0.0.0/0", "::1"));
	ck_assert(has("::1/128", "::1"));
	ck_assert(!has("::1/128", "::2"));
	ck_assert(has("2001:db8::/33", "2001:db8:7fff::1"));
	ck_assert(!has("2001:db8::/33", "2001:db8:8000::1"));
	ck_assert(has("127.0.0.1", "127.0.0.1"));
	ck_assert(!has("127.0.0.1", "127.0.0.2"));
}
END_TEST

START_TEST(net_has_mapped_addresses_both_ways)
{
	ck_assert(has("10.0.0.0/8", "::ffff:10.1.1.1"));
	ck_assert(has("::ffff:10.0.0.0/104", "10.1.1.1"));
	ck_assert(!has("::ffff:10.0.0.0/104", "11.1.1.1"));
}
END_TEST

START_TEST(net_has_no_unix_address)
{
	struct address_net n;
	struct sockaddr_storage a;

	ck_assert_int_eq(address_net_parse("0.0.0.0/0", &n), 0);
	ck_assert_int_eq(address_parse("unix:/x", &a), 0);
	ck_assert(!address_net_has(&n, (struct sockaddr *)&a));
}
END_TEST

START_TEST(a_malformed_net_is_refused)
{
	static const char *const texts[] = { "", "/", "10.0.0.0/", "10.0.0.0/33", "10.0.0.1/8", "::1/129", "::1/64",
		"10.0.0.0/8/8", "10.0.0.0/ 8", "10.0.0.0/08", "net/8", "::ffff:10.0.0.0/80" };
	struct address_net n;

	for (size_t i = 0; i < SUITE_LEN(texts); i++)
		ck_assert_msg(address_net_parse(texts[i], &n) == CSSL_E_CONFIG, "%s", texts[i]);
}
END_TEST

UNIT(address)
{
	const TTest *facts[] = {
		addresses_come_back_as_they_were_written,
		a_malformed_address_is_refused,
		unix_path_is_as_long_as_the_kernel_takes_and_no_longer,
		host_has_no_port,
		port_is_set_and_read,
		address_bytes_fold_mapped_ipv4,
		any_address_is_all_zero_whatever_its_port,
		net_has_its_addresses_and_no_others,
		net_has_mapped_addresses_both_ways,
		net_has_no_unix_address,
		a_malformed_net_is_refused,
	};
	return suite_run("address", facts, SUITE_LEN(facts));
}
