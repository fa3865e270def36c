/* test_uniting.c: facts of what is read back, at the start and late, and of orders and claims. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/smtpproxy/queue/queue_servers.h"
#include "tests/unit/unit.h"

static struct state {
	uint8_t sealed[200];
	size_t len;
} states[2];

/* The receiver took some of its recipients. */
static void goes_on(struct item *i, const char *left, struct state *out)
{
	const struct content_bytes note = { (const uint8_t *)left, strlen(left) };

	ck_assert_int_eq(queue_retry(q, i->id, QUEUE_STEP_PART, 0, note), 0);
	ck_assert_uint_le(i->note_len, sizeof out->sealed);
	memcpy(out->sealed, i->note, i->note_len);
	out->len = i->note_len;
}

static void take_again(struct item *i)
{
	const struct content_bytes to = { (const uint8_t *)"a.example", 9 };
	struct queue_taken t;

	ck_assert_int_eq(queue_take(q, to, &t), 0);
	ck_assert_uint_eq(t.id, i->id);
}

static void reads_state(struct backup *s, uint64_t id, const struct state *state)
{
	char field[ITEM_FIELD_LEN];

	item_field(ITEM_STATE, id, field);
	reading_item(q, s, field, sizeof field, state->sealed, state->len);
}

/* Two states of a message in parts; @first is the one that is read first. */
static void reads_both(unsigned first)
{
	struct item *i = comes(5000);

	i->to = destination_get(&q->destinations, "a.example", 9, true);
	i->state = ITEM_TAKEN;
	i->to->taken = 1;
	goes_on(i, "two are left", &states[0]);
	take_again(i);
	goes_on(i, "one is left", &states[1]);
	take_again(i);
	item_remove(&q->items, i);
	i = item_add(&q->items, ITEM_MESSAGE, 5000, calloc(1, 100), 100);
	i->reading = ITEM_FRESH;
	reads_state(a, i->id, &states[first]);
	reads_state(b, i->id, &states[!first]);
	reading_apply(q);
	ck_assert_uint_eq(i->note_len, states[1].len);
	ck_assert_mem_eq(i->note, states[1].sealed, i->note_len);
}

START_TEST(later_one_of_two_states_counts_that_is_read_last)
{
	reads_both(0);
}
END_TEST

START_TEST(later_one_of_two_states_counts_that_is_read_first)
{
	reads_both(1);
}
END_TEST

static void ignore_outcome(struct queue_receipt *r, enum queue_outcome outcome)
{
}

static struct item *accepts(struct queue_receipt *r)
{
	const struct queue_mail mail = { .destination = { (const uint8_t *)"a.example", 9 } };

	ck_assert_int_eq(queue_add(q, &mail, r), 0);
	backup_send(a);
	answers(a);
	return item_find(&q->items, r->id);
}

static void notes(const struct item *i, struct state *out)
{
	memcpy(out->sealed, i->note, i->note_len);
	out->len = i->note_len;
}

static void reads_message(struct backup *s, uint64_t id, const struct state *message)
{
	char field[ITEM_FIELD_LEN];

	item_field(ITEM_MESSAGE, id, field);
	reading_item(q, s, field, sizeof field, message->sealed, message->len);
}

static void names(struct backup *s, uint64_t id)
{
	char field[ITEM_FIELD_LEN];

	item_field(ITEM_MESSAGE, id, field);
	s->shared->ops->on_item(s, field, sizeof field, NULL, 0);
}

/* It is in no line any more, and comes back as the servers have it. */
static struct item *reads_again(struct item *i, unsigned first)
{
	const uint64_t id = i->id;
	struct state message = { .len = i->sealed_len };

	memcpy(message.sealed, i->sealed, i->sealed_len);
	destination_let_go(&q->destinations, i);
	item_remove(&q->items, i);
	reads_message(b, id, &message);
	reads_state(a, id, &states[first]);
	reads_state(b, id, &states[!first]);
	is_read(b);
	return item_find(&q->items, id);
}

/* An operator held it and then released it. */
static void reads_released(unsigned first)
{
	struct queue_receipt r = { .on_stored = ignore_outcome };
	struct item *i = accepts(&r);

	ck_assert_int_eq(queue_act(q, i->id, QUEUE_ACT_HOLD), 0);
	notes(i, &states[0]);
	ck_assert_int_eq(queue_act(q, i->id, QUEUE_ACT_RELEASE), 0);
	notes(i, &states[1]);
	i = reads_again(i, first);
	ck_assert_int_eq(i->state, ITEM_READY);
	ck_assert_uint_eq(i->to->held, 0);
}

