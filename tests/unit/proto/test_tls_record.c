/* test_tls_record.c: facts of looking at record headers. */
#include <string.h>

#include "proto/error.h"
#include "proto/tls_record.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define DATA TLS_APPLICATION_DATA

static uint8_t input[4 * TLS_RECORD_MAX];
static size_t input_len;

static void begin(void)
{
	input_len = 0;
}

static void add(uint8_t type, uint16_t version, uint16_t length)
{
	tls_record_header_write(input + input_len, type, version, length);
	memset(input + input_len + TLS_RECORD_HEADER_LEN, type, length);
	input_len += TLS_RECORD_HEADER_LEN + length;
}

static int scan(struct tls_record_header *out)
{
	return tls_record_scan(input, input_len, out);
}

static int scan_run(size_t max, struct tls_record_run *out, struct tls_record_header *bad)
{
	return tls_record_scan_run(input, input_len, max, out, bad);
}

START_TEST(a_written_header_is_the_one_of_the_rfc)
{
	uint8_t out[TLS_RECORD_HEADER_LEN];
	tls_record_header_write(out, TLS_HANDSHAKE, 0x0301, 0x1234);
	ck_assert_mem_eq(out, "\x16\x03\x01\x12\x34", 5);
}
END_TEST

START_TEST(a_whole_record_is_found)
{
	struct tls_record_header h;
	add(TLS_HANDSHAKE, 0x0301, 512);
	add(DATA, TLS12_VERSION_WIRE, 3);
	ck_assert_int_eq(scan(&h), 0);
	ck_assert_uint_eq(h.type, TLS_HANDSHAKE);
	ck_assert_uint_eq(h.version, 0x0301);
	ck_assert_uint_eq(h.length, 512);
}
END_TEST

START_TEST(a_record_is_whole_with_its_last_byte)
{
	struct tls_record_header h;
	add(DATA, TLS12_VERSION_WIRE, 100);
	input_len--;
	ck_assert_int_eq(scan(&h), TLS_RECORD_INCOMPLETE);
	ck_assert_uint_eq(h.type, DATA);
	ck_assert_uint_eq(h.length, 100);
	input_len++;
	ck_assert_int_eq(scan(&h), 0);
}
END_TEST

START_TEST(four_bytes_are_not_yet_a_header)
{
	struct tls_record_header h;
	add(DATA, TLS12_VERSION_WIRE, 0);
	for (input_len = 0; input_len < TLS_RECORD_HEADER_LEN; input_len++) {
		ck_assert_int_eq(scan(&h), TLS_RECORD_INCOMPLETE);
		ck_assert_uint_eq(h.type, 0);
	}
	ck_assert_int_eq(scan(&h), 0);
}
END_TEST

START_TEST(only_the_four_types_of_the_rfcs_are_records)
{
	struct tls_record_header h;
	for (unsigned type = 0; type < 256; type++) {
		begin();
		add((uint8_t)type, TLS12_VERSION_WIRE, 1);
		int known = type >= TLS_CHANGE_CIPHER_SPEC && type <= TLS_APPLICATION_DATA;
		ck_assert_int_eq(scan(&h), known ? 0 : CSSL_E_TYPE);
		ck_assert_uint_eq(h.type, type);
	}
}
END_TEST

START_TEST(record_of_type_0x18_is_refused)
{
	struct tls_record_header h, bad;
	struct tls_record_run run;
	add(0x18, TLS12_VERSION_WIRE, 3);
	ck_assert_int_eq(scan(&h), CSSL_E_TYPE);
	ck_assert_int_eq(scan_run(SIZE_MAX, &run, &bad), CSSL_E_TYPE);
	ck_assert_uint_eq(bad.type, 0x18);
	ck_assert_uint_eq(bad.length, 3);
	ck_assert_uint_eq(run.records, 0);
}
END_TEST

START_TEST(only_the_major_version_counts)
{
	struct tls_record_header h;
	for (unsigned major = 0; major < 256; major++) {
		begin();
		add(DATA, (uint16_t)(major << 8 | 0x7f), 1);
		ck_assert_int_eq(scan(&h), major == 3 ? 0 : CSSL_E_VERSION);
		ck_assert_uint_eq(h.version, major << 8 | 0x7f);
	}
}
END_TEST

START_TEST(a_record_may_be_as_long_as_tls12_allows)
{
	struct tls_record_header h;
	add(DATA, TLS12_VERSION_WIRE, TLS12_CIPHERTEXT_MAX);
	ck_assert_int_eq(scan(&h), 0);
	begin();
	add(DATA, TLS12_VERSION_WIRE, TLS12_CIPHERTEXT_MAX + 1);
	ck_assert_int_eq(scan(&h), CSSL_E_TOO_LONG);
	ck_assert_uint_eq(h.length, TLS12_CIPHERTEXT_MAX + 1);
}
END_TEST

