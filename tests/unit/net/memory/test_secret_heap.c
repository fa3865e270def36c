/* test_secret_heap.c: facts of the heap for OpenSSL. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/secret.h"
#include "net/memory/secret_heap.h"
#include "tests/lib/page_flags.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define MANY           5000u
#define SIZE_MAX_TRIED 100000u

static uint8_t *blocks[MANY];

static int is_all(const uint8_t *bytes, size_t len, uint8_t value)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != value)
			return 0;
	return 1;
}

static size_t any_len(unsigned i)
{
	return 1 + i * 7919u % (i % 16 ? 700 : SIZE_MAX_TRIED);
}

static uint8_t *filled(size_t len, uint8_t value)
{
	uint8_t *block = secret_heap_alloc(len);

	ck_assert_ptr_nonnull(block);
	ck_assert_uint_eq((uintptr_t)block % 16, 0);
	memset(block, value, len);
	return block;
}

START_TEST(blocks_of_all_sizes_are_apart_and_aligned)
{
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < MANY; i++)
			blocks[i] = filled(any_len(i), (uint8_t)i);
		for (unsigned i = 0; i < MANY; i++)
			if (!is_all(blocks[i], any_len(i), (uint8_t)i))
				ck_abort_msg("block %u was overwritten", i);
		for (unsigned i = 0; i < MANY; i++)
			secret_heap_free(blocks[i * 7 % MANY]);
	}
	for (size_t len = 1; len <= 33000; len++)
		secret_heap_free(filled(len, 0xff));
}
END_TEST

START_TEST(nothing_is_a_legal_block)
{
	ck_assert_ptr_null(secret_heap_alloc(0));
	secret_heap_free(NULL);
	ck_assert_ptr_null(secret_heap_resize(filled(10, 1), 0));
	uint8_t *block = secret_heap_resize(NULL, 10);
	ck_assert_ptr_nonnull(block);
	secret_heap_free(block);
}
END_TEST

START_TEST(a_resized_block_keeps_its_bytes)
{
	static const size_t lens[] = { 1, 16, 17, 300, 290, 1025, 5000, 33000, 200000, 34000, 400, 3 };
	uint8_t *block = filled(lens[0], 1);

	for (size_t i = 1; i < sizeof lens / sizeof lens[0]; i++) {
		block = secret_heap_resize(block, lens[i]);
		ck_assert_ptr_nonnull(block);
		ck_assert(is_all(block, lens[i] < lens[i - 1] ? lens[i] : lens[i - 1], (uint8_t)i));
		memset(block, (int)i + 1, lens[i]);
	}
	secret_heap_free(block);
}
END_TEST

#ifndef CSSL_SANITIZED /* there it is malloc */
START_TEST(what_no_memory_has_room_for_is_refused)
{
	ck_assert_ptr_null(secret_heap_alloc(SIZE_MAX / 2 + 1));
	ck_assert_ptr_null(secret_heap_alloc(SIZE_MAX / 4));
	uint8_t *block = filled(100, 7);
	ck_assert_ptr_null(secret_heap_resize(block, SIZE_MAX / 4));
	ck_assert(is_all(block, 100, 7));
	secret_heap_free(block);
}
END_TEST

START_TEST(freed_blocks_are_wiped)
{
	static const size_t lens[] = { 16, 40, 1000, 7608, 21848 };

	for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
		uint8_t *stays = filled(lens[i], 1), *block = filled(lens[i], 0xaa);
		secret_heap_free(block);
		/* the chain of free blocks takes a pointer's length */
		ck_assert(is_all(block + sizeof(void *), lens[i] - sizeof(void *), 0));
		ck_assert_ptr_eq(secret_heap_alloc(lens[i]), block);
		ck_assert(is_all(block, lens[i], 0));
		secret_heap_free(block);
		secret_heap_free(stays);
	}
}
END_TEST

START_TEST(what_resizing_leaves_is_wiped)
{
	uint8_t *stays = filled(64, 1), *block = filled(64, 0xaa);

	ck_assert_ptr_eq(secret_heap_resize(block, 50), block);
	ck_assert(is_all(block + 50, 14, 0));
	uint8_t *larger = secret_heap_resize(block, 5000);
	ck_assert(is_all(block + sizeof(void *), 64 - sizeof(void *), 0));
	secret_heap_free(larger);
	secret_heap_free(stays);
}
END_TEST

START_TEST(blocks_stay_out_of_core_dumps_and_are_locked)
{
	for (size_t len = 1; len < 1000000; len = len * 3 + 1) {
		uint8_t *block = filled(len, 1);
		ck_assert(page_has_flag(block, " dd"));
		ck_assert(page_has_flag(block + len - 1, " dd"));
		if (secret_unlocked_bytes() == 0)
			ck_assert(page_has_flag(block, " lo") && page_has_flag(block + len - 1, " lo"));
		secret_heap_free(block);
	}
}
END_TEST

static void take_many(void)
{
	for (unsigned i = 0; i < MANY; i++)
		blocks[i] = filled(any_len(i), 1);
}

