/* test_spares.c: facts of a spare that takes the place of a lost backup, and of servers that come back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/smtpproxy/queue/queue_servers.h"
#include "tests/unit/unit.h"

#define RUN_C "cccccccccccccccccccccccccccccccccccccccc"
#define OTHER "22222222222222222222222222222222"
#define FIRST 2u /* the first spare */

/* It answers. */
static void is_seen(unsigned server, const char *run_id)
{
	struct backup *p = &q->spares.probes[server];

	p->state = BACKUP_SEEN;
	p->asked_ms = now_ms;
	p->sight = (struct sight){ .state = SIGHT_EMPTY };
	memcpy(p->run_id, run_id, sizeof p->run_id);
}

static void is_marked(unsigned server, const char *run_id, uint64_t version)
{
	struct marker *m = &q->spares.probes[server].sight.marker;

	is_seen(server, run_id);
	q->spares.probes[server].sight.state = SIGHT_MARKED;
	m->epoch = EPOCH - 1;
	m->version = version;
	memcpy(m->nonce, OTHER, sizeof OTHER);
	memcpy(m->run_id, run_id, RUN_ID_LEN + 1);
}

/* a is in sync, and its marker leaves b behind, which is lost. There are two spares. */
static void begin_with_spares(void)
{
	begin();
	q->conf.spare_count = 2;
	q->conf.spares[0].path_count = q->conf.spares[1].path_count = 1;
	spares_begin(q);
	backup_give_up(b, "the test says so");
	b->paths[0].link.state = REDIS_LINK_IDLE;
	marker_left_of(&q->shared.marker, 0, RUN_A)->version = 5;
	marker_left_of(&q->shared.marker, 1, RUN_B)->version = 4;
	spares_tick(q, now_ms);
}

/* Time passes; the spares that answered answer still. */
static void passes(int64_t ms)
{
	now_ms += ms;
	spares_tick(q, now_ms);
}

static void has_server(unsigned server)
{
	ck_assert_uint_eq(q->spares.at[1], server);
	ck_assert_uint_eq(q->spares.at[0], 0);
}

/* It comes back. */
static bool is_claimed(struct backup *s)
{
	bool claimed;

	connected(s, RUN_B);
	s->state = BACKUP_SEEN;
	s->asked_ms = now_ms;
	servers_consider(q);
	claimed = s->state == BACKUP_CLAIMING;
	s->state = BACKUP_AWAY;
	return claimed;
}

START_TEST(lost_backup_is_replaced_after_its_time)
{
	is_seen(FIRST, RUN_C);
	passes(59999);
	has_server(1);
	passes(2);
	has_server(FIRST);
	ck_assert_uint_eq(q->stats.backups_replaced, 1);
	backup_tick(b, now_ms);
	ck_assert_ptr_eq(b->conf, &q->conf.spares[0]);
	ck_assert_int_eq(b->state, BACKUP_AWAY);
	ck_assert_str_eq(b->run_id, "");
}
END_TEST

START_TEST(server_that_was_replaced_is_named_by_the_next_marker)
{
	const struct marker m = { .version = 4, .run_id = RUN_B };

	is_seen(FIRST, RUN_C);
	passes(60001);
	ck_assert_int_eq(marker_is_replaced(q->shared.marker.replaced, &m), 1);
}
END_TEST

START_TEST(time_in_which_the_gateway_was_stopped_does_not_count)
{
	is_seen(FIRST, RUN_C);
	q->ticked_ms = now_ms;
	now_ms += 100000;
	uv_run(worker_loop(q->shared.worker), UV_RUN_NOWAIT); /* a tick */
	has_server(1);
}
END_TEST

START_TEST(backup_that_answers_in_time_keeps_its_place)
{
	is_seen(FIRST, RUN_C);
	passes(50000);
	b->state = BACKUP_SEEN;
	passes(1000);
	b->state = BACKUP_AWAY;
	passes(59000);
	has_server(1);
}
END_TEST

START_TEST(nothing_is_replaced_while_no_backup_is_in_sync)
{
	is_seen(FIRST, RUN_C);
	a->state = BACKUP_FILLING;
	passes(100000);
	has_server(1);
}
END_TEST

/* If the gateway and this server died now, nobody would know that the lost one is behind. */
START_TEST(nothing_is_replaced_before_the_marker_without_the_lost_backup_is_answered)
{
	is_seen(FIRST, RUN_C);
	q->shared.marker.version++;
	passes(100000);
	has_server(1);
	marker_left_of(&q->shared.marker, 0, RUN_A)->version = q->shared.marker.version;
	passes(1);
	has_server(FIRST);
}
END_TEST

