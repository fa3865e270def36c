/* test_connection_adopt.c: facts of SSL_ID: the sources of the live part, refusals that leave nothing, positions, and
 * what a successor may seal after a loss. */
#include <string.h>
#include <sys/socket.h>

#include "proto/error.h"
#include "proto/scratch.h"
#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

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
	hand_off("tcp", &a1, tls_version(_i / SOURCES));
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
	carry_until(r.position.now.read_generation == 1);
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
	carry_until(r.position.now.read_generation == 2 && r.position.write_generation == 1);
	hand_off_to(&a2);
	copies_clear(&r.copies, NULL);
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
	ping_pong();
}

START_TEST(a_copy_that_does_not_open_is_refused_and_the_frozen_owner_can_go_on)
{
	a1.cluster.broadcast = BROADCAST_LOST;
	hand_off("tcp", &a1, tls_version(_i));
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
	hand_off("tcp", &a1, TLS13);
	struct sealed_blob *given = r.copies.current;
	r.copies.current = NULL;
	ck_assert_int_eq(refused_by(&a2), CSSL__LINK_REFUSED__REASON__COPY_BAD);
	r.copies.current = given;
	back_to_a1();
}
END_TEST

START_TEST(an_epoch_that_was_seen_is_refused_wherever_it_was_seen)
{
	hand_off("tcp", &a1, TLS13);
	fake_cluster_owned(_i ? &a1.cluster : &a2.cluster, &r.id, 2);
	ck_assert_int_eq(refused_by(&a2), CSSL__LINK_REFUSED__REASON__EPOCH_OLD);
	ck_assert_uint_eq(counted(COUNT_EPOCHS_REFUSED), 1);
	ck_assert_int_eq(refused_by(&a1), CSSL__LINK_REFUSED__REASON__EPOCH_OLD); /* what it froze had a later owner */
	ck_assert_uint_eq(counted(COUNT_ADOPTS_STALE), 1);
}
END_TEST

START_TEST(a_listener_nobody_knows_is_refused)
{
	hand_off("tcp", &a1, TLS13);
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
	hand_off("tcp", &a1, TLS13);
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
	carry_until(r.position.now.read_generation == 1);
	hand_off_to(&a2);
	r.position.now.read_generation = 0;
	ck_assert_int_eq(refused_by(&a2), CSSL__LINK_REFUSED__REASON__COPY_BAD);
	r.position.now.read_generation = 1;
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
	ck_assert_uint_eq(a2.worker.table.count, 0);
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
	hand_off("tcp", &a1, TLS13);
	expect_malformed(malformations[_i]);
	ck_assert_int_eq(fake_cluster_try(&a2.cluster, &r.id, 2), 0); /* no epoch was used up */
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

/* --- takeover --- */

static void lose_the_owner(const struct memory_client_config *config)
{
	keep("http", &a1, config);
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	fake_ragent_lose(&r);
	ck_assert_int_eq(backend_end(), -1); /* never an orderly end */
	ck_assert_uint_eq(a1.cluster.gone, 0);
}

START_TEST(a_successor_in_tls_1_3_says_key_update_first_and_waits)
{
	lose_the_owner(TLS13);
	manners.commits = COMMITS_HELD;
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	say_text(GET);
	backend_accept();
	backend_say_text(ANSWER);
	carry_on();
	ck_assert_uint_eq(fake_said(&r, FRAME_DATA), 1);
	ck_assert(r.current->data_flags & FRAME_LAST_OF_WRITE_GENERATION);
	ck_assert_uint_eq(r.position.write_generation, 1);
	ck_assert_uint_eq(got_len, 0);
	manners.commits = COMMITS_TOLD;
	client_expect_text(ANSWER);
}
END_TEST

START_TEST(a_successor_in_tls_1_2_goes_on_in_another_part_of_the_nonces)
{
	static const uint16_t suites[] = { TLS12_AES_128, TLS12_AES_256 };

	lose_the_owner(&(struct memory_client_config){ .version = TLS1_2_VERSION, .suite = suites[_i] });
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	say_text(GET);
	backend_accept();
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
}
END_TEST

START_TEST(what_could_repeat_a_nonce_is_refused)
{
	lose_the_owner(&(struct memory_client_config){ .version = TLS1_2_VERSION, .suite = TLS12_CHACHA20 });
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 0);
	ck_assert_int_eq(r.current->refused, CSSL__LINK_REFUSED__REASON__NONCE_UNSAFE);
}
END_TEST

UNIT(connection_adopt)
{
	const struct connection_fact facts[] = {
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
		{ a_successor_in_tls_1_3_says_key_update_first_and_waits, 0 },
		{ a_successor_in_tls_1_2_goes_on_in_another_part_of_the_nonces, 2 },
		{ what_could_repeat_a_nonce_is_refused, 0 },
	};

	return connection_suite_run("connection_adopt", facts, FACTS_LEN(facts));
}
