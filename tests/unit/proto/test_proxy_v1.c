/* test_proxy_v1.c: facts of the PROXY protocol's version 1. */
#include <stdio.h>
#include <string.h>

#include "proto/error.h"
#include "proto/proxy_header.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static int parse(const char *line, struct proxy_header *out, size_t *taken)
{
	return proxy_header_parse((const uint8_t *)line, strlen(line), out, taken);
}

static int verdict(const char *line)
{
	struct proxy_header h;
	size_t taken;
	return parse(line, &h, &taken);
}

START_TEST(a_tcp4_line_is_read)
{
	struct proxy_header h;
	size_t taken;
	ck_assert_int_eq(parse("PROXY TCP4 192.0.2.1 198.51.100.2 40000 443\r\nGET", &h, &taken), 0);
	ck_assert_uint_eq(taken, 45);
	ck_assert_uint_eq(h.version, 1);
	ck_assert_int_eq(h.command, PROXY_PROXIED);
	ck_assert_int_eq(h.family, PROXY_TCP4);
	ck_assert_mem_eq(h.source, "\xc0\0\2\1", 4);
	ck_assert_mem_eq(h.destination, "\xc6\x33\x64\2", 4);
	ck_assert_uint_eq(h.source_port, 40000);
	ck_assert_uint_eq(h.destination_port, 443);
}
END_TEST

