/* test_download.c: facts of answers that can go on: which can, how the rest is asked for, and what is taken for it. */
#include "sslagent/service/http/download.h"

#include <stdio.h>
#include <string.h>

#include "proto/error.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define WHOLE(fields)                                                                                                  \
	"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n" fields "\r\n"
#define RANGE(fields)                                                                                                  \
	"HTTP/1.1 206 Partial Content\r\nContent-Length: 100\r\nETag: \"v1\"\r\n"                                      \
	"Content-Range: bytes 200-299/1000\r\n" fields "\r\n"

static int begins(const char *text, struct download *d)
{
	return download_begins((const uint8_t *)text, strlen(text), d);
}

START_TEST(a_whole_answer_with_a_strong_etag_and_ranges_can_go_on)
{
	static const char text[] = WHOLE("Content-Type: text/plain\r\nConnection: keep-alive\r\n") "and its body";
	struct download d;

	ck_assert_int_eq(begins(text, &d), 0);
	ck_assert_uint_eq(d.first, 0);
	ck_assert_uint_eq(d.len, 1000);
	ck_assert_uint_eq(d.total, 1000);
	ck_assert_uint_eq(d.head_len, strlen(text) - strlen("and its body"));
	ck_assert_uint_eq(d.etag_len, 4);
	ck_assert_mem_eq(d.etag, "\"v1\"", 4);
	ck_assert_int_eq(d.closes, ANSWER_PERSISTS);
}
END_TEST

START_TEST(one_range_can_go_on)
{
	struct download d;

	ck_assert_int_eq(begins(RANGE(""), &d), 0);
	ck_assert_uint_eq(d.first, 200);
	ck_assert_uint_eq(d.len, 100);
	ck_assert_uint_eq(d.total, 1000);
}
END_TEST

static const char *const closing[] = {
	WHOLE("Connection: close\r\n"),
	WHOLE("connection: Keep-Alive, x\r\n"),
	"HTTP/1.0 200 OK\r\nContent-Length: 1000\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n\r\n",
};

START_TEST(an_answer_that_closes_is_known_to_close)
{
	struct download d;

	ck_assert_int_eq(begins(closing[_i], &d), 0);
	ck_assert_int_eq(d.closes, ANSWER_CLOSES);
}
END_TEST

static const char *const no_downloads[] = {
	"",
	"\r\n",
	"HTTP/1.1 200 OK\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n", /* half a head */
	"HTTP/1.1 200 OK\nContent-Length: 1000\nETag: \"v1\"\nAccept-Ranges: bytes\n\n",
	"HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nAccept-Ranges: bytes\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"v1\"\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: W/\"v1\"\r\nAccept-Ranges: bytes\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: v1\r\nAccept-Ranges: bytes\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"v\"1\"\r\nAccept-Ranges: bytes\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"v\r1\"\r\nAccept-Ranges: bytes\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"v 1\"\r\nAccept-Ranges: bytes\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"\r\nAccept-Ranges: bytes\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"v1\"\r\nAccept-Ranges: none\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 10x\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n\r\n",
	WHOLE("Transfer-Encoding: chunked\r\n"),
	WHOLE("Content-Length: 1000\r\n"),
	WHOLE("ETag: \"v2\"\r\n"),
	WHOLE("Content-Range: bytes 0-999/1000\r\n"),
	WHOLE(" folded\r\n"),
	WHOLE("no field\r\n"),
	"HTTP/1.1 103 Early Hints\r\n\r\n" WHOLE(""),
	"HTTP/1.1 404 Not Found\r\nContent-Length: 1000\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n\r\n",
	"HTTP/2 200 OK\r\nContent-Length: 1000\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n\r\n",
	"HTTP/1.1 206 Partial Content\r\nContent-Length: 100\r\nETag: \"v1\"\r\n\r\n",
	"HTTP/1.1 206 Partial Content\r\nContent-Length: 99\r\nETag: \"v1\"\r\nContent-Range: bytes "
	"200-299/1000\r\n\r\n",
	"HTTP/1.1 206 Partial Content\r\nContent-Length: 100\r\nETag: \"v1\"\r\nContent-Range: bytes 200-299/*\r\n\r\n",
	"HTTP/1.1 206 Partial Content\r\nContent-Length: 100\r\nETag: \"v1\"\r\nContent-Range: bytes "
	"200-299/250\r\n\r\n",
	"HTTP/1.1 206 Partial Content\r\nContent-Length: 100\r\nETag: \"v1\"\r\nContent-Range: lines "
	"200-299/1000\r\n\r\n",
};

