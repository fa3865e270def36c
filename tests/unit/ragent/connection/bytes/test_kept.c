/* test_kept.c: facts of the queue of client records. */
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "proto/tls_record.h"
#include "ragent/connection/bytes/kept.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct kept k;
static struct blocks pool;

static void begin(void)
{
	memset(&k, 0, sizeof k);
	blocks_init(&pool, NULL);
}

static void end(void)
{
	kept_clear(&k, &pool);
	blocks_clear(&pool);
}

/* A record of @body bytes whose content is its number. */
static void append(uint16_t body, uint8_t number)
{
	uint8_t record[TLS_RECORD_MAX];

	tls_record_header_write(record, TLS_APPLICATION_DATA, TLS12_VERSION_WIRE, body);
	memset(record + TLS_RECORD_HEADER_LEN, number, body);
	ck_assert_int_eq(kept_append(&k, &pool, record, TLS_RECORD_HEADER_LEN + body, 1), 0);
}

static void send_all(void)
{
	const uint8_t *data;
	size_t len;

	while ((len = kept_unsent(&k, SIZE_MAX, &data)) > 0)
		kept_mark_sent(&k, len);
}

/* Records below @record are consumed and not kept for replay. */
static void consume_and_forget(uint64_t record)
{
	ck_assert_int_eq(kept_consume(&k, record), 0);
	kept_forget_consumed(&k, &pool);
}

START_TEST(the_rest_fits_into_a_smaller_block)
{
	begin();
	for (uint8_t n = 0; n < 10; n++)
		append(10000, n);
	send_all();
	consume_and_forget(9);
	uint32_t before = k.cap;
	kept_fit(&k, &pool);
	ck_assert_uint_lt(k.cap, before / 4);
	ck_assert_uint_eq(kept_len(&k), TLS_RECORD_HEADER_LEN + 10000);
	ck_assert_uint_eq(k.data[k.start + TLS_RECORD_HEADER_LEN], 9);
	append(10, 10);
	ck_assert_int_eq(kept_consume(&k, 10), 0);
	ck_assert_uint_eq(k.data[k.consumed + TLS_RECORD_HEADER_LEN], 10);
	end();
}
END_TEST

START_TEST(a_block_that_fits_already_stays_where_it_is)
{
	begin();
	append(900, 0);
	const uint8_t *data = k.data;
	kept_fit(&k, &pool);
	ck_assert_ptr_eq(k.data, data);
	end();
	begin();
	kept_fit(&k, &pool);
	ck_assert_ptr_null(k.data);
	end();
}
END_TEST

START_TEST(an_empty_queue_has_no_memory)
{
	begin();
	append(100, 0);
	send_all();
	ck_assert_ptr_nonnull(k.data);
	consume_and_forget(1);
	ck_assert_ptr_null(k.data);
	ck_assert_uint_eq(kept_len(&k), 0);
	ck_assert_uint_eq(k.first_record, 1);
	end();
}
END_TEST

START_TEST(unsent_ends_at_a_record_boundary_within_the_maximum)
{
	const uint8_t *data;

	begin();
	for (uint8_t i = 0; i < 4; i++)
		append(95, i);
	ck_assert_uint_eq(kept_unsent(&k, 400, &data), 400);
	ck_assert_uint_eq(kept_unsent(&k, 399, &data), 300);
	ck_assert_uint_eq(kept_unsent(&k, 100, &data), 100);
	ck_assert_uint_eq(kept_unsent(&k, 99, &data), 0);
	kept_mark_sent(&k, 100);
	ck_assert_uint_eq(kept_unsent(&k, 250, &data), 200);
	ck_assert_uint_eq(data[TLS_RECORD_HEADER_LEN], 1);
	end();
}
END_TEST

START_TEST(consumed_records_are_kept_for_replay_and_count_no_more)
{
	const uint8_t *data;

	begin();
	for (uint8_t i = 0; i < 4; i++)
		append(95, i);
	kept_mark_sent(&k, 300);
	ck_assert_int_eq(kept_consume(&k, 2), 0);
	ck_assert_uint_eq(kept_len(&k), 200);
	ck_assert_uint_eq(kept_replay_len(&k), 200);
	ck_assert_uint_eq(kept_sent_records(&k), 1);
	kept_return(&k);
	ck_assert_uint_eq(kept_len(&k), 400);
	ck_assert_uint_eq(kept_replay_len(&k), 0);
	ck_assert_uint_eq(k.consumed_record, 0);
	ck_assert_uint_eq(kept_unsent(&k, SIZE_MAX, &data), 400);
	ck_assert_uint_eq(data[TLS_RECORD_HEADER_LEN], 0);
	end();
}
END_TEST

START_TEST(returning_goes_back_to_the_first_record_that_was_not_forgotten)
{
	const uint8_t *data;

	begin();
	for (uint8_t i = 0; i < 4; i++)
		append(95, i);
	send_all();
	consume_and_forget(1);
	ck_assert_int_eq(kept_consume(&k, 3), 0);
	kept_return(&k);
	ck_assert_uint_eq(k.first_record, 1);
	ck_assert_uint_eq(k.consumed_record, 1);
	ck_assert_uint_eq(kept_unsent(&k, SIZE_MAX, &data), 300);
	ck_assert_uint_eq(data[TLS_RECORD_HEADER_LEN], 1);
	end();
}
END_TEST

