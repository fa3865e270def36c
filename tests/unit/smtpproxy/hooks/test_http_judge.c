/* test_http_judge.c: facts of a hook that judges the envelope by HTTP. The test is the server. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hook_peer.h"
#include "tests/unit/unit.h"

static char request[8192];
static json_t *envelope;

static void setup(void)
{
	hooks_setup();
	hook_confs[0].type = SMTPPROXY_HOOK_HTTP;
}

static void teardown(void)
{
	json_decref(envelope);
	envelope = NULL;
	hooks_teardown();
}

/* Commands of which it hears nothing. */
static void accepted(enum filter_step step, const char *address)
{
	asks(step, address, "");
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	ck_assert_int_eq(peer_is_connected(0), 0);
}

static void begin(void)
{
	filter_begin("a");
	hooks_find(&hooks, "a")->state = HOOK_GOOD;
	accepted(FILTER_MAIL, "s@a.example");
	accepted(FILTER_RCPT, "r@b.example");
	filter_note_recipient(filter);
}

/* Reads the whole request into `request` and `envelope`. */
static void hear_request(void)
{
	size_t len = 0, content_len;
	char *content = NULL;

	while (!content) {
		ck_assert_uint_lt(len + 1, sizeof request);
		read_exactly(peer_fd(0), request + len++, 1);
		request[len] = '\0';
		content = strstr(request, "\r\n\r\n");
	}
	ck_assert_ptr_nonnull(strstr(request, "\r\nContent-Length: "));
	content_len = strtoul(strstr(request, "\r\nContent-Length: ") + 18, NULL, 10);
	ck_assert_uint_lt(len + content_len, sizeof request);
	read_exactly(peer_fd(0), request + len, content_len);
	request[len + content_len] = '\0';
	json_decref(envelope);
	envelope = json_loadb(request + len, content_len, 0, NULL);
	ck_assert_ptr_nonnull(envelope);
}

static void ask_data(void)
{
	asks(FILTER_DATA, "", "");
	peer_accept(0);
	hear_request();
}

static void begin_and_ask(void)
{
	begin();
	ask_data();
}

static void says(const char *text)
{
	write_all(peer_fd(0), text, strlen(text));
}

static void answers(const char *status, const char *content)
{
	char text[16384];

	snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", status, strlen(content), content);
	begin_and_ask();
	says(text);
}

static void fails(void)
{
	ck_assert_int_eq(verdict(), FILTER_REFUSES);
	ck_assert_str_eq(reply, "451 4.3.0 A filter does not answer, try again later\r\n");
	ck_assert_int_eq(hooks_find(&hooks, "a")->state, HOOK_RESTS);
}

static const char *text_of(const char *key)
{
	const char *text = json_string_value(json_object_get(envelope, key));

	return text ? text : "none";
}

START_TEST(it_gets_one_request_with_the_envelope)
{
	begin_and_ask();
	ck_assert_int_eq(strncmp(request, "POST /judge HTTP/1.1\r\nHost: a\r\n", 31), 0);
	ck_assert_ptr_nonnull(strstr(request, "\r\nContent-Type: application/json\r\n"));
	ck_assert_ptr_nonnull(strstr(request, "\r\nConnection: close\r\n"));
	ck_assert_str_eq(text_of("client"), "192.0.2.1:1234");
	ck_assert_str_eq(text_of("ehlo"), "sender.example");
	ck_assert_str_eq(text_of("destination"), "192.0.2.25:25");
	ck_assert_str_eq(text_of("from"), "s@a.example");
	ck_assert_uint_eq(json_object_size(envelope), 6);
	ck_assert_int_eq(strncmp(text_of("id"), "7.", 2), 0);
}
END_TEST

START_TEST(it_hears_of_the_recipients_that_the_receiver_took)
{
	json_t *recipients;

	begin();
	accepted(FILTER_RCPT, "refused@b.example");
	accepted(FILTER_RCPT, "\"q\\\"\"@b.example");
	filter_note_recipient(filter);
	ask_data();
	recipients = json_object_get(envelope, "recipients");
	ck_assert_uint_eq(json_array_size(recipients), 2);
	ck_assert_str_eq(json_string_value(json_array_get(recipients, 0)), "r@b.example");
	ck_assert_str_eq(json_string_value(json_array_get(recipients, 1)), "\"q\\\"\"@b.example");
}
END_TEST

