/* test_connection_move.c: facts of ownership: what KEPT and HANDED_OFF say, the backend half of a move, and moves at
 * every record boundary. */
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "proto/error.h"
#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

static struct home *other_than(const struct home *h)
{
	return h == &a1 ? &a2 : &a1;
}

/* --- after the handshake --- */

START_TEST(kept_makes_an_owner_and_leaves_a_copy)
{
	keep("tcp", &a1, tls_version(_i));
	ck_assert_int_eq(state(), CONNECTION_OWNER);
	ck_assert_uint_eq(fake_owner(&r)->epoch, 1);
	ck_assert_ptr_nonnull(r.copies.current);
	ck_assert_uint_eq(a1.cluster.shared, 1);
	ck_assert_uint_eq(a2.cluster.heard_count, 1);
	ck_assert_ptr_null(fake_owner(&r)->handshake);
	ck_assert_int_eq(fake_cluster_try(&a1.cluster, &r.id, 1), CSSL_E_REPLAY);
}
END_TEST

START_TEST(handed_off_freezes)
{
	hand_off("tcp", &a1, tls_version(_i));
	ck_assert_int_eq(r.frozen->connection->state, CONNECTION_FROZEN);
	ck_assert_ptr_null(r.frozen->connection->live);
	ck_assert_ptr_nonnull(r.frozen->connection->frozen);
	carry_on();
	ck_assert(!backend_waits()); /* a handshake agent opens no backend connection */
	ck_assert_uint_eq(counted(COUNT_HANDED_OFF), 1);
}
END_TEST

START_TEST(what_came_with_finished_is_replayed_to_the_adopter)
{
	hello("tcp", &a1, CSSL__LINK_OPEN__DISPOSITION__HAND_OFF, tls_version(_i));
	say_text("at once");
	carry_until(fake_said(&r, FRAME_HANDED_OFF));
	ck_assert_int_eq(adopt(&a2), 1);
	backend_accept();
	backend_expect_text("at once");
	backend_say_text("answer");
	client_expect_text("answer");
}
END_TEST

START_TEST(a_frozen_connection_hears_nothing_that_is_for_its_successor)
{
	const struct frame_violation v = { 0x18, 0x0303, 3 };
	uint8_t record[] = { 0x17, 3, 3, 0, 1, 0 };

	hand_off("tcp", &a1, TLS13);
	struct connection *c = r.frozen->connection;
	fake_records(c, record, sizeof record);
	connection_fin(c);
	connection_violation(c, &v);
	connection_accepted(c, &(struct frame_accepted){ .server_records = 9, .write_generation = 3 });
	carry_on();
	ck_assert_int_eq(c->state, CONNECTION_FROZEN);
	ck_assert_int_eq(adopt(&a1), 1);
}
END_TEST

START_TEST(without_migration_there_is_no_copy_and_no_move)
{
	keep("still", &a1, tls_version(_i));
	ck_assert_ptr_null(r.copies.current);
	ck_assert_uint_eq(a1.cluster.shared, 0);
	fake_ragent_ask_move(&r, "a2");
	ck_assert_uint_eq(fake_said(&r, FRAME_REFUSED), 1);
	ck_assert_int_eq(r.current->refused, CSSL__LINK_REFUSED__REASON__CANNOT_MOVE);
	say_text("still here");
	backend_accept();
	backend_expect_text("still here");
}
END_TEST

/* --- the backend half --- */

START_TEST(an_open_conversation_goes_along)
{
	converse(tls_version(_i));
	for (int i = 0; i < 4; i++) {
		move_to(i % 2 ? &a1 : &a2);
		ck_assert_int_eq(r.owners[r.owner_count - 2].backend, CSSL__BACKEND_HALF__BACKEND_PASSED);
		ping_pong();
		ck_assert(!backend_waits());
	}
	ck_assert_uint_eq(counted(COUNT_BACKEND_CONNECTS), 1);
}
END_TEST

START_TEST(plaintext_that_was_read_and_not_sealed_goes_along)
{
	converse(TLS13);
	manners.commits = COMMITS_HELD;
	say_key_update(1);
	carry_until(r.position.write_generation == 1);
	backend_say(lots, 20000); /* no record before the commit is told */
	carry_on();
	hand_off_to(&a2);
	ck_assert_uint_gt(a2.cluster.arrived[0].from_backend_len, 0);
	manners.commits = COMMITS_TOLD;
	ck_assert_int_eq(adopt(&a2), 1);
	client_expect(lots, 20000);
}
END_TEST