static void free_many(void)
{
	for (unsigned i = 0; i < MANY; i++)
		secret_heap_free(blocks[i * 7 % MANY]);
}

START_TEST(memory_goes_back_behind_the_second_trim)
{
	uint64_t before = secret_heap_held();

	take_many();
	ck_assert_uint_gt(secret_heap_held(), before + MANY * 700 / 2);
	free_many();
	ck_assert_int_eq(secret_heap_trim(), SECRET_HEAP_HAS_SPARE);
	ck_assert_uint_gt(secret_heap_held(), before + MANY * 700 / 2);
	ck_assert_int_eq(secret_heap_trim(), SECRET_HEAP_IS_SMALL);
	ck_assert_uint_lt(secret_heap_held(), before + (1u << 20)); /* 512 KiB, and slabs with a block of before */
}
END_TEST

/* Whatever their number: to map and lock pages costs more than all else. */
START_TEST(what_is_used_between_two_trims_is_not_mapped_anew)
{
	take_many();
	const uint64_t held = secret_heap_held();
	free_many();
	for (unsigned round = 0; round < 3; round++) {
		ck_assert_int_eq(secret_heap_trim(), SECRET_HEAP_HAS_SPARE);
		take_many();
		ck_assert_uint_eq(secret_heap_held(), held);
		free_many();
	}
}
END_TEST

START_TEST(only_pages_in_use_are_held)
{
	uint64_t before = secret_heap_held();

	secret_heap_free(filled(100, 1));
	ck_assert_uint_le(secret_heap_held(), before + 16 * 1024);
}
END_TEST

START_TEST(behind_a_large_block_is_a_wall)
{
	volatile uint8_t *block = filled(100000, 1);

	block[100000 + 4096] = 1;
}
END_TEST
START_TEST(memory_of_others_is_not_freed)
{
	static uint8_t other[3 * 256 * 1024];

	secret_heap_free(other + 256 * 1024 + 64);
}
END_TEST
#endif

/* --- threads --- */

static void *free_half(void *offset)
{
	for (unsigned i = (unsigned)(uintptr_t)offset; i < MANY; i += 2) {
		if (!is_all(blocks[i], any_len(i), (uint8_t)i))
			ck_abort_msg("block %u was overwritten", i);
		secret_heap_free(blocks[i]);
		blocks[i] = filled(any_len(i), (uint8_t)i);
	}
	return NULL;
}

/* Each thread frees what others have taken. */
START_TEST(any_thread_frees_any_block)
{
	pthread_t threads[2];

	for (unsigned i = 0; i < MANY; i++)
		blocks[i] = filled(any_len(i), (uint8_t)i);
	for (unsigned round = 0; round < 20; round++) {
		for (uintptr_t t = 0; t < 2; t++)
			pthread_create(&threads[t], NULL, free_half, (void *)((t + round) % 2));
		for (unsigned t = 0; t < 2; t++)
			pthread_join(threads[t], NULL);
	}
	for (unsigned i = 0; i < MANY; i++)
		secret_heap_free(blocks[i]);
}
END_TEST

static void *take_some(void *unused)
{
	for (unsigned i = 0; i < 500; i++)
		secret_heap_free(filled(any_len(i), 1));
	return filled(100, 5);
}

/* Else a thread pool that starts threads anew would need more and more. */
START_TEST(what_a_thread_leaves_is_the_next_ones)
{
	uint64_t after_first = 0;
	pthread_t thread;
	void *left;

	for (unsigned i = 0; i < 50; i++) {
		pthread_create(&thread, NULL, take_some, NULL);
		pthread_join(thread, &left);
		ck_assert(is_all(left, 100, 5));
		secret_heap_free(left);
		if (i == 1)
			after_first = secret_heap_held();
	}
	ck_assert_uint_le(secret_heap_held(), after_first);
}
END_TEST

UNIT(secret_heap)
{
	TCase *all = tcase_create("secret_heap");
	const TTest *const facts[] = {
		blocks_of_all_sizes_are_apart_and_aligned,
		nothing_is_a_legal_block,
		a_resized_block_keeps_its_bytes,
#ifndef CSSL_SANITIZED
		what_no_memory_has_room_for_is_refused,
		freed_blocks_are_wiped,
		what_resizing_leaves_is_wiped,
		blocks_stay_out_of_core_dumps_and_are_locked,
		memory_goes_back_behind_the_second_trim,
		what_is_used_between_two_trims_is_not_mapped_anew,
		only_pages_in_use_are_held,
#endif
		any_thread_frees_any_block,
		what_a_thread_leaves_is_the_next_ones,
	};

#ifndef CSSL_SANITIZED
	tcase_add_test_raise_signal(all, behind_a_large_block_is_a_wall, SIGSEGV);
	tcase_add_test_raise_signal(all, memory_of_others_is_not_freed, SIGABRT);
#endif
	tcase_set_timeout(all, 60);
	return suite_run_case("secret_heap", all, facts, SUITE_LEN(facts));
}