START_TEST(a_tcp6_line_is_read)
{
	struct proxy_header h;
	size_t taken;
	ck_assert_int_eq(parse("PROXY TCP6 2001:db8::1 ::1 0 65535\r\n", &h, &taken), 0);
	ck_assert_int_eq(h.family, PROXY_TCP6);
	ck_assert_mem_eq(h.source, "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	ck_assert_mem_eq(h.destination, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	ck_assert_uint_eq(h.source_port, 0);
	ck_assert_uint_eq(h.destination_port, 65535);
}
END_TEST

START_TEST(the_longest_line_is_read)
{
	const char *line = "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
			   "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";
	ck_assert_uint_eq(strlen(line), 104);
	ck_assert_int_eq(verdict(line), 0);
}
END_TEST

START_TEST(behind_unknown_anything_may_stand)
{
	struct proxy_header h;
	size_t taken;
	ck_assert_int_eq(parse("PROXY UNKNOWN\r\n", &h, &taken), 0);
	ck_assert_int_eq(h.family, PROXY_UNSPEC);
	ck_assert_int_eq(parse("PROXY UNKNOWN ffff::1 what ever  \r\n", &h, &taken), 0);
	ck_assert_uint_eq(taken, 35);
	ck_assert_int_eq(verdict("PROXY UNKNOWNS\r\n"), CSSL_E_RANGE);
}
END_TEST

START_TEST(every_shorter_line_is_incomplete)
{
	const char *line = "PROXY TCP4 192.0.2.1 198.51.100.2 40000 443\r\n";
	struct proxy_header h;
	size_t taken;
	for (size_t len = 0; len < strlen(line); len++)
		ck_assert_int_eq(proxy_header_parse((const uint8_t *)line, len, &h, &taken), PROXY_INCOMPLETE);
}
END_TEST

START_TEST(a_line_without_end_is_refused_after_107_bytes)
{
	char line[PROXY_V1_MAX + 2] = "PROXY UNKNOWN ";
	memset(line + 14, 'x', sizeof(line) - 15);
	line[PROXY_V1_MAX] = 0;
	ck_assert_int_eq(verdict(line), CSSL_E_TOO_LONG);
	memcpy(line + PROXY_V1_MAX - 2, "\r\n", 3);
	ck_assert_int_eq(verdict(line), 0);
	memcpy(line + PROXY_V1_MAX - 2, "x\r\n", 3);
	ck_assert_int_eq(verdict(line), CSSL_E_TOO_LONG);
}
END_TEST

START_TEST(words_are_separated_by_single_spaces)
{
	ck_assert_int_eq(verdict("PROXY TCP4  192.0.2.1 198.51.100.2 40000 443\r\n"), CSSL_E_RANGE);
	ck_assert_int_eq(verdict("PROXY TCP4 192.0.2.1 198.51.100.2 40000 443 \r\n"), CSSL_E_RANGE);
	ck_assert_int_eq(verdict("PROXY TCP4 192.0.2.1 198.51.100.2 40000 443 1\r\n"), CSSL_E_RANGE);
	ck_assert_int_eq(verdict("PROXY TCP4 192.0.2.1 198.51.100.2 40000\r\n"), CSSL_E_RANGE);
	ck_assert_int_eq(verdict("PROXY TCP4 192.0.2.1\t198.51.100.2 40000 443\r\n"), CSSL_E_RANGE);
	ck_assert_int_eq(verdict("PROXY \r\n"), CSSL_E_RANGE);
}
END_TEST

START_TEST(an_address_is_of_its_family)
{
	ck_assert_int_eq(verdict("PROXY TCP4 2001:db8::1 ::1 40000 443\r\n"), CSSL_E_RANGE);
	ck_assert_int_eq(verdict("PROXY TCP6 192.0.2.1 198.51.100.2 40000 443\r\n"), CSSL_E_RANGE);
	ck_assert_int_eq(verdict("PROXY TCP4 192.0.2.256 198.51.100.2 40000 443\r\n"), CSSL_E_RANGE);
	ck_assert_int_eq(verdict("PROXY TCP4 192.0.2 198.51.100.2 40000 443\r\n"), CSSL_E_RANGE);
	ck_assert_int_eq(verdict("PROXY TCP4 192.0.02.1 198.51.100.2 40000 443\r\n"), CSSL_E_RANGE);
	ck_assert_int_eq(verdict("PROXY UDP4 192.0.2.1 198.51.100.2 40000 443\r\n"), CSSL_E_TYPE);
	ck_assert_int_eq(verdict("PROXY tcp4 192.0.2.1 198.51.100.2 40000 443\r\n"), CSSL_E_TYPE);
}
END_TEST

START_TEST(a_word_longer_than_any_address_is_refused)
{
	for (int len = 40; len < 70; len++) {
		char line[PROXY_V1_MAX + 1];
		snprintf(line, sizeof(line), "PROXY TCP6 %0*d ::1 1 2\r\n", len, 0);
		ck_assert_int_eq(verdict(line), CSSL_E_RANGE);
	}
}
END_TEST

START_TEST(a_port_is_a_plain_decimal)
{
	ck_assert_int_eq(verdict("PROXY TCP4 192.0.2.1 198.51.100.2 65536 443\r\n"), CSSL_E_RANGE);
	ck_assert_int_eq(verdict("PROXY TCP4 192.0.2.1 198.51.100.2 040 443\r\n"), CSSL_E_RANGE);
	ck_assert_int_eq(verdict("PROXY TCP4 192.0.2.1 198.51.100.2 +40 443\r\n"), CSSL_E_RANGE);
	ck_assert_int_eq(verdict("PROXY TCP4 192.0.2.1 198.51.100.2 -1 443\r\n"), CSSL_E_RANGE);
	ck_assert_int_eq(verdict("PROXY TCP4 192.0.2.1 198.51.100.2 0x1 443\r\n"), CSSL_E_RANGE);
	ck_assert_int_eq(verdict("PROXY TCP4 192.0.2.1 198.51.100.2 4294967297 443\r\n"), CSSL_E_RANGE);
}
END_TEST

START_TEST(a_zero_byte_hides_nothing)
{
	const char line[] = "PROXY TCP4 192.0.2.1\0x 198.51.100.2 40000 443\r\n";
	struct proxy_header h;
	size_t taken;
	int r = proxy_header_parse((const uint8_t *)line, sizeof(line) - 1, &h, &taken);
	ck_assert_int_eq(r, CSSL_E_RANGE);
}
END_TEST

START_TEST(lines_are_written_as_the_protocol_says)
{
	struct proxy_header h = { .version = 1,
		.command = PROXY_PROXIED,
		.family = PROXY_TCP4,
		.source = { 192, 0, 2, 1 },
		.destination = { 198, 51, 100, 2 },
		.source_port = 40000,
		.destination_port = 443 };
	const char *line = "PROXY TCP4 192.0.2.1 198.51.100.2 40000 443\r\n";
	uint8_t out[PROXY_V1_MAX];
	ck_assert_int_eq(proxy_header_write(&h, out, sizeof(out)), (int)strlen(line));
	ck_assert_mem_eq(out, line, strlen(line));

	h.family = PROXY_UNIX;
	ck_assert_int_eq(proxy_header_write(&h, out, sizeof(out)), 15);
	ck_assert_mem_eq(out, "PROXY UNKNOWN\r\n", 15);
	h.family = PROXY_TCP6;
	h.command = PROXY_LOCAL;
	ck_assert_int_eq(proxy_header_write(&h, out, sizeof(out)), 15);
}
END_TEST

START_TEST(the_longest_line_fits_its_bound)
{
	struct proxy_header h = { .version = 1,
		.command = PROXY_PROXIED,
		.family = PROXY_TCP6,
		.source_port = 65535,
		.destination_port = 65535 };
	uint8_t out[PROXY_V1_MAX];
	memset(h.source, 0xff, 16);
	memset(h.destination, 0xff, 16);
	ck_assert_int_eq(proxy_header_write(&h, out, sizeof(out)), 104);
	ck_assert_int_eq(proxy_header_write(&h, out, 103), CSSL_E_TOO_LONG);
}
END_TEST

UNIT(proxy_v1)
{
	const TTest *facts[] = {
		a_tcp4_line_is_read,
		a_tcp6_line_is_read,
		the_longest_line_is_read,
		behind_unknown_anything_may_stand,
		every_shorter_line_is_incomplete,
		a_line_without_end_is_refused_after_107_bytes,
		words_are_separated_by_single_spaces,
		an_address_is_of_its_family,
		a_word_longer_than_any_address_is_refused,
		a_port_is_a_plain_decimal,
		a_zero_byte_hides_nothing,
		lines_are_written_as_the_protocol_says,
		the_longest_line_fits_its_bound,
	};
	return suite_run("proxy_v1", facts, SUITE_LEN(facts));
}
