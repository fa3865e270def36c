/* test_connection_proof.c: facts of an RAgent that is not believed: what it has to show to have a connection adopted,
 * and what no agent does for it whatever it claims. */
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "proto/sealed_copy.h"
#include "sslagent/connection/succession.h"
#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

/* --- what the tests do as a hostile RAgent --- */

enum { BY_BROADCAST, BY_COPY, BY_FROZEN, SOURCES };

/* A connection that a1 froze, and who is to adopt it from that source. */
static struct home *frozen_for(int by, const struct memory_client_config *config)
{
	a1.cluster.broadcast = by == BY_COPY ? BROADCAST_LOST : BROADCAST_HEARD;
	hand_off("tcp", &a1, config);
	return by == BY_FROZEN ? &a1 : &a2;
}

/* What RAgent had at a time. */
struct past {
	struct position position;
	struct sealed_blob *copy;
};

static struct past remember(void)
{
	const struct sealed_blob *now = r.copies.current;
	struct past p = { .position = r.position, .copy = malloc(sizeof *now + now->len) };

	memcpy(p.copy, now, sizeof *now + now->len);
	return p;
}

static void go_back_to(const struct past *p)
{
	copies_clear(&r.copies, NULL);
	r.copies.current = p->copy;
	r.position.write_generation = p->position.write_generation;
	r.position.write_sequence = p->position.write_sequence;
}

static Cssl__LinkRefused__Reason refused_for(struct home *home, Cssl__Cause cause)
{
	ck_assert_int_eq(fake_ragent_adopt(&r, &home->worker, cause), 0);
	return r.current->refused;
}

static void ask_and_answer(void)
{
	say_text(GET);
	if (backend < 0)
		backend_accept();
	backend_expect_text(GET);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
}

static void rest(void)
{
	fake_ragent_ask_rest(&r);
	ck_assert_uint_eq(fake_said(&r, FRAME_HANDED_OFF), 1);
	fake_ragent_detach(&r);
	if (backend >= 0)
		close(backend);
	backend = -1;
}

static void wake(struct home *home)
{
	ck_assert_int_eq(fake_ragent_adopt(&r, &home->worker, CSSL__CAUSE__CAUSE_WAKE), 1);
}

/* --- identity --- */

START_TEST(another_listener_is_refused_whatever_the_source)
{
	int by = _i % SOURCES;
	struct home *home = frozen_for(by, tls_version(_i / SOURCES));

	r.listener = "http";
	ck_assert_int_eq(refused_for(home, CSSL__CAUSE__CAUSE_HAND_OFF), CSSL__LINK_REFUSED__REASON__COPY_BAD);
	/* the copy of another listener does not even open */
	ck_assert_uint_eq(counted(by == BY_COPY ? COUNT_ADOPTS_UNPROVEN : COUNT_ADOPTS_OTHER_LISTENER), 1);
	carry_on();
	ck_assert(!backend_waits());
	r.listener = "tcp";
	ck_assert_int_eq(adopt(home), 1);
	ping_pong();
}
END_TEST

/* --- proof --- */

static void without_a_copy(void)
{
	copies_clear(&r.copies, NULL);
}

/* Somebody who knows the connection's id, and how copies look. */
static void with_a_made_up_copy(void)
{
	r.copies.current->data[10] ^= 1; /* in the nonce */
}

static void with_a_short_copy(void)
{
	r.copies.current->len = 20;
}

static void (*const unproven[])(void) = { without_a_copy, with_a_made_up_copy, with_a_short_copy };

START_TEST(who_was_not_given_the_connection_gets_nothing_whatever_the_source)
{
	struct home *home = frozen_for(_i % SOURCES, TLS13);

	unproven[_i / SOURCES]();
	ck_assert_int_eq(refused_for(home, CSSL__CAUSE__CAUSE_HAND_OFF), CSSL__LINK_REFUSED__REASON__COPY_BAD);
	ck_assert_int_eq(refused_for(home, CSSL__CAUSE__CAUSE_TAKEOVER), CSSL__LINK_REFUSED__REASON__COPY_BAD);
	ck_assert_uint_eq(counted(COUNT_ADOPTS_UNPROVEN), 2);
	ck_assert_int_eq(fake_cluster_try(&home->cluster, &r.id, 2), 0); /* no epoch was used up */
}
END_TEST

