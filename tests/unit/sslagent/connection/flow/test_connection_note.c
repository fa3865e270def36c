/* test_connection_download.c: facts of answers that go on at another agent: when an owner leaves word of one, how a
 * successor goes on with it, byte for byte, and that it ends with the alert wherever it cannot be the same answer.
 */
#include <stdio.h>
#include <string.h>

#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

#define SIZE 200000u
#define HEAD "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n\r\n"
#define NEXT "GET /next HTTP/1.1\r\nHost: www.example.org\r\n\r\n"

static struct home *owner;

static void lose_and_adopt(void)
{
	fake_ragent_lose(&r);
	owner = owner == &a1 ? &a2 : &a1;
	ck_assert_int_eq(fake_ragent_adopt(&r, &owner->worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
}

static void begun(const char *head, const void *body, size_t len, const struct memory_client_config *config)
{
	owner = &a1;
	keep("http", &a1, config);
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(head);
	backend_say(body, len);
	client_expect_text(head);
	client_expect(body, len);
}

/* The whole answer comes with this head; the client has so much of its body. */
static void delivered(size_t len, const struct memory_client_config *config)
{
	begun(HEAD, lots, len, config);
	ck_assert_uint_eq(fake_said(&r, FRAME_DOWNLOAD), 1);
}

static void expect_question(uint64_t from, uint64_t to)
{
	char text[256];

	snprintf(text, sizeof text,
		"GET / HTTP/1.1\r\nHost: www.example.org\r\nRange: bytes=%llu-%llu\r\nIf-Match: \"v1\"\r\n\r\n",
		(unsigned long long)from, (unsigned long long)to);
	backend_accept();
	backend_expect_text(text);
}

static void answer_question(uint64_t from, uint64_t to, const char *fields)
{
	char text[512];

	snprintf(text, sizeof text,
		"HTTP/1.1 206 Partial Content\r\nContent-Length: %llu\r\nETag: \"v1\"\r\nContent-Range: bytes "
		"%llu-%llu/200000"
		"\r\n%s\r\n",
		(unsigned long long)(to - from + 1), (unsigned long long)from, (unsigned long long)to, fields);
	backend_say_text(text);
}

static void next_request_is_served(void)
{
	carry_until(r.position.response == POSITION_AT_CHECKPOINT);
	say_text(NEXT);
	backend_expect_text(NEXT);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
}

static void expect_cut(void)
{
	expect_end(END_AGENT_LOST, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_INTERNAL_ERROR);
	ck_assert_uint_eq(counted(COUNT_RECOVERED_ALERT), 1);
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_RESUMED), 0);
	ck_assert_uint_eq(got_len, 0); /* and no byte more */
}

/* --- what goes on --- */

static const size_t parts[] = { 0, 1, 16384, 100000, SIZE - 1 };

START_TEST(an_answer_goes_on_where_it_was_cut)
{
	size_t done = parts[_i / 2];

	delivered(done, tls_version(_i % 2));
	lose_and_adopt();
	expect_question(done, SIZE - 1);
	answer_question(done, SIZE - 1, "");
	backend_say(lots + done, SIZE - done);
	client_expect(lots + done, SIZE - done);
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_RESUMED), 1);
	next_request_is_served();
}
END_TEST

START_TEST(it_goes_on_however_often_its_owner_is_lost)
{
	size_t done = 20000;

	delivered(done, tls_version(_i));
	for (; done < SIZE; done += 20000) {
		lose_and_adopt();
		expect_question(done, SIZE - 1);
		answer_question(done, SIZE - 1, "");
		backend_say(lots + done, 20000);
		client_expect(lots + done, 20000);
	}
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_RESUMED), 9);
	next_request_is_served();
}
END_TEST

START_TEST(an_adopter_that_is_lost_while_it_asks_changes_nothing)
{
	delivered(20000, tls_version(_i));
	lose_and_adopt();
	expect_question(20000, SIZE - 1);
	ck_assert_int_eq(state(), CONNECTION_RECOVERING);
	lose_and_adopt();
	expect_question(20000, SIZE - 1);
	answer_question(20000, SIZE - 1, "");
	backend_say(lots + 20000, SIZE - 20000);
	client_expect(lots + 20000, SIZE - 20000);
	next_request_is_served();
}
END_TEST