START_TEST(an_address_that_is_no_utf_8_is_a_question_mark)
{
	filter_facts.hello = "\377";
	filter_begin("a");
	accepted(FILTER_MAIL, "\377@a.example");
	accepted(FILTER_RCPT, "\377@b.example");
	filter_note_recipient(filter);
	ask_data();
	ck_assert_str_eq(text_of("from"), "?");
	ck_assert_str_eq(text_of("ehlo"), "?");
	ck_assert_str_eq(json_string_value(json_array_get(json_object_get(envelope, "recipients"), 0)), "?");
}
END_TEST

START_TEST(the_message_is_not_kept_for_it)
{
	filter_begin("a");
	ck_assert_int_eq(filter_holds(filter), 0);
}
END_TEST

static const struct {
	const char *content;
	enum filter_verdict verdict;
	const char *reply;
} verdicts_of[] = {
	{ "{\"action\": \"accept\"}", FILTER_CONTINUES, "" },
	{ "{\"action\": \"accept\", \"reply\": \"550 ignored\"}", FILTER_CONTINUES, "" },
	{ "{\"action\": \"reject\"}", FILTER_REFUSES, "550 5.7.1 Rejected by a filter\r\n" },
	{ "{\"action\": \"tempfail\"}", FILTER_REFUSES, "451 4.7.1 Put off by a filter, try again later\r\n" },
	{ "{\"action\": \"reject\", \"reply\": \"552 5.2.2 Full\"}", FILTER_REFUSES, "552 5.2.2 Full\r\n" },
	{ "{\"action\": \"tempfail\", \"reply\": \"421 4.7.0 a\"}", FILTER_REFUSES, "451 4.7.0 a\r\n" },
	{ "{\"action\": \"reject\", \"reply\": \"550-a\\n550 b\"}", FILTER_REFUSES, "550-a\r\n550 b\r\n" },
};

START_TEST(its_action_is_the_verdict)
{
	for (size_t i = 0; i < FACTS_LEN(verdicts_of); i++) {
		answers("200 OK", verdicts_of[i].content);
		ck_assert_int_eq(verdict(), verdicts_of[i].verdict);
		ck_assert_str_eq(reply, verdicts_of[i].reply);
		ck_assert_int_eq(hooks_find(&hooks, "a")->state, HOOK_GOOD);
	}
}
END_TEST

START_TEST(a_reply_that_does_not_fit_its_action_is_a_failure)
{
	static const char *const contents[] = {
		"{\"action\": \"reject\", \"reply\": \"450 4.7.1 later\"}",
		"{\"action\": \"tempfail\", \"reply\": \"550 5.7.1 never\"}",
		"{\"action\": \"reject\", \"reply\": \"250 fine\"}",
		"{\"action\": \"reject\", \"reply\": \"no code\"}",
		"{\"action\": \"reject\", \"reply\": \"\"}",
	};

	for (size_t i = 0; i < FACTS_LEN(contents); i++) {
		answers("200 OK", contents[i]);
		fails();
	}
}
END_TEST

START_TEST(an_answer_without_an_action_is_a_failure)
{
	static const char *const contents[] = { "", "accept", "{}", "[\"accept\"]", "{\"action\": true}",
		"{\"action\": \"Accept\"}", "{\"action\": \"accept\"", "{\"action\": \"accept\"} x" };

	for (size_t i = 0; i < FACTS_LEN(contents); i++) {
		answers("200 OK", contents[i]);
		fails();
	}
}
END_TEST

START_TEST(another_status_than_200_is_a_failure_whatever_it_says)
{
	static const char *const statuses[] = { "201 Created", "301 Moved", "404 Not Found", "500 Error" };

	for (size_t i = 0; i < FACTS_LEN(statuses); i++) {
		answers(statuses[i], "{\"action\": \"accept\"}");
		fails();
	}
}
END_TEST

