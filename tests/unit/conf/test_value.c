/* test_value.c: facts of scalars: which values are accepted and which are not. */
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "conf/value.h"
#include "net/socket/address.h"
#include "proto/error.h"
#include "tests/unit/conf/facts.h"
#include "tests/unit/unit.h"

static const struct schema_word words[] = { { "red", 7 }, { "blue", 9 }, { NULL } };
static const struct schema_row row = { .key = "k", .min = 1, .max = 1e15, .words = words };

static const struct {
	enum schema_type type;
	const char *text;
	uint64_t value;
} good_numbers[] = {
	{ SCHEMA_COUNT, "1", 1 },
	{ SCHEMA_COUNT, "0042", 42 },
	{ SCHEMA_COUNT, "1000000000000000", 1000000000000000 },
	{ SCHEMA_DURATION_MS, "1ms", 1 },
	{ SCHEMA_DURATION_MS, "200ms", 200 },
	{ SCHEMA_DURATION_MS, "3s", 3000 },
	{ SCHEMA_DURATION_MS, "5min", 300000 },
	{ SCHEMA_DURATION_MS, "2h", 7200000 },
	{ SCHEMA_DURATION_MS, "1d", 86400000 },
	{ SCHEMA_DURATION_S, "3s", 3 },
	{ SCHEMA_DURATION_S, "2000ms", 2 },
	{ SCHEMA_DURATION_S, "1d", 86400 },
	{ SCHEMA_SIZE, "1B", 1 },
	{ SCHEMA_SIZE, "64KiB", 65536 },
	{ SCHEMA_SIZE, "256MiB", 268435456 },
	{ SCHEMA_SIZE, "2GiB", 2147483648 },
	{ SCHEMA_WORD, "red", 7 },
	{ SCHEMA_WORD, "blue", 9 },
};

START_TEST(a_good_number_has_its_value)
{
	uint64_t value = 0;
	ck_assert_int_eq(value_parse(&row, good_numbers[_i].type, good_numbers[_i].text, "", &value, sizeof value), 0);
	ck_assert_uint_eq(value, good_numbers[_i].value);
}
END_TEST

static const struct {
	enum schema_type type;
	const char *text;
} bad_numbers[] = {
	{ SCHEMA_COUNT, "" },
	{ SCHEMA_COUNT, "0" }, /* below min */
	{ SCHEMA_COUNT, "-1" },
	{ SCHEMA_COUNT, "+1" },
	{ SCHEMA_COUNT, " 1" },
	{ SCHEMA_COUNT, "1 " },
	{ SCHEMA_COUNT, "0x10" },
	{ SCHEMA_COUNT, "1e3" },
	{ SCHEMA_COUNT, "1.0" },
	{ SCHEMA_COUNT, "1000000000000001" },
	{ SCHEMA_COUNT, "18446744073709551616" },
	{ SCHEMA_COUNT, "99999999999999999999999999" },
	{ SCHEMA_DURATION_MS, "3" },
	{ SCHEMA_DURATION_MS, "3 s" },
	{ SCHEMA_DURATION_MS, "3S" },
	{ SCHEMA_DURATION_MS, "3m" },
	{ SCHEMA_DURATION_MS, "s" },
	{ SCHEMA_DURATION_MS, "1.5s" },
	{ SCHEMA_DURATION_MS, "18446744073709551615s" },
	{ SCHEMA_DURATION_S, "1500ms" },
	{ SCHEMA_SIZE, "64" },
	{ SCHEMA_SIZE, "64KB" },
	{ SCHEMA_SIZE, "64k" },
	{ SCHEMA_SIZE, "0" },
	{ SCHEMA_SIZE, "17592186044416MiB" },
	{ SCHEMA_WORD, "" },
	{ SCHEMA_WORD, "Red" },
	{ SCHEMA_WORD, "redd" },
	{ SCHEMA_REAL, "" },
	{ SCHEMA_REAL, "." },
	{ SCHEMA_REAL, "1." },
	{ SCHEMA_REAL, ".5" },
	{ SCHEMA_REAL, "0.99" },
	{ SCHEMA_REAL, "1,5" },
	{ SCHEMA_REAL, "nan" },
	{ SCHEMA_REAL, "inf" },
	{ SCHEMA_REAL, "1e3" },
};

START_TEST(a_bad_number_is_refused_and_changes_nothing)
{
	uint64_t value = 0x5555;
	ck_assert_int_eq(
		value_parse(&row, bad_numbers[_i].type, bad_numbers[_i].text, "", &value, sizeof value), CSSL_E_CONFIG);
	ck_assert_uint_eq(value, 0x5555);
}
END_TEST