START_TEST(server_that_may_hold_messages_that_no_other_has_is_waited_for)
{
	is_seen(FIRST, RUN_C);
	memcpy(q->shared.marker.apart[1], RUN_B, sizeof RUN_B);
	passes(100000);
	has_server(1);
	q->shared.marker.apart[1][0] = '\0';
	q->shared.marker.unread = 2;
	passes(1);
	has_server(1);
	q->shared.marker.unread = 0;
	passes(1);
	has_server(FIRST);
}
END_TEST

START_TEST(absent_member_gets_its_place_at_whatever_address_it_answers)
{
	memcpy(q->shared.marker.apart[1], RUN_B, sizeof RUN_B);
	memcpy(b->run_id, RUN_C, sizeof RUN_C);
	is_seen(FIRST + 1, RUN_B);
	passes(1);
	has_server(FIRST + 1);
}
END_TEST

START_TEST(place_that_waits_for_an_absent_member_takes_no_other_server)
{
	memcpy(q->shared.marker.apart[1], RUN_A, sizeof RUN_A);
	ck_assert_int_eq(is_claimed(b), 0);
	is_seen(FIRST, RUN_C);
	is_seen(FIRST + 1, RUN_C);
	ck_assert_int_eq(is_claimed(b), 1); /* every server answers: it is gone */
	q->shared.marker.apart[1][0] = '\0';
	q->spares.probes[FIRST].state = BACKUP_AWAY;
	ck_assert_int_eq(is_claimed(b), 1);
}
END_TEST

START_TEST(spare_that_does_not_answer_is_skipped)
{
	passes(100000);
	has_server(1);
	is_seen(FIRST + 1, RUN_C);
	passes(1);
	has_server(FIRST + 1);
}
END_TEST

START_TEST(spare_that_another_gateway_claimed_later_is_skipped)
{
	is_seen(FIRST, RUN_C);
	q->spares.probes[FIRST].sight.marker.epoch = EPOCH;
	passes(100000);
	has_server(1);
	is_seen(FIRST + 1, RUN_C);
	passes(1);
	has_server(FIRST + 1);
}
END_TEST

START_TEST(full_spare_gives_its_place_to_the_next_one)
{
	is_seen(FIRST, RUN_C);
	passes(60001);
	has_server(FIRST);
	backup_tick(b, now_ms);
	is_seen(FIRST + 1, RUN_C);
	for (int n = 0; n < 13; n++) {
		b->state = BACKUP_FILLING;
		b->fill_after_ms = now_ms + 5000;
		passes(5000);
	}
	has_server(FIRST + 1);
}
END_TEST

START_TEST(both_backups_are_never_replaced_at_once)
{
	is_seen(FIRST, RUN_C);
	is_seen(FIRST + 1, RUN_C);
	backup_give_up(a, "the test says so");
	passes(100000);
	has_server(1);
}
END_TEST

START_TEST(server_that_went_on_by_itself_is_owed_its_place)
{
	is_seen(FIRST, RUN_C);
	passes(60001);
	backup_tick(b, now_ms);
	is_marked(1, RUN_B, 7);
	passes(1);
	has_server(1); /* at once: it is read next */
	passes(1);
	ck_assert_int_eq(queue_any_unread(q), 0);
}
END_TEST

START_TEST(server_that_is_owed_its_place_waits_until_the_other_backup_is_in_sync)
{
	is_seen(FIRST, RUN_C);
	passes(60001);
	a->state = BACKUP_FILLING;
	is_marked(1, RUN_B, 7);
	passes(1);
	has_server(FIRST);
	ck_assert_int_eq(queue_any_unread(q), 1);
}
END_TEST

START_TEST(lost_server_that_comes_back_as_it_was_is_not_believed)
{
	is_seen(FIRST, RUN_C);
	passes(60001);
	is_marked(1, RUN_B, 4);
	passes(1);
	has_server(FIRST);
	ck_assert_int_eq(q->spares.owed != 0, 0);
}
END_TEST

/* Another gateway owns the spare, and has read what this one marked last, under version 5. */
static void is_owned_by_another(const char *owners)
{
	struct marker *m = &q->spares.probes[FIRST].sight.marker;

	q->joining.marked_version = 5;
	is_marked(FIRST, RUN_C, 9);
	m->epoch = EPOCH + 1;
	memcpy(m->by, OTHER, sizeof OTHER);
	snprintf(m->owners, sizeof m->owners, "%s%s", q->shared.nonce, owners);
}

