/* test_slot_table.c: facts of memory that outlives a process, and of what the next process finds in it. */
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ragent/keeper/slot_table.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define LEN    500u
#define CHUNKS 16u

static struct slot_table *table;
static struct table_share shares[2]; /* of two workers */
static struct slabs slabs[2];

static void make_slabs(void)
{
	for (unsigned worker = 0; worker < 2; worker++) {
		slot_table_share_init(&shares[worker], table, TABLE_CONNECTIONS, worker);
		slabs_init_from(&slabs[worker], LEN, &shares[worker].source);
	}
}

static void make_table(void)
{
	table = slot_table_create(CHUNKS * SLAB_LEN, LEN);
	ck_assert_ptr_nonnull(table);
	ck_assert_uint_eq(slot_table_len(table), CHUNKS * SLAB_LEN);
	make_slabs();
}

static struct table_slot *take(unsigned worker, enum slot_state state)
{
	struct table_slot *s = slabs_take(&slabs[worker]);

	ck_assert_ptr_nonnull(s);
	*s = (struct table_slot){ .cookie = 7 };
	table_slot_to(s, state);
	return s;
}

static unsigned count_former(unsigned worker)
{
	struct slot_walk w = { 0 };
	unsigned count = 0;

	while (slot_table_next(table, &w, worker))
		count++;
	return count;
}

/* In a process that dies: 200 that are SAVED, one that is FREE again, one of the other worker. */
static void die_with_slots(void)
{
	for (unsigned i = 0; i < 200; i++)
		take(0, SLOT_SAVED);
	struct table_slot *freed = take(0, SLOT_SAVED);
	table_slot_to(freed, SLOT_FREE);
	slabs_give(&slabs[0], freed);
	take(1, SLOT_VOID);
	_exit(0);
}

static void live_after_a_death(void)
{
	pid_t process = fork();

	if (process == 0)
		die_with_slots();
	waitpid(process, NULL, 0);
	slot_table_begin_life(table, 1);
	make_slabs();
}

START_TEST(the_next_process_finds_what_is_not_free)
{
	live_after_a_death();
	ck_assert_uint_eq(count_former(0), 200);
	ck_assert_uint_eq(count_former(1), 1);
	ck_assert_uint_eq(count_former(2), 0);
}
END_TEST

START_TEST(its_own_connections_are_not_of_former_lives)
{
	live_after_a_death();
	struct table_slot *own = take(0, SLOT_SAVED);
	struct slot_walk w = { 0 };

	ck_assert_uint_eq(count_former(0), 200);
	ck_assert_int_eq(slot_table_has_slot(table, own), 0);
	ck_assert_int_eq(slot_table_has_slot(table, slot_table_next(table, &w, 0)), 1);
}
END_TEST

START_TEST(a_slot_with_a_trail_says_all_also_amid_a_change)
{
	live_after_a_death();
	struct table_slot *s = take(0, SLOT_FOLLOWED);

	for (enum slot_state state = SLOT_FOLLOWED; state <= SLOT_CHANGING; state++) {
		table_slot_to(s, state);
		ck_assert(table_slot_has_all(s) && table_slot_has_trail(state));
		table_slot_restore(s);
		ck_assert(!table_slot_has_all(s) && table_slot_is_restored(s));
		table_slot_unrestore(s);
		ck_assert_int_eq(table_slot_state(s), SLOT_FOLLOWED);
	}
}
END_TEST

START_TEST(a_forgotten_slot_is_empty_and_free)
{
	live_after_a_death();
	struct slot_walk w = { 0 };
	struct table_slot *first = slot_table_next(table, &w, 0);

	slot_table_forget_former(table, 0);
	ck_assert_uint_eq(count_former(0), 0);
	ck_assert_uint_eq(count_former(1), 1);
	ck_assert_uint_eq(first->cookie, 0);
}
END_TEST

/* So that a worker can do it a little at a time. */
START_TEST(former_chunks_are_forgotten_one_after_another)
{
	unsigned forgotten = 0, left = 200;
	uint32_t from = 0;

	live_after_a_death();
	while (slot_table_forget_next(table, 0, &from)) {
		ck_assert_uint_lt(count_former(0), left);
		left = count_former(0);
		forgotten++;
	}
	ck_assert_uint_ge(forgotten, 2);
	ck_assert_uint_eq(left, 0);
	ck_assert_uint_eq(count_former(1), 1);
}
END_TEST