/* An operator held it once more. */
static void reads_held(unsigned first)
{
	struct queue_receipt r = { .on_stored = ignore_outcome };
	struct item *i = accepts(&r);

	ck_assert_int_eq(queue_act(q, i->id, QUEUE_ACT_HOLD), 0);
	ck_assert_int_eq(queue_act(q, i->id, QUEUE_ACT_RELEASE), 0);
	notes(i, &states[0]);
	ck_assert_int_eq(queue_act(q, i->id, QUEUE_ACT_HOLD), 0);
	notes(i, &states[1]);
	i = reads_again(i, first);
	ck_assert_int_eq(i->state, ITEM_HELD);
	ck_assert_uint_eq(i->to->held, 1);
}

START_TEST(message_that_was_released_is_ready_if_that_is_read_last)
{
	reads_released(0);
}
END_TEST

START_TEST(message_that_was_released_is_ready_if_that_is_read_first)
{
	reads_released(1);
}
END_TEST

START_TEST(message_that_was_held_again_is_held_if_that_is_read_last)
{
	reads_held(0);
}
END_TEST

START_TEST(message_that_was_held_again_is_held_if_that_is_read_first)
{
	reads_held(1);
}
END_TEST

/* Both servers are branches that are read late. A message that one of them has, and its state "held" in states[0]. */
static uint64_t both_are_read(struct state *message)
{
	struct queue_receipt r = { .on_stored = ignore_outcome };
	struct item *i = accepts(&r);
	const uint64_t id = i->id;

	message->len = i->sealed_len;
	memcpy(message->sealed, i->sealed, i->sealed_len);
	ck_assert_int_eq(queue_act(q, id, QUEUE_ACT_HOLD), 0);
	notes(i, &states[0]);
	i->to->held--;
	item_remove(&q->items, i);
	a->state = b->state = BACKUP_CLAIMED;
	memcpy(q->shared.marker.apart[0], RUN_A, sizeof RUN_A);
	memcpy(q->shared.marker.apart[1], RUN_B, sizeof RUN_B);
	q->recovery.reads = 3;
	return id;
}

START_TEST(message_of_a_server_that_is_still_read_waits_for_its_states)
{
	struct state message;
	const uint64_t id = both_are_read(&message);

	reads_message(b, id, &message);
	is_read(a);
	ck_assert_int_eq(item_find(&q->items, id)->state, ITEM_STORING);
	reads_state(b, id, &states[0]);
	is_read(b);
	ck_assert_int_eq(item_find(&q->items, id)->state, ITEM_HELD);
}
END_TEST

/* Of b the state comes first, so it is there at a's end, and its message is not. */
START_TEST(state_that_was_read_before_its_message_waits_for_it)
{
	struct state message;
	const uint64_t id = both_are_read(&message);

	reads_state(b, id, &states[0]);
	is_read(a);
	reads_message(b, id, &message);
	is_read(b);
	ck_assert_int_eq(item_find(&q->items, id)->state, ITEM_HELD);
}
END_TEST

/* Both servers have the message, and only b its state. a's end comes before b has shown either. */
START_TEST(message_waits_while_another_server_is_read_that_has_not_shown_it_yet)
{
	struct state message;
	const uint64_t id = both_are_read(&message);

	reads_message(a, id, &message);
	is_read(a);
	ck_assert_int_eq(item_find(&q->items, id)->state, ITEM_STORING);
	reads_message(b, id, &message);
	reads_state(b, id, &states[0]);
	is_read(b);
	ck_assert_int_eq(item_find(&q->items, id)->state, ITEM_HELD);
}
END_TEST

/* Of a, too, there is a state, an older one, which must not be dropped at a's end if b has none. */
START_TEST(state_waits_while_another_server_is_read)
{
	struct state message;
	const uint64_t id = both_are_read(&message);

	reads_message(a, id, &message);
	reads_state(a, id, &states[0]);
	is_read(a);
	reads_message(b, id, &message);
	is_read(b);
	ck_assert_int_eq(item_find(&q->items, id)->state, ITEM_HELD);
}
END_TEST

START_TEST(message_does_not_wait_for_a_server_that_is_lost_before_it_showed_it)
{
	struct state message;
	const uint64_t id = both_are_read(&message);

	reads_message(a, id, &message);
	is_read(a);
	backup_give_up(b, "the test says so");
	ck_assert_int_eq(item_find(&q->items, id)->state, ITEM_READY);
}
END_TEST