/* The first byte of a KeyUpdate, in @pieces records, of which nothing is consumed. */
static void say_half_a_key_update(unsigned pieces)
{
	static const uint8_t key_update[] = { 24, 0, 0, 1, 0 };
	const uint64_t consumed = r.position.now.client_records;

	forge_begin();
	for (unsigned i = 0; i < pieces; i++)
		say_forged(&(struct forged_record){ .type = TLS_HANDSHAKE, .content = key_update + i, .len = 1 });
	carry_until(live_unfinished(fake_owner(&r)->live) == pieces);
	carry_on();
	ck_assert_uint_eq(r.position.now.client_records, consumed);
	ck_assert_uint_eq(r.kept_records, pieces);
}

static void say_its_rest(unsigned pieces)
{
	static const uint8_t key_update[] = { 24, 0, 0, 1, 0 };

	say_forged(&(struct forged_record){
		.type = TLS_HANDSHAKE, .content = key_update + pieces, .len = sizeof key_update - pieces });
	carry_until(r.position.now.read_generation == 1);
	ck_assert_int_eq(record_forge_step(forge), 0);
	ck_assert_uint_eq(r.kept_records, 0);
}

/* In one to four records. The last owner is one after a loss. */
START_TEST(half_a_key_update_is_opened_again_by_each_owner)
{
	const unsigned pieces = (unsigned)_i + 1;

	keep("http", &a1, TLS13);
	say_half_a_key_update(pieces);
	fake_ragent_ask_rest(&r);
	ck_assert_uint_eq(fake_said(&r, FRAME_REFUSED), 1);
	move_to(&a2);
	carry_until(live_unfinished(fake_owner(&r)->live) == pieces);
	fake_ragent_lose(&r);
	ck_assert_int_eq(fake_ragent_adopt(&r, &a1.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	carry_until(live_unfinished(fake_owner(&r)->live) == pieces);
	say_its_rest(pieces);
	say_forged(&(struct forged_record){ .type = TLS_APPLICATION_DATA, .content = GET, .len = strlen(GET) });
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
}
END_TEST

START_TEST(an_answer_that_its_client_does_not_read_goes_along)
{
	converse(tls_version(_i));
	manners.client = CLIENT_DOES_NOT_READ;
	ck_assert_int_gt(send(backend, lots, 300000, MSG_DONTWAIT), 200000);
	carry_on();
	hand_off_to(&a2);
	ck_assert_int_eq(adopt(&a2), 1);
	manners.client = CLIENT_READS;
	client_expect(lots, 200000);
}
END_TEST

START_TEST(what_the_backend_was_sent_is_taken_before_it_moves)
{
	size_t said = 0;

	converse(tls_version(_i));
	while (fake_owner(&r)->to_backend == fake_owner(&r)->written) {
		ck_assert_uint_lt(said, MOST);
		say(lots, PIECE);
		said += PIECE;
		carry_on();
	}
	fake_ragent_ask_move(&r, "a2");
	ck_assert_int_eq(state(), CONNECTION_PASSING);
	ck_assert_uint_eq(a1.cluster.leaving_count, 0);
	uint8_t *half = malloc(said);
	size_t have = 0;
	while (!fake_said(&r, FRAME_HANDED_OFF)) {
		carry();
		ssize_t n = recv(backend, half + have, said - have, MSG_DONTWAIT);
		have += n > 0 ? (size_t)n : 0;
		turn();
	}
	ck_assert_uint_eq(r.current->connection->written, r.current->connection->to_backend);
	ck_assert_int_eq(adopt(&a2), 1);
	while (have < said) {
		carry();
		ssize_t n = recv(backend, half + have, said - have, MSG_DONTWAIT);
		have += n > 0 ? (size_t)n : 0;
		turn();
	}
	for (size_t at = 0; at < said; at += PIECE)
		ck_assert_mem_eq(half + at, lots, PIECE);
	free(half);
}
END_TEST

START_TEST(a_backend_that_takes_nothing_keeps_the_connection_where_it_is)
{
	size_t said = 0;

	converse(TLS13);
	while (fake_owner(&r)->to_backend == fake_owner(&r)->written) {
		ck_assert_uint_lt(said, MOST);
		say(lots, PIECE);
		said += PIECE;
		carry_on();
	}
	fake_ragent_ask_move(&r, "a2");
	carry_until(fake_said(&r, FRAME_REFUSED));
	ck_assert_int_eq(r.current->refused, CSSL__LINK_REFUSED__REASON__CANNOT_MOVE);
	for (; said > 0; said -= PIECE)
		backend_expect(lots, PIECE);
	carry_until(r.kept_len == 0);
}
END_TEST

START_TEST(a_pass_that_fails_leaves_everything_as_it_was)
{
	converse(tls_version(_i));
	manners.passes = PASSES_HELD;
	fake_ragent_ask_move(&r, "a2");
	ck_assert_int_eq(state(), CONNECTION_PASSING);
	say_text("meanwhile");
	backend_say_text("meanwhile, too");
	carry_on();
	ck_assert_uint_gt(r.kept_len, 0);
	fake_cluster_finish_passes(&a1.cluster, CSSL_E_NOT_FOUND);
	ck_assert_uint_eq(fake_said(&r, FRAME_REFUSED), 1);
	ck_assert_int_eq(state(), CONNECTION_OWNER);
	manners.passes = PASSES_ARRIVE;
	backend_expect_text("meanwhile");
	client_expect_text("meanwhile, too");
	carry_until(r.kept_len == 0);
	move_to(&a2);
	ping_pong();
}
END_TEST

START_TEST(the_clients_fin_during_a_pass_is_remembered)
{
	converse(TLS13);
	manners.passes = PASSES_HELD;
	fake_ragent_ask_move(&r, "a2");
	connection_fin(fake_owner(&r));
	carry_on();
	ck_assert_int_eq(state(), CONNECTION_PASSING);
	fake_cluster_finish_passes(&a1.cluster, CSSL_E_NOT_FOUND);
	expect_end(END_CLIENT_CLOSED, CARRIER_ORDERLY);
}
END_TEST

START_TEST(a_connection_that_ends_during_its_pass_is_not_called_back)
{
	converse(TLS13);
	manners.passes = PASSES_HELD;
	fake_ragent_ask_move(&r, "a2");
	connection_forget(fake_owner(&r), END_CLIENT_RESET);
	r.current->connection = NULL;
	turns(4); /* its memory is gone */
	fake_cluster_finish_passes(&a1.cluster, _i ? CSSL_E_NOT_FOUND : 0);
	ck_assert_uint_eq(a1.cluster.gone, 1);
}
END_TEST

START_TEST(a_connection_that_cannot_be_passed_stays)
{
	a1.cluster.host = PASSES_NOT;
	converse(tls_version(_i));
	fake_ragent_ask_move(&r, "a2");
	ck_assert_uint_eq(fake_said(&r, FRAME_REFUSED), 1);
	ck_assert_int_eq(r.current->refused, CSSL__LINK_REFUSED__REASON__CANNOT_MOVE);
	ping_pong();
}
END_TEST

START_TEST(between_answers_no_backend_goes_along)
{
	a1.cluster.host = PASSES_NOT;
	keep("http", &a1, tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	move_to(&a2);
	ck_assert_int_eq(backend_end(), 0);
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
}
END_TEST

/* Its end is the client's, too: whoever owns the connection has to hear of it. */
START_TEST(a_backend_that_is_about_to_close_goes_along)
{
	keep("http", &a1, tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
	carry_until(r.position.response == POSITION_AT_CHECKPOINT);
	move_to(&a2);
	ck_assert_int_eq(r.owners[0].backend, CSSL__BACKEND_HALF__BACKEND_PASSED);
	backend_hang_up();
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

START_TEST(an_answer_that_moves_in_its_middle_still_ends_at_a_checkpoint)
{
	keep("http", &a1, tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	for (size_t at = 0; at < strlen(ANSWER); at++) {
		backend_say(&ANSWER[at], 1);
		client_expect(&ANSWER[at], 1);
		if (at + 1 < strlen(ANSWER))
			move_to(at % 2 ? &a1 : &a2);
	}
	ck_assert_int_eq(r.position.response, POSITION_AT_CHECKPOINT);
}
END_TEST

START_TEST(a_half_closed_connection_moves_and_says_nothing_twice)
{
	converse(tls_version(_i));
	shutdown(backend, SHUT_WR);
	carry_until(fake_said(&r, FRAME_FIN));
	move_to(&a2);
	carry_on();
	ck_assert_uint_eq(fake_said(&r, FRAME_FIN), 0);
	say_text("the client goes on");
	backend_expect_text("the client goes on");
	memory_client_close(client);
	expect_end(END_DONE, CARRIER_ORDERLY);
	ck_assert_int_eq(backend_end(), 0);
}
END_TEST

START_TEST(a_connection_whose_client_has_closed_moves_with_its_answer)
{
	converse(TLS13);
	memory_client_close(client);
	ck_assert_int_eq(backend_end(), 0);
	move_to(&a2);
	backend_say_text("the answer goes on");
	client_expect_text("the answer goes on");
	backend_hang_up();
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

START_TEST(a_reply_that_is_owed_moves_along)
{
	converse(TLS13);
	manners.commits = COMMITS_HELD;
	say_key_update(1);
	carry_until(r.position.write_generation == 1);
	move_to(&a2); /* HANDED_OFF came behind the KeyUpdate: it is committed */
	backend_say_text("under the next key");
	client_expect_text("under the next key");
}
END_TEST

/* --- every boundary --- */

static const uint16_t suites[] = { TLS13_AES_128, TLS13_AES_256, TLS13_CHACHA20, TLS12_AES_128, TLS12_AES_256,
	TLS12_CHACHA20 };
#define SUITES  6
#define RECORDS 12

static void say_record(unsigned n, int tls13)
{
	if (tls13 && n % 4 == 2)
		say_key_update(n % 8 == 2);
	else
		say(lots + n * 100, 100);
}

static size_t plain_of(unsigned records, int tls13)
{
	size_t len = 0;

	for (unsigned n = 0; n < records; n++)
		len += tls13 && n % 4 == 2 ? 0 : 100;
	return len;
}

/* One run for each suite and each of RECORDS + 1 boundaries; every other record is answered. */
START_TEST(a_move_at_any_record_boundary_changes_no_byte)
{
	uint16_t suite = suites[_i % SUITES];
	unsigned boundary = (unsigned)_i / SUITES;
	int tls13 = suite >> 8 == 0x13;
	struct home *at = &a1;
	size_t answered = 0;

	keep("tcp", &a1, &(struct memory_client_config){ .suite = suite });
	backend_accept();
	for (unsigned n = 0; n < RECORDS; n++) {
		if (n == boundary) {
			at = other_than(at);
			move_to(at);
			if (n == 0) /* nothing had been said yet, so there is no conversation to go along */
				backend_accept();
		}
		say_record(n, tls13);
		if (n % 2) {
			backend_say(lots + answered, 333);
			answered += 333;
		}
		carry();
	}
	if (boundary == RECORDS)
		move_to(other_than(at));
	for (unsigned n = 0; n < RECORDS; n++)
		if (!(tls13 && n % 4 == 2))
			backend_expect(lots + n * 100, 100);
	client_expect(lots, answered);
	ck_assert_uint_eq(plain_of(RECORDS, tls13), tls13 ? 900 : 1200);
	carry_until(r.kept_len == 0);
}
END_TEST

/* With everything in flight: many records given at once, moved after each that was opened. */
START_TEST(fifty_moves_amid_a_stream_both_ways_change_no_byte)
{
	size_t up = 0, down = 0, taken = 0;
	static uint8_t buffer[65536];

	converse(&(struct memory_client_config){ .suite = suites[_i] });
	for (unsigned move = 0; move < 50; move++) {
		say(lots + up, 20000);
		up += 20000;
		if (suites[_i] >> 8 == 0x13 && move % 7 == 0) /* as many as a client may make at once */
			say_key_update(move % 2 == 0);
		ssize_t n = send(backend, lots + down, 15000, MSG_DONTWAIT);
		down += n > 0 ? (size_t)n : 0;
		move_to(move % 2 ? &a1 : &a2);
		n = recv(backend, buffer, sizeof buffer, MSG_DONTWAIT);
		for (ssize_t i = 0; i < n; i++, taken++)
			if (buffer[i] != lots[taken])
				ck_abort_msg("byte %zu at the backend is wrong", taken);
	}
	backend_expect(lots + taken, up - taken);
	client_expect(lots, down);
	ck_assert_uint_eq(counted(COUNT_ADOPTED), 50);
}
END_TEST

UNIT(connection_move)
{
	const struct connection_fact facts[] = {
		{ kept_makes_an_owner_and_leaves_a_copy, 2 },
		{ handed_off_freezes, 2 },
		{ what_came_with_finished_is_replayed_to_the_adopter, 2 },
		{ a_frozen_connection_hears_nothing_that_is_for_its_successor, 0 },
		{ without_migration_there_is_no_copy_and_no_move, 2 },
		{ an_open_conversation_goes_along, 2 },
		{ plaintext_that_was_read_and_not_sealed_goes_along, 1 },
		{ half_a_key_update_is_opened_again_by_each_owner, 4 },
		{ an_answer_that_its_client_does_not_read_goes_along, 2 },
		{ what_the_backend_was_sent_is_taken_before_it_moves, 2 },
		{ a_backend_that_takes_nothing_keeps_the_connection_where_it_is, 0 },
		{ a_pass_that_fails_leaves_everything_as_it_was, 2 },
		{ the_clients_fin_during_a_pass_is_remembered, 0 },
		{ a_connection_that_ends_during_its_pass_is_not_called_back, 2 },
		{ a_connection_that_cannot_be_passed_stays, 2 },
		{ between_answers_no_backend_goes_along, 2 },
		{ a_backend_that_is_about_to_close_goes_along, 2 },
		{ an_answer_that_moves_in_its_middle_still_ends_at_a_checkpoint, 2 },
		{ a_half_closed_connection_moves_and_says_nothing_twice, 2 },
		{ a_connection_whose_client_has_closed_moves_with_its_answer, 0 },
		{ a_reply_that_is_owed_moves_along, 0 },
		{ a_move_at_any_record_boundary_changes_no_byte, SUITES * (RECORDS + 1) },
		{ fifty_moves_amid_a_stream_both_ways_change_no_byte, SUITES },
	};

	return connection_suite_run("connection_move", facts, FACTS_LEN(facts));
}
