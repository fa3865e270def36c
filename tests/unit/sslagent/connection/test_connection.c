/* test_connection.c: facts of a connection's life: its handshake (parked or not), and its end in each state. */
#include <string.h>

#include "proto/error.h"
#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

/* --- handshake --- */

/* As of a client with many certificates: nearly the longest hello that is taken, in small records. The key shares of
 * OpenSSL 3.5 alone would make it too long. */
static void make_hello_long(void)
{
	static uint8_t protocols[130 * 249];
	SSL *ssl = memory_client_ssl(client);

	for (size_t at = 0; at < sizeof protocols; at += 249) {
		memset(&protocols[at], 'x', 249);
		protocols[at] = 248;
	}
	ck_assert_int_eq(SSL_set_alpn_protos(ssl, protocols, sizeof protocols), 0);
	ck_assert_int_eq(SSL_set1_groups_list(ssl, "X25519"), 1);
	ck_assert_int_eq(SSL_set_max_send_fragment(ssl, 512), 1);
}

START_TEST(a_handshake_of_more_than_a_window_gets_credit)
{
	hello("http", &a1, _i ? CSSL__LINK_OPEN__DISPOSITION__HAND_OFF : CSSL__LINK_OPEN__DISPOSITION__KEEP, TLS13);
	make_hello_long();
	carry_until(fake_said(&r, FRAME_CONSUMED));
	ck_assert_int_eq(r.current->consumed_flags, 0);
	carry_until(fake_said(&r, FRAME_KEPT) || fake_said(&r, FRAME_HANDED_OFF));
	if (_i)
		ck_assert_int_eq(adopt(&a2), 1);
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
}
END_TEST

START_TEST(a_handshake_is_counted_while_it_lasts)
{
	hello("tcp", &a1, CSSL__LINK_OPEN__DISPOSITION__KEEP, tls_version(_i));
	ck_assert_uint_eq(a1.worker.handshakes, 1);
	ck_assert(connection_is_handshaking(fake_owner(&r)));
	carry_until(fake_said(&r, FRAME_KEPT));
	ck_assert_uint_eq(a1.worker.handshakes, 0);
	ck_assert(!connection_is_handshaking(fake_owner(&r)));
	ck_assert_uint_eq(counted(COUNT_HANDSHAKES_FULL), 1);
	ck_assert_uint_eq(counted(_i ? COUNT_HANDSHAKES_TLS13 : COUNT_HANDSHAKES_TLS12), 1);
	ck_assert_uint_gt(a1.worker.handshake_us, 0);
}
END_TEST

START_TEST(records_that_come_one_by_one_make_the_same_handshake)
{
	manners.step = 1;
	keep("tcp", &a1, tls_version(_i));
}
END_TEST

START_TEST(a_failed_handshake_says_openssls_alert)
{
	static const uint8_t nonsense[] = { 0x16, 3, 3, 0, 4, 1, 0, 0, 0 };

	hello("tcp", &a1, CSSL__LINK_OPEN__DISPOSITION__KEEP, TLS13);
	fake_ragent_keep(&r, nonsense, sizeof nonsense);
	expect_end(END_HANDSHAKE_FAILED, CARRIER_ORDERLY);
	ck_assert_uint_eq(counted(COUNT_HANDSHAKES_FAILED), 1);
	ck_assert_uint_eq(a1.worker.handshakes, 0);
}
END_TEST

/* --- parked --- */

/* A client of a1 resumes a session that a1 has heard of and does not have. */
static void park(const struct memory_client_config *config)
{
	struct memory_client_config again = *config;

	keep("tcp", &a1, config);
	backend_accept();
	carry_on(); /* TLS 1.3's ticket comes behind the handshake */
	again.resume = memory_client_session(client);
	ck_assert_ptr_nonnull(again.resume);
	memory_source_place(&a1.cluster.source, MEMORY_ELSEWHERE);
	hello("tcp", &a1, CSSL__LINK_OPEN__DISPOSITION__KEEP, &again);
	SSL_SESSION_free(again.resume);
	carry();
}

START_TEST(a_session_that_is_elsewhere_parks_its_handshake)
{
	park(tls_version(_i));
	ck_assert_int_eq(state(), CONNECTION_PARKED);
	ck_assert(connection_is_handshaking(fake_owner(&r)));
	ck_assert_uint_eq(a1.worker.parked, 1);
	ck_assert_uint_eq(a1.cluster.pulls, 1);
	ck_assert_uint_eq(fake_said(&r, FRAME_DATA), 0);
}
END_TEST