START_TEST(more_records_find_room_behind_those_kept_for_replay)
{
	const uint8_t *data;

	begin();
	append(900, 0);
	send_all();
	ck_assert_int_eq(kept_consume(&k, 1), 0);
	for (uint8_t i = 1; i < 20; i++)
		append(900, i);
	ck_assert_uint_eq(kept_replay_len(&k), 905);
	ck_assert_uint_eq(kept_len(&k), 19 * 905);
	ck_assert_uint_eq(kept_unsent(&k, SIZE_MAX, &data), 19 * 905);
	ck_assert_uint_eq(data[TLS_RECORD_HEADER_LEN], 1);
	kept_return(&k);
	ck_assert_uint_eq(kept_unsent(&k, SIZE_MAX, &data), 20 * 905);
	for (unsigned i = 0; i < 20; i++)
		ck_assert_uint_eq(data[i * 905 + TLS_RECORD_HEADER_LEN], i);
	end();
}
END_TEST

START_TEST(forgetting_drops_exactly_the_records_below_the_number)
{
	const uint8_t *data;

	begin();
	for (uint8_t i = 0; i < 10; i++)
		append((uint16_t)(i * 7), i);
	send_all();
	consume_and_forget(6);
	kept_return(&k);
	ck_assert_uint_gt(kept_unsent(&k, SIZE_MAX, &data), 0);
	ck_assert_uint_eq(data[TLS_RECORD_HEADER_LEN], 6);
	ck_assert_uint_eq(k.first_record, 6);
	ck_assert_uint_eq(k.next_record, 10);
	end();
}
END_TEST

START_TEST(consuming_backward_or_beyond_what_was_sent_is_refused_and_changes_nothing)
{
	const uint8_t *data;

	begin();
	append(10, 0);
	append(10, 1);
	append(10, 2);
	kept_mark_sent(&k, 30);
	ck_assert_int_eq(kept_consume(&k, 3), CSSL_E_RANGE);
	ck_assert_int_eq(kept_consume(&k, 4), CSSL_E_RANGE);
	ck_assert_uint_eq(kept_len(&k), 45);
	ck_assert_int_eq(kept_consume(&k, 2), 0);
	ck_assert_int_eq(kept_consume(&k, 1), CSSL_E_RANGE);
	ck_assert_uint_eq(kept_unsent(&k, SIZE_MAX, &data), 15);
	end();
}
END_TEST

START_TEST(rewinding_sends_every_unconsumed_record_again_and_no_other)
{
	const uint8_t *data;

	begin();
	for (uint8_t i = 0; i < 5; i++)
		append(20, i);
	kept_mark_sent(&k, 75);
	ck_assert_int_eq(kept_consume(&k, 1), 0);
	ck_assert_uint_eq(kept_sent_records(&k), 2);
	kept_rewind(&k);
	ck_assert_uint_eq(kept_sent_records(&k), 0);
	ck_assert_uint_eq(kept_unsent(&k, SIZE_MAX, &data), 100);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(data[i * 25 + TLS_RECORD_HEADER_LEN], i + 1);
	end();
}
END_TEST

static size_t len_of(const uint16_t *body, uint64_t from, uint64_t to)
{
	size_t len = 0;

	for (; from < to; from++)
		len += TLS_RECORD_HEADER_LEN + body[from];
	return len;
}

/* Against a plain model: numbers and lengths of random appends, sends, consumes and returns. */
START_TEST(random_use_agrees_with_a_plain_model)
{
	static uint16_t body[4096];
	uint64_t first = 0, consumed = 0, sent = 0, next = 0;

	begin();
	srand(7);
	for (unsigned step = 0; step < 6000; step++) {
		const uint8_t *data;
		if (rand() % 2 && next < 4096 && kept_len(&k) < 40000) {
			body[next] = (uint16_t)(rand() % 3000);
			append(body[next], (uint8_t)next);
			next++;
		} else if (rand() % 2) {
			size_t max = (size_t)(rand() % 9000), len = kept_unsent(&k, max, &data), expected = 0;
			while (sent < next && expected + TLS_RECORD_HEADER_LEN + body[sent] <= max)
				expected += TLS_RECORD_HEADER_LEN + body[sent++];
			ck_assert_uint_eq(len, expected);
			kept_mark_sent(&k, len);
		} else if (sent > consumed) {
			consumed += (uint64_t)rand() % (sent - consumed) + 1;
			ck_assert_int_eq(kept_consume(&k, consumed), 0);
		} else if (rand() % 2) {
			kept_forget_consumed(&k, &pool);
			first = consumed;
		} else if (rand() % 4 == 0) {
			kept_return(&k);
			sent = consumed = first;
		}
		ck_assert_uint_eq(kept_len(&k), len_of(body, consumed, next));
		ck_assert_uint_eq(kept_replay_len(&k), len_of(body, first, consumed));
		ck_assert_uint_eq(kept_unsent_len(&k), len_of(body, sent, next));
	}
	ck_assert_uint_gt(next, 1000);
	end();
}
END_TEST

