/* test_servers.c: facts of a backup that comes back while messages come and go. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/smtpproxy/queue/queue_servers.h"
#include "tests/unit/unit.h"

static void holds_old_ones(struct backup *s, unsigned count)
{
	char field[ITEM_FIELD_LEN];

	for (uint64_t n = 1; n <= count; n++) {
		item_field(ITEM_MESSAGE, n, field);
		s->shared->ops->on_item(s, field, sizeof field, NULL, 0);
	}
	s->shared->ops->on_read(s);
	backup_send(s);
}

/* Both are told that b counts. */
static void joins(void)
{
	backup_send(a);
	answers(a);
	backup_send(b);
	answers(b);
}

START_TEST(item_that_comes_while_a_backup_drops_old_ones_goes_to_that_backup_too)
{
	holds_old_ones(b, 2000);
	ck_assert_int_eq(b->state, BACKUP_FILLING);
	comes(5000);
	ck_assert_uint_eq(asked[1][CHANGE_PUT], 0);
	answers(b);
	joins();
	ck_assert_int_eq(b->state, BACKUP_IN_SYNC);
	ck_assert_uint_eq(asked[1][CHANGE_PUT], 1);
}
END_TEST

START_TEST(item_that_comes_before_the_tick_that_joins_a_backup_goes_to_that_backup_too)
{
	b->shared->ops->on_read(b);
	comes(5000);
	servers_consider(q);
	joins();
	ck_assert_int_eq(b->state, BACKUP_IN_SYNC);
	ck_assert_uint_eq(asked[1][CHANGE_PUT], 1);
}
END_TEST

START_TEST(item_that_comes_behind_the_deletion_of_the_last_one_goes_to_a_backup_that_is_filled)
{
	struct item *last = comes(5000);

	b->shared->ops->on_read(b);
	stock_remove(q, last);
	comes(5001);
	servers_consider(q);
	joins();
	ck_assert_int_eq(b->state, BACKUP_IN_SYNC);
	ck_assert_uint_eq(asked[1][CHANGE_PUT], 1);
}
END_TEST

/* It holds nothing. */
static void shows_its_items(struct backup *s)
{
	redisReply end = { .type = REDIS_REPLY_STRING, .str = (char[]){ "0" }, .len = 1 };
	redisReply none = { .type = REDIS_REPLY_ARRAY };
	redisReply bytes = { .type = REDIS_REPLY_INTEGER };
	redisReply *parts[] = { &end, &none, &bytes };
	const redisReply reply = {
		.type = REDIS_REPLY_ARRAY, .elements = s->reading.what == BACKUP_READS_NAMES ? 3 : 2, .element = parts
	};

	backup_answered(s, ASKED_SCAN, now_ms, &reply);
}

/* b comes, and went on under another gateway. */
static void comes_as_a_branch(uint64_t version)
{
	const redisReply done = { .type = REDIS_REPLY_INTEGER };
	struct marker *m = &b->sight.marker;

	b->state = BACKUP_SEEN;
	b->sight.state = SIGHT_MARKED;
	*m = (struct marker){ .epoch = EPOCH - 1, .version = version, .run_id = RUN_B, .members = { "", RUN_B } };
	servers_consider(q);
	ck_assert_int_eq(b->state, BACKUP_CLAIMING);
	backup_look_answered(b, ASKED_CLAIM, &done);
	shows_its_items(b); /* as a branch */
	ck_assert_int_eq(b->state, BACKUP_COMPARING);
	shows_its_items(b);
}

START_TEST(marker_is_above_that_of_a_branch_that_joins)
{
	comes_as_a_branch(12);
	backup_send(b);
	backup_send(a);
	answers(a);
	backup_send(b);
	ck_assert_int_eq(b->state, BACKUP_MARKING);
	ck_assert_uint_eq(versions[1], 13);
	ck_assert_uint_eq(q->shared.marker.version, 13);
}
END_TEST

START_TEST(marker_is_above_that_of_a_branch_that_is_lost_again)
{
	comes_as_a_branch(12);
	backup_give_up(b, "the test says so");
	backup_give_up(a, "the test says so");
	connected(a, RUN_A);
	a->state = BACKUP_FILLING;
	servers_consider(q);
	backup_send(a);
	ck_assert_uint_eq(versions[0], 13);
}
END_TEST