START_TEST(a_session_that_came_is_resumed)
{
	park(tls_version(_i));
	fake_cluster_answer_pull(&a1.cluster, SESSION_FOUND);
	carry_until(fake_said(&r, FRAME_KEPT));
	ck_assert_uint_eq(counted(COUNT_HANDSHAKES_RESUMED), 1);
	ck_assert_uint_eq(a1.worker.parked, 0);
	backend_accept();
}
END_TEST

START_TEST(a_session_that_did_not_come_makes_a_full_handshake)
{
	park(tls_version(_i));
	fake_cluster_answer_pull(&a1.cluster, SESSION_ABSENT);
	carry_until(fake_said(&r, FRAME_KEPT));
	ck_assert_uint_eq(counted(COUNT_HANDSHAKES_RESUMED), 0);
	ck_assert_uint_eq(counted(COUNT_HANDSHAKES_FULL), 2);
	ck_assert_uint_eq(counted(COUNT_PULLS_MISSED), 1);
	backend_accept();
}
END_TEST

START_TEST(no_more_are_parked_than_the_cluster_file_allows)
{
	a1.worker.parked = a1.worker.conf->broadcast.parked_max;
	park(tls_version(_i));
	carry_until(fake_said(&r, FRAME_KEPT));
	ck_assert_uint_eq(counted(COUNT_PARKS_REFUSED), 1);
	ck_assert_uint_eq(counted(COUNT_HANDSHAKES_FULL), 2);
	ck_assert_uint_eq(a1.cluster.pulls, 0);
	a1.worker.parked = 0;
	backend_accept();
}
END_TEST

START_TEST(records_of_a_parked_client_wait_and_more_than_a_window_is_a_breach)
{
	static uint8_t record[TLS_RECORD_HEADER_LEN + TLS_PLAINTEXT_MAX] = { 0x16, 3, 3, 0x40, 0 };

	park(TLS13);
	for (size_t given = 0; given + sizeof record <= WINDOW + TLS_RECORD_MAX; given += sizeof record) {
		ck_assert_uint_eq(fake_said(&r, FRAME_END), 0);
		ck_assert_uint_eq(connection_waiting(fake_owner(&r)), given);
		fake_records(fake_owner(&r), record, sizeof record);
	}
	fake_records(fake_owner(&r), record, sizeof record);
	expect_end(END_LINK_VIOLATION, CARRIER_ABORT);
	ck_assert_uint_eq(a1.cluster.pulls_cancelled, 1);
}
END_TEST

/* --- the end, in every state --- */

static void reach_handshaking(void)
{
	hello("tcp", &a1, CSSL__LINK_OPEN__DISPOSITION__KEEP, TLS13);
}

static void reach_parked(void)
{
	park(TLS13);
}

static void reach_frozen(void)
{
	hello("tcp", &a1, CSSL__LINK_OPEN__DISPOSITION__HAND_OFF, TLS13);
	carry_until(fake_said(&r, FRAME_HANDED_OFF));
}

static void reach_frozen_with_backend(void)
{
	converse(TLS13);
	hand_off_to(&a2);
}

static void reach_owner(void)
{
	converse(TLS13);
}

static void reach_owner_with_input(void)
{
	manners.generous = RAGENT_HOLDS_TWO;
	converse(TLS13);
	for (size_t said = 0; connection_waiting(fake_owner(&r)) == 0; said += 8000) {
		ck_assert_uint_lt(said, MOST);
		say(lots, 8000);
		carry();
		turn();
	}
}

static void reach_passing(void)
{
	converse(TLS13);
	manners.passes = PASSES_HELD;
	fake_ragent_ask_move(&r, "a2");
}

static void reach_passing_but_draining(void)
{
	reach_owner_with_input();
	fake_ragent_ask_move(&r, "a2");
}

static void reach_settling(void)
{
	a1.cluster.host = PASSES_NOT;
	keep("http", &a1, TLS13);
	say_text(GET "GET /half");
	backend_accept();
	backend_expect_text(GET "GET /half");
	fake_ragent_ask_move_within(&r, "a2", 60000);
}

static void reach_settling_with_held_plaintext(void)
{
	reach_settling();
	say_text(" HTTP/1.1\r\nHost: a\r\n\r\n" GET);
	carry();
	ck_assert(connection_holds(fake_owner(&r)));
}