START_TEST(a_bad_header_is_refused_before_its_body_is_there)
{
	struct tls_record_header h;
	add(0x18, TLS12_VERSION_WIRE, 1000);
	input_len = TLS_RECORD_HEADER_LEN;
	ck_assert_int_eq(scan(&h), CSSL_E_TYPE);
}
END_TEST

START_TEST(a_run_counts_records_by_type)
{
	struct tls_record_run run;
	struct tls_record_header bad;
	add(TLS_HANDSHAKE, 0x0301, 200);
	add(TLS_CHANGE_CIPHER_SPEC, TLS12_VERSION_WIRE, 1);
	add(DATA, TLS12_VERSION_WIRE, 0);
	add(DATA, TLS12_VERSION_WIRE, 53);
	add(TLS_ALERT, TLS12_VERSION_WIRE, 2);
	ck_assert_int_eq(scan_run(SIZE_MAX, &run, &bad), 0);
	ck_assert_uint_eq(run.len, input_len);
	ck_assert_uint_eq(run.records, 5);
	ck_assert_uint_eq(run.by_type[TLS_CHANGE_CIPHER_SPEC - TLS_CHANGE_CIPHER_SPEC], 1);
	ck_assert_uint_eq(run.by_type[TLS_ALERT - TLS_CHANGE_CIPHER_SPEC], 1);
	ck_assert_uint_eq(run.by_type[TLS_HANDSHAKE - TLS_CHANGE_CIPHER_SPEC], 1);
	ck_assert_uint_eq(run.by_type[TLS_APPLICATION_DATA - TLS_CHANGE_CIPHER_SPEC], 2);
}
END_TEST

START_TEST(a_run_takes_the_shortest_and_the_longest_record)
{
	struct tls_record_run run;
	struct tls_record_header bad;
	add(DATA, TLS12_VERSION_WIRE, TLS12_CIPHERTEXT_MAX);
	add(DATA, TLS12_VERSION_WIRE, 0);
	ck_assert_int_eq(scan_run(SIZE_MAX, &run, &bad), 0);
	ck_assert_uint_eq(run.records, 2);
	ck_assert_uint_eq(run.len, input_len);
}
END_TEST

START_TEST(run_stops_before_a_partial_record)
{
	struct tls_record_run run;
	struct tls_record_header bad;
	add(DATA, TLS12_VERSION_WIRE, 10);
	size_t whole = input_len;
	add(DATA, TLS12_VERSION_WIRE, 90);
	size_t all = input_len;
	for (input_len = whole; input_len < all; input_len++) {
		ck_assert_int_eq(scan_run(SIZE_MAX, &run, &bad), 0);
		ck_assert_uint_eq(run.len, whole);
		ck_assert_uint_eq(run.records, 1);
	}
	ck_assert_int_eq(scan_run(SIZE_MAX, &run, &bad), 0);
	ck_assert_uint_eq(run.len, all);
}
END_TEST

START_TEST(run_gives_the_good_records_before_a_bad_one)
{
	struct tls_record_run run;
	struct tls_record_header bad;
	add(DATA, TLS12_VERSION_WIRE, 10);
	add(DATA, TLS12_VERSION_WIRE, 20);
	size_t good = input_len;
	add(DATA, 0x0203, 30);
	ck_assert_int_eq(scan_run(SIZE_MAX, &run, &bad), CSSL_E_VERSION);
	ck_assert_uint_eq(run.len, good);
	ck_assert_uint_eq(run.records, 2);
	ck_assert_uint_eq(bad.version, 0x0203);
	ck_assert_uint_eq(bad.length, 30);
}
END_TEST

START_TEST(run_never_exceeds_its_maximum)
{
	struct tls_record_run run;
	struct tls_record_header bad;
	for (unsigned i = 0; i < 10; i++)
		add(DATA, TLS12_VERSION_WIRE, 15);
	for (size_t max = 0; max <= input_len; max++) {
		ck_assert_int_eq(scan_run(max, &run, &bad), 0);
		ck_assert_uint_eq(run.len, max / 20 * 20);
		ck_assert_uint_eq(run.records, max / 20);
	}
}
END_TEST

START_TEST(run_does_not_look_behind_its_maximum)
{
	struct tls_record_run run;
	struct tls_record_header bad;
	add(DATA, TLS12_VERSION_WIRE, 15);
	add(0x18, TLS12_VERSION_WIRE, 15);
	ck_assert_int_eq(scan_run(20, &run, &bad), 0);
	ck_assert_uint_eq(run.len, 20);
	ck_assert_int_eq(scan_run(25, &run, &bad), CSSL_E_TYPE);
}
END_TEST

