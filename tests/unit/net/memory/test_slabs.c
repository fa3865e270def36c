/* test_slabs.c: facts of blocks that many have for a moment. */
#include <string.h>

#include "net/memory/slabs.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define BLOCK  700u
#define BLOCKS 1000u /* of some ten slabs */

static struct slabs s;
static unsigned char *blocks[BLOCKS];

static void take_all(void)
{
	for (unsigned i = 0; i < BLOCKS; i++) {
		blocks[i] = slabs_take(&s);
		ck_assert_ptr_nonnull(blocks[i]);
		memset(blocks[i], (int)i, BLOCK);
	}
}

static void give(unsigned from, unsigned step)
{
	for (unsigned i = from; i < BLOCKS; i += step) {
		slabs_give(&s, blocks[i]);
		blocks[i] = NULL;
	}
}

START_TEST(blocks_are_aligned_and_apart)
{
	unsigned char expected[BLOCK];

	slabs_init(&s, BLOCK);
	take_all();
	for (unsigned i = 0; i < BLOCKS; i++) {
		ck_assert_uint_eq((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
		memset(expected, (int)i, BLOCK);
		ck_assert_mem_eq(blocks[i], expected, BLOCK);
	}
	give(0, 1);
	slabs_clear(&s);
}
END_TEST

START_TEST(slabs_without_a_block_in_use_go_back_but_a_few)
{
	slabs_init(&s, BLOCK);
	take_all();
	give(0, 2);
	give(1, 2);
	ck_assert_uint_le(s.unused_count, SLABS_SPARE);
	ck_assert(LIST_EMPTY(&s.with_room));
	take_all();
	give(0, 1);
	slabs_clear(&s);
	ck_assert(LIST_EMPTY(&s.unused));
}
END_TEST

START_TEST(nothing_may_be_given_and_the_longest_block_fits)
{
	slabs_init(&s, SLABS_BLOCK_MAX);
	slabs_give(&s, NULL);
	unsigned char *block = slabs_take(&s);
	ck_assert_ptr_nonnull(block);
	memset(block, 1, SLABS_BLOCK_MAX);
	slabs_give(&s, block);
	slabs_clear(&s);
}
END_TEST

UNIT(slabs)
{
	const TTest *const facts[] = {
		blocks_are_aligned_and_apart,
		slabs_without_a_block_in_use_go_back_but_a_few,
		nothing_may_be_given_and_the_longest_block_fits,
	};

	return suite_run("slabs", facts, SUITE_LEN(facts));
}