START_TEST(only_the_beginning_of_a_connection_is_a_slot)
{
	live_after_a_death();
	struct slot_walk w = { 0 };
	uint8_t *first = (uint8_t *)slot_table_next(table, &w, 0);
	int here;

	ck_assert_int_eq(slot_table_has_slot(table, first), 1);
	ck_assert_int_eq(slot_table_has_slot(table, first + 8), 0);
	ck_assert_int_eq(slot_table_has_slot(table, first + LEN + 1), 0);
	ck_assert_int_eq(slot_table_has_slot(table, &here), 0);
	ck_assert_int_eq(slot_table_has_slot(table, NULL), 0);
	ck_assert_int_eq(slot_table_has_slot(NULL, first), 0);
}
END_TEST

START_TEST(a_place_is_in_it_as_a_whole_or_not_at_all)
{
	uint8_t *block = slabs_take(&slabs[0]);

	ck_assert_int_eq(slot_table_has(table, block, LEN), 1);
	ck_assert_int_eq(slot_table_has(table, block, SIZE_MAX), 0);
	ck_assert_int_eq(slot_table_has(table, block - 2 * SLAB_LEN, LEN), 0);
	ck_assert_int_eq(slot_table_has(table, block + 1000 * SLAB_LEN, 1), 0);
	ck_assert_int_eq(slot_table_has(table, NULL, 0), 0);
	ck_assert_int_eq(slot_table_has(NULL, block, 1), 0);
}
END_TEST

START_TEST(a_full_table_leaves_the_rest_to_the_process)
{
	unsigned inside = 0, outside = 0;

	for (unsigned i = 0; i < 2 * CHUNKS * SLAB_LEN / LEN; i++) {
		void *block = slabs_take(&slabs[0]);
		ck_assert_ptr_nonnull(block);
		memset(block, 1, LEN);
		slot_table_has(table, block, LEN) ? inside++ : outside++;
	}
	ck_assert_uint_ge(inside, CHUNKS * 100);
	ck_assert_uint_gt(outside, 0);
	ck_assert_uint_gt(shares[0].refused, 0);
	ck_assert_uint_eq(shares[1].refused, 0);
}
END_TEST

static void *take_chunk(unsigned worker)
{
	return shares[worker].source.take(&shares[worker].source);
}

static void give_chunk(unsigned worker, void *chunk)
{
	ck_assert_int_eq(shares[worker].source.give(&shares[worker].source, chunk), 1);
}

START_TEST(each_chunk_is_taken_once_and_again_after_it_was_given_back)
{
	void *chunks[CHUNKS];

	for (unsigned i = 0; i < CHUNKS; i++) {
		ck_assert_ptr_nonnull(chunks[i] = take_chunk(i % 2));
		for (unsigned j = 0; j < i; j++)
			ck_assert_ptr_ne(chunks[i], chunks[j]);
	}
	ck_assert_ptr_null(take_chunk(0));
	for (unsigned i = 0; i < CHUNKS; i++) {
		give_chunk(i % 2, chunks[i]);
		ck_assert_ptr_eq(take_chunk(1), chunks[i]);
		ck_assert_ptr_null(take_chunk(0));
	}
}
END_TEST

START_TEST(the_next_process_takes_the_chunks_that_were_free)
{
	live_after_a_death();
	unsigned taken = 0;

	while (take_chunk(0))
		taken++;
	const unsigned of_former = CHUNKS - taken;
	ck_assert_uint_ge(of_former, 2);
	slot_table_forget_former(table, 0);
	slot_table_forget_former(table, 1);
	for (unsigned i = 0; i < of_former; i++)
		ck_assert_ptr_nonnull(take_chunk(1));
	ck_assert_ptr_null(take_chunk(1));
}
END_TEST

static int has_memory(void *chunk)
{
	unsigned char pages[SLAB_LEN / 4096];

	ck_assert_int_eq(mincore(chunk, SLAB_LEN, pages), 0);
	return pages[0] & 1;
}

/* The first call only begins to watch. */
static void cool_all(void)
{
	slot_table_cool(table);
	slot_table_cool(table);
}