/* A queue that stays nearly full is not moved at every record. */
START_TEST(a_full_queue_is_seldom_moved)
{
	unsigned moved = 0;

	begin();
	for (unsigned i = 0; i < 8; i++)
		append(16000, (uint8_t)i);
	for (unsigned i = 8; i < 1008; i++) {
		send_all();
		uint32_t before = k.end;
		consume_and_forget(i - 7);
		append(16000, (uint8_t)i);
		moved += k.end < before;
	}
	ck_assert_uint_le(moved, 1000 / 8 + 1);
	end();
}
END_TEST

START_TEST(a_block_is_reused_without_an_allocation)
{
	begin();
	append(16000, 0);
	uint8_t *block = k.data;
	send_all();
	consume_and_forget(1);
	append(16000, 1);
	ck_assert_ptr_eq(k.data, block);
	end();
}
END_TEST

START_TEST(records_that_an_owner_got_count_as_sent)
{
	begin();
	for (uint8_t n = 0; n < 4; n++)
		append(10, n);
	ck_assert_int_eq(kept_mark_sent_to(&k, 3), 0);
	ck_assert_uint_eq(kept_sent_records(&k), 3);
	ck_assert_int_eq(kept_consume(&k, 2), 0);
	ck_assert_int_eq(kept_mark_sent_to(&k, 1), CSSL_E_RANGE);
	ck_assert_int_eq(kept_mark_sent_to(&k, 5), CSSL_E_RANGE);
	ck_assert_uint_eq(kept_sent_records(&k), 1);
	ck_assert_int_eq(kept_mark_sent_to(&k, 2), 0);
	ck_assert_uint_eq(kept_sent_records(&k), 0);
	end();
}
END_TEST

START_TEST(in_clear_each_byte_counts_as_a_record)
{
	const uint8_t *data;

	begin();
	k.unit = KEPT_BYTES;
	ck_assert_int_eq(kept_append(&k, &pool, (const uint8_t *)"EHLO a\r\nNOOP\r\n", 14, 14), 0);
	ck_assert_uint_eq(kept_unsent(&k, 10, &data), 10);
	ck_assert_mem_eq(data, "EHLO a\r\nNO", 10);
	kept_mark_sent(&k, 10);
	ck_assert_uint_eq(kept_sent_records(&k), 10);
	ck_assert_int_eq(kept_consume(&k, 11), CSSL_E_RANGE);
	consume_and_forget(8);
	ck_assert_uint_eq(k.first_record, 8);
	ck_assert_int_eq(kept_mark_sent_to(&k, 7), CSSL_E_RANGE);
	ck_assert_int_eq(kept_mark_sent_to(&k, 15), CSSL_E_RANGE);
	ck_assert_int_eq(kept_mark_sent_to(&k, 9), 0);
	ck_assert_uint_eq(kept_unsent(&k, 10, &data), 5);
	ck_assert_mem_eq(data, "OOP\r\n", 5);
	end();
}
END_TEST

START_TEST(bytes_in_clear_are_restored_as_many_as_their_numbers_say)
{
	const uint8_t *data;

	begin();
	k = (struct kept){ .first_record = 8, .consumed_record = 8, .next_record = 12, .unit = KEPT_BYTES };
	ck_assert_int_eq(kept_restore(&k, &pool, (const uint8_t *)"NOOP", 3, 0, 3), CSSL_E_RANGE);
	ck_assert_int_eq(kept_restore(&k, &pool, (const uint8_t *)"NOOP", 4, 0, 5), CSSL_E_RANGE);
	ck_assert_int_eq(kept_restore(&k, &pool, (const uint8_t *)"NOOP", 4, 0, 3), 0);
	ck_assert_uint_eq(kept_unsent(&k, 10, &data), 1);
	ck_assert_int_eq(data[0], 'P');
	end();
}
END_TEST

UNIT(kept)
{
	const TTest *const facts[] = {
		records_that_an_owner_got_count_as_sent,
		the_rest_fits_into_a_smaller_block,
		a_block_that_fits_already_stays_where_it_is,
		an_empty_queue_has_no_memory,
		unsent_ends_at_a_record_boundary_within_the_maximum,
		consumed_records_are_kept_for_replay_and_count_no_more,
		returning_goes_back_to_the_first_record_that_was_not_forgotten,
		more_records_find_room_behind_those_kept_for_replay,
		forgetting_drops_exactly_the_records_below_the_number,
		consuming_backward_or_beyond_what_was_sent_is_refused_and_changes_nothing,
		rewinding_sends_every_unconsumed_record_again_and_no_other,
		random_use_agrees_with_a_plain_model,
		a_full_queue_is_seldom_moved,
		a_block_is_reused_without_an_allocation,
		in_clear_each_byte_counts_as_a_record,
		bytes_in_clear_are_restored_as_many_as_their_numbers_say,
	};

	return suite_run("kept", facts, SUITE_LEN(facts));
}
