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

int main(void)
{
	const TTest *facts[] = {
		name_finds_its_destination_and_no_other,
		line_is_first_in_first_out,
		deferred_messages_wake_in_the_order_of_their_times,
	};
	return suite_run("destination", facts, SUITE_LEN(facts));
}