START_TEST(a_number_larger_than_its_field_is_refused)
{
	uint16_t small = 1;
	ck_assert_int_eq(value_parse(&row, SCHEMA_COUNT, "65535", "", &small, sizeof small), 0);
	ck_assert_uint_eq(small, 65535);
	ck_assert_int_eq(value_parse(&row, SCHEMA_COUNT, "65536", "", &small, sizeof small), CSSL_E_CONFIG);
}
END_TEST

START_TEST(a_real_has_its_value)
{
	double value;
	ck_assert_int_eq(value_parse(&row, SCHEMA_REAL, "1.25", "", &value, sizeof value), 0);
	ck_assert_double_eq(value, 1.25);
	ck_assert_int_eq(value_parse(&row, SCHEMA_REAL, "3", "", &value, sizeof value), 0);
	ck_assert_double_eq(value, 3.0);
}
END_TEST

START_TEST(off_is_zero_where_it_is_allowed)
{
	const struct schema_row switchable = { .key = "k", .min = 1, .max = 10, .off = "off" };
	double real = 5;
	uint32_t count = 5;
	ck_assert_int_eq(value_parse(&switchable, SCHEMA_REAL, "off", "", &real, sizeof real), 0);
	ck_assert_double_eq(real, 0);
	ck_assert_int_eq(value_parse(&switchable, SCHEMA_DURATION_MS, "off", "", &count, sizeof count), 0);
	ck_assert_uint_eq(count, 0);
	ck_assert_int_eq(value_parse(&row, SCHEMA_DURATION_MS, "off", "", &count, sizeof count), CSSL_E_CONFIG);
}
END_TEST

#define NAME_OF_63 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz12345678901"
#define PATH_OF_99 "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u/v/w/x/y/z/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u/v/w/x"

static const struct {
	enum schema_type type;
	const char *text, *folder, *value; /* value NULL: refused */
} strings[] = {
	{ SCHEMA_NAME, "a1", "", "a1" },
	{ SCHEMA_NAME, "A_b.c-9", "", "A_b.c-9" },
	{ SCHEMA_NAME, NAME_OF_63, "", NAME_OF_63 },
	{ SCHEMA_NAME, NAME_OF_63 "x", "", NULL },
	{ SCHEMA_NAME, "", "", NULL },
	{ SCHEMA_NAME, "-a", "", NULL },
	{ SCHEMA_NAME, ".a", "", NULL },
	{ SCHEMA_NAME, "a b", "", NULL },
	{ SCHEMA_NAME, "a/b", "", NULL },
	{ SCHEMA_NAME, "\xc3\xa4", "", NULL },
	{ SCHEMA_STRING, "a b", "", "a b" },
	{ SCHEMA_STRING, "", "", NULL },
	{ SCHEMA_STRING, "a\nb", "", NULL },
	{ SCHEMA_PATH, "x.pem", "", "x.pem" },
	{ SCHEMA_PATH, "x.pem", "/etc/cssl", "/etc/cssl/x.pem" },
	{ SCHEMA_PATH, "/x.pem", "/etc/cssl", "/x.pem" },
	{ SCHEMA_PATH, "", "/etc", NULL },
	{ SCHEMA_SOCKET_PATH, PATH_OF_99, "", PATH_OF_99 },
	{ SCHEMA_SOCKET_PATH, PATH_OF_99, "/12345", "/12345/" PATH_OF_99 },
	{ SCHEMA_SOCKET_PATH, PATH_OF_99, "/12345678", NULL },
};

START_TEST(strings_are_taken_or_refused)
{
	char *value = NULL;
	const int r = value_parse(&row, strings[_i].type, strings[_i].text, strings[_i].folder, &value, sizeof value);
	if (strings[_i].value) {
		ck_assert_int_eq(r, 0);
		ck_assert_str_eq(value, strings[_i].value);
	} else {
		ck_assert_int_eq(r, CSSL_E_CONFIG);
		ck_assert_ptr_null(value);
	}
	free(value);
}
END_TEST

