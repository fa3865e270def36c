/* test_connection_pace.c: facts of a client that changes its keys more often than it may: it has to wait. */
#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

#define AT_ONCE 9 /* KeyUpdates: eight, and one behind which the next record waits */

/* The next record has to wait for a second. */
static void keys_are_used_up(void)
{
	for (unsigned i = 0; i < AT_ONCE; i++)
		say_key_update(0);
	carry_until(r.position.now.read_generation == AT_ONCE);
	ck_assert_uint_eq(counted(COUNT_KEY_UPDATES_PACED), 1);
}

static void waits_for_a_second(uint64_t since_ms)
{
	ck_assert_uint_ge(now_ms(), since_ms + 900);
	ck_assert_uint_le(now_ms(), since_ms + 3000);
}

/* As the carrier knows it. */
static int client_waits(void)
{
	return (r.current->consumed_flags & FRAME_CLIENT_WAITS) != 0;
}

START_TEST(what_comes_behind_too_many_key_updates_waits)
{
	converse(TLS13);
	const uint64_t since_ms = now_ms();
	keys_are_used_up();
	say_text("late");
	say_key_update(1);
	carry_on();
	ck_assert_uint_gt(r.kept_len, 0); /* RAgent would have it for a successor */
	backend_say_text("answers do not wait");
	client_expect_text("answers do not wait");
	backend_expect_text("late");
	waits_for_a_second(since_ms);
	carry_until(r.position.now.read_generation == AT_ONCE + 1 && r.kept_len == 0);
	backend_say_text("under new keys");
	client_expect_text("under new keys");
	ck_assert_uint_eq(counted(COUNT_KEY_UPDATES_PACED), 2);
}
END_TEST

START_TEST(the_carrier_hears_when_the_client_waits_and_when_it_goes_on)
{
	converse(TLS13);
	const uint64_t since_ms = now_ms();
	say_key_update(0);
	carry_until(r.position.now.read_generation == 1);
	ck_assert(!client_waits());
	for (unsigned i = 1; i < AT_ONCE; i++)
		say_key_update(0);
	carry_until(r.position.now.read_generation == AT_ONCE);
	ck_assert(client_waits());
	const unsigned said = fake_said(&r, FRAME_CONSUMED);
	carry_until(!client_waits()); /* although the client says nothing more */
	waits_for_a_second(since_ms);
	ck_assert_uint_eq(fake_said(&r, FRAME_CONSUMED), said + 1);
}
END_TEST

START_TEST(a_client_that_has_to_wait_again_waits_on)
{
	converse(TLS13);
	for (unsigned i = 0; i < AT_ONCE + 1; i++)
		say_key_update(0);
	carry_until(r.position.now.read_generation == AT_ONCE);
	const unsigned said = fake_said(&r, FRAME_CONSUMED);
	carry_until(r.position.now.read_generation == AT_ONCE + 1);
	ck_assert(client_waits());
	ck_assert_uint_eq(fake_said(&r, FRAME_CONSUMED), said + 1);
	carry_until(!client_waits());
}
END_TEST

static void backend_takes_nothing_more(void)
{
	const struct connection *c = fake_owner(&r);

	while (c->to_backend == c->written) {
		say(lots, 5000);
		carry_on();
	}
}

/* The backend has not got what came before the KeyUpdates, so they are not consumed. */
START_TEST(the_carrier_hears_it_even_if_nothing_is_consumed)
{
	converse(TLS13);
	backend_takes_nothing_more();
	for (unsigned i = 0; i < AT_ONCE; i++)
		say_key_update(0);
	carry_until(client_waits());
	ck_assert_uint_lt(r.position.now.read_generation, AT_ONCE);
	carry_until(!client_waits());
}
END_TEST

START_TEST(a_client_that_waits_does_not_rest)
{
	keep("http", &a1, TLS13);
	keys_are_used_up();
	fake_ragent_ask_rest(&r);
	ck_assert_uint_eq(fake_said(&r, FRAME_REFUSED), 1);
	carry_until(!client_waits());
	fake_ragent_ask_rest(&r);
	ck_assert_uint_eq(fake_said(&r, FRAME_HANDED_OFF), 1);
	fake_ragent_detach(&r);
}
END_TEST

/* It has not taken its last words yet, and nothing of it is opened any more. */
START_TEST(a_client_that_is_to_end_does_not_wait)
{
	converse(TLS13);
	keys_are_used_up();
	ck_assert(client_waits());
	connection_give_up(fake_owner(&r), END_SHUTTING_DOWN);
	ck_assert(!client_waits());
	expect_end(END_SHUTTING_DOWN, CARRIER_ORDERLY);
}
END_TEST