START_TEST(nothing_else_can_go_on)
{
	struct download d;

	ck_assert_int_eq(begins(no_downloads[_i], &d), DOWNLOAD_NOT);
}
END_TEST

START_TEST(a_head_that_is_too_long_is_not_looked_at)
{
	char text[MESSAGE_HEAD_MAX + 512];
	struct download d;
	int len = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nX: %0*d\r\n%s", (int)MESSAGE_HEAD_MAX, 1,
		strchr(WHOLE(""), 'C'));

	ck_assert_int_gt(len, MESSAGE_HEAD_MAX);
	ck_assert_int_eq(begins(text, &d), DOWNLOAD_NOT);
}
END_TEST

/* --- the question --- */

static const struct download one_range = {
	.first = 200, .len = 100, .total = 1000, .head_len = 50, .etag_len = 4, .etag = "\"v1\""
};

static ptrdiff_t ask(const char *request, char *out, size_t cap)
{
	return download_ask(&one_range, 30, (const uint8_t *)request, strlen(request), (uint8_t *)out, cap);
}

START_TEST(the_rest_is_asked_for_on_condition_that_nothing_changed)
{
	static const char request[] = "GET /a?b HTTP/1.1\r\nHost: www.example.org\r\nrange: bytes=200-299\r\n"
				      "Cookie: c=d\r\nIf-Range: \"v0\"\r\nIf-Match: *\r\nIf-None-Match: \"v9\"\r\n"
				      "If-Modified-Since: x\r\nif-unmodified-since: y\r\nAccept-Encoding: gzip\r\n\r\n";
	static const char wanted[] = "GET /a?b HTTP/1.1\r\nHost: www.example.org\r\nCookie: c=d\r\n"
				     "Accept-Encoding: gzip\r\nRange: bytes=230-299\r\nIf-Match: \"v1\"\r\n\r\n";
	char out[sizeof request + DOWNLOAD_ASK_MORE];

	ck_assert_int_eq(ask(request, out, sizeof out), (int)strlen(wanted));
	ck_assert_mem_eq(out, wanted, strlen(wanted));
}
END_TEST

START_TEST(only_one_whole_head_can_be_asked_again)
{
	static const char *const requests[] = { "", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nG", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n" };
	char out[512];

	ck_assert_int_eq(ask(requests[_i], out, sizeof out), CSSL_E_RANGE);
}
END_TEST

START_TEST(a_question_never_needs_more_room_than_promised)
{
	static const char request[] = "GET / HTTP/1.1\r\n\r\n";
	struct download d = { .first = 999999999999999998u, .len = 1, .total = UINT64_MAX, .etag_len = HEAD_ETAG_MAX };
	uint8_t out[sizeof request - 1 + DOWNLOAD_ASK_MORE];

	memset(d.etag, 'e', sizeof d.etag);
	ck_assert_int_gt(
		download_ask(&d, 0, (const uint8_t *)request, strlen(request), out, sizeof out), (int)strlen(request));
	for (size_t cap = 0; cap < strlen(request) + 10; cap++)
		ck_assert_int_eq(
			download_ask(&d, 0, (const uint8_t *)request, strlen(request), out, cap), CSSL_E_TOO_LONG);
}
END_TEST

/* --- its answer --- */

#define REST(length, range, fields)                                                                                    \
	"HTTP/1.1 206 Partial Content\r\nContent-Length: " length "\r\nETag: \"v1\"\r\nContent-Range: bytes " range    \
	"\r\n" fields "\r\n"

static int resumes(struct download *d, const char *text, size_t *head_len)
{
	*d = one_range;
	return download_resumes(d, 30, (const uint8_t *)text, strlen(text), head_len);
}

