/* test_delivered.c: facts of answers that are repeated: which can be, what a note proves, and which repetition is taken
 * for the same answer.
 */
#include "sslagent/service/http/delivered.h"

#include <string.h>

#include "proto/error.h"
#include "sslagent/service/http/download.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define LENGTH  "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Length: 9000\r\n\r\n"
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static uint8_t body[9000];

static void setup(void)
{
	for (size_t i = 0; i < sizeof body; i++)
		body[i] = (uint8_t)(i * 7 ^ i >> 8);
}

static int begins(const char *head, struct delivered *d)
{
	return delivered_begins((const uint8_t *)head, strlen(head), d);
}

/* --- which answers --- */

static const struct {
	const char *head;
	int result;
} heads[] = {
	{ LENGTH, 0 },
	{ CHUNKED, 0 },
	{ "HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\n", 0 },
	{ "HTTP/1.0 200 OK\r\nContent-Length: 10\r\n\r\n", 0 },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: W/\"weak\"\r\nAccept-Ranges: none\r\n\r\n", 0 },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", DELIVERED_NOT },
	{ "HTTP/1.1 200 OK\r\n\r\n", DELIVERED_NOT },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Length: 10\r\n\r\n", DELIVERED_NOT },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n", DELIVERED_NOT },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", DELIVERED_NOT },
	{ "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", DELIVERED_NOT },
	{ "HTTP/1.1 204 No Content\r\nContent-Length: 10\r\n\r\n", DELIVERED_NOT },
	{ "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n", DELIVERED_NOT },
	{ "HTTP/1.1 100 Continue\r\n\r\n", DELIVERED_NOT },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n", DELIVERED_NOT },
};

START_TEST(an_answer_with_a_body_of_known_end_can_be_repeated)
{
	struct delivered d;

	ck_assert_int_eq(begins(heads[_i].head, &d), heads[_i].result);
}
END_TEST

START_TEST(length_or_chunks_are_known)
{
	struct delivered d;

	ck_assert_int_eq(begins(LENGTH, &d), 0);
	ck_assert_uint_eq(d.len, 9000);
	ck_assert_uint_eq(d.head_len, strlen(LENGTH));
	ck_assert_int_eq(begins(CHUNKED, &d), 0);
	ck_assert_uint_eq(d.len, ANSWER_CHUNKED);
}
END_TEST

/* --- notes --- */

/* The client has so many bytes of the body; the next frame holds so many more. */
static size_t note_of(const char *head, size_t len, size_t more, uint8_t out[static DELIVERED_NOTE_MAX])
{
	struct delivered_watch w;

	ck_assert_int_eq(begins(head, &w.now), 0);
	w.ahead = w.now;
	delivered_passed(&w, (const uint8_t *)head, strlen(head));
	delivered_passed(&w, body, len);
	return delivered_note(&w, body + len, more, out);
}

START_TEST(a_note_has_the_digests_of_two_positions_only)
{
	uint8_t note[DELIVERED_NOTE_MAX];
	const size_t len = note_of(LENGTH, 3000, 500, note), head = strlen(LENGTH);
	struct repetition r;

	ck_assert_uint_eq(len, DELIVERED_NOTE_MAX);
	ck_assert_int_eq(repetition_read(note, len, head + 3000, &r), 0);
	ck_assert_uint_eq(r.goal, 3000);
	ck_assert_int_eq(repetition_read(note, len, head + 3500, &r), 0);
	ck_assert_uint_eq(r.goal, 3500);
	ck_assert_int_eq(repetition_read(note, len, head + 3001, &r), CSSL_E_NOT_FOUND);
	ck_assert_int_eq(repetition_read(note, len, head, &r), CSSL_E_NOT_FOUND);
}
END_TEST

START_TEST(half_a_head_is_not_continued)
{
	uint8_t note[DELIVERED_NOTE_MAX];
	struct delivered_watch w;
	struct repetition r;

	ck_assert_int_eq(begins(LENGTH, &w.now), 0);
	w.ahead = w.now;
	const size_t len = delivered_note(&w, (const uint8_t *)LENGTH, 20, note);
	ck_assert_int_eq(repetition_read(note, len, 20, &r), CSSL_E_NOT_FOUND);
	ck_assert_int_eq(repetition_read(note, len, 0, &r), CSSL_E_NOT_FOUND);
}
END_TEST

