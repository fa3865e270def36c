/* test_destination.c: facts of the lines of destinations; time is an argument. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smtpproxy/queue/destination.h"
#include "tests/unit/proto/suite.h"

#define MANY 1000u

static struct item items[MANY];

static struct queue_destination *fresh(struct destination_table *t)
{
	memset(items, 0, sizeof items);
	for (unsigned n = 0; n < MANY; n++)
		items[n].id = n + 1;
	return destination_get(t, "a.example", 9, 1);
}

START_TEST(name_finds_its_destination_and_no_other)
{
	struct destination_table t = { 0 };
	char name[16];

	ck_assert_ptr_null(destination_get(&t, "a", 1, 0));
	for (unsigned n = 0; n < 3000; n++)
		destination_get(&t, name, (size_t)snprintf(name, sizeof name, "d%u", n), 1);
	ck_assert_uint_eq(t.count, 3000);
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
	destination_unlink(d, &items[0]);
	destination_unlink(d, &items[2]);
	destination_unlink(d, &items[4]);
	ck_assert_ptr_eq(destination_take(d), &items[1]);
	ck_assert_int_eq(items[1].state, ITEM_TAKEN);
	ck_assert_ptr_eq(destination_take(d), &items[3]);
	ck_assert_ptr_null(destination_take(d));
	ck_assert_uint_eq(d->taken, 2);
	destination_table_clear(&t);
}
END_TEST

START_TEST(deferred_messages_wake_in_the_order_of_their_times)
{
	struct destination_table t = { 0 };
	struct queue_destination *d = fresh(&t);
	int64_t last = 0;

	for (unsigned n = 0; n < MANY; n++) {
		items[n].due_ms = 1 + (int64_t)(n * 7919u % MANY);
		ck_assert_int_eq(destination_defer(d, &items[n]), 0);
	}
	for (unsigned n = 0; n < MANY; n += 3)
		destination_unlink(d, &items[n]);
	ck_assert_int_eq(destination_wake(d, 0), d->heap[0]->due_ms);
	ck_assert_ptr_null(destination_take(d));
	ck_assert_int_gt(destination_wake(d, MANY / 2), MANY / 2);
	ck_assert_int_eq(destination_wake(d, MANY), INT64_MAX);
	for (struct item *i = destination_take(d); i; i = destination_take(d)) {
		ck_assert_uint_ne((i->id - 1) % 3, 0);
		ck_assert_int_ge(i->due_ms, last);
		last = i->due_ms;
	}
	ck_assert_uint_eq(d->taken, MANY - (MANY + 2) / 3);
	destination_table_clear(&t);
}
END_TEST

START_TEST(a_stopped_line_gives_nothing_and_is_not_swept)
{
	struct destination_table t = { 0 };
	struct queue_destination *d = fresh(&t);

	destination_pace(d, DESTINATION_STOPPED, 0);
	d->order = &items[0];
	ck_assert_int_eq(destination_may_take(d, 1000000), 0);
	destination_sweep(&t);
	ck_assert_ptr_eq(destination_get(&t, "a.example", 9, 0), d);
	destination_pace(d, DESTINATION_FLOWS, 0);
	for (unsigned n = 0; n < MANY; n++)
		ck_assert_int_eq(destination_may_take(d, 1000000), 1);
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
		unsigned taken = 0;

		destination_pace(d, DESTINATION_FLOWS, rates[n].rate);
		for (int64_t us = 0; us < 60000000; us += rates[n].look_us)
			while (destination_may_take(d, 7000000 + us))
				taken++;
		ck_assert_uint_ge(taken, rates[n].least);
		ck_assert_uint_le(taken, rates[n].most);
		destination_table_clear(&t);
	}
}
END_TEST

int main(void)
{
	const TTest *facts[] = {
		name_finds_its_destination_and_no_other,
		line_is_first_in_first_out,
		deferred_messages_wake_in_the_order_of_their_times,
		a_stopped_line_gives_nothing_and_is_not_swept,
		a_rate_holds_however_often_it_is_looked_at,
	};
	return suite_run("destination", facts, SUITE_LEN(facts));
}