START_TEST(a_range_goes_on_within_its_bounds)
{
	begun("HTTP/1.1 206 Partial Content\r\nContent-Length: 150000\r\nETag: \"v1\"\r\n"
	      "Content-Range: bytes 40000-189999/200000\r\n\r\n",
		lots + 40000, 50000, tls_version(_i));
	lose_and_adopt();
	expect_question(90000, 189999);
	answer_question(90000, 189999, "");
	backend_say(lots + 90000, 100000);
	client_expect(lots + 90000, 100000);
	next_request_is_served();
}
END_TEST

START_TEST(an_answer_that_was_whole_needs_no_backend)
{
	static const uint8_t flags = FRAME_RESPONSE_BYTES;

	delivered(SIZE - 1, tls_version(_i));
	/* its last byte was delivered, but the checkpoint was not told */
	fake_owner(&r)->written--;
	backend_say(lots + SIZE - 1, 1);
	client_expect(lots + SIZE - 1, 1);
	ck_assert_int_eq(r.current->data_flags & FRAME_CHECKPOINT, 0);
	ck_assert_int_eq(r.current->data_flags & flags, flags);
	lose_and_adopt();
	carry_until(r.position.response == POSITION_AT_CHECKPOINT);
	ck_assert(!backend_waits());
	say_text(NEXT);
	backend_accept();
	backend_expect_text(NEXT);
}
END_TEST

START_TEST(what_the_client_asks_meanwhile_is_served_behind_it)
{
	delivered(20000, tls_version(_i));
	lose_and_adopt();
	say_text(NEXT);
	expect_question(20000, SIZE - 1);
	answer_question(20000, SIZE - 1, "");
	backend_say(lots + 20000, SIZE - 20000);
	client_expect(lots + 20000, SIZE - 20000);
	backend_expect_text(NEXT);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
}
END_TEST

START_TEST(a_head_that_comes_in_pieces_is_waited_for)
{
	delivered(20000, tls_version(_i));
	lose_and_adopt();
	expect_question(20000, SIZE - 1);
	backend_say_text("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 206 Partial Content\r\nContent-Le");
	carry_on();
	ck_assert_int_eq(state(), CONNECTION_RECOVERING);
	backend_say_text("ngth: 180000\r\nETag: \"v1\"\r\nContent-Range: bytes 20000-199999/200000\r\n\r\n");
	backend_say(lots + 20000, SIZE - 20000);
	client_expect(lots + 20000, SIZE - 20000);
}
END_TEST

