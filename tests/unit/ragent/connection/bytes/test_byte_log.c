/* test_byte_log.c: facts of the log of a client's bytes: the next process finds all of them that are still needed.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "ragent/connection/bytes/byte_log.h"
#include "ragent/keeper/slot_table.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define WINDOW     65536u
#define CONNECTION 512u
#define SHARE      12288u /* bytes of the table for each connection */

static struct slot_table *table;
static struct table_share share;
static struct blocks pool;
static struct byte_log l;
static uint64_t count; /* bytes that were appended, from byte number 0 on */

static uint8_t byte_of(uint64_t number)
{
	return (uint8_t)(number * 131 + number / 251);
}

static void begin(size_t connections)
{
	table = slot_table_create(connections * SHARE, CONNECTION);
	slot_table_begin_life(table, 1);
	slot_table_share_init(&share, table, TABLE_BELONGINGS, 0);
	blocks_init(&pool, &share.source);
	l = (struct byte_log){ 0 };
	count = 0;
	byte_log_begin(&l, &pool, 0);
}

static void end(void)
{
	byte_log_drop(&l, &pool);
	blocks_clear(&pool);
	slot_table_destroy(table);
}

static int append(size_t len)
{
	static uint8_t data[1u << 20];

	for (size_t i = 0; i < len; i++)
		data[i] = byte_of(count + i);
	int r = byte_log_append(&l, &pool, table, data, len);
	count += len;
	return r;
}

static void check_from(uint64_t from)
{
	static uint8_t found[1u << 20];
	const size_t len = (size_t)(count - from);
	size_t same = 0;

	ck_assert_uint_eq(byte_log_end(&l), count);
	ck_assert_int_eq(byte_log_copy(&l, table, from, found, len), 0);
	while (same < len && found[same] == byte_of(from + same))
		same++;
	ck_assert_uint_eq(same, len);
}

START_TEST(bytes_are_found_as_they_came)
{
	begin(100);
	ck_assert_int_eq(append(300), 0);
	ck_assert_int_eq(append(200), 0);
	check_from(0);
	check_from(123);
	check_from(500);
	end();
}
END_TEST

START_TEST(a_log_goes_from_block_to_block_and_keeps_what_is_needed)
{
	uint64_t needed = 0;

	begin(1000);
	for (unsigned i = 1; i < 1000; i++) {
		ck_assert_int_eq(append(1 + i * 37 % 5000), 0);
		check_from(needed);
		if (count - needed > 2 * WINDOW - 5000)
			needed += (count - needed) * (i % 5) / 4;
		byte_log_forget(&l, &pool, needed);
		check_from(needed);
	}
	ck_assert_uint_gt(count, 10 * (uint64_t)WINDOW);
	end();
}
END_TEST

START_TEST(forgotten_bytes_are_not_found)
{
	uint8_t found[200];

	begin(100);
	ck_assert_int_eq(append(100), 0);
	byte_log_forget(&l, &pool, 100);
	ck_assert_int_eq(append(50), 0);
	ck_assert_int_eq(byte_log_copy(&l, table, 99, found, 51), CSSL_E_RANGE);
	ck_assert_int_eq(byte_log_copy(&l, table, 151, found, 0), CSSL_E_RANGE);
	check_from(100);
	end();
}
END_TEST

START_TEST(one_small_block_serves_request_after_request)
{
	begin(100);
	for (unsigned i = 0; i < 1000; i++) {
		ck_assert_int_eq(append(700), 0);
		byte_log_forget(&l, &pool, count);
		ck_assert_ptr_eq(l.first, l.last);
	}
	end();
}
END_TEST

START_TEST(more_than_the_shared_memory_has_is_refused)
{
	begin(1);
	ck_assert_int_eq(append(1u << 20), CSSL_E_NO_MEMORY);
	end();
}
END_TEST

START_TEST(a_chain_that_leads_elsewhere_is_not_followed)
{
	static struct log_block elsewhere = { .cap = 1024 };
	uint8_t found[5000];

	begin(100);
	ck_assert_int_eq(append(5000), 0);
	struct log_block *second = l.first->next;
	l.first->next = &elsewhere;
	ck_assert_int_eq(byte_log_copy(&l, table, 0, found, 5000), CSSL_E_RANGE);
	l.first->next = l.first;
	ck_assert_int_eq(byte_log_copy(&l, table, 0, found, 5000), CSSL_E_RANGE);
	l.first->next = second;
	check_from(0);
	end();
}
END_TEST

UNIT(byte_log)
{
	const TTest *const facts[] = {
		bytes_are_found_as_they_came,
		a_log_goes_from_block_to_block_and_keeps_what_is_needed,
		forgotten_bytes_are_not_found,
		one_small_block_serves_request_after_request,
		more_than_the_shared_memory_has_is_refused,
		a_chain_that_leads_elsewhere_is_not_followed,
	};

	return suite_run("byte_log", facts, SUITE_LEN(facts));
}
