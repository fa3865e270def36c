/* test_table.c: facts of the hash table. */
#include "net/memory/table.h"

#include "net/memory/container_of.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define ITEMS 1000u

struct item {
	unsigned key;
	struct table_link link;
};

static struct item items[ITEMS];
static struct table t;

/* Four keys have one hash. */
static void add_all(void)
{
	for (unsigned i = 0; i < ITEMS; i++) {
		items[i].key = i;
		ck_assert_int_eq(table_add(&t, &items[i].link, i / 4), 0);
	}
}

static const struct item *found(unsigned key)
{
	for (struct table_link *l = table_first(&t, key / 4); l; l = table_next(l)) {
		const struct item *i = container_of(l, struct item, link);
		if (i->key == key)
			return i;
	}
	return NULL;
}

START_TEST(each_item_is_found_while_it_is_there)
{
	ck_assert_ptr_null(found(7));
	add_all();
	for (unsigned i = 0; i < ITEMS; i++)
		ck_assert_ptr_eq(found(i), &items[i]);
	for (unsigned i = 0; i < ITEMS; i += 2)
		table_remove(&t, &items[i].link);
	for (unsigned i = 0; i < ITEMS; i++)
		ck_assert_ptr_eq(found(i), i % 2 ? &items[i] : NULL);
	ck_assert_uint_eq(t.count, ITEMS / 2);
	table_clear(&t);
	ck_assert_ptr_null(found(1));
}
END_TEST

START_TEST(of_one_hash_the_last_added_is_first)
{
	add_all();
	for (unsigned i = 0; i < ITEMS; i += 4) {
		unsigned key = i + 4;
		for (struct table_link *l = table_first(&t, i / 4); l; l = table_next(l))
			ck_assert_uint_eq(container_of(l, struct item, link)->key, --key);
		ck_assert_uint_eq(key, i);
	}
	table_clear(&t);
}
END_TEST

START_TEST(a_walk_meets_each_item_once)
{
	unsigned met[ITEMS] = { 0 };

	ck_assert_ptr_null(table_walk(&t, NULL));
	add_all();
	for (struct table_link *l = table_walk(&t, NULL), *next; l; l = next) {
		next = table_walk(&t, l);
		met[container_of(l, struct item, link)->key]++;
		table_remove(&t, l);
	}
	for (unsigned i = 0; i < ITEMS; i++)
		ck_assert_uint_eq(met[i], 1);
	ck_assert_uint_eq(t.count, 0);
	table_clear(&t);
}
END_TEST

UNIT(table)
{
	const TTest *facts[] = { each_item_is_found_while_it_is_there, of_one_hash_the_last_added_is_first,
		a_walk_meets_each_item_once };
	return suite_run("table", facts, SUITE_LEN(facts));
}