START_TEST(a_backend_that_closes_behind_the_rest_ends_it_in_order)
{
	delivered(20000, tls_version(_i));
	lose_and_adopt();
	expect_question(20000, SIZE - 1);
	answer_question(20000, SIZE - 1, "Connection: close\r\n");
	backend_say(lots + 20000, SIZE - 20000);
	backend_hang_up();
	client_expect(lots + 20000, SIZE - 20000);
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

START_TEST(a_client_that_had_closed_behind_its_request_gets_the_rest)
{
	owner = &a1;
	keep("http", &a1, tls_version(_i));
	say_text(GET);
	memory_client_close(client);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(HEAD);
	backend_say(lots, 20000);
	client_expect_text(HEAD);
	client_expect(lots, 20000);
	lose_and_adopt();
	expect_question(20000, SIZE - 1);
	answer_question(20000, SIZE - 1, "");
	backend_say(lots + 20000, SIZE - 20000);
	client_expect(lots + 20000, SIZE - 20000);
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

START_TEST(the_rest_waits_for_the_commit_of_the_new_keys)
{
	delivered(20000, TLS13);
	manners.commits = COMMITS_HELD;
	lose_and_adopt();
	expect_question(20000, SIZE - 1);
	answer_question(20000, SIZE - 1, "");
	backend_say(lots + 20000, 1000);
	carry_on();
	ck_assert_uint_eq(fake_said(&r, FRAME_DATA), 1);
	ck_assert(r.current->data_flags & FRAME_LAST_OF_WRITE_GENERATION);
	ck_assert_uint_eq(got_len, 0);
	manners.commits = COMMITS_TOLD;
	client_expect(lots + 20000, 1000);
}
END_TEST

/* --- what is no download --- */

static const struct {
	const char *asked, *head;
} no_downloads[] = {
	{ GET, "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\nAccept-Ranges: bytes\r\n\r\n" },
	{ GET, "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\nETag: W/\"v1\"\r\nAccept-Ranges: bytes\r\n\r\n" },
	{ GET, "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\nETag: \"v1\"\r\n\r\n" },
	{ GET, "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n\r\n" },
	{ "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", HEAD },
	{ "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", HEAD },
	{ "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", HEAD },
	{ GET GET, HEAD },
};

START_TEST(no_word_is_left_of_other_answers_and_they_end_with_the_alert)
{
	keep("http", &a1, TLS13);
	owner = &a1;
	say_text(no_downloads[_i].asked);
	backend_accept();
	backend_expect_text(no_downloads[_i].asked);
	backend_say_text(no_downloads[_i].head);
	backend_say(lots, 20000);
	client_expect_text(no_downloads[_i].head);
	client_expect(lots, 20000);
	ck_assert_uint_eq(fake_said(&r, FRAME_DOWNLOAD), 0);
	lose_and_adopt();
	expect_cut();
	ck_assert(!backend_waits());
}
END_TEST

START_TEST(an_answer_that_fits_one_frame_leaves_no_word)
{
	static const char head[] =
		"HTTP/1.1 200 OK\r\nContent-Length: 1024\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n\r\n";
	char whole[sizeof head - 1 + 1024];

	memcpy(whole, head, sizeof head - 1);
	memcpy(whole + sizeof head - 1, lots, 1024);
	keep("http", &a1, tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say(whole, sizeof whole);
	client_expect(whole, sizeof whole);
	ck_assert_uint_eq(fake_said(&r, FRAME_DOWNLOAD), 0);
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_OFFERED), 0);
}
END_TEST

START_TEST(each_answer_leaves_its_own_word)
{
	delivered(SIZE, tls_version(_i));
	carry_until(r.position.response == POSITION_AT_CHECKPOINT);
	ck_assert_uint_eq(r.download_len, 0);
	say_text(GET);
	backend_expect_text(GET);
	backend_say_text(HEAD);
	backend_say(lots, 7);
	client_expect_text(HEAD);
	client_expect(lots, 7);
	ck_assert_uint_eq(fake_said(&r, FRAME_DOWNLOAD), 2);
	lose_and_adopt();
	expect_question(7, SIZE - 1);
}
END_TEST

START_TEST(a_word_that_does_not_open_ends_with_the_alert)
{
	delivered(20000, tls_version(_i));
	r.download[r.download_len - 1] ^= 1;
	lose_and_adopt();
	expect_cut();
}
END_TEST

START_TEST(half_a_head_ends_with_the_alert)
{
	delivered(20000, tls_version(_i));
	r.position.response_bytes = r.position.response_records * live_overhead(fake_owner(&r)->live) + sizeof HEAD - 2;
	lose_and_adopt();
	expect_cut();
}
END_TEST

START_TEST(more_than_the_whole_ends_with_the_alert)
{
	delivered(20000, tls_version(_i));
	r.position.response_bytes += SIZE;
	lose_and_adopt();
	expect_cut();
}
END_TEST

START_TEST(a_request_that_cannot_be_heard_any_more_ends_with_the_alert)
{
	delivered(20000, TLS13);
	say_key_update(0);
	carry_until(r.position.now.read_generation == 1);
	lose_and_adopt();
	expect_cut();
}
END_TEST

START_TEST(a_second_request_that_the_lost_owner_had_ends_with_the_alert)
{
	delivered(20000, tls_version(_i));
	say_text(NEXT);
	backend_expect_text(NEXT);
	lose_and_adopt();
	expect_cut();
}
END_TEST

/* --- backends that do not give the same any more --- */

static const char *const others[] = {
	"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n",
	HEAD "the whole again",
	"HTTP/1.1 206 Partial Content\r\nContent-Length: 180000\r\nETag: \"v2\"\r\n"
	"Content-Range: bytes 20000-199999/200000\r\n\r\nof another",
	"HTTP/1.1 206 Partial Content\r\nContent-Length: 180001\r\nETag: \"v1\"\r\n"
	"Content-Range: bytes 20000-200000/200001\r\n\r\nlonger",
	"SSH-2.0-x\r\n\r\n",
};

START_TEST(another_answer_ends_with_the_alert_and_gives_no_byte)
{
	delivered(20000, tls_version(_i % 2));
	lose_and_adopt();
	expect_question(20000, SIZE - 1);
	backend_say_text(others[_i / 2]);
	expect_cut();
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_REFUSED), 1);
	ck_assert_int_eq(backend_end(), -1);
}
END_TEST

