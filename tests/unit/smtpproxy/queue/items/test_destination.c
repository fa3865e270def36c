/* test_destination.c: facts of the lines of destinations; time is an argument. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smtpproxy/queue/items/destination.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define MANY 1000u

static struct item items[MANY];

static struct queue_destination *fresh(struct destination_table *t)
{
	memset(items, 0, sizeof items);
	for (unsigned n = 0; n < MANY; n++) {
		items[n].id = n + 1;
		items[n].to = destination_get(t, "a.example", 9, 1);
	}
	return items[0].to;
}

START_TEST(name_finds_its_destination_and_no_other)
{
	struct destination_table t = { 0 };
	char name[16];

	ck_assert_ptr_null(destination_get(&t, "a", 1, 0));
	for (unsigned n = 0; n < 3000; n++)
		destination_get(&t, name, (size_t)snprintf(name, sizeof name, "d%u", n), 1);
	ck_assert_uint_eq(t.names.count, 3000);
	ck_assert_str_eq(destination_get(&t, "d17x", 3, 0)->name, "d17");
	ck_assert_ptr_null(destination_get(&t, "d", 1, 0));
	ck_assert_ptr_null(destination_get(&t, "d3000", 5, 0));
	destination_table_clear(&t);
}
END_TEST

START_TEST(line_is_first_in_first_out)
{
	struct destination_table t = { 0 };
	struct queue_destination *d = fresh(&t);

	for (unsigned n = 0; n < 5; n++)
		destination_append(d, &items[n]);
	destination_let_go(&t, &items[0]);
	destination_let_go(&t, &items[2]);
	destination_let_go(&t, &items[4]);
	ck_assert_ptr_eq(destination_take(d, 0), &items[1]);
	ck_assert_int_eq(items[1].state, ITEM_TAKEN);
	ck_assert_ptr_eq(destination_take(d, 0), &items[3]);
	ck_assert_ptr_null(destination_take(d, 0));
	ck_assert_uint_eq(d->taken, 2);
	destination_table_clear(&t);
}
END_TEST

START_TEST(sources_take_turns_and_each_is_in_order)
{
	static const unsigned order[] = { 0, 6, 8, 1, 7, 2, 3, 4, 5 };
	struct destination_table t = { 0 };
	struct queue_destination *d = fresh(&t);

	for (unsigned n = 0; n < 9; n++) {
		items[n].source = n < 6 ? 10 : n < 8 ? 20 : 30;
		destination_append(d, &items[n]);
	}
	ck_assert_uint_eq(d->ready, 9);
	for (unsigned n = 0; n < 9; n++)
		ck_assert_ptr_eq(destination_take(d, 0), &items[order[n]]);
	ck_assert_ptr_null(destination_take(d, 0));
	destination_table_clear(&t);
}
END_TEST

START_TEST(a_line_of_many_sources_gives_all_back)
{
	struct destination_table t = { 0 };
	struct queue_destination *d = fresh(&t);
	unsigned n = 0;

	for (unsigned i = 0; i < MANY; i++) {
		items[i].source = i % 97;
		destination_append(d, &items[i]);
	}
	for (unsigned i = 0; i < MANY; i += 2)
		destination_let_go(&t, &items[i]);
	while (destination_take(d, 0))
		n++;
	ck_assert_uint_eq(n, MANY / 2);
	ck_assert_uint_eq(d->ready, 0);
	items[0].state = items[2].state = ITEM_STORING;
	destination_append(d, &items[0]);
	destination_append(d, &items[2]);
	destination_table_clear(&t); /* a leak is for the sanitizer */
}
END_TEST

static size_t woken(struct destination_table *t, int64_t now_ms)
{
	size_t n = 0;

	while (destination_wake(t, now_ms))
		n++;
	return n;
}

START_TEST(deferred_messages_wake_in_the_order_of_their_times)
{
	struct destination_table t = { 0 };
	struct queue_destination *d = fresh(&t);
	int64_t last = 0;

	for (unsigned n = 0; n < MANY; n++) {
		items[n].due_ms = 1 + (int64_t)(n * 7919u % MANY);
		destination_settle(&t, &items[n], 0);
		ck_assert_int_eq(items[n].state, ITEM_DEFERRED);
	}
	for (unsigned n = 0; n < MANY; n += 3)
		destination_let_go(&t, &items[n]);
	ck_assert_ptr_null(destination_wake(&t, 0));
	ck_assert_ptr_null(destination_take(d, 0));
	ck_assert_uint_eq(woken(&t, MANY / 2) + d->deferred, MANY - (MANY + 2) / 3);
	ck_assert_int_gt(t.heap[0]->due_ms, MANY / 2);
	woken(&t, MANY);
	ck_assert_uint_eq(d->deferred, 0);
	for (struct item *i = destination_take(d, 0); i; i = destination_take(d, 0)) {
		ck_assert_uint_ne((i->id - 1) % 3, 0);
		ck_assert_int_ge(i->due_ms, last);
		last = i->due_ms;
	}
	ck_assert_uint_eq(d->taken, MANY - (MANY + 2) / 3);
	destination_table_clear(&t);
}
END_TEST