START_TEST(what_is_given_back_keeps_its_memory_until_nobody_needed_it)
{
	uint8_t *chunks[CHUNKS];

	for (unsigned i = 0; i < 3; i++) {
		chunks[i] = take_chunk(0);
		memset(chunks[i], 7, SLAB_LEN);
	}
	for (unsigned i = 0; i < 3; i++)
		give_chunk(0, chunks[i]);
	slot_table_cool(table);
	ck_assert_ptr_eq(take_chunk(1), chunks[2]);
	ck_assert(chunks[2][0] == 0 && memcmp(chunks[2], chunks[2] + 1, SLAB_LEN - 1) == 0);
	give_chunk(1, chunks[2]);
	slot_table_cool(table); /* two were not needed since the last call */
	ck_assert(!has_memory(chunks[0]) && !has_memory(chunks[1]) && has_memory(chunks[2]));
	cool_all();
	ck_assert(!has_memory(chunks[2]));
	for (unsigned i = 0; i < CHUNKS; i++) {
		chunks[i] = take_chunk(1);
		ck_assert(chunks[i] && chunks[i][0] == 0);
	}
	ck_assert_ptr_null(take_chunk(1));
}
END_TEST

/* More than stay warm. */
START_TEST(a_burst_leaves_little_memory)
{
	uint8_t *chunks[64];
	unsigned warm = 0;

	slot_table_destroy(table);
	table = slot_table_create((uint64_t)64 * SLAB_LEN, LEN);
	make_slabs();
	for (unsigned i = 0; i < 64; i++)
		memset(chunks[i] = take_chunk(0), 7, SLAB_LEN);
	for (unsigned i = 0; i < 64; i++)
		give_chunk(0, chunks[i]);
	for (unsigned i = 0; i < 64; i++)
		warm += (unsigned)has_memory(chunks[i]);
	ck_assert(warm > 0 && warm <= 16);
}
END_TEST

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The fastest of some rounds. In each of them one worker gives a chunk back, and the other one takes it, which is the
 * only free one, and lies before all that this worker has taken. */
static uint64_t ns_when_nearly_full(uint32_t chunks)
{
	uint64_t fastest = UINT64_MAX;
	uint8_t *last = NULL;

	slot_table_destroy(table);
	table = slot_table_create((uint64_t)chunks * SLAB_LEN, LEN);
	make_slabs();
	for (uint32_t i = 0; i < chunks; i++)
		last = take_chunk(0);
	for (unsigned round = 0; round < 50; round++) {
		uint8_t *one = last - (size_t)round * SLAB_LEN;
		give_chunk(0, one);
		cool_all();
		const uint64_t before = cpu_ns();
		ck_assert_ptr_eq(take_chunk(1), one);
		const uint64_t ns = cpu_ns() - before;
		fastest = ns < fastest ? ns : fastest;
	}
	return fastest;
}

START_TEST(a_nearly_full_table_is_not_searched)
{
	const uint64_t of_few = ns_when_nearly_full(64), of_many = ns_when_nearly_full(512 * 1024);

	ck_assert_msg(of_many < 20 * of_few, "%llu ns with 64 chunks, %llu ns with 524288", (unsigned long long)of_few,
		(unsigned long long)of_many);
}
END_TEST

START_TEST(a_chunk_that_was_given_back_is_taken_again)
{
	void *blocks[3 * SLABS_SPARE * SLAB_LEN / LEN];
	const unsigned count = sizeof blocks / sizeof blocks[0];

	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < count; i++) {
			blocks[i] = slabs_take(&slabs[round % 2]);
			ck_assert_int_eq(slot_table_has(table, blocks[i], LEN), 1);
		}
		for (unsigned i = 0; i < count; i++)
			slabs_give(&slabs[round % 2], blocks[i]);
		slabs_clear(&slabs[round % 2]);
	}
}
END_TEST

UNIT(slot_table)
{
	const TTest *const facts[] = {
		the_next_process_finds_what_is_not_free,
		its_own_connections_are_not_of_former_lives,
		a_slot_with_a_trail_says_all_also_amid_a_change,
		a_forgotten_slot_is_empty_and_free,
		former_chunks_are_forgotten_one_after_another,
		only_the_beginning_of_a_connection_is_a_slot,
		a_place_is_in_it_as_a_whole_or_not_at_all,
		a_full_table_leaves_the_rest_to_the_process,
		a_chunk_that_was_given_back_is_taken_again,
		what_is_given_back_keeps_its_memory_until_nobody_needed_it,
		a_burst_leaves_little_memory,
		each_chunk_is_taken_once_and_again_after_it_was_given_back,
		the_next_process_takes_the_chunks_that_were_free,
		a_nearly_full_table_is_not_searched,
	};

	return suite_run_with("slot_table", make_table, facts, sizeof facts / sizeof facts[0]);
}