START_TEST(a_note_that_makes_no_sense_is_refused)
{
	uint8_t note[DELIVERED_NOTE_MAX + 1] = { 0 };
	const size_t len = note_of(LENGTH, 3000, 500, note), at = strlen(LENGTH) + 3000;
	struct repetition r;

	for (size_t i = 0; i < len; i++)
		ck_assert_int_lt(repetition_read(note, i, at, &r), 0);
	ck_assert_int_eq(repetition_read(note, len + 1, at, &r), CSSL_E_TRAILING);
	memset(note + 8 + DELIVERED_LOOK_LEN, 0, 8); /* no body */
	ck_assert_int_eq(repetition_read(note, len, at, &r), CSSL_E_RANGE);
}
END_TEST

START_TEST(such_a_note_is_none_of_a_download)
{
	uint8_t note[DELIVERED_NOTE_MAX];
	const size_t len = note_of(LENGTH, 3000, 500, note);
	struct download d;

	ck_assert(delivered_is_note(note, len));
	ck_assert_int_lt(download_read(note, len, &d), 0);
	ck_assert(!delivered_is_note(note, 7));
}
END_TEST

START_TEST(digests_go_on_behind_a_move)
{
	uint8_t state[DELIVERED_STATE_LEN], stays[DELIVERED_NOTE_MAX], moves[DELIVERED_NOTE_MAX];
	struct delivered_watch w;

	ck_assert_int_eq(begins(LENGTH, &w.now), 0);
	w.ahead = w.now;
	delivered_passed(&w, (const uint8_t *)LENGTH, strlen(LENGTH));
	delivered_passed(&w, body, 3000);
	delivered_save(&w.now, state);
	delivered_note(&w, body + 3000, 2000, stays);
	memset(&w, 0xaa, sizeof w);
	ck_assert_int_eq(delivered_restore(state, sizeof state, &w.now), 0);
	delivered_note(&w, body + 3000, 2000, moves);
	ck_assert_mem_eq(stays, moves, sizeof stays);
	for (size_t len = 0; len < sizeof state; len += 100)
		ck_assert_int_lt(delivered_restore(state, len, &w.now), 0);
	memset(state + DELIVERED_LOOK_LEN, 0, 8); /* no body */
	ck_assert_int_eq(delivered_restore(state, sizeof state, &w.now), CSSL_E_RANGE);
}
END_TEST

/* --- repetitions --- */

static void cut(const char *head, size_t len, struct repetition *out)
{
	uint8_t note[DELIVERED_NOTE_MAX];
	const size_t note_len = note_of(head, len, sizeof body - len < 100 ? sizeof body - len : 100, note);

	ck_assert_int_eq(repetition_read(note, note_len, strlen(head) + len, out), 0);
}

/* The same answer in such pieces. */
static int hear(struct repetition *r, const char *head, const uint8_t *data, size_t len, size_t piece)
{
	struct repetition_heard heard;
	int known = repetition_hear(r, (const uint8_t *)head, strlen(head), &heard);

	if (known != REPETITION_MORE)
		return known;
	ck_assert_uint_eq(heard.head_len, strlen(head));
	for (size_t at = 0; at < len && known == REPETITION_MORE; at += heard.len) {
		known = repetition_hear(r, data + at, len - at < piece ? len - at : piece, &heard);
		ck_assert_uint_eq(heard.head_len, 0);
	}
	return known;
}

static const size_t ends[] = { 1, 1023, 1024, 1025, 4096, 8999 };
static const size_t pieces[] = { 1, 100, 1024, 9000 };

START_TEST(the_same_bytes_are_the_same_in_whatever_pieces)
{
	struct repetition r;

	cut(LENGTH, ends[_i], &r);
	for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
		struct repetition one = r;
		ck_assert_int_eq(hear(&one, LENGTH, body, sizeof body, pieces[i]), 0);
		ck_assert_uint_eq(one.answer.body.len, ends[_i]);
	}
}
END_TEST

START_TEST(each_other_byte_makes_another_answer)
{
	struct repetition r;

	cut(LENGTH, 2500, &r);
	for (size_t i = 0; i < 2500; i += 499) {
		struct repetition one = r;
		body[i] ^= 1;
		ck_assert_int_eq(hear(&one, LENGTH, body, sizeof body, 700), CSSL_E_MISMATCH);
		body[i] ^= 1;
	}
	body[2500] ^= 1; /* the client does not have this one */
	ck_assert_int_eq(hear(&r, LENGTH, body, sizeof body, 700), 0);
}
END_TEST

#define LOOKS                                                                                                          \
	"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n"            \
	"ETag: W/\"a\"\r\nLast-Modified: Mon\r\n\r\n"

