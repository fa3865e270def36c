/* test_copies.c: facts of which sealed copy is the current one. */
#include <string.h>

#include "proto/error.h"
#include "ragent/connection/ownership/copies.h"
#include "ragent/keeper/slot_table.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct copies c;
static struct position p;

/* From KEPT or HANDED_OFF. */
static int set(struct copies *to, struct blocks *from, const void *data, size_t len, uint32_t read_generation)
{
	return copies_offer(to, from, &(struct copy_offer){ data, len, read_generation, 0, COPY_OF_LIVE });
}

static void begin(void)
{
	Cssl__LinkLive live = CSSL__LINK_LIVE__INIT;
	Cssl__Position position = CSSL__POSITION__INIT;

	memset(&c, 0, sizeof c);
	position_init(&p);
	live.position = &position;
	ck_assert_int_eq(position_claim(&p, &live), 0);
	ck_assert_int_eq(set(&c, NULL, "first", 5, 0), 0);
}

static void offer(const char *data, uint32_t read_generation, uint32_t write_generation)
{
	ck_assert_int_eq(
		copies_offer(&c, NULL,
			&(struct copy_offer){ (const uint8_t *)data, strlen(data), read_generation, write_generation }),
		0);
}

static void current_is(const char *data)
{
	ck_assert_uint_eq(c.current->len, strlen(data));
	ck_assert_mem_eq(c.current->data, data, c.current->len);
}

START_TEST(a_copy_becomes_current_only_with_its_generation)
{
	begin();
	offer("second", 0, 1);
	ck_assert_int_eq(copies_commit(&c, NULL, &p), 0);
	position_commit(&p, FRAME_RESPONSE_BYTES, 1, 100);
	ck_assert_int_eq(copies_commit(&c, NULL, &p), 0);
	current_is("first");
	position_commit(&p, FRAME_LAST_OF_WRITE_GENERATION, 1, 27);
	ck_assert_int_eq(copies_commit(&c, NULL, &p), 1);
	current_is("second");
	ck_assert_ptr_null(c.pending);
	copies_clear(&c, NULL);
}
END_TEST

START_TEST(a_copy_newer_in_both_directions_waits_for_both)
{
	begin();
	offer("second", 1, 1);
	position_commit(&p, FRAME_LAST_OF_WRITE_GENERATION, 1, 27);
	ck_assert_int_eq(copies_commit(&c, NULL, &p), 0);
	current_is("first");
	position_consume(&p, &(struct frame_consumed){ .client_records = 1, .read_generation = 1 }, 0);
	ck_assert_int_eq(copies_commit(&c, NULL, &p), 1);
	current_is("second");
	copies_clear(&c, NULL);
}
END_TEST

START_TEST(a_newer_pending_copy_replaces_an_older_one)
{
	begin();
	offer("second", 1, 0);
	offer("third", 1, 1);
	position_consume(&p, &(struct frame_consumed){ .client_records = 1, .read_generation = 1 }, 0);
	ck_assert_int_eq(copies_commit(&c, NULL, &p), 0);
	current_is("first"); /* older: an adopter ratchets forward from it */
	position_commit(&p, FRAME_LAST_OF_WRITE_GENERATION, 1, 27);
	ck_assert_int_eq(copies_commit(&c, NULL, &p), 1);
	current_is("third");
	copies_clear(&c, NULL);
}
END_TEST

START_TEST(a_copy_with_the_ownership_replaces_all)
{
	begin();
	offer("second", 1, 0);
	ck_assert_int_eq(set(&c, NULL, "handed off", 10, 1), 0);
	current_is("handed off");
	ck_assert_ptr_null(c.pending);
	copies_clear(&c, NULL);
}
END_TEST

START_TEST(the_copy_that_an_image_names_stays_until_it_is_forgotten)
{
	begin();
	const struct sealed_blob *named = c.current;
	offer("second", 0, 0);
	ck_assert_int_eq(copies_commit(&c, NULL, &p), 1);
	ck_assert_int_eq(set(&c, NULL, "third", 5, 0), 0);
	current_is("third");
	ck_assert_ptr_eq(c.former, named); /* and not the second, which no image names */
	sealed_blob_drop(&c.former, NULL);
	ck_assert_ptr_null(c.former);
	copies_clear(&c, NULL);
}
END_TEST

START_TEST(no_copy_leaves_the_current_one)
{
	begin();
	ck_assert_int_eq(set(&c, NULL, NULL, 0, 0), 0);
	current_is("first");
	copies_clear(&c, NULL);
}
END_TEST

START_TEST(a_copy_that_is_too_long_is_refused)
{
	static const uint8_t data[COPY_MAX_LEN + 1];

	begin();
	ck_assert_int_eq(copies_offer(&c, NULL, &(struct copy_offer){ data, sizeof data, 0, 0 }), CSSL_E_TOO_LONG);
	current_is("first");
	copies_clear(&c, NULL);
}
END_TEST

START_TEST(the_longest_one_is_in_memory_that_outlives_the_process)
{
	static const uint8_t data[COPY_MAX_LEN];
	struct slot_table *t = slot_table_create(128u * SLAB_LEN, 64);
	struct table_share share;
	struct blocks from;
	struct copies longest = { 0 };

	ck_assert_ptr_nonnull(t);
	slot_table_begin_life(t, 1);
	slot_table_share_init(&share, t, TABLE_BELONGINGS, 0);
	blocks_init(&from, &share.source);
	ck_assert_int_eq(set(&longest, &from, data, sizeof data, 0), 0);
	ck_assert(slot_table_has(t, longest.current, sealed_blob_len(longest.current)));
	copies_clear(&longest, &from);
	blocks_clear(&from);
	slot_table_destroy(t);
}
END_TEST

UNIT(copies)
{
	const TTest *const facts[] = {
		a_copy_becomes_current_only_with_its_generation,
		a_copy_newer_in_both_directions_waits_for_both,
		a_newer_pending_copy_replaces_an_older_one,
		a_copy_with_the_ownership_replaces_all,
		the_copy_that_an_image_names_stays_until_it_is_forgotten,
		no_copy_leaves_the_current_one,
		a_copy_that_is_too_long_is_refused,
		the_longest_one_is_in_memory_that_outlives_the_process,
	};

	return suite_run("copies", facts, SUITE_LEN(facts));
}
