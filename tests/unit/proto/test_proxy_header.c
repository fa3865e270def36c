/* test_proxy_header.c: facts of choosing between the two versions. */
#include <string.h>

#include "proto/error.h"
#include "proto/proxy_header.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static int parse(const char *in, size_t len)
{
	struct proxy_header h;
	size_t taken;
	return proxy_header_parse((const uint8_t *)in, len, &h, &taken);
}

START_TEST(nothing_may_become_a_header)
{
	ck_assert_int_eq(parse("", 0), PROXY_INCOMPLETE);
}
END_TEST

START_TEST(the_beginning_of_either_version_may_become_a_header)
{
	const char signature[] = "\r\n\r\n\0\r\nQUIT\n";
	for (size_t len = 1; len <= 12; len++)
		ck_assert_int_eq(parse(signature, len), PROXY_INCOMPLETE);
	for (size_t len = 1; len <= 6; len++)
		ck_assert_int_eq(parse("PROXY ", len), PROXY_INCOMPLETE);
}
END_TEST

START_TEST(a_client_without_a_header_is_refused_at_its_first_byte_that_fits_neither)
{
	ck_assert_int_eq(parse("\x16", 1), CSSL_E_TYPE);
	ck_assert_int_eq(parse("G", 1), CSSL_E_TYPE);
	ck_assert_int_eq(parse("PRI", 3), CSSL_E_TYPE);
	ck_assert_int_eq(parse("\r\n\r\n\n", 5), CSSL_E_TYPE);
	ck_assert_int_eq(parse("\r\n\r\n\0\r\nQUIT ", 12), CSSL_E_TYPE);
}
END_TEST

START_TEST(only_versions_1_and_2_are_written)
{
	struct proxy_header h = { .command = PROXY_LOCAL };
	uint8_t out[PROXY_V1_MAX];
	for (unsigned version = 0; version < 256; version++) {
		h.version = (uint8_t)version;
		ptrdiff_t r = proxy_header_write(&h, out, sizeof(out));
		if (version == 1 || version == 2)
			ck_assert_int_gt(r, 0);
		else
			ck_assert_int_eq(r, CSSL_E_VERSION);
	}
}
END_TEST

UNIT(proxy_header)
{
	const TTest *facts[] = {
		nothing_may_become_a_header,
		the_beginning_of_either_version_may_become_a_header,
		a_client_without_a_header_is_refused_at_its_first_byte_that_fits_neither,
		only_versions_1_and_2_are_written,
	};
	return suite_run("proxy_header", facts, SUITE_LEN(facts));
}