START_TEST(marker_that_is_not_answered_is_known_as_sent)
{
	const struct marker_left *left = &q->shared.marker.left[1];

	b->shared->ops->on_read(b);
	servers_consider(q);
	backup_send(a);
	answers(a);
	backup_send(b);
	ck_assert_uint_eq(versions[1], 6);
	backup_give_up(b, "the test says so");
	ck_assert_str_eq(left->run_id, RUN_B);
	ck_assert_uint_eq(left->version, 0);
	ck_assert_uint_eq(left->sent, 6);
	ck_assert_str_eq(left->by, q->shared.nonce);
	marker_left_of(&q->shared.marker, 1, RUN_B)->version = 5;
	ck_assert_uint_eq(left->sent, 6);
	marker_left_of(&q->shared.marker, 1, RUN_A)->version = 5;
	ck_assert_uint_eq(left->sent, 0);
}
END_TEST

START_TEST(backup_that_joins_is_marked_after_the_one_that_counts_has_answered)
{
	b->shared->ops->on_read(b);
	servers_consider(q);
	backup_send(a);
	backup_send(b);
	ck_assert_uint_eq(asked[0][CHANGE_MARK], 1);
	ck_assert_uint_eq(asked[1][CHANGE_MARK], 0);
	ck_assert_str_eq(q->shared.marker.members[1], RUN_B);
	answers(a);
	backup_send(b);
	ck_assert_uint_eq(asked[1][CHANGE_MARK], 1);
	ck_assert_uint_eq(versions[1], versions[0]);
	answers(b);
	ck_assert_int_eq(b->state, BACKUP_IN_SYNC);
}
END_TEST

START_TEST(backup_that_joins_does_not_count_if_the_one_that_counts_is_lost_before_it_has_answered)
{
	b->shared->ops->on_read(b);
	servers_consider(q);
	backup_send(a);
	backup_give_up(a, "the test says so");
	ck_assert_int_eq(b->state, BACKUP_AWAY);
	ck_assert_uint_eq(asked[1][CHANGE_MARK], 0);
	ck_assert_str_eq(q->shared.marker.members[0], RUN_A);
	ck_assert_str_eq(q->shared.marker.members[1], "");
	connected(b, RUN_B);
	b->state = BACKUP_FILLING;
	servers_consider(q);
	backup_send(b);
	ck_assert_int_eq(b->state, BACKUP_FILLING);
	ck_assert_uint_eq(asked[1][CHANGE_MARK], 0);
}
END_TEST

START_TEST(backup_that_is_lost_while_it_joins_is_left_out_by_the_next_marker)
{
	b->shared->ops->on_read(b);
	servers_consider(q);
	backup_send(a);
	backup_give_up(b, "the test says so");
	answers(a);
	ck_assert_uint_eq(versions[0], 7);
	ck_assert_str_eq(q->shared.marker.members[1], "");
	ck_assert_int_eq(a->state, BACKUP_IN_SYNC);
	ck_assert_uint_eq(asked[1][CHANGE_MARK], 0);
}
END_TEST

static void refuses(struct backup *s)
{
	char text[] = "OOM command not allowed when used memory > 'maxmemory'.";
	const redisReply full = { .type = REDIS_REPLY_ERROR, .str = text, .len = sizeof text - 1 };

	backup_answered(s, ASKED_CALL, now_ms, &full);
	backup_send(s);
}

START_TEST(backup_that_refuses_what_it_lacks_gets_no_marker)
{
	item_move(comes(5000), ITEM_KEPT);
	b->shared->ops->on_read(b);
	backup_send(b); /* it asks for what it lacks */
	backup_send(b);
	ck_assert_uint_eq(asked[1][CHANGE_PUT], 1);
	ck_assert_uint_eq(asked[1][CHANGE_MARK], 0);
	refuses(b);
	ck_assert_uint_eq(asked[1][CHANGE_MARK], 0);
	ck_assert_int_ne(b->state, BACKUP_IN_SYNC);
}
END_TEST

