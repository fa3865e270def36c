/* test_link_hello.c */
#include <string.h>

#include "proto/error.h"
#include "proto/link_hello.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const struct link_hello good = {
	.version_min = 1,
	.version_max = 3,
	.role = LINK_ROLE_AGENT,
	.protection = LINK_SEALED,
	.aead = AEAD_AES_256_GCM,
	.name = "agent-1",
	.boot_id = 0x0102030405060708,
	.worker = 2,
	.target_worker = 1,
	.workers = 4,
	.id_check_key = "the check key 16",
	.bytes = LINK_BYTES_IN_MEMORY,
};

/* Places in the written hello. */
enum {
	VERSION_MIN_AT = 1,
	VERSION_MAX_AT = 3,
	ROLE_AT,
	PROTECTION_AT,
	AEAD_AT,
	BYTES_AT = 21,
	NAME_LEN_AT = 38,
	NAME_AT
};

static size_t written(const struct link_hello *h, uint8_t out[static LINK_HELLO_LEN_MAX])
{
	ptrdiff_t len = link_hello_write(h, out);

	ck_assert_int_gt(len, 0);
	return (size_t)len;
}

static void check_same(const struct link_hello *a, const struct link_hello *b)
{
	ck_assert_uint_eq(a->version_min, b->version_min);
	ck_assert_uint_eq(a->version_max, b->version_max);
	ck_assert_int_eq(a->role, b->role);
	ck_assert_int_eq(a->protection, b->protection);
	ck_assert_int_eq(a->aead, b->aead);
	ck_assert_str_eq(a->name, b->name);
	ck_assert_uint_eq(a->boot_id, b->boot_id);
	ck_assert_uint_eq(a->worker, b->worker);
	ck_assert_uint_eq(a->target_worker, b->target_worker);
	ck_assert_uint_eq(a->workers, b->workers);
	ck_assert_mem_eq(a->id_check_key, b->id_check_key, sizeof(a->id_check_key));
	ck_assert_int_eq(a->bytes, b->bytes);
}

START_TEST(a_written_hello_is_read)
{
	uint8_t out[LINK_HELLO_LEN_MAX];
	struct link_hello h;

	ck_assert_int_eq(link_hello_read(out, written(&good, out), &h), 0);
	check_same(&good, &h);
}
END_TEST

START_TEST(the_longest_name_fits)
{
	uint8_t out[LINK_HELLO_LEN_MAX];
	struct link_hello longest = good, h;

	memset(longest.name, 'n', sizeof(longest.name) - 1);
	ck_assert_uint_eq(written(&longest, out), LINK_HELLO_LEN_MAX);
	ck_assert_int_eq(link_hello_read(out, sizeof(out), &h), 0);
	check_same(&longest, &h);
}
END_TEST

START_TEST(a_cut_hello_is_refused)
{
	uint8_t out[LINK_HELLO_LEN_MAX];
	struct link_hello h;
	size_t whole = written(&good, out);

	for (size_t len = 0; len < whole; len++)
		ck_assert_int_eq(link_hello_read(out, len, &h), CSSL_E_TRUNCATED);
}
END_TEST

START_TEST(bytes_on_the_socket_are_read_as_written)
{
	uint8_t out[LINK_HELLO_LEN_MAX];
	struct link_hello on_socket = good, h;

	on_socket.bytes = LINK_BYTES_ON_SOCKET;
	ck_assert_int_eq(link_hello_read(out, written(&on_socket, out), &h), 0);
	check_same(&on_socket, &h);
}
END_TEST

START_TEST(a_way_of_bytes_not_known_here_is_on_the_socket)
{
	uint8_t out[LINK_HELLO_LEN_MAX];
	struct link_hello h;
	size_t len = written(&good, out);

	for (unsigned value = LINK_BYTES_IN_MEMORY + 1; value <= 0xff; value++) {
		out[BYTES_AT] = (uint8_t)value;
		ck_assert_int_eq(link_hello_read(out, len, &h), 0);
		ck_assert_int_eq(h.bytes, LINK_BYTES_ON_SOCKET);
	}
}
END_TEST

START_TEST(fields_of_a_later_version_are_ignored)
{
	uint8_t out[LINK_HELLO_LEN_MAX];
	struct link_hello h;
	size_t whole = written(&good, out);

	memset(out + whole, 0xff, sizeof(out) - whole);
	ck_assert_int_eq(link_hello_read(out, sizeof(out), &h), 0);
	check_same(&good, &h);
}
END_TEST

