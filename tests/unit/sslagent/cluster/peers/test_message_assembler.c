/* test_message_assembler.c: facts of messages that come in pieces. */
#include <stdint.h>
#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"
#include "sslagent/cluster/peers/message_assembler.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define MAX 1000u

struct heard {
	unsigned count;
	size_t lens[64];
	int result;
};

/* Each byte of a message is its length's low byte. */
static int on_message(void *ctx, const uint8_t *message, size_t len)
{
	struct heard *h = ctx;

	for (size_t i = 0; i < len; i++)
		ck_assert_uint_eq(message[i], (uint8_t)len);
	h->lens[h->count++] = len;
	return h->result;
}

static size_t write_message(uint8_t *out, size_t len)
{
	wire_store_u32(out, (uint32_t)len);
	memset(out + MESSAGE_LENGTH_LEN, (int)len, len);
	return MESSAGE_LENGTH_LEN + len;
}

START_TEST(messages_come_whole_in_whatever_pieces)
{
	static const size_t lens[] = { 0, 1, 300, 5, 1000, 0, 77 };
	uint8_t stream[2048];
	size_t total = 0;

	for (unsigned i = 0; i < 7; i++)
		total += write_message(stream + total, lens[i]);
	for (size_t piece = 1; piece <= total; piece++) {
		struct message_assembler a = { 0 };
		struct heard h = { 0 };

		for (size_t at = 0; at < total; at += piece) {
			size_t len = total - at < piece ? total - at : piece;

			ck_assert_int_eq(message_assembler_feed(&a, stream + at, len, MAX, on_message, &h), 0);
		}
		ck_assert_uint_eq(h.count, 7);
		ck_assert_mem_eq(h.lens, lens, sizeof(lens));
		ck_assert_ptr_null(a.kept);
	}
}
END_TEST

START_TEST(a_message_above_the_limit_is_refused_by_its_length_alone)
{
	for (size_t piece = 1; piece <= 4; piece++) {
		struct message_assembler a = { 0 };
		struct heard h = { 0 };
		uint8_t length[4];
		int result = 0;

		wire_store_u32(length, MAX + 1);
		for (size_t at = 0; at < 4 && !result; at += piece)
			result = message_assembler_feed(
				&a, length + at, 4 - at < piece ? 4 - at : piece, MAX, on_message, &h);
		ck_assert_int_eq(result, CSSL_E_TOO_LONG);
		ck_assert_uint_eq(h.count, 0);
		message_assembler_clear(&a);
	}
}
END_TEST

START_TEST(a_callback_that_refuses_ends_it)
{
	struct message_assembler a = { 0 };
	struct heard h = { .result = CSSL_E_TYPE };
	uint8_t stream[64];
	size_t len = write_message(stream, 3);

	len += write_message(stream + len, 4);
	ck_assert_int_eq(message_assembler_feed(&a, stream, len, MAX, on_message, &h), CSSL_E_TYPE);
	ck_assert_uint_eq(h.count, 1);
	message_assembler_clear(&a);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, messages_come_whole_in_whatever_pieces);
	tcase_add_test(tcase, a_message_above_the_limit_is_refused_by_its_length_alone);
	tcase_add_test(tcase, a_callback_that_refuses_ends_it);
}

UNIT(message_assembler)
{
	return run_suite("message_assembler", add);
}