START_TEST(message_waits_for_a_server_that_is_lost_after_it_showed_it)
{
	struct state message;
	const uint64_t id = both_are_read(&message);

	reads_message(a, id, &message);
	is_read(a);
	reads_message(b, id, &message);
	backup_give_up(b, "the test says so");
	ck_assert_int_eq(item_find(&q->items, id)->state, ITEM_STORING);
}
END_TEST

START_TEST(message_waits_for_a_server_that_is_claimed_until_that_is_lost)
{
	struct state message;
	const uint64_t id = both_are_read(&message);

	b->state = BACKUP_CLAIMING;
	q->recovery.reads = 1;
	reads_message(a, id, &message);
	is_read(a);
	ck_assert_int_eq(item_find(&q->items, id)->state, ITEM_STORING);
	backup_give_up(b, "the test says so");
	ck_assert_int_eq(item_find(&q->items, id)->state, ITEM_READY);
}
END_TEST

/* a was read first, and counts again before the end of b, which has the later state. */
START_TEST(later_state_goes_to_a_server_that_was_read_before)
{
	struct state message;
	const uint64_t id = both_are_read(&message);

	reads_message(a, id, &message);
	reads_message(b, id, &message);
	is_read(a);
	names(a, id); /* it is compared */
	a->state = BACKUP_IN_SYNC;
	backup_send(a);
	answers(a);
	reads_state(b, id, &states[0]);
	asked[0][CHANGE_REPLACE] = 0;
	is_read(b);
	backup_send(a);
	answers(a);
	ck_assert_uint_eq(asked[0][CHANGE_REPLACE], 1);
}
END_TEST

/* An operator orders the takeover, b is absent, and a has a record of that epoch and no valid marker. */
static void is_ordered(uint64_t epoch)
{
	q->state = QUEUE_LOOKING;
	q->shared.epoch = 0;
	a->state = BACKUP_SEEN;
	a->sight = (struct sight){ .state = SIGHT_EMPTY, .marker = { .epoch = epoch } };
	b->state = BACKUP_AWAY;
	queue_take_over(q);
	now_ms += 60000;
	a->asked_ms = now_ms;
	servers_consider(q);
	ck_assert_int_eq(q->state, QUEUE_CLAIMING);
}

START_TEST(order_skips_epochs_above_those_that_are_known)
{
	is_ordered(5000000);
	ck_assert_uint_gt(q->shared.epoch, 5001000);
}
END_TEST

START_TEST(later_order_has_a_higher_epoch_also_if_nothing_is_known_of_an_earlier_one)
{
	uint64_t first;

	is_ordered(0);
	first = q->shared.epoch;
	q->clock.ahead_ms += 3600 * 1000;
	is_ordered(0);
	ck_assert_uint_gt(q->shared.epoch, first + 40);
}
END_TEST

START_TEST(delete_behind_a_put_that_a_lost_backup_did_not_answer_is_counted_down)
{
	const struct content_bytes to = { (const uint8_t *)"a.example", 9 };
	struct queue_receipt r = { .on_stored = ignore_outcome };
	struct queue_taken t;

	accepts(&r);
	b->shared->ops->on_read(b);
	backup_send(b);
	ck_assert_int_eq(b->state, BACKUP_MARKING);
	ck_assert_int_eq(queue_take(q, to, &t), 0);
	ck_assert_int_eq(queue_done(q, t.id), 0);
	ck_assert_uint_eq(q->stats.deletes_unconfirmed, 1);
	backup_send(a);
	answers(a);
	ck_assert_uint_eq(q->stats.deletes_unconfirmed, 1);
	backup_give_up(b, "the test says so");
	ck_assert_uint_eq(q->stats.deletes_unconfirmed, 0);
}
END_TEST

/* The record of another gateway, which has marked the server. */
static const redisReply *marked_record(const char *version, const char *run_id)
{
	const char *texts[] = { "epoch", "2", "nonce", "other", "by", "other", "version", version, "run_id", run_id };
	static redisReply fields[10], *all[10];
	static const redisReply record = { .type = REDIS_REPLY_ARRAY, .elements = 10, .element = all };

	for (unsigned n = 0; n < 10; n++) {
		fields[n] = (redisReply){ .type = REDIS_REPLY_STRING, .str = (char *)texts[n] };
		all[n] = &fields[n];
	}
	return &record;
}

static void was_marked_meanwhile(struct backup *s, const char *run_id)
{
	backup_look_answered(s, ASKED_CLAIM, marked_record("12", run_id));
}