START_TEST(the_rest_of_the_same_is_taken)
{
	static const char *const before[] = { "", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" };
	char text[512];
	struct download d;
	size_t head_len;

	snprintf(text, sizeof text, "%s%sbody", before[_i], REST("70", "230-299/1000", ""));
	ck_assert_int_eq(resumes(&d, text, &head_len), 0);
	ck_assert_str_eq(text + head_len, "body");
	ck_assert_int_eq(d.closes, ANSWER_PERSISTS);
}
END_TEST

START_TEST(a_backend_that_closes_behind_the_rest_is_known_to)
{
	struct download d;
	size_t head_len;

	ck_assert_int_eq(resumes(&d, REST("70", "230-299/1000", "Connection: close\r\n"), &head_len), 0);
	ck_assert_int_eq(d.closes, ANSWER_CLOSES);
}
END_TEST

static const char *const others[] = {
	"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"v1\"\r\n\r\n",
	"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 101 Switching Protocols\r\n\r\n",
	REST("70", "231-300/1000", ""),
	REST("70", "229-298/1000", ""),
	REST("69", "230-298/1000", ""),
	REST("70", "230-299/1001", ""),
	REST("69", "230-299/1000", ""),
	REST("70", "230-299/1000", "Transfer-Encoding: chunked\r\n"),
	REST("70", "230-299/1000", "ETag: \"v1\"\r\n"),
	"HTTP/1.1 206 Partial Content\r\nContent-Length: 70\r\nETag: \"v2\"\r\nContent-Range: bytes "
	"230-299/1000\r\n\r\n",
	"HTTP/1.1 206 Partial Content\r\nContent-Length: 70\r\nETag: W/\"v1\"\r\nContent-Range: bytes "
	"230-299/1000\r\n\r\n",
	"HTTP/1.1 206 Partial Content\r\nContent-Length: 70\r\nContent-Range: bytes 230-299/1000\r\n\r\n",
	"HTTP/1.1 206 Partial Content\r\nContent-Length: 70\r\nETag: \"v1\"\r\n\r\n",
	"HTTP/1.1 206 Partial Content\r\nETag: \"v1\"\r\nContent-Range: bytes 230-299/1000\r\n\r\n",
	"HTTP/1.1 206 Partial Content\r\nContent-Type: multipart/byteranges; boundary=x\r\nContent-Length: 70\r\n"
	"ETag: \"v1\"\r\n\r\n",
	"no HTTP at all\r\n\r\n",
	"HTTP/1.1 206 Partial Content\nContent-Length: 70\n\n",
};

START_TEST(anything_else_is_not)
{
	struct download d;
	size_t head_len;

	ck_assert_int_eq(resumes(&d, others[_i], &head_len), CSSL_E_MISMATCH);
}
END_TEST

START_TEST(half_a_head_is_waited_for)
{
	static const char text[] = REST("70", "230-299/1000", "");
	struct download d = one_range;
	size_t head_len;

	for (size_t len = 0; len < strlen(text); len++)
		ck_assert_int_eq(
			download_resumes(&d, 30, (const uint8_t *)text, len, &head_len), RESPONSE_HEAD_INCOMPLETE);
	ck_assert_int_eq(download_resumes(&d, 30, (const uint8_t *)text, strlen(text), &head_len), 0);
}
END_TEST

START_TEST(but_not_for_ever)
{
	static uint8_t text[MESSAGE_HEAD_MAX];
	struct download d = one_range;
	size_t head_len;

	memset(text, 'x', sizeof text);
	memcpy(text, "HTTP/1.1 206 ", 13);
	ck_assert_int_eq(download_resumes(&d, 30, text, sizeof text - 1, &head_len), RESPONSE_HEAD_INCOMPLETE);
	ck_assert_int_eq(download_resumes(&d, 30, text, sizeof text, &head_len), CSSL_E_MISMATCH);
}
END_TEST

START_TEST(the_follower_is_told_how_much_is_left)
{
	char head[ANSWER_HEAD_MAX];

	ck_assert_uint_eq(answer_head_write(70, ANSWER_PERSISTS, head), strlen(head));
	ck_assert_str_eq(head, "HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n");
	answer_head_write(UINT64_MAX - 1, ANSWER_CLOSES, head);
	ck_assert_str_eq(head, "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551614\r\nConnection: close\r\n\r\n");
	answer_head_write(ANSWER_CHUNKED, ANSWER_PERSISTS, head);
	ck_assert_str_eq(head, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}
END_TEST

static const struct download noted = { .first = 200,
	.len = 100,
	.total = 1000,
	.head_len = 50,
	.closes = ANSWER_CLOSES,
	.etag_len = 4,
	.etag = "\"v1\"" };

START_TEST(a_note_holds_all_of_it)
{
	uint8_t note[DOWNLOAD_NOTE_MAX];
	struct download d = noted, out;

	if (_i) {
		d.etag_len = HEAD_ETAG_MAX;
		memset(d.etag, 'e', sizeof d.etag);
	}
	size_t len = download_write(&d, note);
	ck_assert_int_eq(download_read(note, len, &out), 0);
	ck_assert_mem_eq(&out, &d, sizeof d);
	for (size_t less = 0; less < len; less++)
		ck_assert_int_lt(download_read(note, less, &out), 0);
}
END_TEST

START_TEST(a_note_with_more_than_it_is_refused)
{
	uint8_t note[DOWNLOAD_NOTE_MAX + 1] = { 0 };
	struct download out;
	size_t len = download_write(&noted, note);

	ck_assert_int_eq(download_read(note, len + 1, &out), CSSL_E_TRAILING);
}
END_TEST

/* No agent of ours writes these: they are refused before anybody counts with them. */
static const struct download senseless[] = {
	{ .first = 0, .len = 0, .total = 1000, .head_len = 50 },
	{ .first = 0, .len = 1001, .total = 1000, .head_len = 50 },
	{ .first = 901, .len = 100, .total = 1000, .head_len = 50 },
	{ .first = UINT64_MAX, .len = 2, .total = 1000, .head_len = 50 },
	{ .first = 0, .len = 1000, .total = 1000, .head_len = 0 },
	{ .first = 0, .len = 1000, .total = 1000, .head_len = MESSAGE_HEAD_MAX + 1 },
	{ .first = 0, .len = 1000, .total = 1000, .head_len = 50, .closes = 2 },
};

START_TEST(a_note_that_makes_no_sense_is_refused)
{
	uint8_t note[DOWNLOAD_NOTE_MAX];
	struct download out;
	size_t len = download_write(&senseless[_i], note);

	ck_assert_int_eq(download_read(note, len, &out), CSSL_E_RANGE);
}
END_TEST

#define COUNT_OF(a) ((int)(sizeof(a) / sizeof(a)[0]))

static void add(TCase *t)
{
	tcase_add_test(t, a_whole_answer_with_a_strong_etag_and_ranges_can_go_on);
	tcase_add_test(t, one_range_can_go_on);
	tcase_add_loop_test(t, an_answer_that_closes_is_known_to_close, 0, COUNT_OF(closing));
	tcase_add_loop_test(t, nothing_else_can_go_on, 0, COUNT_OF(no_downloads));
	tcase_add_test(t, a_head_that_is_too_long_is_not_looked_at);
	tcase_add_test(t, the_rest_is_asked_for_on_condition_that_nothing_changed);
	tcase_add_loop_test(t, only_one_whole_head_can_be_asked_again, 0, 7);
	tcase_add_test(t, a_question_never_needs_more_room_than_promised);
	tcase_add_loop_test(t, the_rest_of_the_same_is_taken, 0, 2);
	tcase_add_test(t, a_backend_that_closes_behind_the_rest_is_known_to);
	tcase_add_loop_test(t, anything_else_is_not, 0, COUNT_OF(others));
	tcase_add_test(t, half_a_head_is_waited_for);
	tcase_add_test(t, but_not_for_ever);
	tcase_add_test(t, the_follower_is_told_how_much_is_left);
	tcase_add_loop_test(t, a_note_holds_all_of_it, 0, 2);
	tcase_add_test(t, a_note_with_more_than_it_is_refused);
	tcase_add_loop_test(t, a_note_that_makes_no_sense_is_refused, 0, COUNT_OF(senseless));
}

UNIT(download)
{
	return run_suite("download", add);
}
