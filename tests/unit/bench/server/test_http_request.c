/* test_http_request.c: facts of reading requests from bytes, however they are cut. */
#include <stdio.h>
#include <string.h>

#include "bench/server/http_request.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct http_request request;
static char body[4096], script[4096];
static size_t body_len;

static void on_body(struct http_request *r, const uint8_t *data, size_t len)
{
	(void)r;
	ck_assert_uint_lt(body_len + len, sizeof(body));
	memcpy(body + body_len, data, len);
	body_len += len;
}

static void note(const char *text)
{
	strcat(script, text);
}

static void note_head(void)
{
	char line[256];
	snprintf(line, sizeof(line), "%s %.40s ?%s %u; ", llhttp_method_name(http_request_method(&request)),
		request.path, request.query, request.refusal);
	note(line);
}

static void note_done(void)
{
	char line[256];
	snprintf(line, sizeof(line), "body %zu %s; ", body_len,
		request.persistence == HTTP_KEEP_ALIVE ? "stays" : "closes");
	note(line);
	body_len = 0;
	http_request_next(&request);
}

/* Feed @text in pieces of @step bytes. Returns the events as text. */
static const char *read_all(const char *text, size_t len, size_t step)
{
	http_request_init(&request, on_body);
	script[0] = 0;
	body_len = 0;
	for (size_t at = 0; at < len;) {
		size_t taken, piece = len - at < step ? len - at : step;
		enum http_event event = http_request_read(&request, (const uint8_t *)text + at, piece, &taken);
		ck_assert_uint_le(taken, piece);
		at += taken;
		if (event == HTTP_READ_HEAD) {
			note_head();
			event = http_request_read(&request, (const uint8_t *)text + at, 0, &taken);
			ck_assert(event == HTTP_READ_MORE || event == HTTP_READ_DONE);
		}
		if (event == HTTP_READ_DONE)
			note_done();
		if (event == HTTP_READ_BAD) {
			char line[32];
			snprintf(line, sizeof(line), "bad %u", request.refusal);
			note(line);
			break;
		}
	}
	return script;
}

/* The same outcome whether it comes at once or in pieces of any size. */
static void assert_read(const char *text, const char *expected)
{
	static const size_t steps[] = { 1, 2, 3, 7, 100, 100000 };
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		ck_assert_str_eq(read_all(text, strlen(text), steps[i]), expected);
}

START_TEST(a_request_without_a_body_is_a_head_and_an_end)
{
	assert_read("GET /5?a=b HTTP/1.1\r\nHost: x\r\n\r\n", "GET /5 ?a=b 0; body 0 stays; ");
}
END_TEST

START_TEST(bodies_come_without_their_framing)
{
	assert_read("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", "POST /x ? 0; body 5 stays; ");
	assert_read(
		"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;e=1\r\nhello\r\n3\r\nabc\r\n0\r\n"
		"Range: trailer\r\n\r\n",
		"POST /x ? 0; body 8 stays; ");
}
END_TEST

START_TEST(requests_follow_one_another)
{
	assert_read("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nPUT /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhiHEAD "
		    "/3 HTTP/1.0"
		    "\r\n\r\n",
		"GET /1 ? 0; body 0 stays; PUT /2 ? 0; body 2 stays; HEAD /3 ? 0; body 0 closes; ");
}
END_TEST

START_TEST(an_upgrade_is_not_followed)
{
	assert_read("GET /1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nGET /2 HTTP/1.1\r\nHost: "
		    "x\r\n\r\n",
		"GET /1 ? 0; body 0 stays; GET /2 ? 0; body 0 stays; ");
}
END_TEST

START_TEST(kept_fields_are_found_in_any_case_and_trimmed)
{
	const char text[] = "GET / HTTP/1.1\r\nhost: x\r\nX-ID:  abc \t \r\nX-Identity: no\r\nIf-Range:\r\n\r\n";
	for (size_t step = 1; step < sizeof(text); step++) {
		size_t taken, at = 0;
		http_request_init(&request, on_body);
		enum http_event event = HTTP_READ_MORE;
		while (event == HTTP_READ_MORE) {
			size_t piece = sizeof(text) - 1 - at < step ? sizeof(text) - 1 - at : step;
			event = http_request_read(&request, (const uint8_t *)text + at, piece, &taken);
			at += taken;
		}
		ck_assert_int_eq(event, HTTP_READ_HEAD);
		ck_assert_str_eq(http_request_field(&request, HTTP_FIELD_X_ID), "abc");
		ck_assert_str_eq(http_request_field(&request, HTTP_FIELD_IF_RANGE), "");
		ck_assert_ptr_null(http_request_field(&request, HTTP_FIELD_RANGE));
	}
}
END_TEST

