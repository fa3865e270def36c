/* test_arena.c: facts of the secrets arena. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "net/arena.h"
#include "tests/lib/page_flags.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define MANY 5000u

static int is_zero(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			return 0;
	return 1;
}

START_TEST(blocks_are_zeroed_apart_and_aligned)
{
	static uint8_t *blocks[MANY];
	struct arena *a = arena_create(240);

	for (unsigned i = 0; i < MANY; i++) {
		blocks[i] = arena_alloc(a);
		ck_assert_ptr_nonnull(blocks[i]);
		ck_assert_uint_eq((uintptr_t)blocks[i] % 16, 0);
		if (!is_zero(blocks[i], 240))
			ck_abort_msg("block %u is not zero", i);
		memset(blocks[i], (int)(i % 255) + 1, 240);
	}
	ck_assert_uint_eq(arena_blocks(a), MANY);
	for (unsigned i = 0; i < MANY; i++)
		for (unsigned k = 0; k < 240; k += 239)
			if (blocks[i][k] != i % 255 + 1)
				ck_abort_msg("block %u was overwritten", i);
	for (unsigned i = 0; i < MANY; i++)
		arena_free(a, blocks[(i * 7) % MANY]);
	ck_assert_uint_eq(arena_blocks(a), 0);
	arena_destroy(a);
}
END_TEST

START_TEST(freed_block_is_wiped)
{
	struct arena *a = arena_create(64);
	uint8_t *first = arena_alloc(a), *second = arena_alloc(a);

	memset(second, 0xaa, 64);
	arena_free(a, second);
	/* the chain of free blocks takes a pointer's length; the rest is zero */
	ck_assert(is_zero(second + sizeof(void *), 64 - sizeof(void *)));
	ck_assert_ptr_eq(arena_alloc(a), second);
	ck_assert(is_zero(second, 64));
	arena_free(a, second);
	arena_free(a, first);
	arena_free(a, NULL);
	arena_destroy(a);
	arena_destroy(NULL);
}
END_TEST

START_TEST(blocks_stay_out_of_core_dumps)
{
	struct arena *a = arena_create(64);
	void *block = arena_alloc(a);

	ck_assert(page_has_flag(block, " dd"));
	arena_free(a, block);
	arena_destroy(a);
}
END_TEST

#ifndef CSSL_SANITIZED /* sanitizers make mlock() do nothing */
START_TEST(locked_bytes_are_those_that_are_locked)
{
	struct arena *a = arena_create(64);
	void *block = arena_alloc(a);

	ck_assert_int_eq(arena_locked_bytes(a) > 0, page_has_flag(block, " lo"));
	ck_assert_int_eq(secret_unlocked_bytes() == 0, page_has_flag(block, " lo"));
	arena_free(a, block);
	arena_destroy(a);
}
END_TEST
#endif

START_TEST(arena_works_where_nothing_may_be_locked)
{
	struct rlimit none = { 0, 0 };
	static void *blocks[MANY];

	setrlimit(RLIMIT_MEMLOCK, &none);
	struct arena *a = arena_create(64);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_ptr_nonnull(blocks[i] = arena_alloc(a));
	ck_assert_uint_gt(secret_unlocked_bytes() + arena_locked_bytes(a), MANY * 64);
	for (unsigned i = 0; i < MANY; i++)
		arena_free(a, blocks[i]);
	arena_destroy(a);
}
END_TEST

static long mapped_pages(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	ck_assert_int_eq(fscanf(f, "%ld", &pages), 1);
	fclose(f);
	return pages;
}

START_TEST(memory_goes_back_when_blocks_are_freed)
{
	static void *blocks[MANY];
	struct arena *a = arena_create(1024);
	long before = mapped_pages();

	for (unsigned i = 0; i < MANY; i++)
		blocks[i] = arena_alloc(a);
	ck_assert_int_gt(mapped_pages(), before + 1000);
	for (unsigned i = 0; i < MANY; i++)
		arena_free(a, blocks[i]);
	ck_assert_int_lt(mapped_pages(), before + 100);
	arena_destroy(a);
}
END_TEST

START_TEST(block_of_another_arena_is_not_taken)
{
	struct arena *a = arena_create(64), *b = arena_create(64);
	arena_free(a, arena_alloc(b));
}
END_TEST

UNIT(arena)
{
	Suite *suite = suite_create("arena");
	TCase *all = tcase_create("arena");
	suite_add_tcase(suite, all);
	tcase_add_test(all, blocks_are_zeroed_apart_and_aligned);
	tcase_add_test(all, freed_block_is_wiped);
	tcase_add_test(all, blocks_stay_out_of_core_dumps);
#ifndef CSSL_SANITIZED
	tcase_add_test(all, locked_bytes_are_those_that_are_locked);
#endif
	tcase_add_test(all, arena_works_where_nothing_may_be_locked);
	tcase_add_test(all, memory_goes_back_when_blocks_are_freed);
	tcase_add_test_raise_signal(all, block_of_another_arena_is_not_taken, SIGABRT);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
