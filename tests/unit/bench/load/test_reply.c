/* test_reply.c: facts of answers as a client reads them; every answer also byte by byte. */
#include <stdio.h>
#include <string.h>

#include "bench/load/reply.h"
#include "bench/server/pattern.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const struct reply_expectation anything = { REPLY_ANY_LENGTH, 0 };

static struct reply reply;

static enum reply_progress read_answer(
	const char *text, size_t len, const struct reply_expectation *expected, size_t piece)
{
	enum reply_progress p = REPLY_NOTHING;

	reply_open(&reply);
	reply_begin(&reply, expected);
	for (size_t at = 0; at < len; at += piece)
		p = reply_feed(&reply, text + at, len - at < piece ? len - at : piece);
	return p;
}

/* The progress, the same in one piece and in pieces of one byte. */
static enum reply_progress answer(const char *text, size_t len, const struct reply_expectation *expected)
{
	enum reply_progress whole = read_answer(text, len, expected, len);

	ck_assert_int_eq(read_answer(text, len, expected, 1), whole);
	return whole;
}

static enum reply_progress answer_text(const char *text)
{
	return answer(text, strlen(text), &anything);
}

START_TEST(a_whole_answer_has_status_length_and_agent)
{
	ck_assert_int_eq(
		answer_text("HTTP/1.1 404 No\r\nx-cssl-agent: a12\r\nContent-Length: 3\r\n\r\nabc"), REPLY_WHOLE);
	ck_assert_uint_eq(reply.status, 404);
	ck_assert_uint_eq(reply.body_len, 3);
	ck_assert_uint_eq(reply.agent_len, 3);
	ck_assert_mem_eq(reply.agent, "a12", 3);
	ck_assert_int_eq(reply.persistence, REPLY_MORE_MAY_FOLLOW);
}
END_TEST

START_TEST(a_part_of_an_answer_is_begun)
{
	ck_assert_int_eq(answer_text("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"), REPLY_BEGUN);
	ck_assert_int_eq(reply_end(&reply), REPLY_BEGUN);
}
END_TEST

START_TEST(chunks_are_counted_without_their_frames)
{
	ck_assert_int_eq(answer_text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
				     "3\r\nabc\r\nc\r\nabcdefghijkl\r\n0\r\n\r\n"),
		REPLY_WHOLE);
	ck_assert_uint_eq(reply.body_len, 15);
}
END_TEST

START_TEST(interim_answers_are_passed_over)
{
	ck_assert_int_eq(answer_text("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
				     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"),
		REPLY_WHOLE);
	ck_assert_uint_eq(reply.status, 200);
}
END_TEST

START_TEST(an_answer_may_end_with_its_connection)
{
	ck_assert_int_eq(answer_text("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc"), REPLY_BEGUN);
	ck_assert_int_eq(reply_end(&reply), REPLY_WHOLE);
	ck_assert_int_eq(reply.persistence, REPLY_LAST);
	ck_assert_uint_eq(reply.body_len, 3);
}
END_TEST

START_TEST(a_connection_that_the_server_will_close_has_had_its_last_answer)
{
	ck_assert_int_eq(
		answer_text("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na"), REPLY_WHOLE);
	ck_assert_int_eq(reply.persistence, REPLY_LAST);
}
END_TEST

START_TEST(bytes_behind_an_answer_are_malformed)
{
	ck_assert_int_eq(answer_text("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab"), REPLY_MALFORMED);
	ck_assert_int_eq(
		answer_text("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\n\r\n"), REPLY_MALFORMED);
}
END_TEST

START_TEST(bytes_that_are_no_http_are_malformed)
{
	ck_assert_int_eq(read_answer("220 mx.cssl.test ESMTP\r\n", 24, &anything, 24), REPLY_MALFORMED);
}
END_TEST

START_TEST(each_answer_of_a_connection_is_read_anew)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nX-CSSL-Agent: a1\r\nContent-Length: 2\r\n\r\nab";

	reply_open(&reply);
	for (int i = 0; i < 3; i++) {
		reply_begin(&reply, &anything);
		ck_assert_int_eq(reply.progress, REPLY_NOTHING);
		ck_assert_int_eq(reply_feed(&reply, text, sizeof(text) - 1), REPLY_WHOLE);
		ck_assert_uint_eq(reply.body_len, 2);
		ck_assert_uint_eq(reply.agent_len, 2);
	}
}
END_TEST

START_TEST(another_length_than_expected_is_wrong)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
	struct reply_expectation two = { REPLY_THIS_LENGTH, 2 }, three = { REPLY_THIS_LENGTH, 3 };

	ck_assert_int_eq(answer(text, sizeof(text) - 1, &two), REPLY_WHOLE);
	ck_assert_int_eq(reply_length_is_wrong(&reply), 0);
	ck_assert_int_eq(answer(text, sizeof(text) - 1, &three), REPLY_WHOLE);
	ck_assert_int_eq(reply_length_is_wrong(&reply), 1);
	ck_assert_int_eq(answer(text, sizeof(text) - 1, &anything), REPLY_WHOLE);
	ck_assert_int_eq(reply_length_is_wrong(&reply), 0);
}
END_TEST

/* 5,120 bytes of the pattern, of which byte @wrong is another (none: -1). */
static int bytes_are_right(int wrong)
{
	enum { LEN = 5120 };
	static char text[LEN + 64];
	struct reply_expectation pattern = { REPLY_PATTERN, LEN };
	size_t head = (size_t)snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LEN);

	pattern_fill((uint8_t *)text + head, LEN, LEN, 0);
	if (wrong >= 0)
		text[head + (size_t)wrong] ^= 1;
	ck_assert_int_eq(read_answer(text, head + LEN, &pattern, 1000), REPLY_WHOLE);
	return reply.bytes == REPLY_BYTES_RIGHT;
}

START_TEST(one_wrong_byte_anywhere_is_found)
{
	ck_assert(bytes_are_right(-1));
	for (int at = 0; at < 5120; at += 511)
		ck_assert(!bytes_are_right(at));
	ck_assert(bytes_are_right(-1));
}
END_TEST

UNIT(reply)
{
	const TTest *facts[] = {
		a_whole_answer_has_status_length_and_agent,
		a_part_of_an_answer_is_begun,
		chunks_are_counted_without_their_frames,
		interim_answers_are_passed_over,
		an_answer_may_end_with_its_connection,
		a_connection_that_the_server_will_close_has_had_its_last_answer,
		bytes_behind_an_answer_are_malformed,
		bytes_that_are_no_http_are_malformed,
		each_answer_of_a_connection_is_read_anew,
		another_length_than_expected_is_wrong,
		one_wrong_byte_anywhere_is_found,
	};

	pattern_make();
	return suite_run("reply", facts, SUITE_LEN(facts));
}
