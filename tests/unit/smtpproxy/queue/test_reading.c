/* test_reading.c: facts of the two servers that are read at a start: a shows its messages, and b only names them. */
#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/smtpproxy/queue/queue_servers.h"
#include "tests/unit/unit.h"

struct copy {
	uint8_t sealed[200];
	size_t len;
};

static void ignore_outcome(struct queue_receipt *r, enum queue_outcome outcome)
{
}

/* The gateway before this one accepted it. */
static uint64_t accepted(struct copy *out)
{
	const struct queue_mail mail = { .destination = { (const uint8_t *)"a.example", 9 } };
	struct queue_receipt r = { .on_stored = ignore_outcome };

	ck_assert_int_eq(queue_add(q, &mail, &r), 0);
	backup_send(a);
	answers(a);
	struct item *i = item_find(&q->items, r.id);
	ck_assert_uint_le(i->sealed_len, sizeof out->sealed);
	out->len = i->sealed_len;
	memcpy(out->sealed, i->sealed, i->sealed_len);
	destination_let_go(&q->destinations, i);
	item_remove(&q->items, i);
	return r.id;
}

static struct copy damaged(const struct copy *c)
{
	struct copy out = *c;

	out.sealed[out.len - 1] ^= 1;
	return out;
}

static void start_reads_both(void)
{
	q->state = QUEUE_READING;
	q->recovery.from = q->recovery.reads = 3;
	a->state = b->state = BACKUP_CLAIMED;
	memset(asked, 0, sizeof asked);
}

static void shows(struct backup *s, uint64_t id, const struct copy *c)
{
	char field[ITEM_FIELD_LEN];

	item_field(ITEM_MESSAGE, id, field);
	reading_item(q, s, field, sizeof field, c->sealed, c->len);
}

static void names(struct backup *s, uint64_t id)
{
	char field[ITEM_FIELD_LEN];

	item_field(ITEM_MESSAGE, id, field);
	reading_item(q, s, field, sizeof field, NULL, 100);
}

static void gives(struct backup *s, const struct copy *c)
{
	redisReply value = { .type = REDIS_REPLY_STRING, .str = (char *)c->sealed, .len = c->len };
	redisReply *all[] = { &value };
	const redisReply reply = { .type = REDIS_REPLY_ARRAY, .elements = 1, .element = all };

	backup_answered(s, ASKED_MESSAGES, now_ms, &reply);
}

START_TEST(message_that_both_servers_have_is_read_of_one_of_them)
{
	struct copy first, second;
	const uint64_t ids[] = { accepted(&first), accepted(&second) };

	start_reads_both();
	names(b, ids[0]);
	shows(a, ids[0], &first);
	shows(a, ids[1], &second);
	names(b, ids[1]);
	is_read(b);
	ck_assert_int_eq(q->state, QUEUE_READING);
	is_read(a);
	ck_assert_int_eq(q->state, QUEUE_ACTIVE);
	ck_assert_uint_eq(item_find(&q->items, ids[0])->seen & 3, 3);
	ck_assert_uint_eq(item_find(&q->items, ids[1])->seen & 3, 3);
	backup_send(b);
	ck_assert_uint_eq(asked[1][CHANGE_PUT], 0);
}
END_TEST

START_TEST(message_that_only_the_second_server_has_is_fetched_from_it)
{
	struct copy first, second;
	const uint64_t ids[] = { accepted(&first), accepted(&second) };

	start_reads_both();
	names(b, ids[0]);
	names(b, ids[1]);
	is_read(b);
	is_read(a);
	ck_assert_int_eq(q->state, QUEUE_READING);
	gives(b, &first);
	ck_assert_int_eq(q->state, QUEUE_READING);
	gives(b, &second);
	ck_assert_int_eq(q->state, QUEUE_ACTIVE);
	ck_assert_uint_eq(item_find(&q->items, ids[0])->seen & 3, 2);
	ck_assert_uint_eq(item_find(&q->items, ids[1])->seen & 3, 2);
	ck_assert_uint_eq(q->reading.told_cap, 0);
	backup_send(a);
	ck_assert_uint_eq(asked[0][CHANGE_PUT], 1);
}
END_TEST

/* --- a's copy is damaged --- */

static void is_mended(uint64_t id, const struct copy *whole)
{
	const struct item *i = item_find(&q->items, id);

	ck_assert_int_eq(q->state, QUEUE_ACTIVE);
	ck_assert_int_eq(i->state, ITEM_READY);
	ck_assert_mem_eq(i->sealed, whole->sealed, whole->len);
	ck_assert_uint_eq(q->items.bytes, whole->len);
	ck_assert_uint_eq(q->stats.opaque, 0);
	ck_assert_uint_eq(queue_mail(q) - q->stats.opaque, 1);
	backup_send(a);
	answers(a);
	ck_assert_uint_eq(asked[0][CHANGE_DELETE], 1); /* a put leaves alone what is there */
	ck_assert_uint_eq(asked[0][CHANGE_PUT], 1);
	backup_send(b);
	ck_assert_uint_eq(asked[1][CHANGE_DELETE] + asked[1][CHANGE_PUT], 0);
}

START_TEST(message_that_cannot_be_opened_is_fetched_from_a_server_that_named_it_later)
{
	struct copy whole;
	const uint64_t id = accepted(&whole);
	const struct copy broken = damaged(&whole);

	start_reads_both();
	shows(a, id, &broken);
	is_read(a);
	names(b, id);
	is_read(b);
	ck_assert_int_eq(q->state, QUEUE_READING);
	gives(b, &whole);
	is_mended(id, &whole);
}
END_TEST

START_TEST(message_that_cannot_be_opened_is_fetched_from_a_server_that_named_it_before)
{
	struct copy whole;
	const uint64_t id = accepted(&whole);
	const struct copy broken = damaged(&whole);

	start_reads_both();
	names(b, id);
	is_read(b);
	shows(a, id, &broken);
	is_read(a);
	ck_assert_int_eq(q->state, QUEUE_READING);
	gives(b, &whole);
	is_mended(id, &whole);
}
END_TEST

START_TEST(message_that_no_server_has_undamaged_stays_as_it_is)
{
	struct copy whole;
	const uint64_t id = accepted(&whole);
	const struct copy broken = damaged(&whole);

	start_reads_both();
	shows(a, id, &broken);
	names(b, id);
	is_read(a);
	is_read(b);
	gives(b, &broken);
	ck_assert_int_eq(q->state, QUEUE_ACTIVE);
	ck_assert_int_eq(item_find(&q->items, id)->state, ITEM_OPAQUE);
	ck_assert_mem_eq(item_find(&q->items, id)->sealed, broken.sealed, broken.len);
	ck_assert_uint_eq(item_find(&q->items, id)->seen & 3, 3);
	ck_assert_uint_eq(q->stats.opaque, 1);
	backup_send(a);
	ck_assert_uint_eq(asked[0][CHANGE_DELETE] + asked[0][CHANGE_PUT], 0);
}
END_TEST

UNIT(reading)
{
	const TTest *facts[] = {
		message_that_both_servers_have_is_read_of_one_of_them,
		message_that_only_the_second_server_has_is_fetched_from_it,
		message_that_cannot_be_opened_is_fetched_from_a_server_that_named_it_later,
		message_that_cannot_be_opened_is_fetched_from_a_server_that_named_it_before,
		message_that_no_server_has_undamaged_stays_as_it_is,
	};
	return suite_run_with("reading", begin, facts, SUITE_LEN(facts));
}
