/* test_queue_backups.c: facts of a backup that comes back while messages come and go. The servers are the test: it
 * keeps the names of the functions that each is asked for, and answers when it wants. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "smtpproxy/queue/backup_inside.h"
#include "smtpproxy/queue/queue_inside.h"
#include "tests/unit/proto/suite.h"

#define RUN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RUN_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define EPOCH 3u

static struct queue *q;
static struct backup *a, *b;
static unsigned asked[BACKUPS][CHANGE_MARK + 1]; /* calls of each function */
static uint64_t versions[BACKUPS];               /* of the last marker; UINT64_MAX: its number comes next */
static int64_t now_ms;

int64_t redis_link_clock_ms(void)
{
	return now_ms;
}

void redis_link_text(struct redis_link *l, const char *text)
{
	static const char *const names[] = { FUNCTION_PUT, FUNCTION_REPLACE, FUNCTION_DELETE, FUNCTION_MARK };
	const unsigned at = l == &b->paths[0].link;

	for (unsigned n = 0; n <= CHANGE_MARK; n++)
		asked[at][n] += !strcmp(text, names[n]);
	if (!strcmp(text, FUNCTION_MARK))
		versions[at] = UINT64_MAX;
}

void redis_link_begin(struct redis_link *l, unsigned arguments)
{
}

void redis_link_number(struct redis_link *l, uint64_t number)
{
	const unsigned at = l == &b->paths[0].link;

	if (versions[at] == UINT64_MAX)
		versions[at] = number;
}

void redis_link_argument(struct redis_link *l, const void *data, size_t len)
{
}

void redis_link_end(struct redis_link *l, uint32_t tag)
{
}

int redis_link_open(
	struct redis_link *l, struct worker *w, const struct redis_link_ops *ops, const struct redis_login *login)
{
	return -1;
}

void redis_link_close(struct redis_link *l, const char *why)
{
}

int64_t redis_link_waits_ms(struct redis_link *l, int64_t at_ms)
{
	return 0;
}

static void ignore(void *user)
{
}

static void ignore_due(void *user, const struct queue_destination *d)
{
}

static const struct queue_ops ops = {
	.on_ready = ignore,
	.on_unready = ignore,
	.on_due = ignore_due,
	.on_room = ignore,
	.on_deposed = ignore,
	.on_stopped = ignore,
};

static void connected(struct backup *s, const char *run_id)
{
	s->active = &s->paths[0];
	s->paths[0].link.state = REDIS_LINK_READY;
	s->generation = 1;
	memcpy(s->run_id, run_id, sizeof s->run_id);
}

/* a is in sync and alone, and b was read for what it holds. */
static void begin(void)
{
	static struct key_ring keys;
	struct queue_conf conf = { .name = "test", .keys = &keys };

	ck_assert_int_eq(key_ring_parse("k1 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a", 67,
				 &keys, &(unsigned){ 0 }),
		0);
	ck_assert_int_ge(sodium_init(), 0);
	now_ms = 1000;
	conf.backups[0].path_count = conf.backups[1].path_count = 1;
	q = queue_create(worker_create(0, "queue"), &conf, &ops, NULL);
	ck_assert_ptr_nonnull(q);
	a = &q->backups[0];
	b = &q->backups[1];
	q->state = QUEUE_ACTIVE;
	q->ready = 1;
	q->lease.until_ms = 1 << 30;
	q->shared.epoch = EPOCH;
	q->shared.version = q->from_version = 5;
	memcpy(q->shared.members[0], RUN_A, sizeof RUN_A);
	connected(a, RUN_A);
	connected(b, RUN_B);
	a->state = BACKUP_IN_SYNC;
	b->state = BACKUP_COMPARING;
}

static void holds_old_ones(struct backup *s, unsigned count)
{
	char field[ITEM_FIELD_LEN];

	for (uint64_t n = 1; n <= count; n++) {
		item_field(ITEM_MESSAGE, n, field);
		queue_compare_item(q, s, field, sizeof field);
	}
	queue_compare_end(q, s);
	backup_send(s);
}