START_TEST(each_field_out_of_its_range_is_refused)
{
	static const struct {
		size_t at;
		uint8_t value;
	} bad[] = {
		{ VERSION_MIN_AT, 0 },
		{ VERSION_MIN_AT, 4 },
		{ VERSION_MAX_AT, 0 },
		{ ROLE_AT, 0 },
		{ ROLE_AT, 3 },
		{ PROTECTION_AT, 0 },
		{ PROTECTION_AT, 3 },
		{ AEAD_AT, 0 },
		{ AEAD_AT, 3 },
		{ NAME_LEN_AT, 0 },
		{ NAME_AT, 0 },
		{ NAME_AT, ' ' },
		{ NAME_AT, '\n' },
		{ NAME_AT, 0x7f },
		{ NAME_AT, 0xe9 },
	};
	uint8_t out[LINK_HELLO_LEN_MAX];
	struct link_hello h;

	for (size_t i = 0; i < SUITE_LEN(bad); i++) {
		size_t len = written(&good, out);
		out[bad[i].at] = bad[i].value;
		ck_assert_int_eq(link_hello_read(out, len, &h), CSSL_E_RANGE);
	}
}
END_TEST

START_TEST(a_name_of_64_bytes_is_refused)
{
	uint8_t in[LINK_HELLO_LEN_MAX + 1];
	struct link_hello h;

	written(&good, in);
	in[NAME_LEN_AT] = 64;
	memset(in + NAME_AT, 'n', 64);
	ck_assert_int_eq(link_hello_read(in, sizeof(in), &h), CSSL_E_RANGE);
}
END_TEST

START_TEST(a_hello_out_of_its_ranges_is_not_written)
{
	uint8_t out[LINK_HELLO_LEN_MAX];
	struct link_hello no_name = good, unterminated = good, no_version = good, no_role = good;

	no_name.name[0] = '\0';
	memset(unterminated.name, 'n', sizeof(unterminated.name));
	no_version.version_min = 4;
	no_role.role = (enum link_role)0;
	ck_assert_int_eq(link_hello_write(&no_name, out), CSSL_E_RANGE);
	ck_assert_int_eq(link_hello_write(&unterminated, out), CSSL_E_RANGE);
	ck_assert_int_eq(link_hello_write(&no_version, out), CSSL_E_RANGE);
	ck_assert_int_eq(link_hello_write(&no_role, out), CSSL_E_RANGE);
}
END_TEST

START_TEST(the_highest_common_version_is_used)
{
	static const struct {
		uint16_t mine_min, mine_max, their_min, their_max, expected; /* 0: none */
	} ranges[] = {
		{ 1, 1, 1, 1, 1 },
		{ 1, 3, 1, 2, 2 },
		{ 1, 2, 1, 3, 2 },
		{ 2, 5, 1, 3, 3 },
		{ 1, 3, 3, 5, 3 },
		{ 1, 2, 3, 4, 0 },
		{ 3, 4, 1, 2, 0 },
	};
	struct link_hello mine = good, theirs = good;
	uint16_t version;

	for (size_t i = 0; i < SUITE_LEN(ranges); i++) {
		mine.version_min = ranges[i].mine_min;
		mine.version_max = ranges[i].mine_max;
		theirs.version_min = ranges[i].their_min;
		theirs.version_max = ranges[i].their_max;
		version = 0;
		ck_assert_int_eq(link_hello_match(&mine, &theirs, LINK_ROLE_AGENT, &version),
			ranges[i].expected ? 0 : CSSL_E_VERSION);
		ck_assert_uint_eq(version, ranges[i].expected);
	}
}
END_TEST

START_TEST(another_role_or_protection_does_not_match)
{
	struct link_hello theirs = good;
	uint16_t version;

	ck_assert_int_eq(link_hello_match(&good, &theirs, LINK_ROLE_RAGENT, &version), CSSL_E_MISMATCH);
	theirs.protection = LINK_TRUSTED;
	ck_assert_int_eq(link_hello_match(&good, &theirs, LINK_ROLE_AGENT, &version), CSSL_E_MISMATCH);
}
END_TEST

UNIT(link_hello)
{
	const TTest *const facts[] = {
		a_written_hello_is_read,
		the_longest_name_fits,
		a_cut_hello_is_refused,
		bytes_on_the_socket_are_read_as_written,
		a_way_of_bytes_not_known_here_is_on_the_socket,
		fields_of_a_later_version_are_ignored,
		each_field_out_of_its_range_is_refused,
		a_name_of_64_bytes_is_refused,
		a_hello_out_of_its_ranges_is_not_written,
		the_highest_common_version_is_used,
		another_role_or_protection_does_not_match,
	};
	return suite_run("link_hello", facts, SUITE_LEN(facts));
}
