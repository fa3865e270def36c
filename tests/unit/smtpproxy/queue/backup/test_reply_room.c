/* test_reply_room.c: facts of the memory of replies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smtpproxy/queue/backup/reply_room.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct reply_room room;
static redisReader *reader;

static void begin(void)
{
	reader = reply_room_reader(&room);
	ck_assert_ptr_nonnull(reader);
}

static const redisReply *reads(const char *text, size_t len, size_t step)
{
	void *reply = NULL;

	for (size_t at = 0; at < len; at += step) {
		const size_t part = len - at < step ? len - at : step;

		ck_assert_ptr_null(reply);
		ck_assert_int_eq(redisReaderFeed(reader, text + at, part), REDIS_OK);
		ck_assert_int_eq(redisReaderGetReply(reader, &reply), REDIS_OK);
	}
	ck_assert_ptr_nonnull(reply);
	return reply;
}

static void ends(void)
{
	redisReaderFree(reader);
	reply_room_clear(&room);
}

START_TEST(reply_that_comes_byte_by_byte_is_whole)
{
	static const char text[] = "*4\r\n$3\r\nabc\r\n*2\r\n:7\r\n$-1\r\n$0\r\n\r\n+OK\r\n";

	for (unsigned n = 0; n < 3; n++) {
		const redisReply *r = reads(text, sizeof text - 1, 1), *inner = r->element[1];

		ck_assert_int_eq(r->type, REDIS_REPLY_ARRAY);
		ck_assert_uint_eq(r->elements, 4);
		ck_assert_str_eq(r->element[0]->str, "abc");
		ck_assert_uint_eq(r->element[0]->len, 3);
		ck_assert_int_eq(inner->element[0]->integer, 7);
		ck_assert_int_eq(inner->element[1]->type, REDIS_REPLY_NIL);
		ck_assert_str_eq(r->element[2]->str, "");
		ck_assert_int_eq(r->element[3]->type, REDIS_REPLY_STATUS);
		reply_room_reuse(&room);
	}
	ends();
}
END_TEST

/* Of @count strings of 1,000 bytes. */
static void reads_block(unsigned count)
{
	char *text = malloc(count * 1010 + 20);
	size_t len = (size_t)sprintf(text, "*%u\r\n", count);
	const redisReply *r;

	for (unsigned n = 0; n < count; n++)
		len += (size_t)sprintf(text + len, "$1000\r\n%01000u\r\n", n);
	r = reads(text, len, 16384);
	ck_assert_uint_eq(r->elements, count);
	for (unsigned n = 0; n < count; n++)
		ck_assert_int_eq(atoi(r->element[n]->str), (int)n);
	free(text);
	reply_room_reuse(&room);
}

START_TEST(replies_of_all_sizes_follow_each_other)
{
	static const unsigned counts[] = { 1, 1000, 1000, 1, 10000, 0, 20, 300 };

	for (unsigned n = 0; n < SUITE_LEN(counts); n++)
		reads_block(counts[n]);
	ends();
}
END_TEST

START_TEST(reply_that_is_never_whole_is_freed)
{
	void *reply = NULL;

	ck_assert_int_eq(redisReaderFeed(reader, "*2\r\n$3\r\nabc\r\n$5\r\nde", 20), REDIS_OK);
	ck_assert_int_eq(redisReaderGetReply(reader, &reply), REDIS_OK);
	ck_assert_ptr_null(reply);
	ends();
}
END_TEST

UNIT(reply_room)
{
	const TTest *facts[] = {
		reply_that_comes_byte_by_byte_is_whole,
		replies_of_all_sizes_follow_each_other,
		reply_that_is_never_whole_is_freed,
	};
	return suite_run_with("reply_room", begin, facts, SUITE_LEN(facts));
}