static const struct {
	const char *text, *folder, *value;
} addresses[] = {
	{ "127.0.0.1:443", "/etc", "127.0.0.1:443" },
	{ "[::1]:443", "/etc", "[::1]:443" },
	{ "[0:0::1]:443", "", "[::1]:443" },
	{ "unix:/run/x", "/etc", "unix:/run/x" },
	{ "unix:run/x", "/etc", "unix:/etc/run/x" },
	{ "unix:run/x", "", "unix:run/x" },
	{ "localhost:443", "", NULL },
	{ "127.0.0.1", "", NULL },
	{ "127.0.0.1:65536", "", NULL },
	{ "::1:443", "", NULL },
	{ "unix:", "", NULL },
	{ "unix:" PATH_OF_99, "/12345678", NULL },
};

START_TEST(addresses_are_taken_or_refused)
{
	struct sockaddr_storage address = { 0 };
	char text[ADDRESS_TEXT_MAX];
	const int r =
		value_parse(&row, SCHEMA_ADDRESS, addresses[_i].text, addresses[_i].folder, &address, sizeof address);
	if (addresses[_i].value) {
		ck_assert_int_eq(r, 0);
		ck_assert_str_eq(address_format((struct sockaddr *)&address, text), addresses[_i].value);
	} else {
		ck_assert_int_eq(r, CSSL_E_CONFIG);
		ck_assert_int_eq(address.ss_family, 0);
	}
}
END_TEST

START_TEST(a_host_has_no_port)
{
	struct sockaddr_storage address = { 0 };
	ck_assert_int_eq(value_parse(&row, SCHEMA_HOST, "127.0.0.11", "", &address, sizeof address), 0);
	ck_assert_int_eq(address.ss_family, AF_INET);
	ck_assert_uint_eq(address_port((struct sockaddr *)&address), 0);
	ck_assert_int_eq(value_parse(&row, SCHEMA_HOST, "127.0.0.11:80", "", &address, sizeof address), CSSL_E_CONFIG);
}
END_TEST

START_TEST(a_network_has_its_prefix)
{
	struct address_net net = { 0 };
	ck_assert_int_eq(value_parse(&row, SCHEMA_NET, "10.0.0.0/8", "", &net, sizeof net), 0);
	ck_assert_uint_eq(net.prefix, 8);
	ck_assert_int_eq(value_parse(&row, SCHEMA_NET, "10.0.0.0/33", "", &net, sizeof net), CSSL_E_CONFIG);
}
END_TEST

static const struct {
	uint64_t ms;
	const char *text;
} durations[] = {
	{ 0, "0ms" },
	{ 1, "1ms" },
	{ 999, "999ms" },
	{ 1000, "1s" },
	{ 1500, "1s500ms" },
	{ 60000, "1min" },
	{ 90000, "1min30s" },
	{ 3600000, "1h" },
	{ 4440000, "1h14min" },
	{ 3601000, "1h" },
	{ 86400000, "1d" },
	{ 90000000, "1d1h" },
};

START_TEST(durations_are_written_in_two_units)
{
	char text[VALUE_TEXT_MAX];
	ck_assert_str_eq(value_duration_text(durations[_i].ms, text), durations[_i].text);
}
END_TEST

static const struct {
	uint64_t bytes;
	const char *text;
} sizes[] = {
	{ 0, "0B" },
	{ 1, "1B" },
	{ 1024, "1KiB" },
	{ 1025, "1025B" },
	{ 1536, "1536B" },
	{ 268435456, "256MiB" },
	{ 1099511627776, "1TiB" },
};

START_TEST(sizes_are_written_exactly)
{
	char text[VALUE_TEXT_MAX];
	ck_assert_str_eq(value_size_text(sizes[_i].bytes, text), sizes[_i].text);
}
END_TEST

UNIT(value)
{
	TCase *facts = tcase_create("value");
	tcase_add_loop_test(facts, a_good_number_has_its_value, 0, ROWS(good_numbers));
	tcase_add_loop_test(facts, a_bad_number_is_refused_and_changes_nothing, 0, ROWS(bad_numbers));
	tcase_add_test(facts, a_number_larger_than_its_field_is_refused);
	tcase_add_test(facts, a_real_has_its_value);
	tcase_add_test(facts, off_is_zero_where_it_is_allowed);
	tcase_add_loop_test(facts, strings_are_taken_or_refused, 0, ROWS(strings));
	tcase_add_loop_test(facts, addresses_are_taken_or_refused, 0, ROWS(addresses));
	tcase_add_test(facts, a_host_has_no_port);
	tcase_add_test(facts, a_network_has_its_prefix);
	tcase_add_loop_test(facts, durations_are_written_in_two_units, 0, ROWS(durations));
	tcase_add_loop_test(facts, sizes_are_written_exactly, 0, ROWS(sizes));
	return facts_run(facts);
}
