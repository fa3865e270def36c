/* test_connection_head.c: facts of a request's head that comes in pieces: no backend is connected for it before it is
 * whole, or before something else needs one. */
#include <string.h>

#include "proto/proxy_header.h"
#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

#define HALF "POST /order HTTP/1.1\r\nHost: www.example.org\r\n"
#define REST "Content-Length: 3\r\n\r\nbuy"

static const char *const listeners[] = { "http", "pooled", "shown" };

static void expect_no_backend(void)
{
	carry_on();
	ck_assert(!backend_waits());
	ck_assert_uint_eq(counted(COUNT_BACKEND_CONNECTS) + counted(COUNT_BACKEND_REUSED), 0);
}

static void half_is_said(const char *listener, const struct memory_client_config *config)
{
	keep(listener, &a1, config);
	say_text(HALF);
	expect_no_backend();
}

static void exchange(const char *listener, const char *asked)
{
	uint8_t header[PROXY_V2_MAX];
	struct proxy_header h;
	size_t len = 0, taken;

	backend_accept();
	while (strcmp(listener, "shown") == 0 && (len == 0 || proxy_header_parse(header, len, &h, &taken) != 0)) {
		ck_assert_uint_lt(len, sizeof header);
		backend_expect_into(header + len++, 1);
	}
	backend_expect_text(asked);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	carry_on();
	ck_assert(!backend_waits());
	ck_assert_uint_eq(counted(COUNT_BACKEND_CONNECTS), 1);
}

START_TEST(a_backend_is_connected_when_a_head_is_whole)
{
	half_is_said(listeners[_i / 2], tls_version(_i % 2));
	say_text(REST);
	exchange(listeners[_i / 2], HALF REST);
	carry_until(r.position.response == POSITION_AT_CHECKPOINT);
	ck_assert_uint_eq(r.kept_records, 0);
}
END_TEST

START_TEST(a_head_may_come_byte_by_byte)
{
	keep("http", &a1, tls_version(_i));
	for (const char *byte = GET; byte[1]; byte++) {
		say(byte, 1);
		carry();
	}
	expect_no_backend();
	say("\n", 1);
	exchange("http", GET);
}
END_TEST

START_TEST(a_pooled_connection_is_taken_when_a_head_is_whole)
{
	keep("pooled", &a1, TLS13);
	say_text(GET);
	exchange("pooled", GET);
	carry_until(!fake_owner(&r)->backend);
	say_text(HALF);
	carry_on();
	ck_assert_ptr_null(fake_owner(&r)->backend);
	ck_assert_uint_eq(counted(COUNT_BACKEND_REUSED), 0);
	say_text(REST);
	backend_expect_text(HALF REST);
	ck_assert_uint_eq(counted(COUNT_BACKEND_REUSED), 1);
	ck_assert(!backend_waits());
}
END_TEST

START_TEST(the_next_head_of_a_conversation_is_passed_at_once)
{
	keep("http", &a1, TLS13);
	say_text(GET);
	exchange("http", GET);
	say_text(HALF);
	backend_expect_text(HALF);
}
END_TEST

START_TEST(a_head_behind_a_request_is_passed_at_once)
{
	keep("http", &a1, TLS13);
	say_text(GET HALF);
	backend_accept();
	backend_expect_text(GET HALF);
}
END_TEST

START_TEST(what_is_no_request_is_passed_at_once)
{
	half_is_said("http", TLS13);
	say_text("no field\r\n");
	backend_accept();
	backend_expect_text(HALF "no field\r\n");
}
END_TEST

static void say_fields(const uint8_t *field, size_t len, unsigned count)
{
	say_text("X: ");
	for (unsigned i = 0; i < count; i++)
		say(field, len);
}