/* Each export has another token, so the state that is told is the one that is taken. */
START_TEST(the_copy_of_an_earlier_export_is_no_proof_for_a_later_one)
{
	keep("http", &a1, TLS13);
	struct past kept = remember();
	ask_and_answer();
	hand_off_to(&a2);
	copies_clear(&r.copies, NULL);
	r.copies.current = kept.copy;
	ck_assert_int_eq(refused_for(&a1, CSSL__CAUSE__CAUSE_MOVE), CSSL__LINK_REFUSED__REASON__COPY_BAD);
	ck_assert_uint_eq(counted(COUNT_ADOPTS_UNPROVEN), 1);
}
END_TEST

START_TEST(the_id_of_a_connection_is_not_used_twice)
{
	hello("tcp", &a1, _i ? CSSL__LINK_OPEN__DISPOSITION__HAND_OFF : CSSL__LINK_OPEN__DISPOSITION__KEEP, TLS13);
	fake_cluster_owned(&a2.cluster, &r.id, 1);
	expect_end(END_INTERNAL, CARRIER_ABORT);
	ck_assert_uint_eq(counted(COUNT_EPOCHS_REFUSED), 1);
}
END_TEST

/* --- sequences --- */

/* It rested at a1, went on at a2, and stopped there: to rest, by its end, or it is still owned. */
static struct past seal_on_elsewhere(int how, const struct memory_client_config *config)
{
	keep("http", &a1, config);
	ask_and_answer();
	rest();
	struct past p = remember();
	wake(&a2);
	ask_and_answer();
	if (how == 1)
		rest();
	if (how == 2)
		connection_forget(fake_owner(&r), END_CLIENT_CLOSED);
	if (how == 2)
		r.current->connection = NULL;
	return p;
}

START_TEST(a_state_that_was_continued_is_not_continued_again)
{
	static const Cssl__Cause causes[] = { CSSL__CAUSE__CAUSE_WAKE, CSSL__CAUSE__CAUSE_HAND_OFF,
		CSSL__CAUSE__CAUSE_MOVE, CSSL__CAUSE__CAUSE_DRAIN };
	struct past p = seal_on_elsewhere(_i % 3, tls_version(_i / 3));

	go_back_to(&p);
	for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
		ck_assert_int_eq(refused_for(&a1, causes[i]), CSSL__LINK_REFUSED__REASON__EPOCH_OLD);
	ck_assert_uint_eq(counted(COUNT_ADOPTS_STALE), 4);
}
END_TEST

/* Up to where a2 sealed is known from its freeze and its end, and while it owns where it began. */
START_TEST(a_takeover_does_not_begin_before_what_was_sealed)
{
	struct past p = seal_on_elsewhere(_i, TLS13);

	go_back_to(&p);
	if (_i == 0)
		r.position.write_sequence--;
	ck_assert_int_eq(refused_for(&a1, CSSL__CAUSE__CAUSE_TAKEOVER), CSSL__LINK_REFUSED__REASON__NONCE_UNSAFE);
	ck_assert_uint_eq(counted(COUNT_ADOPTED), 1);
}
END_TEST