START_TEST(run_over_nothing_is_empty)
{
	struct tls_record_run run;
	struct tls_record_header bad;
	ck_assert_int_eq(scan_run(SIZE_MAX, &run, &bad), 0);
	ck_assert_uint_eq(run.len, 0);
	ck_assert_uint_eq(run.records, 0);
}
END_TEST

static int take(size_t max, struct tls_record_batch *out, struct tls_record_header *bad)
{
	return tls_record_take(input, input_len, max, out, bad);
}

START_TEST(taken_records_stand_where_they_were_with_what_their_headers_say)
{
	struct tls_record_batch batch;
	struct tls_record_header bad;
	add(TLS_HANDSHAKE, 0x0301, 10);
	add(DATA, TLS12_VERSION_WIRE, 0);
	add(TLS_ALERT, TLS12_VERSION_WIRE, 2);
	ck_assert_int_eq(take(SIZE_MAX, &batch, &bad), 0);
	ck_assert_uint_eq(batch.count, 3);
	ck_assert_uint_eq(batch.len, input_len);
	ck_assert_ptr_eq(batch.records[0].bytes, input);
	ck_assert_ptr_eq(batch.records[1].bytes, input + 15);
	ck_assert_ptr_eq(batch.records[2].bytes, input + 20);
	ck_assert_uint_eq(batch.records[0].header.type, TLS_HANDSHAKE);
	ck_assert_uint_eq(batch.records[0].header.version, 0x0301);
	ck_assert_uint_eq(tls_record_len(&batch.records[1]), 5);
	ck_assert_uint_eq(tls_record_len(&batch.records[2]), 7);
}
END_TEST

START_TEST(a_batch_has_a_limit_and_the_next_goes_on_behind_it)
{
	struct tls_record_batch batch;
	struct tls_record_header bad;
	for (unsigned i = 0; i < TLS_RECORD_BATCH + 3; i++)
		add(DATA, TLS12_VERSION_WIRE, (uint16_t)i);
	add(0x18, TLS12_VERSION_WIRE, 1);
	ck_assert_int_eq(take(SIZE_MAX, &batch, &bad), 0); /* it has not looked so far */
	ck_assert_uint_eq(batch.count, TLS_RECORD_BATCH);
	size_t used = batch.len;
	ck_assert_int_eq(tls_record_take(input + used, input_len - used, SIZE_MAX, &batch, &bad), CSSL_E_TYPE);
	ck_assert_uint_eq(batch.count, 3);
	ck_assert_uint_eq(batch.records[2].header.length, TLS_RECORD_BATCH + 2);
	ck_assert_uint_eq(bad.type, 0x18);
}
END_TEST

/* For any bytes, both functions find the same. */
START_TEST(taking_and_counting_agree)
{
	struct tls_record_batch batch;
	struct tls_record_run run;
	struct tls_record_header bad, also_bad;
	for (unsigned i = 0; i < 5; i++)
		add(DATA, TLS12_VERSION_WIRE, 15);
	add(DATA, 0x0203, 30);
	for (size_t max = 0; max <= input_len; max++) {
		int r = take(max, &batch, &bad);
		ck_assert_int_eq(r, scan_run(max, &run, &also_bad));
		ck_assert_uint_eq(batch.count, run.records);
		ck_assert_uint_eq(batch.len, run.len);
		if (r < 0)
			ck_assert_uint_eq(bad.version, also_bad.version);
	}
}
END_TEST

UNIT(tls_record)
{
	const TTest *facts[] = {
		a_written_header_is_the_one_of_the_rfc,
		a_whole_record_is_found,
		a_record_is_whole_with_its_last_byte,
		four_bytes_are_not_yet_a_header,
		only_the_four_types_of_the_rfcs_are_records,
		record_of_type_0x18_is_refused,
		only_the_major_version_counts,
		a_record_may_be_as_long_as_tls12_allows,
		a_bad_header_is_refused_before_its_body_is_there,
		a_run_counts_records_by_type,
		a_run_takes_the_shortest_and_the_longest_record,
		run_stops_before_a_partial_record,
		run_gives_the_good_records_before_a_bad_one,
		run_never_exceeds_its_maximum,
		run_does_not_look_behind_its_maximum,
		run_over_nothing_is_empty,
		taken_records_stand_where_they_were_with_what_their_headers_say,
		a_batch_has_a_limit_and_the_next_goes_on_behind_it,
		taking_and_counting_agree,
	};
	return suite_run_with("tls_record", begin, facts, SUITE_LEN(facts));
}