/* Also with the least window, of which RAgent keeps room for one more record. */
START_TEST(a_long_head_is_passed_on)
{
	uint8_t field[1000];

	a1.worker.window_len = _i / 2 ? WINDOW : CONF_WINDOW_MIN;
	half_is_said("http", tls_version(_i % 2));
	memset(field, 'x', sizeof field);
	say_fields(field, sizeof field, 15);
	ck_assert_uint_gt(15 * sizeof field + TLS_RECORD_MAX, CONF_WINDOW_MIN);
	backend_accept();
	backend_expect_text(HALF "X: ");
	for (unsigned i = 0; i < 15; i++)
		backend_expect(field, sizeof field);
	carry_until(r.kept_records == 0);
}
END_TEST

START_TEST(half_a_head_keeps_little_memory)
{
	uint8_t field[800];

	half_is_said("http", TLS13);
	memset(field, 'x', sizeof field);
	say_fields(field, sizeof field, 9);
	expect_no_backend();
	ck_assert_uint_le(fake_owner(&r)->head->cap, 8192);
	say_text("\r\n" REST);
	backend_accept();
}
END_TEST

/* RAgent can say no record again that came before it. */
START_TEST(a_key_update_lets_a_head_go_on)
{
	half_is_said("http", TLS13);
	say_key_update(0);
	backend_accept();
	backend_expect_text(HALF);
	say_text(REST);
	backend_expect_text(REST);
}
END_TEST

START_TEST(half_a_head_is_counted_as_kept)
{
	half_is_said("http", TLS13);
	ck_assert_uint_ge(a1.worker.holdings.len, fake_owner(&r)->head->cap + strlen(HALF)); /* the follower's */
	say_text(REST);
	exchange("http", HALF REST);
	ck_assert_uint_eq(a1.worker.holdings.len, 0);
}
END_TEST

START_TEST(a_backend_out_of_reach_shows_at_the_end_of_the_head)
{
	half_is_said("unreachable", TLS13);
	ck_assert_int_eq(state(), CONNECTION_OWNER);
	say_text(REST);
	expect_end(END_BACKEND_UNREACHABLE, CARRIER_ORDERLY);
	carry();
	ck_assert_int_eq(strncmp((char *)got, "HTTP/1.1 502 ", 13), 0);
}
END_TEST

/* --- ends --- */

START_TEST(half_a_head_before_close_notify_is_the_backends_business)
{
	half_is_said("http", tls_version(_i));
	memory_client_close(client);
	backend_accept();
	backend_expect_text(HALF);
	ck_assert_int_eq(backend_end(), 0);
}
END_TEST

START_TEST(half_a_head_before_a_bare_fin_reaches_no_backend)
{
	half_is_said("http", tls_version(_i));
	connection_fin(fake_owner(&r));
	expect_end(END_CLIENT_CLOSED, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_INTERNAL_ERROR);
	ck_assert(!backend_waits());
}
END_TEST

/* They belong to no request: nothing is cut off. */
START_TEST(empty_lines_reach_no_backend)
{
	keep("http", &a1, TLS13);
	say_text("\r\n\r\n");
	expect_no_backend();
	switch (_i) {
	case 0: memory_client_close(client); break;
	case 1: connection_fin(fake_owner(&r)); break;
	case 2: connection_give_up(fake_owner(&r), END_IDLE_TIMEOUT); break;
	}
	expect_end(_i == 2 ? END_IDLE_TIMEOUT : END_DONE, CARRIER_ORDERLY);
	ck_assert(!backend_waits());
}
END_TEST

START_TEST(empty_lines_belong_to_the_request_behind_them)
{
	keep("http", &a1, TLS13);
	say_text("\r\n");
	expect_no_backend();
	say_text(GET);
	exchange("http", "\r\n" GET);
}
END_TEST

static void keep_without_time_limit(void)
{
	static struct conf no_limit;

	no_limit = *a1.worker.conf;
	no_limit.limits.request_head_timeout_ms = 0;
	keep("http", &a1, TLS13);
	a1.worker.conf = a2.worker.conf = &no_limit;
}

/* Nothing else would ever take them. */
START_TEST(empty_lines_without_a_time_limit_are_passed_at_once)
{
	keep_without_time_limit();
	say_text("\r\n");
	backend_accept();
	backend_expect_text("\r\n");
	carry_until(r.kept_records == 0);
	say_text(GET);
	backend_expect_text(GET);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
}
END_TEST