START_TEST(changes_of_a_destination_are_counted_for_each_backup)
{
	struct item *i = comes(5000);
	const struct destination_changes *of = i->to->changes;

	ck_assert_uint_eq(of[0].answered, 0);
	ck_assert_uint_eq(of[0].unanswered, 1);
	answers(a);
	ck_assert_uint_eq(of[0].answered, 1);
	ck_assert_uint_eq(of[0].unanswered, 0);
	ck_assert_uint_eq(of[1].answered + of[1].unanswered, 0);
	b->shared->ops->on_read(b);
	backup_send(b); /* it asks for what it lacks */
	backup_send(b);
	answers(b);
	ck_assert_uint_eq(of[1].answered, 1);
}
END_TEST

START_TEST(change_that_a_backup_refuses_is_none_that_it_made)
{
	struct item *i = comes(5000);

	item_move(i, ITEM_KEPT);
	b->shared->ops->on_read(b);
	backup_send(b); /* it asks for what it lacks */
	backup_send(b);
	refuses(b);
	ck_assert_uint_eq(i->to->changes[1].answered, 0);
	ck_assert_uint_eq(i->to->changes[1].unanswered, 0);
}
END_TEST

/* A part of what a server holds: so many items, and there are more. */
static void shows_some(struct backup *s, unsigned count)
{
	redisReply more = { .type = REDIS_REPLY_STRING, .str = (char[]){ "7" }, .len = 1 };
	redisReply text = { .type = REDIS_REPLY_STRING, .str = (char[]){ "?" }, .len = 1 };
	redisReply *texts[2 * 1000], bytes = { .type = REDIS_REPLY_INTEGER, .integer = count };
	redisReply items = { .type = REDIS_REPLY_ARRAY, .elements = 2 * (size_t)count, .element = texts };
	redisReply *parts[] = { &more, &items, &bytes };
	const redisReply reply = { .type = REDIS_REPLY_ARRAY, .elements = 3, .element = parts };

	for (unsigned n = 0; n < 2 * count; n++)
		texts[n] = &text;
	backup_answered(s, ASKED_SCAN, now_ms, &reply);
}

START_TEST(block_that_is_read_has_as_many_items_as_the_queue_is_told)
{
	static const unsigned most[] = { 1, 10, 1000 };

	for (size_t n = 0; n < SUITE_LEN(most); n++) {
		q->shared.block_items = most[n];
		backup_read(b, BACKUP_READS_NAMES, NULL, 0);
		shows_some(b, 1);
		ck_assert_uint_eq(b->reading.block, most[n] < 8 ? most[n] : 8);
		shows_some(b, 900);
		ck_assert_uint_eq(b->reading.block, most[n]);
	}
	ck_assert_uint_eq(b->stats.blocks, 2 * SUITE_LEN(most));
	q->shared.block_items = q->conf.block_items;
	ck_assert_uint_eq(q->conf.block_items, 1000);
}
END_TEST

UNIT(servers)
{
	const TTest *facts[] = {
		item_that_comes_while_a_backup_drops_old_ones_goes_to_that_backup_too,
		item_that_comes_before_the_tick_that_joins_a_backup_goes_to_that_backup_too,
		item_that_comes_behind_the_deletion_of_the_last_one_goes_to_a_backup_that_is_filled,
		backup_that_refuses_what_it_lacks_gets_no_marker,
		marker_that_is_not_answered_is_known_as_sent,
		backup_that_joins_is_marked_after_the_one_that_counts_has_answered,
		backup_that_joins_does_not_count_if_the_one_that_counts_is_lost_before_it_has_answered,
		backup_that_is_lost_while_it_joins_is_left_out_by_the_next_marker,
		marker_is_above_that_of_a_branch_that_joins,
		marker_is_above_that_of_a_branch_that_is_lost_again,
		changes_of_a_destination_are_counted_for_each_backup,
		change_that_a_backup_refuses_is_none_that_it_made,
		block_that_is_read_has_as_many_items_as_the_queue_is_told,
	};
	return suite_run_with("servers", begin, facts, SUITE_LEN(facts));
}