START_TEST(server_that_was_marked_just_before_the_claim_is_read_as_a_branch)
{
	b->state = BACKUP_SEEN;
	b->sight = (struct sight){ .state = SIGHT_EMPTY };
	servers_consider(q);
	ck_assert_int_eq(b->state, BACKUP_CLAIMING);
	was_marked_meanwhile(b, RUN_B);
	ck_assert_str_eq(q->shared.marker.apart[1], RUN_B);
	ck_assert_int_eq(b->state, BACKUP_CLAIMED);
}
END_TEST

START_TEST(recovery_begins_again_if_a_server_was_marked_just_before_the_claim)
{
	is_ordered(0);
	was_marked_meanwhile(a, RUN_A);
	ck_assert_int_eq(q->state, QUEUE_LOOKING);
}
END_TEST

/* The server was asked once more before the claim was sent, and another gateway marked it before that question. */
static void answers_an_old_look(struct backup *s, const char *run_id)
{
	s->looks = 1;
	backup_look_answered(s, ASKED_OWNER, marked_record("12", run_id));
	ck_assert_int_eq(s->state, BACKUP_CLAIMING);
}

static void saw_version(struct backup *s, const char *run_id, const char *version)
{
	s->state = BACKUP_SEEN;
	s->asked_ms = now_ms;
	s->looks = 1;
	backup_look_answered(s, ASKED_OWNER, marked_record(version, run_id));
}

START_TEST(server_that_was_marked_before_a_look_under_way_is_read_as_a_branch)
{
	marker_left_of(&q->shared.marker, b->index, RUN_B)->version = 5;
	q->recovery.markers[0] =
		(struct marker){ .version = 5, .run_id = RUN_A, .left[1] = { .run_id = RUN_B, .version = 5 } };
	saw_version(b, RUN_B, "5");
	ck_assert_int_eq(b->state, BACKUP_CLAIMING);
	ck_assert_str_eq(q->shared.marker.apart[1], "");
	answers_an_old_look(b, RUN_B);
	was_marked_meanwhile(b, RUN_B);
	ck_assert_str_eq(q->shared.marker.apart[1], RUN_B);
	ck_assert_int_eq(b->state, BACKUP_CLAIMED);
}
END_TEST

START_TEST(recovery_begins_again_if_a_server_was_marked_before_a_look_under_way)
{
	q->state = QUEUE_LOOKING;
	q->shared.epoch = 0;
	a->state = b->state = BACKUP_AWAY;
	queue_take_over(q);
	now_ms += 1;
	saw_version(a, RUN_A, "5");
	ck_assert_int_eq(q->state, QUEUE_CLAIMING);
	answers_an_old_look(a, RUN_A);
	was_marked_meanwhile(a, RUN_A);
	ck_assert_int_eq(q->state, QUEUE_LOOKING);
}
END_TEST

UNIT(uniting)
{
	const TTest *facts[] = {
		later_one_of_two_states_counts_that_is_read_last,
		later_one_of_two_states_counts_that_is_read_first,
		message_that_was_released_is_ready_if_that_is_read_last,
		message_that_was_released_is_ready_if_that_is_read_first,
		message_that_was_held_again_is_held_if_that_is_read_last,
		message_that_was_held_again_is_held_if_that_is_read_first,
		message_of_a_server_that_is_still_read_waits_for_its_states,
		state_that_was_read_before_its_message_waits_for_it,
		message_waits_while_another_server_is_read_that_has_not_shown_it_yet,
		later_state_goes_to_a_server_that_was_read_before,
		state_waits_while_another_server_is_read,
		message_does_not_wait_for_a_server_that_is_lost_before_it_showed_it,
		message_waits_for_a_server_that_is_lost_after_it_showed_it,
		message_waits_for_a_server_that_is_claimed_until_that_is_lost,
		server_that_was_marked_just_before_the_claim_is_read_as_a_branch,
		recovery_begins_again_if_a_server_was_marked_just_before_the_claim,
		server_that_was_marked_before_a_look_under_way_is_read_as_a_branch,
		recovery_begins_again_if_a_server_was_marked_before_a_look_under_way,
		delete_behind_a_put_that_a_lost_backup_did_not_answer_is_counted_down,
		order_skips_epochs_above_those_that_are_known,
		later_order_has_a_higher_epoch_also_if_nothing_is_known_of_an_earlier_one,
	};
	return suite_run_with("uniting", begin, facts, SUITE_LEN(facts));
}
