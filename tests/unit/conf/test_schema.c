/* test_schema.c: facts of the table itself. */
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/smtpproxy.h"
#include "conf/value.h"
#include "tests/unit/conf/facts.h"
#include "tests/unit/unit.h"

/* Call @fact for each row of each map. */
static void each_row(
	const struct schema_map *map, void (*fact)(const struct schema_map *map, const struct schema_row *row))
{
	for (const struct schema_row *row = map->rows; row->key; row++) {
		fact(map, row);
		if (row->map)
			each_row(row->map, fact);
	}
}

/* The same for both roots. */
static void each_row_of_all(void (*fact)(const struct schema_map *map, const struct schema_row *row))
{
	each_row(&schema_cluster, fact);
	each_row(&schema_smtpproxy, fact);
}

static int is_text(const struct schema_row *row)
{
	return row->type == SCHEMA_NAME || row->type == SCHEMA_STRING || row->type == SCHEMA_PATH;
}

static void default_is_good(const struct schema_map *map, const struct schema_row *row)
{
	union {
		double real;
		uint64_t number;
		struct sockaddr_storage address;
		char *text;
	} value;
	if (!row->fallback)
		return;
	ck_assert_uint_le(row->size, sizeof value);
	ck_assert_msg(value_parse(row, row->type, row->fallback, "", &value, row->size) == 0, "%s: %s", row->key,
		row->fallback);
	if (is_text(row))
		free(value.text);
}

START_TEST(every_default_is_a_good_value)
{
	each_row_of_all(default_is_good);
}
END_TEST

static void fields_are_inside(const struct schema_map *map, size_t size)
{
	for (const struct schema_row *row = map->rows; row->key; row++) {
		const int is_array = row->type == SCHEMA_ITEMS || row->type == SCHEMA_LIST;
		ck_assert_msg(row->size > 0 && row->offset + row->size <= size, "%s", row->key);
		ck_assert_msg(!row->map == (row->type != SCHEMA_MAP && row->type != SCHEMA_LIST), "%s", row->key);
		if (is_array)
			ck_assert_msg(row->max > 0 && row->count_offset > 0 && row->item_size > 0, "%s", row->key);
		if (row->map)
			fields_are_inside(row->map, is_array ? row->item_size : row->size);
	}
}

START_TEST(every_field_is_inside_its_struct)
{
	fields_are_inside(&schema_cluster, sizeof(struct conf));
	fields_are_inside(&schema_smtpproxy, sizeof(struct conf_smtpproxy));
}
END_TEST

static void key_is_said_once_and_explained(const struct schema_map *map, const struct schema_row *row)
{
	ck_assert_msg(schema_find(map, row->key) == row, "%s", row->key);
	ck_assert_msg(row->help && strlen(row->help) > 10, "%s", row->key);
}

START_TEST(every_key_is_said_once_and_explained)
{
	each_row_of_all(key_is_said_once_and_explained);
}
END_TEST

static void fields_do_not_overlap(const struct schema_map *map, const struct schema_row *row)
{
	for (const struct schema_row *other = map->rows; other != row; other++)
		ck_assert_msg(other->offset + other->size <= row->offset || row->offset + row->size <= other->offset,
			"%s and %s", other->key, row->key);
}

START_TEST(no_two_keys_share_a_field)
{
	each_row_of_all(fields_do_not_overlap);
}
END_TEST

/* A map that is not in the file is loaded as an empty map, so a missing key in it could not be reported. */
static void optional_map_requires_nothing(const struct schema_map *map, const struct schema_row *row)
{
	if (row->type != SCHEMA_MAP || row->presence == SCHEMA_REQUIRED)
		return;
	for (const struct schema_row *inner = row->map->rows; inner->key; inner++)
		ck_assert_msg(inner->presence != SCHEMA_REQUIRED, "%s.%s", row->key, inner->key);
}

START_TEST(optional_maps_require_nothing)
{
	each_row_of_all(optional_map_requires_nothing);
}
END_TEST

/* Loading follows the table's order: a value that is copied from the root must be loaded before. */
static void source_stands_before(const struct schema_map *map, const struct schema_row *row)
{
	if (row->presence != SCHEMA_INHERITED)
		return;
	const struct schema_row *at = schema_cluster.rows;
	while (at->key && at->map != map && at->offset != row->inherits)
		at++;
	ck_assert_msg(at->key && at->offset == row->inherits && at->map == row->map, "%s", row->key);
}

START_TEST(inherited_values_are_loaded_before)
{
	each_row(&schema_cluster, source_stands_before);
}
END_TEST

static void reference_has_a_list(const struct schema_map *map, const struct schema_row *row)
{
	if (!row->refers_to)
		return;
	const struct schema_row *list = schema_find(&schema_cluster, row->refers_to);
	ck_assert_msg(list && list->type == SCHEMA_LIST && schema_find(list->map, "name"), "%s", row->key);
}

START_TEST(references_are_to_lists_of_named_maps)
{
	each_row(&schema_cluster, reference_has_a_list);
}
END_TEST

static const struct {
	const char *key, *nearest;
} slips[] = {
	{ "agent", "agents" },
	{ "listner", "listeners" },
	{ "link_keys", "link_key" },
	{ "LOG", NULL },
	{ "brodcast", "broadcast" },
	{ "x", NULL },
	{ "", NULL },
	{ "lgo", "log" },
	{ "certificate", "certificates" },
	{ "backend", "backends" },
	{ "an_unreasonably_long_key_that_nobody_meant", NULL },
};

START_TEST(a_slip_is_near_the_key_that_was_meant)
{
	const char *nearest = schema_nearest(&schema_cluster, slips[_i].key);
	ck_assert_pstr_eq(nearest, slips[_i].nearest);
}
END_TEST

UNIT(schema)
{
	TCase *facts = tcase_create("schema");
	tcase_add_test(facts, every_default_is_a_good_value);
	tcase_add_test(facts, every_field_is_inside_its_struct);
	tcase_add_test(facts, every_key_is_said_once_and_explained);
	tcase_add_test(facts, no_two_keys_share_a_field);
	tcase_add_test(facts, optional_maps_require_nothing);
	tcase_add_test(facts, inherited_values_are_loaded_before);
	tcase_add_test(facts, references_are_to_lists_of_named_maps);
	tcase_add_loop_test(facts, a_slip_is_near_the_key_that_was_meant, 0, ROWS(slips));
	return facts_run(facts);
}