START_TEST(an_answer_may_come_byte_by_byte)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"action\": \"reject\"}";

	begin_and_ask();
	for (size_t i = 0; i < sizeof answer - 2; i++) {
		write_all(peer_fd(0), answer + i, 1);
		turns(2);
		ck_assert_uint_eq(verdicts, 0);
	}
	says("}");
	ck_assert_int_eq(verdict(), FILTER_REFUSES);
	ck_assert_int_eq(strncmp(reply, "550", 3), 0);
}
END_TEST

START_TEST(an_answer_may_come_in_chunks_or_end_with_the_connection)
{
	begin_and_ask();
	says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"act\r\nf\r\nion\": "
	     "\"reject\"}\r\n0\r\n\r\n");
	ck_assert_int_eq(verdict(), FILTER_REFUSES);
	ck_assert_int_eq(strncmp(reply, "550", 3), 0);
	begin_and_ask();
	says("HTTP/1.1 200 OK\r\n\r\n{\"action\": \"reject\"}");
	turns(5);
	ck_assert_uint_eq(verdicts, 0);
	peer_close(0);
	ck_assert_int_eq(verdict(), FILTER_REFUSES);
	ck_assert_int_eq(strncmp(reply, "550", 3), 0);
}
END_TEST

START_TEST(an_answer_that_ends_too_early_is_a_failure)
{
	static const char *const parts[] = { "", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n{\"action\": \"accept\"}" };

	for (size_t i = 0; i < FACTS_LEN(parts); i++) {
		begin_and_ask();
		says(parts[i]);
		peer_close(0);
		fails();
	}
}
END_TEST

START_TEST(an_answer_that_is_not_http_is_a_failure)
{
	static const char *const texts[] = { "220 mx.example ESMTP\r\n", "GET / HTTP/1.1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n" };

	for (size_t i = 0; i < FACTS_LEN(texts); i++) {
		begin_and_ask();
		says(texts[i]);
		fails();
	}
}
END_TEST

START_TEST(there_is_room_for_an_answer_of_8192_bytes)
{
	char content[8194];

	for (size_t len = 8192; len <= 8193; len++) {
		memset(content, ' ', len);
		content[len] = '\0';
		memcpy(content, "{\"action\": \"accept\"}", 20);
		answers("200 OK", content);
		if (len > 8192)
			fails();
		else
			ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	}
}
END_TEST

START_TEST(bytes_behind_its_answer_change_nothing)
{
	begin_and_ask();
	says("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"action\": \"reject\"}HTTP/1.1 200 OK\r\n");
	ck_assert_int_eq(verdict(), FILTER_REFUSES);
	says("Content-Length: 20\r\n\r\n{\"action\": \"accept\"}");
	turns(5);
	ck_assert_uint_eq(verdicts, 1);
	ck_assert_uint_eq(counters.hooks_failed, 0);
}
END_TEST

START_TEST(one_that_does_not_answer_fails_in_time)
{
	begin_and_ask();
	is_late(0);
	fails();
	begin_and_ask();
	says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{");
	turns(3);
	is_late(0);
	fails();
}
END_TEST

UNIT(http_judge)
{
	const TTest *const facts[] = {
		it_gets_one_request_with_the_envelope,
		it_hears_of_the_recipients_that_the_receiver_took,
		an_address_that_is_no_utf_8_is_a_question_mark,
		the_message_is_not_kept_for_it,
		its_action_is_the_verdict,
		a_reply_that_does_not_fit_its_action_is_a_failure,
		an_answer_without_an_action_is_a_failure,
		another_status_than_200_is_a_failure_whatever_it_says,
		an_answer_may_come_byte_by_byte,
		an_answer_may_come_in_chunks_or_end_with_the_connection,
		an_answer_that_ends_too_early_is_a_failure,
		an_answer_that_is_not_http_is_a_failure,
		there_is_room_for_an_answer_of_8192_bytes,
		bytes_behind_its_answer_change_nothing,
		one_that_does_not_answer_fails_in_time,
	};
	TCase *all = tcase_create("http_judge");

	tcase_add_checked_fixture(all, setup, teardown);
	return suite_run_case("http_judge", all, facts, FACTS_LEN(facts));
}