START_TEST(messages_of_all_destinations_wake_by_their_times)
{
	struct destination_table t = { 0 };
	struct queue_destination *a = fresh(&t), *b = destination_get(&t, "b.example", 9, 1);

	for (unsigned n = 0; n < 6; n++) {
		items[n].to = n % 2 ? b : a;
		items[n].due_ms = 6 - n;
		destination_settle(&t, &items[n], 0);
	}
	ck_assert_uint_eq(a->deferred, 3);
	for (unsigned n = 6; n-- > 0;)
		ck_assert_ptr_eq(destination_wake(&t, 6), &items[n]);
	ck_assert_uint_eq(a->ready, 3);
	ck_assert_uint_eq(b->ready, 3);
	destination_table_clear(&t);
}
END_TEST

START_TEST(a_sweep_frees_only_destinations_without_messages)
{
	struct destination_table t = { 0 };
	struct queue_destination *d = fresh(&t);

	destination_get(&t, "b.example", 9, 1);
	d->count = 1;
	destination_sweep(&t);
	ck_assert_uint_eq(t.names.count, 1);
	d->count = 0;
	destination_take_in(d, &items[0]);
	destination_append(d, &items[0]);
	ck_assert_ptr_eq(STAILQ_FIRST(&t.due), d);
	destination_let_go(&t, &items[0]);
	destination_sweep(&t);
	ck_assert_ptr_eq(destination_get(&t, "a.example", 9, 0), d);
	d->due = DUE_NONE;
	destination_sweep(&t);
	ck_assert_uint_eq(t.names.count, 0);
	destination_table_clear(&t);
}
END_TEST

START_TEST(a_stopped_line_gives_nothing_and_is_not_swept)
{
	struct destination_table t = { 0 };
	struct queue_destination *d = fresh(&t);

	destination_pace(d, DESTINATION_STOPPED, 0);
	items[0].kind = ITEM_ORDER;
	destination_take_in(d, &items[0]);
	for (unsigned n = 1; n < MANY; n++)
		destination_append(d, &items[n]);
	ck_assert_ptr_null(destination_take(d, 1000000));
	destination_sweep(&t);
	ck_assert_ptr_eq(destination_get(&t, "a.example", 9, 0), d);
	destination_pace(d, DESTINATION_FLOWS, 0);
	for (unsigned n = 1; n < MANY; n++)
		ck_assert_ptr_nonnull(destination_take(d, 1000000));
	destination_table_clear(&t);
}
END_TEST

static const struct {
	uint32_t rate;
	int64_t look_us;
	unsigned least, most; /* in a minute */
} rates[] = {
	{ 60, 1000, 60, 60 },
	{ 1, 250000, 1, 1 },
	{ 6000, 250000, 6000, 6050 },
	{ 100, 100000, 100, 100 },
};

START_TEST(a_rate_holds_however_often_it_is_looked_at)
{
	for (size_t n = 0; n < sizeof rates / sizeof *rates; n++) {
		struct destination_table t = { 0 };
		struct queue_destination *d = fresh(&t);
		struct item *i;
		unsigned taken = 0;

		destination_append(d, &items[0]);
		destination_pace(d, DESTINATION_FLOWS, rates[n].rate);
		for (int64_t us = 0; us < 60000000; us += rates[n].look_us)
			while ((i = destination_take(d, 7000000 + us))) {
				taken++;
				destination_append(d, i);
			}
		ck_assert_uint_ge(taken, rates[n].least);
		ck_assert_uint_le(taken, rates[n].most);
		destination_table_clear(&t);
	}
}
END_TEST

UNIT(destination)
{
	const TTest *facts[] = {
		name_finds_its_destination_and_no_other,
		line_is_first_in_first_out,
		sources_take_turns_and_each_is_in_order,
		a_line_of_many_sources_gives_all_back,
		deferred_messages_wake_in_the_order_of_their_times,
		messages_of_all_destinations_wake_by_their_times,
		a_sweep_frees_only_destinations_without_messages,
		a_stopped_line_gives_nothing_and_is_not_swept,
		a_rate_holds_however_often_it_is_looked_at,
	};
	return suite_run("destination", facts, SUITE_LEN(facts));
}
