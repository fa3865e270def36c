/* test_own_x25519_pairs.c: pairs are right, none comes twice, and none is older than its period. */
#include <pthread.h>
#include <sodium.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sslagent/tls/own_x25519_pairs.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

/* Several stocks of them, by two threads in turns. */
#define PAIRS_MADE 50

static void *make_pairs(void *keys)
{
	uint8_t(*pair)[2][32] = keys;

	for (unsigned i = 0; i < PAIRS_MADE; i++)
		ck_assert_int_eq(own_x25519_pair(pair[i][0], pair[i][1]), 1);
	return NULL;
}

START_TEST(made_pairs_match_and_are_all_different)
{
	uint8_t pairs[2][PAIRS_MADE][2][32], public[32];
	pthread_t threads[2];

	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, make_pairs, pairs[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	for (unsigned i = 0; i < 2 * PAIRS_MADE; i++) {
		uint8_t(*pair)[32] = pairs[i / PAIRS_MADE][i % PAIRS_MADE];
		ck_assert_int_eq(crypto_scalarmult_base(public, pair[0]), 0);
		ck_assert_mem_eq(pair[1], public, 32);
		for (unsigned other = 0; other < i; other++)
			ck_assert_mem_ne(pair[0], pairs[other / PAIRS_MADE][other % PAIRS_MADE][0], 32);
	}
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

/* A copy of this machine must not use those that were made before it was. */
START_TEST(pairs_of_an_earlier_period_are_not_used)
{
	static randombytes_implementation counting;
	uint8_t pair[2][32];

	counting = randombytes_sysrandom_implementation;
	counting.buf = count_fetch;
	randombytes_set_implementation(&counting);
	clock_says = 1000;
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(own_x25519_pair(pair[0], pair[1]), 1);
	ck_assert_uint_eq(fetches, 1);
	clock_says = 1010;
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(own_x25519_pair(pair[0], pair[1]), 1);
	ck_assert_uint_eq(fetches, 2);
}
END_TEST

UNIT(own_x25519_pairs)
{
	const TTest *facts[] = {
		made_pairs_match_and_are_all_different,
		pairs_of_an_earlier_period_are_not_used,
	};
	return suite_run("own_x25519_pairs", facts, sizeof facts / sizeof facts[0]);
}
