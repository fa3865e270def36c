/* test_connection_repeat.c: facts of answers that are asked for again as a whole after the loss of their owner
 * (`repeat_downloads`): they go on byte for byte where the repeated answer begins with the delivered bytes, and end
 * with the alert where it does not.
 */
#include <stdio.h>
#include <string.h>

#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

#define SIZE    140000u
#define CHUNK   7000u
#define FIELDS  "Content-Type: text/plain\r\n\r\n"
#define LENGTH  "HTTP/1.1 200 OK\r\nDate: Mon\r\nContent-Length: 140000\r\n" FIELDS
#define CHUNKED "HTTP/1.1 200 OK\r\nDate: Mon\r\nTransfer-Encoding: chunked\r\n" FIELDS
#define NEXT    "GET /next HTTP/1.1\r\nHost: www.example.org\r\n\r\n"

/* One answer in both framings. */
static const struct {
	const char *head, *again; /* the same with another date */
} framings[] = {
	{ LENGTH, "HTTP/1.1 200 OK\r\nDate: Tue\r\nContent-Length: 140000\r\n" FIELDS },
	{ CHUNKED, "HTTP/1.1 200 OK\r\nDate: Tue\r\nTransfer-Encoding: chunked\r\n" FIELDS },
};
static uint8_t body[2 * SIZE];
static size_t body_len;
static struct home *owner;

static void fill_body(int chunked)
{
	body_len = 0;
	for (size_t at = 0; at < SIZE; at += CHUNK) {
		if (chunked)
			body_len += (size_t)sprintf((char *)body + body_len, "%s%x\r\n", at ? "\r\n" : "", CHUNK);
		memcpy(body + body_len, lots + at, CHUNK);
		body_len += CHUNK;
	}
	if (chunked)
		body_len += (size_t)sprintf((char *)body + body_len, "\r\n0\r\n\r\n");
}

static void lose_and_adopt(void)
{
	fake_ragent_lose(&r);
	owner = owner == &a1 ? &a2 : &a1;
	ck_assert_int_eq(fake_ragent_adopt(&r, &owner->worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
}

/* The client has so much of the body. @i chooses framing and version. */
static void delivered(int i, size_t len)
{
	const char *head = framings[i / 2 % 2].head;

	owner = &a1;
	fill_body(i / 2 % 2);
	keep("repeats", &a1, tls_version(i % 2));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(head);
	client_expect_text(head);
	backend_say(body, len);
	client_expect(body, len);
}

static void expect_repeated_request(void)
{
	backend_accept();
	backend_expect_text(GET);
}

static void say_again(int i)
{
	backend_say_text(framings[i / 2 % 2].again);
	backend_say(body, body_len);
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

/* --- the same answer --- */

static const size_t parts[] = { 0, 1, 7000, 50000, 139000 };

START_TEST(a_repeated_answer_goes_on_where_it_was_cut)
{
	const size_t done = parts[_i / 4];

	delivered(_i, done);
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_OFFERED), 1);
	lose_and_adopt();
	expect_repeated_request();
	say_again(_i);
	client_expect(body + done, body_len - done);
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_RESUMED), 1);
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_REPEATED), 1);
	next_request_is_served();
}
END_TEST

START_TEST(it_goes_on_however_often_its_owner_is_lost)
{
	size_t done = 20000;

	delivered(_i, done);
	for (; done + 25000 < body_len; done += 25000) {
		lose_and_adopt();
		expect_repeated_request();
		backend_say_text(framings[_i / 2].again);
		backend_say(body, done + 25000);
		client_expect(body + done, 25000);
	}
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_REPEATED), 4);
	backend_say(body + done, body_len - done);
	client_expect(body + done, body_len - done);
	next_request_is_served();
}
END_TEST