START_TEST(the_end_waits_for_the_records_before_it)
{
	converse(TLS13);
	keys_are_used_up();
	say_text("late");
	memory_client_close(client);
	carry_on();
	connection_fin(fake_owner(&r));
	carry_on();
	ck_assert_int_eq(state(), CONNECTION_OWNER);
	backend_expect_text("late");
	ck_assert_int_eq(backend_end(), 0);
	backend_hang_up();
	expect_end(END_DONE, CARRIER_ORDERLY);
}
END_TEST

static void owner_is_lost(void)
{
	fake_ragent_lose(&r);
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
}

START_TEST(a_successor_opens_what_waits)
{
	keep("http", &a1, TLS13);
	keys_are_used_up();
	say_text(GET);
	carry_on();
	ck_assert(!backend_waits());
	owner_is_lost();
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
}
END_TEST

/* It has to open all that the lost owner had got at once. */
START_TEST(a_successor_opens_no_flood)
{
	keep("http", &a1, TLS13);
	for (unsigned i = 0; i < 4 * AT_ONCE; i++)
		say_key_update(0);
	carry_until(r.position.now.read_generation == AT_ONCE);
	owner_is_lost();
	expect_alert(TLS_ALERT_UNEXPECTED_MESSAGE);
	expect_end(END_KEY_UPDATE_FLOOD, CARRIER_ORDERLY);
}
END_TEST

START_TEST(a_successor_waits_for_what_it_opened)
{
	keep("http", &a1, TLS13);
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	fake_ragent_lose(&r);
	for (unsigned i = 0; i < AT_ONCE; i++)
		say_key_update(0);
	carry();
	r.exposed = r.first_record + r.kept_records; /* they had been on their way, too */
	const uint64_t since_ms = now_ms();
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	backend_accept();
	backend_expect_text(GET);
	ck_assert(client_waits());
	say_key_update(0);
	carry_until(r.position.now.read_generation == AT_ONCE + 1);
	waits_for_a_second(since_ms);
}
END_TEST

START_TEST(data_may_wait_in_any_number)
{
	converse(TLS13);
	keys_are_used_up();
	for (unsigned i = 0; i < 500; i++)
		say(lots + i, 1);
	backend_expect(lots, 500);
}
END_TEST

START_TEST(a_pause_ends_before_the_limit_of_a_head)
{
	keep("http", &a1, TLS13);
	say_text("GET / HTTP/1.1\r\n");
	keys_are_used_up();
	say_text("Host: www.example.org\r\n\r\n");
	backend_accept();
	backend_expect_text("GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n");
}
END_TEST

START_TEST(a_flood_of_key_updates_ends)
{
	converse(TLS13);
	for (unsigned i = 0; i < 30; i++)
		say_key_update(0);
	expect_end(END_KEY_UPDATE_FLOOD, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_UNEXPECTED_MESSAGE);
	ck_assert_uint_ge(counted(COUNT_KEY_UPDATES_PACED), 4);
	ck_assert_uint_le(counted(COUNT_KEY_UPDATES_PACED), 11);
	ck_assert_uint_eq(counted(COUNT_KEY_UPDATES_RECEIVED), 8 + counted(COUNT_KEY_UPDATES_PACED));
}
END_TEST

UNIT(connection_pace)
{
	const struct connection_fact facts[] = {
		{ what_comes_behind_too_many_key_updates_waits, 0 },
		{ the_carrier_hears_when_the_client_waits_and_when_it_goes_on, 0 },
		{ a_client_that_has_to_wait_again_waits_on, 0 },
		{ the_carrier_hears_it_even_if_nothing_is_consumed, 0 },
		{ a_client_that_waits_does_not_rest, 0 },
		{ a_client_that_is_to_end_does_not_wait, 0 },
		{ the_end_waits_for_the_records_before_it, 0 },
		{ a_successor_opens_what_waits, 0 },
		{ a_successor_opens_no_flood, 0 },
		{ a_successor_waits_for_what_it_opened, 0 },
		{ data_may_wait_in_any_number, 0 },
		{ a_pause_ends_before_the_limit_of_a_head, 0 },
		{ a_flood_of_key_updates_ends, 0 },
	};

	return connection_suite_run("connection_pace", facts, FACTS_LEN(facts));
}