static struct item *comes(uint64_t id)
{
	struct item *i = item_add(&q->items, ITEM_MESSAGE, id, calloc(1, 100), 100);

	queue_push(q, CHANGE_PUT, i, 1);
	backup_send(a);
	backup_send(b);
	return i;
}

/* It answers all that it is asked. */
static void answers(struct backup *s)
{
	const redisReply done = { .type = REDIS_REPLY_INTEGER };

	while (s->line.calls_count) {
		backup_call_answered(s, &done);
		backup_send(s);
	}
}

START_TEST(item_that_comes_while_a_backup_drops_old_ones_goes_to_that_backup_too)
{
	holds_old_ones(b, 2000);
	ck_assert_int_eq(b->state, BACKUP_FILLING);
	comes(5000);
	ck_assert_uint_eq(asked[1][CHANGE_PUT], 0);
	answers(b);
	answers(b);
	ck_assert_int_eq(b->state, BACKUP_IN_SYNC);
	ck_assert_uint_eq(asked[1][CHANGE_PUT], 1);
}
END_TEST

START_TEST(item_that_comes_before_the_tick_that_joins_a_backup_goes_to_that_backup_too)
{
	queue_compare_end(q, b);
	comes(5000);
	queue_consider(q);
	backup_send(b);
	answers(b);
	ck_assert_int_eq(b->state, BACKUP_IN_SYNC);
	ck_assert_uint_eq(asked[1][CHANGE_PUT], 1);
}
END_TEST

START_TEST(item_that_comes_behind_the_deletion_of_the_last_one_goes_to_a_backup_that_is_filled)
{
	struct item *last = comes(5000);

	queue_compare_end(q, b);
	queue_remove(q, last);
	comes(5001);
	queue_consider(q);
	backup_send(b);
	answers(b);
	ck_assert_int_eq(b->state, BACKUP_IN_SYNC);
	ck_assert_uint_eq(asked[1][CHANGE_PUT], 1);
}
END_TEST

/* It holds nothing. */
static void shows_its_items(struct backup *s)
{
	redisReply end = { .type = REDIS_REPLY_STRING, .str = (char[]){ "0" }, .len = 1 };
	redisReply none = { .type = REDIS_REPLY_ARRAY };
	redisReply *both[] = { &end, &none };
	const redisReply reply = { .type = REDIS_REPLY_ARRAY, .elements = 2, .element = both };

	backup_scan_answered(s, &reply);
}

/* b comes, and went on under another gateway. */
static void comes_as_a_branch(uint64_t version)
{
	const redisReply done = { .type = REDIS_REPLY_INTEGER };
	struct marker *m = &b->sight.marker;

	b->state = BACKUP_SEEN;
	b->sight.state = SIGHT_MARKED;
	*m = (struct marker){ .epoch = EPOCH - 1, .version = version, .run_id = RUN_B, .members = { "", RUN_B } };
	queue_consider(q);
	ck_assert_int_eq(b->state, BACKUP_CLAIMING);
	backup_claim_answered(b, &done);
	shows_its_items(b); /* as a branch */
	ck_assert_int_eq(b->state, BACKUP_COMPARING);
	shows_its_items(b);
}

START_TEST(marker_is_above_that_of_a_branch_that_joins)
{
	comes_as_a_branch(12);
	backup_send(b);
	backup_send(b);
	ck_assert_int_eq(b->state, BACKUP_MARKING);
	ck_assert_uint_eq(versions[1], 13);
	ck_assert_uint_eq(q->shared.version, 13);
}
END_TEST

START_TEST(marker_is_above_that_of_a_branch_that_is_lost_again)
{
	comes_as_a_branch(12);
	backup_give_up(b, "the test says so");
	backup_give_up(a, "the test says so");
	connected(a, RUN_A);
	a->state = BACKUP_FILLING;
	queue_consider(q);
	backup_send(a);
	ck_assert_uint_eq(versions[0], 13);
}
END_TEST