START_TEST(a_frame_that_was_lost_with_its_owner_is_given_again)
{
	delivered(_i, 20000);
	const struct position before = r.position;
	backend_say(body + 20000, 1000);
	client_expect(body + 20000, 1000);
	r.position.response_records = before.response_records; /* the note came, and the frame did not */
	r.position.response_bytes = before.response_bytes;
	lose_and_adopt();
	expect_repeated_request();
	say_again(_i);
	client_expect(body + 20000, body_len - 20000);
}
END_TEST

START_TEST(an_adopter_that_is_lost_while_it_compares_changes_nothing)
{
	delivered(_i, 50000);
	lose_and_adopt();
	expect_repeated_request();
	backend_say_text(framings[_i / 2].again);
	backend_say(body, 30000);
	carry_on();
	ck_assert_int_eq(state(), CONNECTION_RECOVERING);
	lose_and_adopt();
	expect_repeated_request();
	say_again(_i);
	client_expect(body + 50000, body_len - 50000);
	next_request_is_served();
}
END_TEST

START_TEST(an_answer_that_moved_is_repeated)
{
	delivered(_i, 20000);
	move_to(&a2);
	owner = &a2;
	if (_i / 4) { /* else it is lost before it has sealed anything */
		backend_say(body + 20000, 10000);
		client_expect(body + 20000, 10000);
	}
	const size_t done = _i / 4 ? 30000 : 20000;
	lose_and_adopt();
	expect_repeated_request();
	say_again(_i);
	client_expect(body + done, body_len - done);
	next_request_is_served();
}
END_TEST

START_TEST(a_backend_that_closes_behind_the_repetition_ends_it_in_order)
{
	delivered(_i % 2, 50000);
	lose_and_adopt();
	expect_repeated_request();
	backend_say_text("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 140000\r\n" FIELDS);
	backend_say(body, body_len);
	backend_hang_up();
	client_expect(body + 50000, body_len - 50000);
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

START_TEST(a_byte_that_the_client_does_not_have_is_not_compared)
{
	delivered(_i, 50000);
	body[50000] ^= 1;
	lose_and_adopt();
	expect_repeated_request();
	say_again(_i);
	client_expect(body + 50000, body_len - 50000);
}
END_TEST

/* --- another answer --- */

static const size_t bytes[] = { 0, 1, 25000, 49999 };

START_TEST(another_byte_before_the_cut_ends_with_the_alert)
{
	delivered(_i, 50000);
	body[bytes[_i / 4]] ^= 1;
	lose_and_adopt();
	expect_repeated_request();
	say_again(_i);
	expect_cut();
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_DIFFERED), 1);
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_REFUSED), 1);
}
END_TEST

static const char *const heads[] = {
	"HTTP/1.1 200 OK\r\nContent-Length: 140001\r\n" FIELDS,
	"HTTP/1.1 200 OK\r\nContent-Length: 50001\r\n" FIELDS,
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" FIELDS,
	"HTTP/1.1 200 OK\r\n" FIELDS,
	"HTTP/1.1 203 OK\r\nContent-Length: 140000\r\n" FIELDS,
	"HTTP/1.1 500 Oh\r\nContent-Length: 140000\r\n" FIELDS,
	"HTTP/1.1 200 OK\r\nContent-Length: 140000\r\nContent-Type: text/html\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 140000\r\nLast-Modified: Tue\r\n" FIELDS,
	"HTTP/1.1 304 Not Modified\r\n\r\n",
	"SSH-2.0-x\r\n\r\n",
};

START_TEST(another_head_ends_with_the_alert)
{
	delivered(_i % 2, 50000);
	lose_and_adopt();
	expect_repeated_request();
	backend_say_text(heads[_i / 2]);
	backend_say(body, 60000);
	expect_cut();
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_DIFFERED), 1);
}
END_TEST

START_TEST(chunks_that_end_too_early_end_with_the_alert)
{
	delivered(2 + _i, 50000);
	lose_and_adopt();
	expect_repeated_request();
	backend_say_text(framings[1].again);
	backend_say(body, 2 * (CHUNK + 8) - 2);
	backend_say_text("\r\n0\r\n\r\n");
	expect_cut();
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_DIFFERED), 1);
}
END_TEST