START_TEST(fields_of_one_request_are_not_those_of_the_next)
{
	const char first[] = "GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=1-2\r\n\r\n",
		   second[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	size_t taken;
	http_request_init(&request, on_body);
	ck_assert_int_eq(
		http_request_read(&request, (const uint8_t *)first, sizeof(first) - 1, &taken), HTTP_READ_HEAD);
	ck_assert_str_eq(http_request_field(&request, HTTP_FIELD_RANGE), "bytes=1-2");
	ck_assert_int_eq(http_request_read(&request, (const uint8_t *)"", 0, &taken), HTTP_READ_DONE);
	http_request_next(&request);
	ck_assert_int_eq(
		http_request_read(&request, (const uint8_t *)second, sizeof(second) - 1, &taken), HTTP_READ_HEAD);
	ck_assert_ptr_null(http_request_field(&request, HTTP_FIELD_RANGE));
}
END_TEST

START_TEST(the_authority_of_an_absolute_target_is_dropped)
{
	assert_read("GET http://host:80/5?q HTTP/1.1\r\nHost: x\r\n\r\n", "GET /5 ?q 0; body 0 stays; ");
	assert_read("GET http://host HTTP/1.1\r\nHost: x\r\n\r\n", "GET / ? 0; body 0 stays; ");
}
END_TEST

START_TEST(one_host_is_needed_in_http_1_1)
{
	assert_read("GET /5 HTTP/1.1\r\n\r\n", "GET /5 ? 400; body 0 stays; ");
	assert_read("GET /5 HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", "GET /5 ? 400; body 0 stays; ");
	assert_read("GET /5 HTTP/1.0\r\n\r\n", "GET /5 ? 0; body 0 closes; ");
}
END_TEST

START_TEST(a_kept_field_that_comes_twice_is_refused)
{
	assert_read("GET /5 HTTP/1.1\r\nHost: x\r\nRange: a\r\nRange: b\r\n\r\n", "GET /5 ? 400; body 0 stays; ");
}
END_TEST

START_TEST(bytes_that_are_no_http_are_bad)
{
	assert_read("NONSENSE\r\n\r\n", "bad 400");
	assert_read("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "bad 400");
	assert_read("GET / HTTP/1.1\r\nHost : x\r\n\r\n", "bad 400");
	assert_read("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "GET / ? 0; ");
	assert_read("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "GET / ? 0; bad 400");
}
END_TEST

START_TEST(a_request_that_is_too_long_is_refused)
{
	static char text[HTTP_HEAD_MAX + 1000];
	int len = snprintf(text, sizeof(text), "GET /%01200d HTTP/1.1\r\nHost: x\r\n\r\n", 5);
	ck_assert_ptr_nonnull(strstr(read_all(text, (size_t)len, 1000), " 414; "));
	len = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: x\r\nRange: %0300d\r\n\r\n", 5);
	ck_assert_str_eq(read_all(text, (size_t)len, 1000), "GET / ? 431; body 0 stays; ");
	len = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: x\r\nOther: %0*d\r\n\r\n", (int)HTTP_HEAD_MAX, 5);
	ck_assert_str_eq(read_all(text, (size_t)len, 1000), "bad 431");
}
END_TEST

UNIT(http_request)
{
	const TTest *facts[] = {
		a_request_without_a_body_is_a_head_and_an_end,
		bodies_come_without_their_framing,
		requests_follow_one_another,
		an_upgrade_is_not_followed,
		kept_fields_are_found_in_any_case_and_trimmed,
		fields_of_one_request_are_not_those_of_the_next,
		the_authority_of_an_absolute_target_is_dropped,
		one_host_is_needed_in_http_1_1,
		a_kept_field_that_comes_twice_is_refused,
		bytes_that_are_no_http_are_bad,
		a_request_that_is_too_long_is_refused,
	};
	return suite_run("http_request", facts, SUITE_LEN(facts));
}