/* AES-GCM: no nonce of another epoch comes again. */
START_TEST(in_tls_12_a_takeover_may)
{
	struct past p = seal_on_elsewhere(1 + _i, TLS12);

	go_back_to(&p);
	ck_assert_int_eq(fake_ragent_adopt(&r, &a1.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	ck_assert_uint_eq(counted(COUNT_ADOPTED), 2);
}
END_TEST

START_TEST(a_takeover_does_not_go_back_behind_new_keys)
{
	keep("http", &a1, TLS13);
	struct past p = remember();
	say_key_update(1);
	carry_until(r.position.write_generation == 1 && live_due(fake_owner(&r)->live) == LIVE_NOTHING_DUE);
	ck_assert_uint_eq(a1.cluster.adopted, 1); /* it told so */
	fake_ragent_lose(&r);
	go_back_to(&p);
	r.position.now.read_generation = 0;
	r.position.write_sequence += 1000;
	ck_assert_int_eq(refused_for(&a2, CSSL__CAUSE__CAUSE_TAKEOVER), CSSL__LINK_REFUSED__REASON__NONCE_UNSAFE);
	ck_assert_uint_eq(counted(COUNT_SEQUENCES_REFUSED), 1);
}
END_TEST

/* Also when there is no memory to read what the handshake agreed on. In TLS 1.2 the epoch makes nonces fresh. */
START_TEST(who_is_superseded_does_not_go_back_behind_what_it_sealed)
{
	const int is_tls13 = _i & 1;

	keep("http", &a1, tls_version(is_tls13));
	ask_and_answer();
	struct connection *c = fake_owner(&r);
	const struct seen_mark sealed = succession_mark(c);
	if (_i & 2)
		memset(c->facts.encoded, 0xff, c->facts.len);
	connection_superseded(&a1.worker, &r.id, 2);
	ck_assert_uint_eq(counted(COUNT_OWNERS_SUPERSEDED), 1);
	const struct seen_claim below = { .at = { 3, 0, sealed.write_sequence - 1 }, .start = CLAIM_IN_DOUBT };
	ck_assert_int_eq(cluster_claim(&a1.cluster, &r.id, &below), is_tls13 ? CSSL_E_UNSAFE : 0);
}
END_TEST

/* --- doubt --- */

static const Cssl__Cause continuing[] = { CSSL__CAUSE__CAUSE_WAKE, CSSL__CAUSE__CAUSE_HAND_OFF, CSSL__CAUSE__CAUSE_MOVE,
	CSSL__CAUSE__CAUSE_DRAIN };

/* The owner did not freeze; what it sealed may never have arrived. */
START_TEST(without_a_freeze_new_keys_come_first_whatever_the_cause)
{
	keep("http", &a1, TLS13);
	ask_and_answer();
	fake_ragent_lose(&r);
	backend = -1;
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, continuing[_i]), 1);
	ck_assert_uint_eq(counted(COUNT_ADOPTED_IN_DOUBT), 1);
	ck_assert_uint_eq(counted(COUNT_KEY_UPDATES_SENT), 1);
	ck_assert(r.current->data_flags & FRAME_LAST_OF_WRITE_GENERATION);
	ask_and_answer();
}
END_TEST

START_TEST(without_a_freeze_tls_1_2_goes_on_in_another_part_of_the_nonces)
{
	keep("http", &a1, TLS12);
	ask_and_answer();
	fake_ragent_lose(&r);
	backend = -1;
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, continuing[_i]), 1);
	ask_and_answer();
}
END_TEST

START_TEST(without_a_freeze_what_could_repeat_a_nonce_is_refused)
{
	keep("http", &a1, &(struct memory_client_config){ .version = TLS1_2_VERSION, .suite = TLS12_CHACHA20 });
	fake_ragent_lose(&r);
	ck_assert_int_eq(refused_for(&a2, continuing[_i]), CSSL__LINK_REFUSED__REASON__NONCE_UNSAFE);
}
END_TEST

START_TEST(an_honest_hand_off_or_rest_is_not_in_doubt)
{
	keep("http", &a1, tls_version(_i));
	ask_and_answer();
	rest();
	wake(&a2);
	ask_and_answer();
	close(backend);
	backend = -1;
	hand_off_to(&a1);
	ck_assert_int_eq(adopt(&a1), 1);
	ask_and_answer();
	ck_assert_uint_eq(counted(COUNT_ADOPTED_IN_DOUBT), 0);
	ck_assert_uint_eq(counted(COUNT_KEY_UPDATES_SENT), 0);
}
END_TEST

