/* test_random_pool.c: no byte is handed out twice, not to another thread, nor to another process. */
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "net/memory/random_pool.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define LEN     16u
#define DRAWS   4096u /* of each drawer: many pools */
#define DRAWERS 4u

typedef uint8_t drawn[DRAWS][LEN];

static drawn *all; /* by drawer, shared with forked processes */

static void begin(void)
{
	ck_assert_int_eq(random_pool_begin(), 0);
	ck_assert_int_ge(sodium_init(), 0);
	ck_assert_str_eq(randombytes_implementation_name(), "cssl");
	all = mmap(NULL, DRAWERS * sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(all, MAP_FAILED);
}

static void *draw(void *to)
{
	drawn *mine = to;

	for (unsigned i = 0; i < DRAWS; i++)
		randombytes_buf((*mine)[i], LEN);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, LEN);
}

static void check_that_all_differ(void)
{
	uint8_t(*row)[LEN] = (uint8_t(*)[LEN])all;
	const size_t count = (size_t)DRAWERS * DRAWS;

	qsort(row, count, LEN, compare);
	for (size_t i = 1; i < count; i++)
		ck_assert_int_ne(memcmp(row[i - 1], row[i], LEN), 0);
}

START_TEST(threads_get_different_bytes)
{
	pthread_t threads[DRAWERS];

	begin();
	for (unsigned i = 0; i < DRAWERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, draw, &all[i]), 0);
	for (unsigned i = 0; i < DRAWERS; i++)
		pthread_join(threads[i], NULL);
	check_that_all_differ();
}
END_TEST

/* All of them are forked with the same part of a pool left. */
START_TEST(forked_processes_get_different_bytes)
{
	uint8_t first[LEN];

	begin();
	randombytes_buf(first, sizeof first);
	for (unsigned i = 1; i < DRAWERS; i++) {
		pid_t process = fork();
		if (process == 0) {
			draw(&all[i]);
			_exit(0);
		}
		ck_assert_int_gt(process, 0);
	}
	draw(&all[0]);
	for (unsigned i = 1; i < DRAWERS; i++)
		wait(NULL);
	check_that_all_differ();
}
END_TEST

#ifndef CSSL_SANITIZED /* their own memory may not be read */
static unsigned copies_in(const uint8_t *from, const uint8_t *to, const uint8_t *what)
{
	unsigned copies = 0;

	for (; (from = memmem(from, (size_t)(to - from), what, LEN)) != NULL; from += LEN)
		copies++;
	return copies;
}

/* In all of this process's own memory. */
static unsigned copies_of(const uint8_t *what)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], access[5];
	unsigned long from, to;
	unsigned copies = 0;

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof line, maps))
		if (sscanf(line, "%lx-%lx %4s", &from, &to, access) == 3 && strcmp(access, "rw-p") == 0)
			copies += copies_in((const uint8_t *)from, (const uint8_t *)to, what);
	fclose(maps);
	return copies;
}

START_TEST(what_was_handed_out_is_not_kept)
{
	static uint8_t first[LEN];

	begin();
	randombytes_buf(first, sizeof first);
	ck_assert_uint_eq(copies_of(first), 1);
}
END_TEST
#endif

START_TEST(requests_of_all_lengths_are_served_whole)
{
	static uint8_t bytes[4096];

	begin();
	for (size_t len = 32; len <= sizeof bytes; len += 61) {
		unsigned zeros = 0;
		memset(bytes, 0, sizeof bytes);
		randombytes_buf(bytes, len);
		for (size_t i = 0; i < len; i++)
			zeros += bytes[i] == 0;
		ck_assert_uint_lt(zeros, 8 + len / 16);
		for (size_t i = len; i < sizeof bytes; i++)
			ck_assert_uint_eq(bytes[i], 0);
	}
	for (unsigned i = 0; i < 1000; i++)
		ck_assert_uint_lt(randombytes_uniform(10), 10);
}
END_TEST

/* The machine's clock is what a fact says, if it says so. */
static time_t clock_says;

int clock_gettime(clockid_t id, struct timespec *out)
{
	if (id != CLOCK_REALTIME_COARSE || clock_says == 0)
		return (int)syscall(SYS_clock_gettime, id, out);
	*out = (struct timespec){ .tv_sec = clock_says };
	return 0;
}

static unsigned fetches;

static void count_fetch(void *const out, const size_t len)
{
	fetches++;
	ck_assert_int_eq(getrandom(out, len, 0), (ssize_t)len);
}

/* A copy of this machine must not use what was fetched before it was made. */
START_TEST(what_was_fetched_in_an_earlier_period_is_not_used)
{
	uint8_t drawn_now[LEN];

	begin();
	clock_says = 1000;
	randombytes_buf(drawn_now, sizeof drawn_now);
	randombytes_sysrandom_implementation.buf = count_fetch;
	clock_says = 1009;
	randombytes_buf(drawn_now, sizeof drawn_now);
	ck_assert_uint_eq(fetches, 0);
	clock_says = 1010;
	randombytes_buf(drawn_now, sizeof drawn_now);
	randombytes_buf(drawn_now, sizeof drawn_now);
	ck_assert_uint_eq(fetches, 1);
	clock_says = 990; /* a restored snapshot, before its clock is right */
	randombytes_buf(drawn_now, sizeof drawn_now);
	ck_assert_uint_eq(fetches, 2);
}
END_TEST

UNIT(random_pool)
{
	const TTest *const facts[] = {
		threads_get_different_bytes,
		forked_processes_get_different_bytes,
#ifndef CSSL_SANITIZED
		what_was_handed_out_is_not_kept,
#endif
		requests_of_all_lengths_are_served_whole,
		what_was_fetched_in_an_earlier_period_is_not_used,
	};

	return suite_run("random_pool", facts, sizeof facts / sizeof facts[0]);
}