START_TEST(half_a_head_waits_without_a_time_limit)
{
	keep_without_time_limit();
	say_text(HALF);
	expect_no_backend();
	fake_ragent_lose(&r);
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	expect_no_backend();
	say_text(REST);
	exchange("http", HALF REST);
}
END_TEST

START_TEST(half_a_head_is_given_up_with_the_alert)
{
	half_is_said("http", tls_version(_i));
	connection_give_up(fake_owner(&r), END_IDLE_TIMEOUT);
	expect_end(END_IDLE_TIMEOUT, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_INTERNAL_ERROR);
	ck_assert(!backend_waits());
}
END_TEST

/* --- owners --- */

START_TEST(half_a_head_moves_with_its_backend)
{
	half_is_said(listeners[_i / 2], tls_version(_i % 2));
	move_to(&a2);
	say_text(REST);
	exchange(listeners[_i / 2], HALF REST);
	ck_assert_int_eq(state(), CONNECTION_OWNER);
}
END_TEST

START_TEST(half_a_head_is_answered_before_its_connection_leaves_the_host)
{
	a1.cluster.host = a2.cluster.host = PASSES_NOT;
	half_is_said("http", TLS13);
	fake_ragent_ask_move_within(&r, "a2", 60000);
	ck_assert_int_eq(state(), CONNECTION_SETTLING);
	say_text(REST);
	exchange("http", HALF REST);
	carry_until(fake_said(&r, FRAME_HANDED_OFF));
	ck_assert_int_eq(adopt(&a2), 1);
}
END_TEST

START_TEST(half_a_head_does_not_rest)
{
	half_is_said("http", TLS13);
	fake_ragent_ask_rest(&r);
	ck_assert_uint_eq(fake_said(&r, FRAME_REFUSED), 1);
	expect_no_backend();
}
END_TEST

/* Whoever owns it: it begins with no backend, and the last owner's backend gets all of it. */
START_TEST(half_a_head_outlives_its_owners)
{
	half_is_said(listeners[_i / 2], tls_version(_i % 2));
	for (int lost = 0; lost < 2; lost++) {
		fake_ragent_lose(&r);
		ck_assert_int_eq(fake_ragent_adopt(&r, lost ? &a1.worker : &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
		expect_no_backend();
	}
	say_text(REST);
	exchange(listeners[_i / 2], HALF REST);
}
END_TEST

UNIT(connection_head)
{
	const struct connection_fact facts[] = {
		{ a_backend_is_connected_when_a_head_is_whole, 6 },
		{ a_head_may_come_byte_by_byte, 2 },
		{ a_pooled_connection_is_taken_when_a_head_is_whole, 0 },
		{ the_next_head_of_a_conversation_is_passed_at_once, 0 },
		{ a_head_behind_a_request_is_passed_at_once, 0 },
		{ what_is_no_request_is_passed_at_once, 0 },
		{ a_long_head_is_passed_on, 4 },
		{ half_a_head_keeps_little_memory, 0 },
		{ a_key_update_lets_a_head_go_on, 0 },
		{ half_a_head_is_counted_as_kept, 0 },
		{ a_backend_out_of_reach_shows_at_the_end_of_the_head, 0 },
		{ half_a_head_before_close_notify_is_the_backends_business, 2 },
		{ half_a_head_before_a_bare_fin_reaches_no_backend, 2 },
		{ empty_lines_reach_no_backend, 3 },
		{ empty_lines_belong_to_the_request_behind_them, 0 },
		{ empty_lines_without_a_time_limit_are_passed_at_once, 0 },
		{ half_a_head_waits_without_a_time_limit, 0 },
		{ half_a_head_is_given_up_with_the_alert, 2 },
		{ half_a_head_moves_with_its_backend, 6 },
		{ half_a_head_is_answered_before_its_connection_leaves_the_host, 0 },
		{ half_a_head_does_not_rest, 0 },
		{ half_a_head_outlives_its_owners, 6 },
	};

	return connection_suite_run("connection_head", facts, FACTS_LEN(facts));
}