START_TEST(a_backend_that_ends_while_it_is_compared_ends_with_the_alert)
{
	delivered(_i, 50000);
	lose_and_adopt();
	expect_repeated_request();
	backend_say_text(framings[_i / 2].again);
	backend_say(body, 30000);
	backend_hang_up();
	expect_cut();
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_DIFFERED), 0);
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_REFUSED), 1);
}
END_TEST

/* --- answers that are not repeated --- */

START_TEST(bytes_that_no_digest_proves_end_with_the_alert)
{
	delivered(_i, 50000);
	r.position.response_bytes -= 1;
	lose_and_adopt();
	expect_cut();
	ck_assert(!backend_waits());
}
END_TEST

START_TEST(an_answer_longer_than_the_limit_ends_with_the_alert)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";

	owner = &a1;
	keep("repeats", &a1, tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(head);
	client_expect_text(head);
	for (size_t done = 0; done < 200000; done += 20000) {
		backend_say(lots + done, 20000);
		client_expect(lots + done, 20000);
	}
	lose_and_adopt();
	expect_cut();
	ck_assert(!backend_waits());
}
END_TEST

static const char *const wholes[] = {
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
};

START_TEST(an_answer_that_fits_one_frame_leaves_no_note)
{
	keep("repeats", &a1, tls_version(_i % 2));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(wholes[_i / 2]);
	client_expect_text(wholes[_i / 2]);
	ck_assert_uint_eq(fake_said(&r, FRAME_DOWNLOAD), 0);
	ck_assert_uint_eq(counted(COUNT_DOWNLOADS_OFFERED), 0);
}
END_TEST

START_TEST(an_answer_with_ranges_is_not_repeated)
{
	static const char head[] =
		"HTTP/1.1 200 OK\r\nContent-Length: 140000\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n\r\n";

	owner = &a1;
	keep("repeats", &a1, tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(head);
	client_expect_text(head);
	backend_say(lots, 5000);
	client_expect(lots, 5000);
	ck_assert_uint_eq(fake_said(&r, FRAME_DOWNLOAD), 1);
	lose_and_adopt();
	backend_accept();
	backend_expect_text("GET / HTTP/1.1\r\nHost: www.example.org\r\nRange: bytes=5000-139999\r\n"
			    "If-Match: \"v1\"\r\n\r\n");
}
END_TEST

UNIT(connection_repeat)
{
	const struct connection_fact facts[] = {
		{ a_repeated_answer_goes_on_where_it_was_cut, 4 * FACTS_LEN(parts) },
		{ it_goes_on_however_often_its_owner_is_lost, 4 },
		{ a_frame_that_was_lost_with_its_owner_is_given_again, 4 },
		{ an_adopter_that_is_lost_while_it_compares_changes_nothing, 4 },
		{ an_answer_that_moved_is_repeated, 8 },
		{ a_backend_that_closes_behind_the_repetition_ends_it_in_order, 2 },
		{ a_byte_that_the_client_does_not_have_is_not_compared, 2 },
		{ another_byte_before_the_cut_ends_with_the_alert, 4 * FACTS_LEN(bytes) },
		{ another_head_ends_with_the_alert, 2 * FACTS_LEN(heads) },
		{ chunks_that_end_too_early_end_with_the_alert, 2 },
		{ a_backend_that_ends_while_it_is_compared_ends_with_the_alert, 4 },
		{ bytes_that_no_digest_proves_end_with_the_alert, 4 },
		{ an_answer_longer_than_the_limit_ends_with_the_alert, 2 },
		{ an_answer_that_fits_one_frame_leaves_no_note, 2 * FACTS_LEN(wholes) },
		{ an_answer_with_ranges_is_not_repeated, 2 },
	};

	return connection_suite_run("connection_repeat", facts, FACTS_LEN(facts));
}