START_TEST(marker_that_is_not_answered_is_known_as_sent)
{
	const struct marker_left *left = &q->shared.left[1];

	queue_compare_end(q, b);
	queue_consider(q);
	backup_send(b);
	ck_assert_uint_eq(versions[1], 6);
	backup_give_up(b, "the test says so");
	ck_assert_str_eq(left->run_id, RUN_B);
	ck_assert_uint_eq(left->version, 0);
	ck_assert_uint_eq(left->sent, 6);
	ck_assert_str_eq(left->by, q->shared.nonce);
	queue_note_left(q, 1, RUN_B, 5);
	ck_assert_uint_eq(left->sent, 6);
	queue_note_left(q, 1, RUN_A, 5);
	ck_assert_uint_eq(left->sent, 0);
}
END_TEST

static void refuses(struct backup *s)
{
	char text[] = "OOM command not allowed when used memory > 'maxmemory'.";
	const redisReply full = { .type = REDIS_REPLY_ERROR, .str = text, .len = sizeof text - 1 };

	backup_call_answered(s, &full);
	backup_send(s);
}

START_TEST(backup_that_refuses_what_it_lacks_gets_no_marker)
{
	item_move(comes(5000), ITEM_KEPT);
	queue_compare_end(q, b);
	backup_send(b); /* it asks for what it lacks */
	backup_send(b);
	ck_assert_uint_eq(asked[1][CHANGE_PUT], 1);
	ck_assert_uint_eq(asked[1][CHANGE_MARK], 0);
	refuses(b);
	ck_assert_uint_eq(asked[1][CHANGE_MARK], 0);
	ck_assert_int_ne(b->state, BACKUP_IN_SYNC);
}
END_TEST

static struct state {
	uint8_t sealed[200];
	size_t len;
} states[2];

/* The receiver took some of its recipients. */
static void goes_on(struct item *i, const char *left, struct state *out)
{
	const struct content_bytes note = { (const uint8_t *)left, strlen(left) };

	ck_assert_int_eq(queue_go_on(q, i->id, note), 0);
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
	queue_read_item(q, s, field, sizeof field, state->sealed, state->len);
}

/* Two states of a message in parts; @first is the one that is read first. */
static void reads_both(unsigned first)
{
	struct item *i = comes(5000);

	i->to = destination_get(&q->destinations, "a.example", 9, 1);
	i->state = ITEM_TAKEN;
	i->to->taken = 1;
	goes_on(i, "two are left", &states[0]);
	take_again(i);
	goes_on(i, "one is left", &states[1]);
	take_again(i);
	item_remove(&q->items, i);
	i = item_add(&q->items, ITEM_MESSAGE, 5000, calloc(1, 100), 100);
	i->seen = ITEM_FRESH;
	reads_state(a, i->id, &states[first]);
	reads_state(b, i->id, &states[!first]);
	queue_apply_states(q);
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
	queue_read_item(q, s, field, sizeof field, message->sealed, message->len);
}

/* It is in no line any more, and comes back as the servers have it. */
static struct item *reads_again(struct item *i, unsigned first)
{
	const uint64_t id = i->id;
	struct state message = { .len = i->sealed_len };

	memcpy(message.sealed, i->sealed, i->sealed_len);
	destination_unlink(&q->destinations, i);
	i->to->held -= i->state == ITEM_HELD;
	item_remove(&q->items, i);
	reads_message(b, id, &message);
	reads_state(a, id, &states[first]);
	reads_state(b, id, &states[!first]);
	queue_read_end(q, b);
	return item_find(&q->items, id);
}

/* An operator held it and then released it. */
static void reads_released(unsigned first)
{
	struct queue_receipt r = { .on_stored = ignore_outcome };
	struct item *i = accepts(&r);

	ck_assert_int_eq(queue_hold(q, i->id), 0);
	notes(i, &states[0]);
	ck_assert_int_eq(queue_release(q, i->id), 0);
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

	ck_assert_int_eq(queue_hold(q, i->id), 0);
	ck_assert_int_eq(queue_release(q, i->id), 0);
	notes(i, &states[0]);
	ck_assert_int_eq(queue_hold(q, i->id), 0);
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
	ck_assert_int_eq(queue_hold(q, id), 0);
	notes(i, &states[0]);
	i->to->held--;
	item_remove(&q->items, i);
	a->state = b->state = BACKUP_CLAIMED;
	memcpy(q->shared.apart[0], RUN_A, sizeof RUN_A);
	memcpy(q->shared.apart[1], RUN_B, sizeof RUN_B);
	q->reads = 3;
	return id;
}

