/* test_connection_note.c: facts of the note that an owner left, while the memory for the next process names it. */
#include <string.h>

#include "proto/error.h"
#include "ragent/connection/connection_body.h"
#include "ragent/connection/connection_life.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct connection_home home;
static struct busy_part busy;
static struct connection c;

static void begin(enum slot_state slot)
{
	blocks_init(&home.blocks, NULL);
	busy = (struct busy_part){ .home = &home, .connection = &c };
	c = (struct connection){ .home = &home, .busy = &busy };
	table_slot_to(&c.slot, slot);
}

static void end(void)
{
	connection_touch(&c);
	note_drop(&busy.note, &home.blocks);
	sealed_blob_drop(&busy.note.former, &home.blocks);
	blocks_clear(&home.blocks);
}

static struct sealed_blob *set(const char *text)
{
	ck_assert_int_eq(note_set(&busy.note, &home.blocks, (const uint8_t *)text, strlen(text)), 0);
	ck_assert_uint_eq(busy.note.current->len, strlen(text));
	ck_assert_mem_eq(busy.note.current->data, text, strlen(text));
	return busy.note.current;
}

START_TEST(the_last_one_counts)
{
	begin(SLOT_VOID);
	set("first");
	set("second");
	note_drop(&busy.note, &home.blocks);
	ck_assert_ptr_null(busy.note.current);
	end();
}
END_TEST

START_TEST(one_that_is_refused_changes_nothing)
{
	static const uint8_t much[COPY_MAX_LEN + 1];

	begin(SLOT_FOLLOWED);
	struct sealed_blob *first = set("first");
	ck_assert_int_eq(note_set(&busy.note, &home.blocks, much, sizeof much), CSSL_E_TOO_LONG);
	ck_assert_int_eq(note_set(&busy.note, &home.blocks, much, 0), CSSL_E_TOO_LONG);
	ck_assert_ptr_eq(busy.note.current, first);
	ck_assert_ptr_null(busy.note.former);
	end();
}
END_TEST

START_TEST(one_that_a_valid_slot_names_stays_until_the_slot_names_another)
{
	begin(SLOT_FOLLOWED);
	struct sealed_blob *first = set("first");
	struct sealed_blob *second = set("other");
	ck_assert_ptr_eq(busy.note.former, first);
	set("third");
	note_drop(&busy.note, &home.blocks); /* no slot named those after the first */
	ck_assert_ptr_eq(busy.note.former, first);
	ck_assert_mem_eq(first->data, "first", 5);
	ck_assert_uint_eq(first->len, 5);
	ck_assert_ptr_ne(first, second);
	sealed_blob_drop(&busy.note.former, &home.blocks);
	ck_assert_ptr_null(busy.note.former);
	end();
}
END_TEST

START_TEST(one_that_is_dropped_stays_as_well)
{
	begin(SLOT_FOLLOWED);
	struct sealed_blob *first = set("first");
	note_drop(&busy.note, &home.blocks);
	ck_assert_ptr_null(busy.note.current);
	ck_assert_ptr_eq(busy.note.former, first);
	ck_assert_mem_eq(first->data, "first", 5);
	end();
}
END_TEST

START_TEST(it_counts_as_its_whole_block)
{
	uint8_t data[1100] = { 0 };

	begin(SLOT_VOID);
	holdings_init(&home.holdings, 4096);
	ck_assert_int_eq(note_set(&busy.note, &home.blocks, data, sizeof data), 0);
	connection_weigh(&c);
	ck_assert_uint_eq(busy.holding.len, 1024 + COARSE_STEP);
	note_drop(&busy.note, &home.blocks);
	connection_weigh(&c);
	ck_assert_uint_eq(busy.holding.len, 0);
	end();
}
END_TEST

UNIT(connection_note)
{
	const TTest *const facts[] = {
		the_last_one_counts,
		one_that_is_refused_changes_nothing,
		one_that_a_valid_slot_names_stays_until_the_slot_names_another,
		one_that_is_dropped_stays_as_well,
		it_counts_as_its_whole_block,
	};

	return suite_run("connection_note", facts, SUITE_LEN(facts));
}