static const struct {
	const char *head;
	int result;
} others[] = {
	{ LOOKS, 0 },
	{ "HTTP/1.1 200 Fine\r\nlast-modified:Mon\r\nServer: other\r\nDate: later\r\nETag: W/\"a\"\r\n"
	  "Content-Encoding: gzip\r\nContent-Type: text/plain\r\nContent-Length: 9000\r\n\r\n",
		0 },
	{ "HTTP/1.1 201 OK\r\nContent-Length: 9000\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n"
	  "ETag: W/\"a\"\r\nLast-Modified: Mon\r\n\r\n",
		CSSL_E_MISMATCH },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 9001\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n"
	  "ETag: W/\"a\"\r\nLast-Modified: Mon\r\n\r\n",
		CSSL_E_MISMATCH },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n"
	  "ETag: W/\"a\"\r\nLast-Modified: Mon\r\n\r\n",
		CSSL_E_MISMATCH },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\nContent-Type: text/plain\r\nContent-Encoding: br\r\n"
	  "ETag: W/\"a\"\r\nLast-Modified: Mon\r\n\r\n",
		CSSL_E_MISMATCH },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n"
	  "ETag: W/\"b\"\r\nLast-Modified: Mon\r\n\r\n",
		CSSL_E_MISMATCH },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n"
	  "ETag: W/\"a\"\r\n\r\n",
		CSSL_E_MISMATCH },
	{ "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 9000\r\n\r\n", CSSL_E_MISMATCH },
	{ "SSH-2.0-x\r\n\r\n", CSSL_E_MISMATCH },
};

START_TEST(another_status_framing_or_kind_makes_another_answer)
{
	struct repetition r;

	cut(LOOKS, 2000, &r);
	ck_assert_int_eq(hear(&r, others[_i].head, body, sizeof body, 9000), others[_i].result);
}
END_TEST

START_TEST(a_head_is_waited_for_and_interim_answers_are_skipped)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n" LENGTH;
	struct repetition_heard heard;
	struct repetition r;

	cut(LENGTH, 10, &r);
	ck_assert_int_eq(repetition_hear(&r, (const uint8_t *)text, sizeof text - 2, &heard), REPETITION_MORE);
	ck_assert_uint_eq(heard.len, 0);
	ck_assert_int_eq(repetition_hear(&r, (const uint8_t *)text, sizeof text - 1, &heard), REPETITION_MORE);
	ck_assert_uint_eq(heard.head_len, sizeof text - 1);
	ck_assert_int_eq(repetition_hear(&r, body, sizeof body, &heard), 0);
	ck_assert_uint_eq(heard.len, 10);
}
END_TEST

START_TEST(the_request_is_repeated_as_it_was)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\nCookie: b\r\n\r\n";
	uint8_t out[sizeof request];

	ck_assert_int_eq(download_ask(NULL, 0, (const uint8_t *)request, sizeof request - 1, out, sizeof out),
		sizeof request - 1);
	ck_assert_mem_eq(out, request, sizeof request - 1);
	ck_assert_int_eq(download_ask(NULL, 0, (const uint8_t *)request, sizeof request - 1, out, 5), CSSL_E_TOO_LONG);
	ck_assert_int_eq(
		download_ask(NULL, 0, (const uint8_t *)request, sizeof request - 2, out, sizeof out), CSSL_E_RANGE);
	ck_assert_int_eq(
		download_ask(NULL, 0, (const uint8_t *)request, sizeof request, out, sizeof out), CSSL_E_RANGE);
}
END_TEST

#define COUNT_OF(a) ((int)(sizeof(a) / sizeof(a)[0]))

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_loop_test(t, an_answer_with_a_body_of_known_end_can_be_repeated, 0, COUNT_OF(heads));
	tcase_add_test(t, length_or_chunks_are_known);
	tcase_add_test(t, a_note_has_the_digests_of_two_positions_only);
	tcase_add_test(t, half_a_head_is_not_continued);
	tcase_add_test(t, a_note_that_makes_no_sense_is_refused);
	tcase_add_test(t, such_a_note_is_none_of_a_download);
	tcase_add_test(t, digests_go_on_behind_a_move);
	tcase_add_loop_test(t, the_same_bytes_are_the_same_in_whatever_pieces, 0, COUNT_OF(ends));
	tcase_add_test(t, each_other_byte_makes_another_answer);
	tcase_add_loop_test(t, another_status_framing_or_kind_makes_another_answer, 0, COUNT_OF(others));
	tcase_add_test(t, a_head_is_waited_for_and_interim_answers_are_skipped);
	tcase_add_test(t, the_request_is_repeated_as_it_was);
}

UNIT(delivered)
{
	return run_suite("delivered", add);
}
