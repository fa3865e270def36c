/* test_connection_move.c: facts of ownership: what KEPT and HANDED_OFF say, adopting from each source, refusals that
 * leave nothing, the backend half of a move, and moves at every record boundary. */
#include <string.h>
#include <sys/socket.h>

#include "proto/error.h"
#include "tests/unit/sslagent/connection_fixture.h"

static struct home *other_than(const struct home *h)
{
	return h == &a1 ? &a2 : &a1;
}

/* HANDED_OFF at the end of a handshake at a1. */
static void hand_off(const char *listener, const struct memory_client_config *config)
{
	hello(listener, &a1, CSSL__LINK_OPEN__DISPOSITION__HAND_OFF, config);
	carry_until(fake_said(&r, FRAME_HANDED_OFF) || fake_said(&r, FRAME_END));
	ck_assert_uint_eq(fake_said(&r, FRAME_HANDED_OFF), 1);
}

static int adopt(struct home *home)
{
	return fake_ragent_adopt(&r, &home->worker, CSSL__CAUSE__CAUSE_MOVE);
}

static void ping_pong(void)
{
	say_text("ping");
	backend_expect_text("ping");
	backend_say_text("pong");
	client_expect_text("pong");
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
	ck_assert_int_eq(cluster_claim_epoch(&a1.cluster, &r.id, 1), CSSL_E_REPLAY);
}
END_TEST

