/* test_content.c: facts of the plain forms of messages, states and decided transactions. */
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "smtpproxy/queue/content.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct content_bytes text(const char *s)
{
	return (struct content_bytes){ .data = (const uint8_t *)s, .len = strlen(s) };
}

static void same(struct content_bytes is, const char *s)
{
	ck_assert_uint_eq(is.len, strlen(s));
	ck_assert_mem_eq(is.data, s, is.len);
}

START_TEST(message_comes_back_as_it_was)
{
	struct content_message m = { .accepted_ms = 12345,
		.destination = text("a.example"),
		.envelope = text("<x>"),
		.body = text("Subject: y\r\n\r\nz\r\n") };
	uint8_t out[256];

	content_message_write(&m, out);
	ck_assert_int_eq(content_message_read(&m, out, content_message_len(&m)), 0);
	ck_assert_int_eq(m.accepted_ms, 12345);
	same(m.destination, "a.example");
	same(m.envelope, "<x>");
	same(m.body, "Subject: y\r\n\r\nz\r\n");
}
END_TEST

START_TEST(order_comes_back_as_it_was)
{
	struct content_order o = { .stopped = 1, .rate = 70000, .destination = text("a.example") };
	uint8_t out[64];

	content_order_write(&o, out);
	ck_assert_int_eq(content_order_read(&o, out, content_order_len(&o)), 0);
	ck_assert_uint_eq(o.stopped, 1);
	ck_assert_uint_eq(o.rate, 70000);
	same(o.destination, "a.example");
	out[1] = 2;
	ck_assert_int_eq(content_order_read(&o, out, content_order_len(&o)), CSSL_E_RANGE);
	out[1] = 0;
	ck_assert_int_eq(content_order_read(&o, out, 6), CSSL_E_RANGE); /* no destination */
}
END_TEST

START_TEST(state_comes_back_as_it_was)
{
	struct content_state s = { .attempts = 7, .due_ms = 99, .held = 1, .note = text("450 later") };
	uint8_t out[64];

	content_state_write(&s, out);
	ck_assert_int_eq(content_state_read(&s, out, content_state_len(&s)), 0);
	ck_assert_uint_eq(s.attempts, 7);
	ck_assert_int_eq(s.due_ms, 99);
	ck_assert_uint_eq(s.held, 1);
	same(s.note, "450 later");
}
END_TEST

START_TEST(state_with_steps_comes_back_as_it_was)
{
	struct content_state s = { .attempts = 7, .steps = 300, .due_ms = 99, .note = text("450 later") };
	uint8_t out[64];

	content_state_write(&s, out);
	ck_assert_int_eq(content_state_read(&s, out, content_state_len(&s)), 0);
	ck_assert_uint_eq(s.attempts, 7);
	ck_assert_uint_eq(s.steps, 300);
	ck_assert_int_eq(s.due_ms, 99);
	same(s.note, "450 later");
	ck_assert_int_eq(content_state_read(&s, out, 13), CSSL_E_TRUNCATED);
}
END_TEST

START_TEST(attempts_order_two_states_and_then_steps)
{
	const struct content_state s = { .attempts = 7, .steps = 3 };

	ck_assert(content_state_is_earlier(&s, 8, 0));
	ck_assert(content_state_is_earlier(&s, 7, 4));
	ck_assert(!content_state_is_earlier(&s, 7, 3));
	ck_assert(!content_state_is_earlier(&s, 6, 9));
}
END_TEST

START_TEST(decided_transaction_comes_back_as_it_was)
{
	struct content_decided d = { .decided_ms = 5, .name = text("0a1b/7"), .reply = text("250 ok") };
	uint8_t out[64];

	content_decided_write(&d, out);
	ck_assert_int_eq(content_decided_read(&d, out, content_decided_len(&d)), 0);
	ck_assert_int_eq(d.decided_ms, 5);
	same(d.name, "0a1b/7");
	same(d.reply, "250 ok");
}
END_TEST

START_TEST(grave_comes_back_as_it_was)
{
	uint8_t out[CONTENT_GRAVE_LEN + 1] = { 0 };
	uint64_t id = 0;

	content_grave_write(UINT64_C(0x123456789abcdef0), out);
	ck_assert_int_eq(content_grave_read(&id, out, CONTENT_GRAVE_LEN), 0);
	ck_assert_uint_eq(id, UINT64_C(0x123456789abcdef0));
	ck_assert_int_eq(content_grave_read(&id, out, CONTENT_GRAVE_LEN - 1), CSSL_E_TRUNCATED);
	ck_assert_int_ne(content_grave_read(&id, out, CONTENT_GRAVE_LEN + 1), 0);
}
END_TEST

START_TEST(cut_messages_are_refused)
{
	struct content_message m = { .accepted_ms = 1, .destination = text("a.example"), .envelope = text("<x>") }, in;
	uint8_t out[64];
	size_t len = content_message_len(&m);

	content_message_write(&m, out);
	for (size_t cut = 0; cut < len; cut++) {
		uint8_t *exact = malloc(cut + 1);

		memcpy(exact, out, cut);
		ck_assert_int_eq(content_message_read(&in, exact, cut), CSSL_E_TRUNCATED);
		free(exact);
	}
}
END_TEST

START_TEST(other_versions_and_empty_destinations_are_refused)
{
	struct content_message m = { .accepted_ms = 1, .destination = text("a") }, in;
	uint8_t out[64];
	size_t len = content_message_len(&m);

	content_message_write(&m, out);
	out[0] = 2;
	ck_assert_int_eq(content_message_read(&in, out, len), CSSL_E_VERSION);
	m.destination.len = 0;
	content_message_write(&m, out);
	ck_assert_int_eq(content_message_read(&in, out, len - 1), CSSL_E_RANGE);
}
END_TEST

UNIT(content)
{
	const TTest *facts[] = {
		message_comes_back_as_it_was,
		order_comes_back_as_it_was,
		state_comes_back_as_it_was,
		state_with_steps_comes_back_as_it_was,
		attempts_order_two_states_and_then_steps,
		decided_transaction_comes_back_as_it_was,
		grave_comes_back_as_it_was,
		cut_messages_are_refused,
		other_versions_and_empty_destinations_are_refused,
	};
	return suite_run("content", facts, SUITE_LEN(facts));
}
