/* test_store_parts.c: facts of a message that is stored in parts. A list of the given parts stands for the queue. */
#include "smtpproxy/sender/store_parts.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct given {
	struct queue_receipt *receipt;
	char destination[64], name[64], recipient[64];
	unsigned recipients, deleted, parked;
} given[8];
static unsigned count, fails_at, decisions, progress;
static unsigned unstored, unstored_most; /* parts that wait, and for how many there is room */
static enum queue_outcome decided;
static struct store_parts parts;
static struct envelope_text opening;

int queue_add(struct queue *q, const struct queue_mail *m, struct queue_receipt *r)
{
	struct given *g = &given[count];
	struct envelope e;
	struct envelope_recipient one;
	if (count == fails_at)
		return QUEUE_FULL;
	if (m->turn != QUEUE_TURN_NEXT && unstored >= unstored_most)
		return QUEUE_BUSY;
	unstored++;
	*g = (struct given){ .receipt = r, .parked = m->start == QUEUE_PARKED };
	snprintf(g->destination, sizeof g->destination, "%.*s", (int)m->destination.len, m->destination.data);
	snprintf(g->name, sizeof g->name, "%.*s", (int)m->transaction.len, m->transaction.data);
	ck_assert_int_eq(envelope_read(&e, (const char *)m->envelope.data, m->envelope.len), 0);
	ck_assert(smtp_span_is(e.sender, "s@a.example"));
	g->recipients = e.recipients;
	ck_assert(envelope_next(&e.rest, &one));
	snprintf(g->recipient, sizeof g->recipient, "%.*s", (int)one.mailbox.len, one.mailbox.at);
	ck_assert_mem_eq(m->body.data, "body", 4);
	r->id = ++count;
	r->item = (struct item *)g;
	return 0;
}

void queue_forget(struct queue *q, struct queue_receipt *r)
{
	if (r->id)
		given[r->id - 1].deleted++;
	r->item = NULL;
}

int queue_unpark(struct queue *q, const struct queue_receipt *r)
{
	ck_assert(!r->item || !given[r->id - 1].parked); /* one that is not stored yet cannot be parked */
	given[r->id - 1].parked = 0;
	return 0;
}

static void stored(unsigned at, enum queue_outcome outcome)
{
	given[at].receipt->item = NULL;
	unstored--;
	given[at].receipt->on_stored(given[at].receipt, outcome);
}

static void on_decided(struct store_parts *p, enum queue_outcome outcome)
{
	decisions++;
	decided = outcome;
}

static void on_progress(struct store_parts *p)
{
	progress++;
}

static const struct store_parts_ops ops = { .on_progress = on_progress, .on_decided = on_decided };

static unsigned parked(void)
{
	unsigned n = 0;
	for (unsigned i = 0; i < count; i++)
		n += given[i].parked;
	return n;
}

static void add(const char *destination, const char *mailbox)
{
	ck_assert_int_eq(
		store_parts_add(&parts, destination, &opening, smtp_span_of(mailbox), (struct smtp_span){ 0 }), 0);
}

static int submit(void)
{
	const struct queue_mail mail = { .body = { (const uint8_t *)"body", 4 },
		.transaction = { (const uint8_t *)"id/1", 4 },
		.reply = { (const uint8_t *)"250", 3 } };
	return store_parts_submit(&parts, &mail);
}

static void begin(void)
{
	const struct smtp_span none = { 0 };
	memset(given, 0, sizeof given);
	count = decisions = unstored = progress = 0;
	fails_at = unstored_most = SUITE_LEN(given);
	ck_assert_int_eq(envelope_begin(&opening, none, none, smtp_span_of("s@a.example"), none), 0);
	store_parts_begin(&parts, NULL, &ops);
}

static void end(void)
{
	store_parts_free(&parts);
	envelope_free(&opening);
}

static void begin_three(void)
{
	add("a", "1@a");
	add("b", "2@b");
	add("c", "3@c");
}