/* A takeover that had no room to say its KeyUpdate, and then a drain. The next agent heard only of the first owner. */
START_TEST(a_key_update_owed_since_a_takeover_is_said_by_whoever_owns_next)
{
	keep("http", &a1, TLS13);
	ask_and_answer();
	fake_ragent_lose(&r);
	backend = -1;
	r.queued += WINDOW; /* waits for the client */
	ck_assert_int_eq(fake_ragent_adopt(&r, &a1.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	r.queued -= WINDOW;
	ck_assert_uint_eq(counted(COUNT_KEY_UPDATES_SENT), 0);
	a1.cluster.broadcast = BROADCAST_LOST;
	ck_assert_uint_gt(a2.cluster.heard_count, 0);
	hand_off_to(&a2);
	ck_assert_int_eq(adopt(&a2), 1);
	ck_assert_int_eq(r.current->source, CSSL__LINK_ADOPTED__SOURCE__FROM_COPY);
	ck_assert_uint_eq(counted(COUNT_KEY_UPDATES_SENT), 1);
	ck_assert(r.current->data_flags & FRAME_LAST_OF_WRITE_GENERATION);
	ask_and_answer();
}
END_TEST

/* --- memory --- */

/* The copy as an agent would have made it that has heard no other agent's clock. */
static void to_undated(void)
{
	struct sess_obj obj;
	uint16_t epoch;
	uint8_t bytes[4096];

	ck_assert_int_eq(sealed_copy_open(&agents_key, &r.id, r.listener, r.copies.current->data, r.copies.current->len,
				 0, &obj, &epoch),
		0);
	memset(obj.live->token, 0, sizeof obj.live->token);
	obj.live->exported = EXPORT_WHILE_OWNED;
	obj.live->made_ms = 0;
	ptrdiff_t len = sealed_copy_seal(&agents_key, &obj, bytes, sizeof bytes);
	ck_assert_int_gt(len, 0);
	sess_obj_destroy(&obj);
	ck_assert_int_eq(copies_offer(&r.copies, NULL,
				 &(struct copy_offer){ bytes, (size_t)len, r.copies.current->read_generation,
					 r.copies.current->write_generation, COPY_OF_LIVE }),
		0);
}

START_TEST(a_part_without_a_time_is_refused_where_it_may_be_forgotten)
{
	a1.cluster.broadcast = BROADCAST_LOST;
	hand_off("tcp", &a1, TLS13);
	to_undated();
	a2.cluster.now_ms += FAKE_KEEP_MS;
	ck_assert_int_eq(refused_for(&a2, CSSL__CAUSE__CAUSE_HAND_OFF), CSSL__LINK_REFUSED__REASON__COPY_BAD);
	ck_assert_uint_eq(counted(COUNT_ADOPTS_FORGOTTEN), 1);
}
END_TEST

/* What it was given before its restart is believed for a while, but not continued. */
START_TEST(an_agent_that_knows_nothing_of_a_connection_is_in_doubt_and_later_refuses)
{
	a1.cluster.broadcast = BROADCAST_LOST;
	hand_off("tcp", &a1, TLS13);
	fake_cluster_forget(&a2.cluster);
	a2.cluster.now_ms += _i ? FAKE_KEEP_MS : 0;
	if (_i) {
		ck_assert_int_eq(refused_for(&a2, CSSL__CAUSE__CAUSE_HAND_OFF), CSSL__LINK_REFUSED__REASON__COPY_BAD);
		ck_assert_uint_eq(counted(COUNT_ADOPTS_FORGOTTEN), 1);
		return;
	}
	ck_assert_int_eq(adopt(&a2), 1);
	ck_assert_uint_eq(counted(COUNT_ADOPTED_IN_DOUBT), 1);
	ping_pong();
}
END_TEST

UNIT(connection_proof)
{
	const struct connection_fact facts[] = {
		{ another_listener_is_refused_whatever_the_source, 2 * SOURCES },
		{ who_was_not_given_the_connection_gets_nothing_whatever_the_source, FACTS_LEN(unproven) * SOURCES },
		{ the_copy_of_an_earlier_export_is_no_proof_for_a_later_one, 0 },
		{ the_id_of_a_connection_is_not_used_twice, 2 },
		{ a_state_that_was_continued_is_not_continued_again, 6 },
		{ a_takeover_does_not_begin_before_what_was_sealed, 3 },
		{ in_tls_12_a_takeover_may, 2 },
		{ a_takeover_does_not_go_back_behind_new_keys, 0 },
		{ who_is_superseded_does_not_go_back_behind_what_it_sealed, 4 },
		{ without_a_freeze_new_keys_come_first_whatever_the_cause, FACTS_LEN(continuing) },
		{ without_a_freeze_tls_1_2_goes_on_in_another_part_of_the_nonces, FACTS_LEN(continuing) },
		{ without_a_freeze_what_could_repeat_a_nonce_is_refused, FACTS_LEN(continuing) },
		{ an_honest_hand_off_or_rest_is_not_in_doubt, 2 },
		{ a_key_update_owed_since_a_takeover_is_said_by_whoever_owns_next, 0 },
		{ a_part_without_a_time_is_refused_where_it_may_be_forgotten, 1 },
		{ an_agent_that_knows_nothing_of_a_connection_is_in_doubt_and_later_refuses, 2 },
	};

	return connection_suite_run("connection_proof", facts, FACTS_LEN(facts));
}