START_TEST(message_of_a_server_that_is_still_read_waits_for_its_states)
{
	struct state message;
	const uint64_t id = both_are_read(&message);

	reads_message(b, id, &message);
	queue_read_end(q, a);
	ck_assert_int_eq(item_find(&q->items, id)->state, ITEM_STORING);
	reads_state(b, id, &states[0]);
	queue_read_end(q, b);
	ck_assert_int_eq(item_find(&q->items, id)->state, ITEM_HELD);
}
END_TEST

/* Of b the state comes first, so it is there at a's end, and its message is not. */
START_TEST(state_that_was_read_before_its_message_waits_for_it)
{
	struct state message;
	const uint64_t id = both_are_read(&message);

	reads_state(b, id, &states[0]);
	queue_read_end(q, a);
	reads_message(b, id, &message);
	queue_read_end(q, b);
	ck_assert_int_eq(item_find(&q->items, id)->state, ITEM_HELD);
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
	queue_consider(q);
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
	queue_compare_end(q, b);
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

/* The server of @s answers the claim with the record of another gateway, which has marked it. */
static void was_marked_meanwhile(struct backup *s, const char *run_id)
{
	static const char *texts[] = { "epoch", "2", "nonce", "other", "by", "other", "version", "12", "by_version",
		"12", "run_id", NULL };
	redisReply fields[12], *all[12];
	const redisReply record = { .type = REDIS_REPLY_ARRAY, .elements = 12, .element = all };

	for (unsigned n = 0; n < 12; n++) {
		fields[n] = (redisReply){ .type = REDIS_REPLY_STRING, .str = (char *)(texts[n] ? texts[n] : run_id) };
		all[n] = &fields[n];
	}
	backup_claim_answered(s, &record);
}

START_TEST(server_that_was_marked_just_before_the_claim_is_read_as_a_branch)
{
	b->state = BACKUP_SEEN;
	b->sight = (struct sight){ .state = SIGHT_EMPTY };
	queue_consider(q);
	ck_assert_int_eq(b->state, BACKUP_CLAIMING);
	was_marked_meanwhile(b, RUN_B);
	ck_assert_str_eq(q->shared.apart[1], RUN_B);
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

int main(void)
{
	const TTest *facts[] = {
		item_that_comes_while_a_backup_drops_old_ones_goes_to_that_backup_too,
		item_that_comes_before_the_tick_that_joins_a_backup_goes_to_that_backup_too,
		item_that_comes_behind_the_deletion_of_the_last_one_goes_to_a_backup_that_is_filled,
		backup_that_refuses_what_it_lacks_gets_no_marker,
		marker_that_is_not_answered_is_known_as_sent,
		marker_is_above_that_of_a_branch_that_joins,
		marker_is_above_that_of_a_branch_that_is_lost_again,
		later_one_of_two_states_counts_that_is_read_last,
		later_one_of_two_states_counts_that_is_read_first,
		message_that_was_released_is_ready_if_that_is_read_last,
		message_that_was_released_is_ready_if_that_is_read_first,
		message_that_was_held_again_is_held_if_that_is_read_last,
		message_that_was_held_again_is_held_if_that_is_read_first,
		message_of_a_server_that_is_still_read_waits_for_its_states,
		state_that_was_read_before_its_message_waits_for_it,
		server_that_was_marked_just_before_the_claim_is_read_as_a_branch,
		recovery_begins_again_if_a_server_was_marked_just_before_the_claim,
		delete_behind_a_put_that_a_lost_backup_did_not_answer_is_counted_down,
		order_skips_epochs_above_those_that_are_known,
		later_order_has_a_higher_epoch_also_if_nothing_is_known_of_an_earlier_one,
	};
	return suite_run_with("queue_backups", begin, facts, SUITE_LEN(facts));
}
