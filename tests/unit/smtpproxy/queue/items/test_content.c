/* test_content.c: facts of the plain forms of messages, states and decided transactions. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "smtpproxy/queue/items/content.h"
#include "smtpproxy/queue/items/seal.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct seal *seal;

static void with_a_key(void)
{
	static struct key_ring keys;

	ck_assert_int_ge(sodium_init(), 0);
	ck_assert_int_eq(key_ring_parse("k1 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a", 67,
				 &keys, &(unsigned){ 0 }),
		0);
	seal = seal_create(&keys, "test");
}

static void without_it(void)
{
	seal_destroy(seal);
}

/* The plain form that @c is sealed as, and its length. */
static size_t content_write(enum item_kind kind, const struct content *c, uint8_t *out)
{
	size_t len;
	uint8_t *sealed = content_seal(seal, kind, 1, c, &len);

	ck_assert_int_eq(seal_open(seal, (char)kind, 1, sealed, len, out), 0);
	free(sealed);
	return len - SEAL_OVERHEAD;
}

static size_t content_len(enum item_kind kind, const struct content *c)
{
	uint8_t out[256];

	return content_write(kind, c, out);
}

/* The content that has this plain form. It points into memory that has no byte more. */
static int content_read(enum item_kind kind, struct content *c, const uint8_t *in, size_t len)
{
	static uint8_t *plain;
	uint8_t sealed[256 + SEAL_OVERHEAD];

	free(plain);
	plain = malloc(len);
	seal_seal(seal, (char)kind, 1, in, len, sealed);
	return content_open(seal, kind, 1, sealed, len + SEAL_OVERHEAD, plain, c);
}

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
	struct content m = { .at_ms = 12345,
		.name = text("a.example"),
		.envelope = text("<x>"),
		.rest = text("Subject: y\r\n\r\nz\r\n") };
	uint8_t out[256];

	content_write(ITEM_MESSAGE, &m, out);
	ck_assert_int_eq(content_read(ITEM_MESSAGE, &m, out, content_len(ITEM_MESSAGE, &m)), 0);
	ck_assert_int_eq(m.at_ms, 12345);
	same(m.name, "a.example");
	same(m.envelope, "<x>");
	same(m.rest, "Subject: y\r\n\r\nz\r\n");
}
END_TEST

START_TEST(order_comes_back_as_it_was)
{
	struct content o = { .stops = 1, .rate = 70000, .name = text("a.example") };
	uint8_t out[64];
	const size_t len = content_len(ITEM_ORDER, &o);

	content_write(ITEM_ORDER, &o, out);
	ck_assert_int_eq(content_read(ITEM_ORDER, &o, out, len), 0);
	ck_assert_uint_eq(o.stops, 1);
	ck_assert_uint_eq(o.rate, 70000);
	same(o.name, "a.example");
	out[1] = 2;
	ck_assert_int_eq(content_read(ITEM_ORDER, &o, out, len), CSSL_E_RANGE);
	out[1] = out[6] = 0;
	ck_assert_int_eq(content_read(ITEM_ORDER, &o, out, 7), CSSL_E_RANGE); /* no destination */
}
END_TEST

START_TEST(state_comes_back_as_it_was)
{
	struct content s = { .attempts = 7, .steps = 300, .at_ms = 99, .stops = 1, .rest = text("450 later") };
	uint8_t out[64];

	content_write(ITEM_STATE, &s, out);
	ck_assert_int_eq(content_read(ITEM_STATE, &s, out, content_len(ITEM_STATE, &s)), 0);
	ck_assert_uint_eq(s.attempts, 7);
	ck_assert_uint_eq(s.steps, 300);
	ck_assert_int_eq(s.at_ms, 99);
	ck_assert_uint_eq(s.stops, 1);
	same(s.rest, "450 later");
	ck_assert_int_eq(content_read(ITEM_STATE, &s, out, 13), CSSL_E_TRUNCATED);
	out[13] = 2;
	ck_assert_int_eq(content_read(ITEM_STATE, &s, out, 14), CSSL_E_RANGE);
}
END_TEST

START_TEST(attempts_order_two_states_and_then_steps)
{
	const struct content s = { .attempts = 7, .steps = 3 };

	ck_assert(content_state_is_earlier(&s, 8, 0));
	ck_assert(content_state_is_earlier(&s, 7, 4));
	ck_assert(!content_state_is_earlier(&s, 7, 3));
	ck_assert(!content_state_is_earlier(&s, 6, 9));
}
END_TEST

START_TEST(decided_transaction_comes_back_as_it_was)
{
	struct content d = { .at_ms = 5, .name = text("0a1b/7"), .rest = text("250 ok") };
	uint8_t out[64];

	content_write(ITEM_DECIDED, &d, out);
	ck_assert_int_eq(content_read(ITEM_DECIDED, &d, out, content_len(ITEM_DECIDED, &d)), 0);
	ck_assert_int_eq(d.at_ms, 5);
	same(d.name, "0a1b/7");
	same(d.rest, "250 ok");
}
END_TEST

START_TEST(grave_comes_back_as_it_was)
{
	struct content c = { .dead = UINT64_C(0xf23456789abcdef0) };
	const size_t len = content_len(ITEM_GRAVE, &c);
	uint8_t out[16] = { 0 };

	content_write(ITEM_GRAVE, &c, out);
	ck_assert_int_eq(content_read(ITEM_GRAVE, &c, out, len), 0);
	ck_assert_uint_eq(c.dead, UINT64_C(0xf23456789abcdef0));
	ck_assert_int_eq(content_read(ITEM_GRAVE, &c, out, len - 1), CSSL_E_TRUNCATED);
	ck_assert_int_ne(content_read(ITEM_GRAVE, &c, out, len + 1), 0);
}
END_TEST

START_TEST(cut_messages_are_refused)
{
	struct content m = { .at_ms = 1, .name = text("a.example"), .envelope = text("<x>") }, in;
	uint8_t out[64];
	size_t len = content_len(ITEM_MESSAGE, &m);

	content_write(ITEM_MESSAGE, &m, out);
	for (size_t cut = 0; cut < len; cut++) {
		uint8_t *exact = malloc(cut + 1);

		memcpy(exact, out, cut);
		ck_assert_int_eq(content_read(ITEM_MESSAGE, &in, exact, cut), CSSL_E_TRUNCATED);
		free(exact);
	}
}
END_TEST

START_TEST(other_versions_and_empty_destinations_are_refused)
{
	struct content m = { .at_ms = 1, .name = text("a") }, in;
	uint8_t out[64];
	size_t len = content_len(ITEM_MESSAGE, &m);

	content_write(ITEM_MESSAGE, &m, out);
	out[0] = 2;
	ck_assert_int_eq(content_read(ITEM_MESSAGE, &in, out, len), CSSL_E_VERSION);
	m.name.len = 0;
	content_write(ITEM_MESSAGE, &m, out);
	ck_assert_int_eq(content_read(ITEM_MESSAGE, &in, out, len - 1), CSSL_E_RANGE);
}
END_TEST

UNIT(content)
{
	const TTest *facts[] = {
		message_comes_back_as_it_was,
		order_comes_back_as_it_was,
		state_comes_back_as_it_was,
		attempts_order_two_states_and_then_steps,
		decided_transaction_comes_back_as_it_was,
		grave_comes_back_as_it_was,
		cut_messages_are_refused,
		other_versions_and_empty_destinations_are_refused,
	};
	TCase *all = tcase_create("content");

	tcase_add_checked_fixture(all, with_a_key, without_it);
	return suite_run_case("content", all, facts, SUITE_LEN(facts));
}