static void reach_ending(void)
{
	converse(TLS13);
	manners.commits = COMMITS_HELD;
	say_key_update(1);
	carry_until(r.position.write_generation == 1);
	connection_give_up(fake_owner(&r), END_IDLE_TIMEOUT);
}

static const struct {
	void (*reach)(void);
	enum connection_state state;
	int owns; /* and so its end is told to the peers */
} places[] = {
	{ reach_handshaking, CONNECTION_HANDSHAKING, 0 },
	{ reach_parked, CONNECTION_PARKED, 0 },
	{ reach_frozen, CONNECTION_FROZEN, 0 },
	{ reach_frozen_with_backend, CONNECTION_FROZEN, 0 },
	{ reach_owner, CONNECTION_OWNER, 1 },
	{ reach_owner_with_input, CONNECTION_OWNER, 1 },
	{ reach_passing, CONNECTION_PASSING, 1 },
	{ reach_passing_but_draining, CONNECTION_PASSING, 1 },
	{ reach_settling, CONNECTION_SETTLING, 1 },
	{ reach_settling_with_held_plaintext, CONNECTION_SETTLING, 1 },
	{ reach_ending, CONNECTION_ENDING, 1 },
};
#define PLACES ((int)FACTS_LEN(places))

static void reach(int place)
{
	places[place].reach();
	ck_assert_int_eq(state(), places[place].state);
	ck_assert_uint_eq(a1.cluster.gone, place == 1); /* parking needed a connection before */
}

/* The fixture asserts that nothing of it stays. */
START_TEST(a_connection_is_forgotten_in_any_state_and_its_backend_reset)
{
	reach(_i % PLACES);
	int frozen = state() == CONNECTION_FROZEN;
	unsigned gone = a1.cluster.gone;
	connection_forget(fake_owner(&r), END_CLIENT_RESET);
	r.current->connection = NULL;
	turns(4);
	fake_cluster_finish_passes(&a1.cluster, CSSL_E_NOT_FOUND);
	ck_assert_uint_eq(a1.cluster.gone, gone + (unsigned)places[_i % PLACES].owns);
	if (backend >= 0 && !frozen && places[_i % PLACES].owns)
		ck_assert_int_eq(backend_end(), -1);
}
END_TEST

START_TEST(what_is_lost_with_its_link_is_not_told_as_gone)
{
	reach(_i);
	unsigned gone = a1.cluster.gone;
	connection_forget(fake_owner(&r), END_AGENT_LOST);
	r.current->connection = NULL;
	ck_assert_uint_eq(a1.cluster.gone, gone);
}
END_TEST

START_TEST(giving_up_ends_a_handshake_with_a_reset)
{
	reach(_i);
	connection_give_up(fake_owner(&r), END_HANDSHAKE_TIMEOUT);
	expect_end(END_HANDSHAKE_TIMEOUT, CARRIER_ABORT);
}
END_TEST