START_TEST(gateway_ends_if_another_one_goes_on_with_servers_that_have_no_place_here)
{
	is_owned_by_another("0000000000000005");
	backup_give_up(a, "the test says so");
	passes(1);
	ck_assert_int_eq(q->state, QUEUE_DEPOSED);
}
END_TEST

START_TEST(gateway_stays_if_the_other_one_has_not_read_all_that_was_marked)
{
	is_owned_by_another("0000000000000004");
	backup_give_up(a, "the test says so");
	passes(1);
	ck_assert_int_eq(q->state, QUEUE_ACTIVE);
}
END_TEST

START_TEST(server_of_the_queue_itself_is_not_owed_a_place)
{
	is_marked(FIRST, RUN_C, 9);
	q->spares.probes[FIRST].sight.marker.epoch = EPOCH;
	memcpy(q->spares.probes[FIRST].sight.marker.nonce, q->shared.nonce, sizeof q->shared.nonce);
	passes(1);
	ck_assert_int_eq(q->spares.owed != 0, 0);
}
END_TEST

START_TEST(queue_without_spares_never_replaces)
{
	q->conf.spare_count = 0;
	q->spares.count = BACKUPS;
	passes(100000);
	ck_assert_ptr_null(b->next);
	ck_assert_ptr_eq(spares_server(q, 1), b);
	ck_assert_int_eq(spares_choose(q), 0);
	ck_assert_int_eq(is_claimed(b), 1);
}
END_TEST

START_TEST(starting_gateway_gives_the_place_to_the_server_that_the_marker_names)
{
	q->state = QUEUE_LOOKING;
	a->state = BACKUP_SEEN;
	a->sight = (struct sight){ .state = SIGHT_MARKED, .marker = { .version = 5, .run_id = RUN_A } };
	memcpy(a->sight.marker.members[0], RUN_A, sizeof RUN_A);
	memcpy(a->sight.marker.members[1], RUN_C, sizeof RUN_C);
	is_seen(FIRST + 1, RUN_C);
	ck_assert_int_eq(spares_choose(q), 1);
	has_server(FIRST + 1);
	ck_assert_uint_eq(q->stats.backups_replaced, 0);
	backup_tick(b, now_ms);
	ck_assert_int_eq(spares_choose(q), 1); /* it has time to answer */
	now_ms += 2000;
	ck_assert_int_eq(spares_choose(q), 0);
}
END_TEST

/* It was replaced, and was away while the keys changed. */
START_TEST(server_without_a_place_that_was_left_behind_is_seen_with_another_key)
{
	struct backup *p = &q->spares.probes[FIRST];
	const struct marker_left l = { .version = 4, .run_id = RUN_C };

	connected(p, RUN_C);
	shows_another_key(p, RUN_C, "4");
	ck_assert_int_eq(p->state, BACKUP_AWAY);
	marker_note_replaced(q->shared.marker.replaced, &l);
	connected(p, RUN_C);
	shows_another_key(p, RUN_C, "4");
	ck_assert_int_eq(p->state, BACKUP_SEEN);
}
END_TEST

UNIT(spares)
{
	const TTest *facts[] = {
		lost_backup_is_replaced_after_its_time,
		server_that_was_replaced_is_named_by_the_next_marker,
		time_in_which_the_gateway_was_stopped_does_not_count,
		backup_that_answers_in_time_keeps_its_place,
		nothing_is_replaced_while_no_backup_is_in_sync,
		nothing_is_replaced_before_the_marker_without_the_lost_backup_is_answered,
		server_that_may_hold_messages_that_no_other_has_is_waited_for,
		absent_member_gets_its_place_at_whatever_address_it_answers,
		place_that_waits_for_an_absent_member_takes_no_other_server,
		spare_that_does_not_answer_is_skipped,
		spare_that_another_gateway_claimed_later_is_skipped,
		full_spare_gives_its_place_to_the_next_one,
		both_backups_are_never_replaced_at_once,
		server_that_went_on_by_itself_is_owed_its_place,
		server_that_is_owed_its_place_waits_until_the_other_backup_is_in_sync,
		lost_server_that_comes_back_as_it_was_is_not_believed,
		gateway_ends_if_another_one_goes_on_with_servers_that_have_no_place_here,
		gateway_stays_if_the_other_one_has_not_read_all_that_was_marked,
		server_of_the_queue_itself_is_not_owed_a_place,
		server_without_a_place_that_was_left_behind_is_seen_with_another_key,
		queue_without_spares_never_replaces,
		starting_gateway_gives_the_place_to_the_server_that_the_marker_names,
	};
	return suite_run_with("spares", begin_with_spares, facts, SUITE_LEN(facts));
}
