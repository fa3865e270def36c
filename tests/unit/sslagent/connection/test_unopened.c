/* test_unopened.c: facts of records that wait to be opened. */
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/connection/unopened.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define RECORDS 5u
#define MOST    1000u

static struct unopened waiting;
static struct tls_record records[RECORDS];
static uint8_t bytes[RECORDS][100];
static unsigned told; /* that none waits any more */

static void on_taken(struct carrier *c)
{
	told++;
}

static const struct carrier_ops tells = { .taken = on_taken };
static const struct carrier_ops silent;
static struct carrier carrier, silent_carrier = { .ops = &silent };

static void setup(void)
{
	waiting = (struct unopened){ 0 };
	carrier.ops = &tells;
	told = 0;
	for (unsigned i = 0; i < RECORDS; i++) {
		const uint16_t len = (uint16_t)(10 + i);
		tls_record_header_write(bytes[i], TLS_APPLICATION_DATA, 0x0303, len);
		memset(bytes[i] + TLS_RECORD_HEADER_LEN, (int)('a' + i), len);
		records[i] = (struct tls_record){ bytes[i], { TLS_APPLICATION_DATA, 0x0303, len } };
	}
}

static void teardown(void)
{
	unopened_drop(&waiting, &silent_carrier);
}

static void expect_record(unsigned number, const struct tls_record *got)
{
	ck_assert_uint_eq(got->header.length, records[number].header.length);
	ck_assert_int_eq(memcmp(got->bytes, bytes[number], tls_record_len(got)), 0);
}

static size_t len_of(unsigned from, unsigned to)
{
	size_t len = 0;

	for (unsigned i = from; i < to; i++)
		len += tls_record_len(&records[i]);
	return len;
}

START_TEST(records_wait_in_their_order)
{
	struct tls_record r;
	uint32_t at = 0;

	ck_assert_uint_eq(unopened_len(&waiting), 0);
	ck_assert_int_eq(unopened_keep(&waiting, records, 2, MOST), 0);
	ck_assert_int_eq(unopened_keep(&waiting, records + 2, RECORDS - 2, MOST), 0);
	ck_assert_uint_eq(unopened_len(&waiting), len_of(0, RECORDS));
	for (unsigned i = 0; i < RECORDS; i++) {
		at = unopened_record(&waiting, at, &r);
		expect_record(i, &r);
	}
	ck_assert_uint_eq(at, waiting.len);
}
END_TEST

START_TEST(what_was_used_is_gone_and_the_rest_waits)
{
	struct tls_record r;
	uint32_t at = 0;

	ck_assert_int_eq(unopened_keep(&waiting, records, RECORDS, MOST), 0);
	for (unsigned i = 0; i < 3; i++)
		at = unopened_record(&waiting, at, &r);
	unopened_used(&waiting, at, 3, &carrier);
	ck_assert_uint_eq(unopened_len(&waiting), len_of(3, RECORDS));
	ck_assert_uint_eq(told, 0);
	unopened_record(&waiting, 0, &r);
	expect_record(3, &r);
}
END_TEST

/* They were opened where they stood. */
START_TEST(no_plaintext_is_left_behind_the_rest)
{
	struct tls_record r;
	uint32_t at = 0;

	ck_assert_int_eq(unopened_keep(&waiting, records, RECORDS, MOST), 0);
	const uint32_t all = waiting.len;
	for (unsigned i = 0; i < RECORDS - 1; i++)
		at = unopened_record(&waiting, at, &r);
	unopened_used(&waiting, at, RECORDS - 1, &carrier);
	for (uint32_t i = waiting.len; i < all - waiting.len; i++)
		ck_assert_uint_eq(waiting.bytes[i], 0);
}
END_TEST

START_TEST(the_carrier_hears_that_none_waits_any_more)
{
	ck_assert_int_eq(unopened_keep(&waiting, records, 2, MOST), 0);
	unopened_drop(&waiting, &carrier);
	ck_assert_uint_eq(told, 1);
	ck_assert_uint_eq(waiting.len, 0);
	ck_assert_uint_eq(waiting.cap, 0);
	ck_assert_uint_eq(unopened_len(&waiting), 0);
	unopened_drop(&waiting, &silent_carrier); /* a link needs no word */
	ck_assert_uint_eq(told, 1);
}
END_TEST

START_TEST(more_than_there_is_room_for_changes_nothing)
{
	ck_assert_int_eq(unopened_keep(&waiting, records, 2, len_of(0, 2)), 0);
	ck_assert_int_eq(unopened_keep(&waiting, records + 2, 1, len_of(0, 3) - 1), CSSL_E_FULL);
	ck_assert_uint_eq(unopened_len(&waiting), len_of(0, 2));
	ck_assert_int_eq(unopened_keep(&waiting, records + 2, 1, len_of(0, 3)), 0);
}
END_TEST

static void add_facts(TCase *t)
{
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, records_wait_in_their_order);
	tcase_add_test(t, what_was_used_is_gone_and_the_rest_waits);
	tcase_add_test(t, no_plaintext_is_left_behind_the_rest);
	tcase_add_test(t, the_carrier_hears_that_none_waits_any_more);
	tcase_add_test(t, more_than_there_is_room_for_changes_nothing);
}

UNIT(unopened)
{
	return run_suite("unopened", add_facts);
}