START_TEST(handed_off_freezes)
{
	hand_off("tcp", tls_version(_i));
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

	hand_off("tcp", TLS13);
	struct connection *c = r.frozen->connection;
	connection_records(c, record, sizeof record);
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

/* --- sources --- */

enum { BY_BROADCAST, BY_COPY, BY_FROZEN, SOURCES };

START_TEST(each_source_of_the_live_part_makes_an_owner)
{
	static const Cssl__LinkAdopted__Source sources[] = {
		[BY_BROADCAST] = CSSL__LINK_ADOPTED__SOURCE__FROM_BROADCAST,
		[BY_COPY] = CSSL__LINK_ADOPTED__SOURCE__FROM_COPY,
		[BY_FROZEN] = CSSL__LINK_ADOPTED__SOURCE__FROM_FROZEN,
	};
	static const enum agent_counter counters[] = { [BY_BROADCAST] = COUNT_ADOPTED_FROM_BROADCAST,
		[BY_COPY] = COUNT_ADOPTED_FROM_COPY,
		[BY_FROZEN] = COUNT_ADOPTED_FROM_FROZEN };
	int by = _i % SOURCES;

	a1.cluster.broadcast = by == BY_COPY ? BROADCAST_LOST : BROADCAST_HEARD;
	hand_off("tcp", tls_version(_i / SOURCES));
	if (by == BY_BROADCAST) /* the copy does not open: it is not needed */
		r.copies.current->data[r.copies.current->len - 1] ^= 1;
	ck_assert_int_eq(adopt(by == BY_FROZEN ? &a1 : &a2), 1);
	ck_assert_int_eq(r.current->source, sources[by]);
	ck_assert_uint_eq(counted(counters[by]), 1);
	ck_assert_uint_eq(counted(COUNT_ADOPTED), 1);
	ck_assert_uint_eq(fake_owner(&r)->epoch, 2);
	backend_accept();
	ping_pong();
}
END_TEST

START_TEST(a_broadcast_of_older_keys_gives_way_to_the_copy)
{
	keep("http", &a1, TLS13);
	a1.cluster.broadcast = BROADCAST_LOST;
	say_key_update(0);
	carry_until(r.position.read_generation == 1);
	move_to(&a2);
	ck_assert_int_eq(r.current->source, CSSL__LINK_ADOPTED__SOURCE__FROM_COPY);
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
}
END_TEST

START_TEST(an_older_copy_is_brought_up_to_date)
{
	converse(TLS13);
	/* as if RAgent had lost the race: its copy is from the handshake, the commits are ahead */
	struct sealed_blob *first = r.copies.current;
	r.copies.current = NULL;
	a1.cluster.broadcast = BROADCAST_LOST;
	a2.cluster.heard_count = 0;
	say_key_update(1);
	say_key_update(0);
	carry_until(r.position.read_generation == 2 && r.position.write_generation == 1);
	hand_off_to(&a2);
	copies_clear(&r.copies);
	r.copies.current = first;
	ck_assert_int_eq(adopt(&a2), 1);
	ck_assert_int_eq(r.current->source, CSSL__LINK_ADOPTED__SOURCE__FROM_COPY);
	ping_pong();
}
END_TEST

/* --- refusals --- */

static Cssl__LinkRefused__Reason refused_by(struct home *home)
{
	ck_assert_int_eq(adopt(home), 0);
	return r.current->refused;
}

/* The frozen owner is the way back. */
static void back_to_a1(void)
{
	ck_assert_int_eq(adopt(&a1), 1);
	ck_assert_int_eq(r.current->source, CSSL__LINK_ADOPTED__SOURCE__FROM_FROZEN);
	if (backend < 0)
		backend_accept();
	ping_pong();
}

START_TEST(a_copy_that_does_not_open_is_refused_and_the_frozen_owner_can_go_on)
{
	a1.cluster.broadcast = BROADCAST_LOST;
	hand_off("tcp", tls_version(_i));
	r.copies.current->data[r.copies.current->len / 2] ^= 1;
	ck_assert_int_eq(refused_by(&a2), CSSL__LINK_REFUSED__REASON__COPY_BAD);
	ck_assert_uint_eq(counted(COUNT_ADOPTS_REFUSED), 1);
	carry_on();
	ck_assert(!backend_waits());
	back_to_a1();
}
END_TEST

START_TEST(no_copy_at_all_is_refused)
{
	a1.cluster.broadcast = BROADCAST_LOST;
	hand_off("tcp", TLS13);
	copies_clear(&r.copies);
	ck_assert_int_eq(refused_by(&a2), CSSL__LINK_REFUSED__REASON__COPY_BAD);
	back_to_a1();
}
END_TEST

START_TEST(an_epoch_that_was_seen_is_refused_wherever_it_was_seen)
{
	hand_off("tcp", TLS13);
	ck_assert_int_eq(cluster_claim_epoch(_i ? &a1.cluster : &a2.cluster, &r.id, 2), 0);
	ck_assert_int_eq(refused_by(&a2), CSSL__LINK_REFUSED__REASON__EPOCH_OLD);
	back_to_a1();
}
END_TEST

START_TEST(a_listener_nobody_knows_is_refused)
{
	hand_off("tcp", TLS13);
	r.listener = "unknown";
	ck_assert_int_eq(refused_by(&a2), CSSL__LINK_REFUSED__REASON__UNKNOWN_LISTENER);
	r.listener = "tcp";
	back_to_a1();
}
END_TEST

/* The associated data of a copy has the listener. */
START_TEST(a_copy_of_another_listener_does_not_open)
{
	a1.cluster.broadcast = BROADCAST_LOST;
	hand_off("tcp", TLS13);
	r.listener = "http";
	ck_assert_int_eq(refused_by(&a2), CSSL__LINK_REFUSED__REASON__COPY_BAD);
	r.listener = "tcp";
	back_to_a1();
}
END_TEST

START_TEST(a_position_of_keys_from_before_the_copy_is_refused)
{
	a1.cluster.broadcast = BROADCAST_LOST;
	converse(TLS13);
	say_key_update(0);
	carry_until(r.position.read_generation == 1);
	hand_off_to(&a2);
	r.position.read_generation = 0;
	ck_assert_int_eq(refused_by(&a2), CSSL__LINK_REFUSED__REASON__COPY_BAD);
	r.position.read_generation = 1;
	back_to_a1();
}
END_TEST

START_TEST(a_write_sequence_that_goes_back_is_refused_as_unsafe)
{
	converse(tls_version(_i));
	hand_off_to(&a2);
	r.position.write_sequence--;
	ck_assert_int_eq(refused_by(&a2), CSSL__LINK_REFUSED__REASON__NONCE_UNSAFE);
	r.position.write_sequence++;
	back_to_a1();
}
END_TEST

START_TEST(a_backend_that_did_not_arrive_is_refused_and_goes_back_with_its_owner)
{
	converse(tls_version(_i));
	hand_off_to(&a2);
	ck_assert_int_eq(r.frozen->backend, CSSL__BACKEND_HALF__BACKEND_PASSED);
	ck_assert_uint_eq(a2.cluster.arrived_count, 1);
	a2.cluster.arrived_count = 0;
	struct passed_backend lost = a2.cluster.arrived[0];
	ck_assert_int_eq(refused_by(&a2), CSSL__LINK_REFUSED__REASON__NO_BACKEND);
	passed_backend_destroy(&lost);
	back_to_a1();
}
END_TEST

/* SSL_ID as @change spoils it. */
static void expect_malformed(void (*change)(Cssl__LinkSslId *m))
{
	struct fake_carrier *o = &r.owners[r.owner_count];
	Cssl__LinkSslId m = CSSL__LINK_SSL_ID__INIT;
	Cssl__Position p = CSSL__POSITION__INIT;

	o->carrier.ops = r.current->carrier.ops;
	o->ragent = &r;
	r.current = o;
	m.connection_id = (ProtobufCBinaryData){ CONNECTION_ID_LEN, r.id.bytes };
	m.epoch = 2;
	m.position = &p;
	m.listener = (char *)"tcp";
	m.endpoints = fake_endpoints();
	Cssl__Endpoints *endpoints = m.endpoints;
	change(&m);
	ck_assert_ptr_null(connection_adopt(&a2.worker, &o->carrier, &m));
	ck_assert_uint_eq(fake_said(&r, FRAME_REFUSED), 1);
	ck_assert_int_eq(o->refused, CSSL__LINK_REFUSED__REASON__INTERNAL);
	ck_assert_uint_eq(a2.worker.connections.count, 0);
	cssl__endpoints__free_unpacked(endpoints, NULL);
}

static void short_id(Cssl__LinkSslId *m)
{
	m->connection_id.len--;
}

static void no_position(Cssl__LinkSslId *m)
{
	m->position = NULL;
}

static void no_endpoints(Cssl__LinkSslId *m)
{
	m->endpoints = NULL;
}

static void epoch_of_a_handshake(Cssl__LinkSslId *m)
{
	m->epoch = 1;
}

static void epoch_beyond_all(Cssl__LinkSslId *m)
{
	m->epoch = UINT16_MAX + 1;
}

static void offset_beyond_a_record(Cssl__LinkSslId *m)
{
	m->position->offset = TLS_PLAINTEXT_MAX + 1;
}

static void (*const malformations[])(Cssl__LinkSslId *m) = { short_id, no_position, no_endpoints, epoch_of_a_handshake,
	epoch_beyond_all, offset_beyond_a_record };

START_TEST(a_malformed_ssl_id_is_refused)
{
	hand_off("tcp", TLS13);
	expect_malformed(malformations[_i]);
	ck_assert_int_eq(cluster_claim_epoch(&a2.cluster, &r.id, 2), 0); /* no epoch was used up */
}
END_TEST

/* --- positions --- */

/* Plaintext that the backend has is not given again. */
START_TEST(the_offset_is_skipped)
{
	hello("tcp", &a1, CSSL__LINK_OPEN__DISPOSITION__HAND_OFF, tls_version(_i));
	say_text("already there, the rest");
	carry_until(fake_said(&r, FRAME_HANDED_OFF));
	r.offset = strlen("already there, ");
	ck_assert_int_eq(adopt(&a2), 1);
	backend_accept();
	backend_expect_text("the rest");
	ping_pong();
}
END_TEST

START_TEST(an_offset_is_kept_until_a_record_uses_it)
{
	hello("http", &a1, CSSL__LINK_OPEN__DISPOSITION__HAND_OFF, TLS13);
	carry_until(fake_said(&r, FRAME_HANDED_OFF));
	r.offset = 4;
	ck_assert_int_eq(adopt(&a2), 1);
	hand_off_to(&a1);
	ck_assert_uint_eq(r.offset, 4);
	ck_assert_int_eq(adopt(&a1), 1);
	say_text("XXXX" GET);
	backend_accept();
	backend_expect_text(GET);
}
END_TEST

/* What waits for the client counts into the new owner's window. */
START_TEST(a_client_that_does_not_read_costs_one_window_however_often_it_moves)
{
	converse(tls_version(_i));
	manners.client = CLIENT_DOES_NOT_READ;
	ck_assert_int_gt(send(backend, lots, 300000, MSG_DONTWAIT), 200000);
	for (int i = 0; i < 5; i++) {
		carry_on();
		move_to(i % 2 ? &a1 : &a2);
	}
	carry_on();
	ck_assert_uint_le(r.queue_len, WINDOW);
	manners.client = CLIENT_READS;
	client_expect(lots, 200000);
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
	converse(tls_version(_i));
	manners.client = CLIENT_DOES_NOT_READ;
	ck_assert_int_gt(send(backend, lots, 300000, MSG_DONTWAIT), 200000);
	carry_on();
	hand_off_to(&a2);
	ck_assert_uint_gt(a2.cluster.arrived[0].from_backend_len, 0);
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

/* --- takeover --- */

static void lose_the_owner(void)
{
	connection_forget(fake_owner(&r), END_AGENT_LOST);
	r.current->connection = NULL;
	r.current->backend = CSSL__BACKEND_HALF__BACKEND_NONE;
	ck_assert_int_eq(backend_end(), -1); /* never an orderly end */
	ck_assert_uint_eq(a1.cluster.gone, 0);
}

START_TEST(a_successor_in_tls_1_3_says_key_update_first_and_waits)
{
	converse(TLS13);
	lose_the_owner();
	manners.commits = COMMITS_HELD;
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	backend_accept();
	backend_say_text("under new keys");
	carry_on();
	ck_assert_uint_eq(fake_said(&r, FRAME_DATA), 1);
	ck_assert(r.current->data_flags & FRAME_LAST_OF_WRITE_GENERATION);
	ck_assert_uint_eq(r.position.write_generation, 1);
	ck_assert_uint_eq(got_len, 0);
	manners.commits = COMMITS_TOLD;
	client_expect_text("under new keys");
}
END_TEST

START_TEST(a_successor_in_tls_1_2_goes_on_in_another_part_of_the_nonces)
{
	static const uint16_t suites[] = { TLS12_AES_128, TLS12_AES_256 };

	converse(&(struct memory_client_config){ .version = TLS1_2_VERSION, .suite = suites[_i] });
	lose_the_owner();
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	backend_accept();
	ping_pong();
}
END_TEST

START_TEST(what_could_repeat_a_nonce_is_refused)
{
	converse(&(struct memory_client_config){ .version = TLS1_2_VERSION, .suite = TLS12_CHACHA20 });
	lose_the_owner();
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 0);
	ck_assert_int_eq(r.current->refused, CSSL__LINK_REFUSED__REASON__NONCE_UNSAFE);
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
		if (suites[_i] >> 8 == 0x13 && move % 5 == 0)
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

int main(void)
{
	const struct connection_fact facts[] = {
		{ kept_makes_an_owner_and_leaves_a_copy, 2 },
		{ handed_off_freezes, 2 },
		{ what_came_with_finished_is_replayed_to_the_adopter, 2 },
		{ a_frozen_connection_hears_nothing_that_is_for_its_successor, 0 },
		{ without_migration_there_is_no_copy_and_no_move, 2 },
		{ each_source_of_the_live_part_makes_an_owner, 2 * SOURCES },
		{ a_broadcast_of_older_keys_gives_way_to_the_copy, 0 },
		{ an_older_copy_is_brought_up_to_date, 0 },
		{ a_copy_that_does_not_open_is_refused_and_the_frozen_owner_can_go_on, 2 },
		{ no_copy_at_all_is_refused, 0 },
		{ an_epoch_that_was_seen_is_refused_wherever_it_was_seen, 2 },
		{ a_listener_nobody_knows_is_refused, 0 },
		{ a_copy_of_another_listener_does_not_open, 0 },
		{ a_position_of_keys_from_before_the_copy_is_refused, 0 },
		{ a_write_sequence_that_goes_back_is_refused_as_unsafe, 2 },
		{ a_backend_that_did_not_arrive_is_refused_and_goes_back_with_its_owner, 2 },
		{ a_malformed_ssl_id_is_refused, FACTS_LEN(malformations) },
		{ the_offset_is_skipped, 2 },
		{ an_offset_is_kept_until_a_record_uses_it, 0 },
		{ a_client_that_does_not_read_costs_one_window_however_often_it_moves, 2 },
		{ an_open_conversation_goes_along, 2 },
		{ plaintext_that_was_read_and_not_sealed_goes_along, 2 },
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
		{ a_successor_in_tls_1_3_says_key_update_first_and_waits, 0 },
		{ a_successor_in_tls_1_2_goes_on_in_another_part_of_the_nonces, 2 },
		{ what_could_repeat_a_nonce_is_refused, 0 },
		{ a_move_at_any_record_boundary_changes_no_byte, SUITES * (RECORDS + 1) },
		{ fifty_moves_amid_a_stream_both_ways_change_no_byte, SUITES },
	};

	return connection_suite_run("connection_move", facts, FACTS_LEN(facts));
}
