/* test_secret.c: facts of slabs for secrets. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "net/memory/secret.h"
#include "net/memory/slabs.h"
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
	struct slabs a;
	slabs_init_secret(&a, 240);

	for (unsigned i = 0; i < MANY; i++) {
		blocks[i] = slabs_take(&a);
		ck_assert_ptr_nonnull(blocks[i]);
		ck_assert_uint_eq((uintptr_t)blocks[i] % 16, 0);
		if (!is_zero(blocks[i], 240))
			ck_abort_msg("block %u is not zero", i);
		memset(blocks[i], (int)(i % 255) + 1, 240);
	}
	for (unsigned i = 0; i < MANY; i++)
		for (unsigned k = 0; k < 240; k += 239)
			if (blocks[i][k] != i % 255 + 1)
				ck_abort_msg("block %u was overwritten", i);
	for (unsigned i = 0; i < MANY; i++)
		slabs_give(&a, blocks[(i * 7) % MANY]);
	ck_assert(LIST_EMPTY(&a.with_room));
	slabs_clear(&a);
}
END_TEST

START_TEST(freed_block_is_wiped)
{
	struct slabs a;
	slabs_init_secret(&a, 64);
	uint8_t *first = slabs_take(&a), *second = slabs_take(&a);

	/* nothing but the wiping when it is given makes it zero when it is taken */
	memset(second, 0xaa, 64);
	slabs_give(&a, second);
	ck_assert_ptr_eq(slabs_take(&a), second);
	ck_assert(is_zero(second, 64));
	slabs_give(&a, second);
	slabs_give(&a, first);
	slabs_give(&a, NULL);
	slabs_clear(&a);
}
END_TEST

START_TEST(blocks_stay_out_of_core_dumps)
{
	struct slabs a;
	slabs_init_secret(&a, 64);
	void *block = slabs_take(&a);

	ck_assert(page_has_flag(block, " dd"));
	slabs_give(&a, block);
	slabs_clear(&a);
}
END_TEST

#ifndef CSSL_SANITIZED /* sanitizers make mlock() do nothing */
START_TEST(locked_bytes_are_those_that_are_locked)
{
	struct slabs a;
	slabs_init_secret(&a, 64);
	void *block = slabs_take(&a);

	ck_assert_int_eq(secret_unlocked_bytes() == 0, page_has_flag(block, " lo"));
	slabs_give(&a, block);
	slabs_clear(&a);
}
END_TEST
#endif

START_TEST(secrets_work_where_nothing_may_be_locked)
{
	struct rlimit none = { 0, 0 };
	static void *blocks[MANY];

	setrlimit(RLIMIT_MEMLOCK, &none);
	struct slabs a;
	slabs_init_secret(&a, 64);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_ptr_nonnull(blocks[i] = slabs_take(&a));
#ifndef CSSL_SANITIZED
	/* root may lock all the same */
	ck_assert(secret_unlocked_bytes() >= MANY * 64 || page_has_flag(blocks[0], " lo"));
#endif
	for (unsigned i = 0; i < MANY; i++)
		slabs_give(&a, blocks[i]);
	slabs_clear(&a);
	ck_assert_uint_eq(secret_unlocked_bytes(), 0);
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
	struct slabs a;
	slabs_init_secret(&a, 1024);
	long before = mapped_pages();

	for (unsigned i = 0; i < MANY; i++)
		blocks[i] = slabs_take(&a);
	ck_assert_int_gt(mapped_pages(), before + 1000);
	for (unsigned i = 0; i < MANY; i++)
		slabs_give(&a, blocks[i]);
	ck_assert_int_lt(mapped_pages(), before + 100);
	slabs_clear(&a);
}
END_TEST

UNIT(secret)
{
	Suite *suite = suite_create("secret");
	TCase *all = tcase_create("secret");
	suite_add_tcase(suite, all);
	tcase_add_test(all, blocks_are_zeroed_apart_and_aligned);
	tcase_add_test(all, freed_block_is_wiped);
	tcase_add_test(all, blocks_stay_out_of_core_dumps);
#ifndef CSSL_SANITIZED
	tcase_add_test(all, locked_bytes_are_those_that_are_locked);
#endif
	tcase_add_test(all, secrets_work_where_nothing_may_be_locked);
	tcase_add_test(all, memory_goes_back_when_blocks_are_freed);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