START_TEST(a_backend_that_ends_instead_ends_with_the_alert)
{
	delivered(20000, tls_version(_i % 2));
	lose_and_adopt();
	expect_question(20000, SIZE - 1);
	if (_i / 2)
		backend_reset_now();
	else
		backend_hang_up();
	expect_cut();
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_REFUSED), 1);
}
END_TEST

START_TEST(a_backend_out_of_reach_ends_with_the_alert)
{
	delivered(20000, tls_version(_i));
	backend_stop_listening();
	lose_and_adopt();
	expect_cut();
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_REFUSED), 1);
}
END_TEST

START_TEST(a_rest_that_is_cut_itself_ends_with_the_alert)
{
	delivered(20000, tls_version(_i));
	lose_and_adopt();
	expect_question(20000, SIZE - 1);
	answer_question(20000, SIZE - 1, "");
	backend_say(lots + 20000, 1000);
	client_expect(lots + 20000, 1000);
	backend_hang_up();
	expect_end(END_BACKEND_CLOSED, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_INTERNAL_ERROR);
}
END_TEST

UNIT(connection_note)
{
	const struct connection_fact facts[] = {
		{ an_answer_goes_on_where_it_was_cut, 2 * FACTS_LEN(parts) },
		{ it_goes_on_however_often_its_owner_is_lost, 2 },
		{ an_adopter_that_is_lost_while_it_asks_changes_nothing, 2 },
		{ a_range_goes_on_within_its_bounds, 2 },
		{ an_answer_that_was_whole_needs_no_backend, 2 },
		{ what_the_client_asks_meanwhile_is_served_behind_it, 2 },
		{ a_head_that_comes_in_pieces_is_waited_for, 2 },
		{ a_backend_that_closes_behind_the_rest_ends_it_in_order, 2 },
		{ a_client_that_had_closed_behind_its_request_gets_the_rest, 2 },
		{ the_rest_waits_for_the_commit_of_the_new_keys, 0 },
		{ no_word_is_left_of_other_answers_and_they_end_with_the_alert, FACTS_LEN(no_downloads) },
		{ an_answer_that_fits_one_frame_leaves_no_word, 2 },
		{ each_answer_leaves_its_own_word, 2 },
		{ a_word_that_does_not_open_ends_with_the_alert, 2 },
		{ half_a_head_ends_with_the_alert, 2 },
		{ more_than_the_whole_ends_with_the_alert, 2 },
		{ a_request_that_cannot_be_heard_any_more_ends_with_the_alert, 0 },
		{ a_second_request_that_the_lost_owner_had_ends_with_the_alert, 2 },
		{ another_answer_ends_with_the_alert_and_gives_no_byte, 2 * FACTS_LEN(others) },
		{ a_backend_that_ends_instead_ends_with_the_alert, 4 },
		{ a_backend_out_of_reach_ends_with_the_alert, 2 },
		{ a_rest_that_is_cut_itself_ends_with_the_alert, 2 },
	};

	return connection_suite_run("connection_download", facts, FACTS_LEN(facts));
}