START_TEST(recipients_of_one_domain_are_one_part)
{
	add("b", "1@b");
	add("b", "2@b");
	ck_assert_int_eq(submit(), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(given[0].recipients, 2);
	ck_assert_str_eq(given[0].name, "id/1");
	stored(0, QUEUE_STORED);
	ck_assert_uint_eq(decisions, 1);
	ck_assert_int_eq(decided, QUEUE_STORED);
}
END_TEST

START_TEST(only_a_new_part_costs_the_copy_of_its_beginning)
{
	const size_t cost = sizeof(struct store_part) + opening.cap;
	ck_assert_uint_eq(store_parts_cost(&parts, "b", &opening), cost);
	add("b", "1@b");
	ck_assert_uint_eq(store_parts_cost(&parts, "b", &opening), 0);
	ck_assert_uint_eq(store_parts_cost(&parts, "c", &opening), cost);
}
END_TEST

START_TEST(the_named_part_comes_when_all_others_are_stored)
{
	begin_three();
	ck_assert_int_eq(submit(), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert_str_eq(given[0].name, "");
	ck_assert_str_eq(given[1].name, "");
	stored(1, QUEUE_STORED);
	ck_assert_uint_eq(count, 2);
	stored(0, QUEUE_STORED);
	ck_assert_uint_eq(count, 3);
	ck_assert_str_eq(given[2].name, "id/1");
	ck_assert_str_eq(given[2].destination, "a");
	ck_assert_str_eq(given[2].recipient, "1@a");
	ck_assert_uint_eq(decisions, 0);
	stored(2, QUEUE_STORED);
	ck_assert_uint_eq(decisions, 1);
	ck_assert_int_eq(decided, QUEUE_STORED);
}
END_TEST

START_TEST(parts_are_parked_until_all_are_stored)
{
	begin_three();
	ck_assert_int_eq(submit(), 0);
	stored(1, QUEUE_STORED);
	stored(0, QUEUE_STORED);
	ck_assert_uint_eq(parked(), 2);
	stored(2, QUEUE_STORED);
	ck_assert_uint_eq(parked(), 0);
}
END_TEST

START_TEST(the_only_part_is_not_parked)
{
	add("b", "1@b");
	ck_assert_int_eq(submit(), 0);
	ck_assert_uint_eq(parked(), 0);
}
END_TEST

START_TEST(each_stored_part_but_the_last_is_progress)
{
	begin_three();
	ck_assert_int_eq(submit(), 0);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(progress, i);
		stored(i, QUEUE_STORED);
	}
	ck_assert_uint_eq(progress, 2);
	ck_assert_uint_eq(decisions, 1);
}
END_TEST

START_TEST(one_refused_part_takes_back_the_others)
{
	begin_three();
	ck_assert_int_eq(submit(), 0);
	stored(0, QUEUE_STORED);
	stored(1, QUEUE_REFUSED);
	ck_assert_int_eq(decided, QUEUE_REFUSED);
	ck_assert_uint_eq(given[0].deleted, 1);
	ck_assert_uint_eq(count, 2);
	ck_assert_uint_eq(decisions, 1);
}
END_TEST

START_TEST(a_part_that_is_still_on_its_way_is_forgotten)
{
	begin_three();
	ck_assert_int_eq(submit(), 0);
	stored(1, QUEUE_LOST);
	ck_assert_int_eq(decided, QUEUE_LOST);
	ck_assert_uint_eq(given[0].deleted, 1);
}
END_TEST

START_TEST(a_queue_that_is_full_stores_nothing)
{
	begin_three();
	fails_at = 1;
	ck_assert_int_eq(submit(), QUEUE_FULL);
	ck_assert_uint_eq(given[0].deleted, 1);
	ck_assert_uint_eq(decisions, 0);
}
END_TEST

START_TEST(a_queue_that_becomes_full_stores_nothing)
{
	begin_three();
	fails_at = 2;
	ck_assert_int_eq(submit(), 0);
	stored(0, QUEUE_STORED);
	stored(1, QUEUE_STORED);
	ck_assert_int_eq(decided, QUEUE_REFUSED);
	ck_assert_uint_eq(given[0].deleted + given[1].deleted, 2);
}
END_TEST

START_TEST(parts_for_which_there_is_no_room_come_one_after_another)
{
	begin_three();
	add("d", "4@d");
	unstored_most = 1;
	ck_assert_int_eq(submit(), 0);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_uint_eq(decisions, 0);
		ck_assert_uint_eq(count, i + 1);
		stored(i, QUEUE_STORED);
	}
	ck_assert_str_eq(given[3].name, "id/1");
	ck_assert_uint_eq(decisions, 1);
	ck_assert_int_eq(decided, QUEUE_STORED);
}
END_TEST

START_TEST(a_message_gets_no_room_while_others_have_all_of_it)
{
	begin_three();
	unstored_most = 0;
	ck_assert_int_eq(submit(), QUEUE_BUSY);
	ck_assert_uint_eq(count + decisions, 0);
}
END_TEST

START_TEST(a_stored_part_stays_when_the_message_is_over)
{
	begin_three();
	ck_assert_int_eq(submit(), 0);
	for (unsigned i = 0; i < 3; i++)
		stored(i, QUEUE_STORED);
	store_parts_free(&parts);
	ck_assert_uint_eq(given[0].deleted + given[1].deleted + given[2].deleted, 0);
}
END_TEST

START_TEST(a_message_that_is_withdrawn_is_deleted)
{
	begin_three();
	ck_assert_int_eq(submit(), 0);
	stored(0, QUEUE_STORED);
	store_parts_withdraw(&parts);
	ck_assert_uint_eq(given[0].deleted, 1);
	ck_assert_uint_eq(given[1].deleted, 1);
	ck_assert_uint_eq(decisions, 0);
}
END_TEST

UNIT(store_parts)
{
	const TTest *facts[] = {
		recipients_of_one_domain_are_one_part,
		only_a_new_part_costs_the_copy_of_its_beginning,
		the_named_part_comes_when_all_others_are_stored,
		parts_are_parked_until_all_are_stored,
		the_only_part_is_not_parked,
		each_stored_part_but_the_last_is_progress,
		one_refused_part_takes_back_the_others,
		a_part_that_is_still_on_its_way_is_forgotten,
		a_queue_that_is_full_stores_nothing,
		a_queue_that_becomes_full_stores_nothing,
		parts_for_which_there_is_no_room_come_one_after_another,
		a_message_gets_no_room_while_others_have_all_of_it,
		a_stored_part_stays_when_the_message_is_over,
		a_message_that_is_withdrawn_is_deleted,
	};
	TCase *all = tcase_create("store_parts");
	tcase_add_checked_fixture(all, begin, end);
	return suite_run_case("store_parts", all, facts, SUITE_LEN(facts));
}
