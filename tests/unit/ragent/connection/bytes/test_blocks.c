/* test_blocks.c: facts of the memory for sealed copies, names and notes. */
#include <stdlib.h>
#include <string.h>

#include "ragent/connection/bytes/blocks.h"
#include "ragent/keeper/slot_table.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define TABLE_LEN (128u * SLAB_LEN)

static struct slot_table *t;
static struct table_share share;
static struct blocks b;

static void begin(void)
{
	t = slot_table_create(TABLE_LEN, 64);
	ck_assert_ptr_nonnull(t);
	slot_table_begin_life(t, 1);
	slot_table_share_init(&share, t, TABLE_BELONGINGS, 0);
	blocks_init(&b, &share.source);
}

static void end(void)
{
	blocks_clear(&b);
	slot_table_destroy(t);
}

START_TEST(a_block_of_each_length_up_to_the_greatest_outlives_the_process)
{
	begin();
	for (size_t len = 0; len <= FINE_BLOCK_MAX; len++) {
		uint8_t *block = fine_block_take(&b, len), *next = fine_block_take(&b, len);
		ck_assert(slot_table_has(t, block, fine_block_len(len)));
		ck_assert(slot_table_has(t, next, fine_block_len(len)));
		ck_assert_uint_ge(next > block ? (size_t)(next - block) : (size_t)(block - next), fine_block_len(len));
		memset(block, 1, len);
		fine_block_give(&b, next, len);
		fine_block_give(&b, block, len);
	}
	end();
}
END_TEST

START_TEST(little_of_a_block_is_unused)
{
	for (size_t len = 1; len <= FINE_BLOCK_MAX; len++) {
		const size_t most = len <= 1024 ? FINE_STEP : COARSE_STEP;
		ck_assert_uint_ge(fine_block_len(len), len);
		ck_assert_uint_lt(fine_block_len(len) - len, most);
	}
}
END_TEST

START_TEST(a_longer_one_does_not)
{
	begin();
	void *block = fine_block_take(&b, FINE_BLOCK_MAX + 1);
	ck_assert_ptr_nonnull(block);
	ck_assert(!slot_table_has(t, block, 1));
	ck_assert_uint_eq(fine_block_len(FINE_BLOCK_MAX + 1), FINE_BLOCK_MAX + 1);
	fine_block_give(&b, block, FINE_BLOCK_MAX + 1);
	end();
}
END_TEST

UNIT(blocks)
{
	const TTest *const facts[] = {
		a_block_of_each_length_up_to_the_greatest_outlives_the_process,
		little_of_a_block_is_unused,
		a_longer_one_does_not,
	};

	return suite_run("blocks", facts, SUITE_LEN(facts));
}