START_TEST(giving_up_ends_an_owner_at_a_checkpoint_with_close_notify)
{
	keep("http", &a1, tls_version(_i));
	connection_give_up(fake_owner(&r), END_IDLE_TIMEOUT);
	expect_end(END_IDLE_TIMEOUT, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

START_TEST(giving_up_ends_an_owner_elsewhere_with_a_fatal_alert)
{
	converse(tls_version(_i));
	connection_give_up(fake_owner(&r), END_IDLE_TIMEOUT);
	expect_end(END_IDLE_TIMEOUT, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_INTERNAL_ERROR);
	ck_assert_int_eq(backend_end(), -1);
}
END_TEST

START_TEST(giving_up_in_the_midst_of_a_move_ends_it_here)
{
	converse(tls_version(_i % 2));
	manners.passes = PASSES_HELD;
	fake_ragent_ask_move(&r, "a2");
	ck_assert_int_eq(state(), CONNECTION_PASSING);
	connection_give_up(fake_owner(&r), END_DRAIN_TIMEOUT);
	expect_end(END_DRAIN_TIMEOUT, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_INTERNAL_ERROR);
	ck_assert_uint_eq(fake_said(&r, FRAME_REFUSED), 0);
	fake_cluster_finish_passes(&a1.cluster, _i / 2 ? CSSL_E_NOT_FOUND : 0);
}
END_TEST

/* A frozen one is another's to end, an ending one is ending. */
START_TEST(giving_up_changes_nothing_where_nothing_is_owned)
{
	_i ? reach_ending() : reach_frozen();
	enum connection_state before = state();
	connection_give_up(fake_owner(&r), END_DRAIN_TIMEOUT);
	ck_assert_int_eq(state(), before);
	ck_assert_uint_eq(fake_said(&r, FRAME_END), 0);
}
END_TEST

START_TEST(a_fin_in_the_handshake_ends_it)
{
	reach(_i);
	connection_fin(fake_owner(&r));
	expect_end(END_CLIENT_CLOSED, CARRIER_ORDERLY);
}
END_TEST

/* What is no record, and which alert says so to a client that has seen nothing of a server yet. */
static const struct {
	struct frame_violation bad;
	enum tls_alert alert;
} breaches[] = {
	{ { TLS_HEARTBEAT, 0x0303, 3 }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ { TLS_HANDSHAKE, 0x0200, 3 }, TLS_ALERT_PROTOCOL_VERSION },
	{ { TLS_HANDSHAKE, 0x0303, 0xffff }, TLS_ALERT_RECORD_OVERFLOW },
	{ { 0x47, 0x4554, 0x202f }, TLS_ALERT_PROTOCOL_VERSION },
};
#define BREACHES ((int)(sizeof breaches / sizeof breaches[0]))

START_TEST(a_breach_in_the_handshake_gets_its_alert)
{
	const uint8_t *records;

	hello("tcp", &a1, CSSL__LINK_OPEN__DISPOSITION__KEEP, &(struct memory_client_config){ .record_len = 64 });
	memory_client_handshake(client);
	size_t len = memory_client_output(client, &records);
	fake_ragent_keep(&r, records, len);
	ck_assert_uint_lt(fake_ragent_forward(&r, 0), len); /* a part of the hello */
	connection_violation(fake_owner(&r), &breaches[_i].bad);
	expect_end(END_RECORD_VIOLATION, CARRIER_ORDERLY);
	expect_alert(breaches[_i].alert);
	ck_assert_uint_eq(counted(COUNT_RECORD_VIOLATIONS), 1);
	ck_assert_uint_eq(counted(COUNT_HANDSHAKES_REFUSED_MESSAGE), 1);
}
END_TEST

START_TEST(a_breach_behind_a_hello_that_waits_gets_its_alert_when_it_goes_on)
{
	park(tls_version(_i));
	connection_violation(fake_owner(&r), &breaches[0].bad);
	ck_assert_int_eq(state(), CONNECTION_PARKED);
	fake_cluster_answer_pull(&a1.cluster, SESSION_ABSENT);
	expect_end(END_RECORD_VIOLATION, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_UNEXPECTED_MESSAGE);
}
END_TEST

UNIT(connection)
{
	const struct connection_fact facts[] = {
		{ a_handshake_of_more_than_a_window_gets_credit, 2 },
		{ a_handshake_is_counted_while_it_lasts, 2 },
		{ records_that_come_one_by_one_make_the_same_handshake, 2 },
		{ a_failed_handshake_says_openssls_alert, 0 },
		{ a_session_that_is_elsewhere_parks_its_handshake, 2 },
		{ a_session_that_came_is_resumed, 2 },
		{ a_session_that_did_not_come_makes_a_full_handshake, 2 },
		{ no_more_are_parked_than_the_cluster_file_allows, 2 },
		{ records_of_a_parked_client_wait_and_more_than_a_window_is_a_breach, 0 },
		{ a_connection_is_forgotten_in_any_state_and_its_backend_reset, PLACES },
		{ what_is_lost_with_its_link_is_not_told_as_gone, PLACES },
		{ giving_up_ends_a_handshake_with_a_reset, 2 },
		{ giving_up_ends_an_owner_at_a_checkpoint_with_close_notify, 2 },
		{ giving_up_ends_an_owner_elsewhere_with_a_fatal_alert, 2 },
		{ giving_up_in_the_midst_of_a_move_ends_it_here, 4 },
		{ giving_up_changes_nothing_where_nothing_is_owned, 2 },
		{ a_fin_in_the_handshake_ends_it, 2 },
		{ a_breach_in_the_handshake_gets_its_alert, BREACHES },
		{ a_breach_behind_a_hello_that_waits_gets_its_alert_when_it_goes_on, 2 },
	};

	return connection_suite_run("connection", facts, FACTS_LEN(facts));
}
