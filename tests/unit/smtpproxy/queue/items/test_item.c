/* test_item.c: facts of items, their index, and the names of their fields. */
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "smtpproxy/queue/items/item.h"
#include "tests/unit/moves.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define MANY 20000u

static uint8_t *some_bytes(size_t len)
{
	return calloc(1, len);
}

START_TEST(index_agrees_with_what_was_added_and_removed)
{
	struct item_set set = { 0 };
	size_t left = 0;

	for (uint64_t id = 1; id <= MANY; id++)
		ck_assert_ptr_nonnull(item_add(&set, ITEM_MESSAGE, id << 7, some_bytes(3), 3));
	for (uint64_t id = 1; id <= MANY; id++)
		if (id * 2654435761u % 3)
			item_remove(&set, item_find(&set, id << 7));
	for (uint64_t id = 1; id <= MANY; id++) {
		struct item *i = item_find(&set, id << 7);

		ck_assert_int_eq(i != NULL, id * 2654435761u % 3 == 0);
		left += i != NULL;
	}
	ck_assert_uint_eq(set.count, left);
	ck_assert_uint_eq(set.bytes, 3 * left);
	item_set_clear(&set);
}
END_TEST

START_TEST(list_keeps_the_order_of_coming)
{
	struct item_set set = { 0 };
	uint64_t last = 0;

	for (uint64_t id = 1; id <= 10; id++)
		item_add(&set, ITEM_MESSAGE, id, some_bytes(1), 1);
	item_remove(&set, item_find(&set, 1));
	item_remove(&set, item_find(&set, 5));
	item_remove(&set, item_find(&set, 10));
	for (struct item *i = set.oldest; i; i = i->newer) {
		ck_assert_uint_gt(i->id, last);
		last = i->id;
	}
	ck_assert_uint_eq(last, 9);
	ck_assert_ptr_eq(set.newest, item_find(&set, 9));
	item_set_clear(&set);
}
END_TEST

START_TEST(referenced_item_outlives_its_removal)
{
	struct item_set set = { 0 };
	struct item *i = item_add(&set, ITEM_MESSAGE, 7, some_bytes(4), 4);

	item_hold(i);
	item_remove(&set, i);
	ck_assert_ptr_null(item_find(&set, 7));
	ck_assert_uint_eq(i->refs, 1);
	ck_assert_uint_eq(i->sealed_len, 4);
	item_drop(i);
	item_set_clear(&set);
}
END_TEST

START_TEST(new_state_replaces_the_old_one_in_the_sum)
{
	struct item_set set = { 0 };
	struct item *i = item_add(&set, ITEM_MESSAGE, 7, some_bytes(100), 100);

	item_set_note(&set, i, some_bytes(10), 10);
	item_set_note(&set, i, some_bytes(30), 30);
	ck_assert_uint_eq(set.bytes, 130);
	item_set_clear(&set);
}
END_TEST

START_TEST(field_names_kind_and_id)
{
	char field[ITEM_FIELD_LEN];
	enum item_kind kind;
	uint64_t id;

	item_field(ITEM_STATE, UINT64_C(0x0123456789abcdef), field);
	ck_assert_mem_eq(field, "s0123456789abcdef", ITEM_FIELD_LEN);
	ck_assert_int_eq(item_field_parse(field, sizeof field, &kind, &id), 0);
	ck_assert_int_eq(kind, ITEM_STATE);
	ck_assert_uint_eq(id, UINT64_C(0x0123456789abcdef));
}
END_TEST

START_TEST(foreign_fields_are_refused)
{
	static const char *const foreign[] = { "", "m", "x0123456789abcdef", "m0123456789abcdeF", "m0123456789abcde",
		"m0123456789abcdef0" };
	enum item_kind kind;
	uint64_t id;

	for (size_t n = 0; n < SUITE_LEN(foreign); n++)
		ck_assert_int_eq(item_field_parse(foreign[n], strlen(foreign[n]), &kind, &id), CSSL_E_RANGE);
}
END_TEST

static void move_item(int from, int to)
{
	struct item i = { .state = (uint8_t)from };

	item_move(&i, (enum item_state)to);
	if (i.state != to)
		_exit(1);
}

START_TEST(only_taken_messages_are_deferred_after_an_attempt)
{
	ck_assert(move_is_allowed(move_item, ITEM_TAKEN, ITEM_DEFERRED));
	ck_assert(!move_is_allowed(move_item, ITEM_READY, ITEM_DEFERRED));
	ck_assert(!move_is_allowed(move_item, ITEM_STORING, ITEM_TAKEN));
	ck_assert(!move_is_allowed(move_item, ITEM_HELD, ITEM_TAKEN));
	for (int to = 0; to < ITEM_STATES; to++)
		ck_assert(!move_is_allowed(move_item, ITEM_GONE, to));
}
END_TEST

UNIT(item)
{
	const TTest *facts[] = {
		index_agrees_with_what_was_added_and_removed,
		list_keeps_the_order_of_coming,
		referenced_item_outlives_its_removal,
		new_state_replaces_the_old_one_in_the_sum,
		field_names_kind_and_id,
		foreign_fields_are_refused,
		only_taken_messages_are_deferred_after_an_attempt,
	};
	return suite_run("item", facts, SUITE_LEN(facts));
}
