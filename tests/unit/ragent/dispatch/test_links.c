/* test_links.c: facts of the choice of an agent's worker. */
#include <string.h>

#include "ragent/dispatch/links.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define WORKERS_MAX 12u
#define HASHES      (WORKERS_MAX * 10u)

static unsigned chosen[WORKERS_MAX];  /* of theirs, by how many connections */
static unsigned used_by[WORKERS_MAX]; /* of theirs, by how many of ours */

/* Every one of @ours has a connection of each hash. */
static void choose(unsigned ours, unsigned theirs)
{
	memset(chosen, 0, sizeof chosen);
	memset(used_by, 0, sizeof used_by);
	for (unsigned self = 0; self < ours; self++) {
		unsigned seen[WORKERS_MAX] = { 0 };
		for (uint64_t hash = 0; hash < HASHES; hash++) {
			unsigned worker = links_worker_choice(ours, self, theirs, hash);
			ck_assert_uint_lt(worker, theirs);
			chosen[worker]++;
			used_by[worker] += seen[worker]++ == 0;
		}
	}
}

START_TEST(every_worker_gets_the_same_part)
{
	static const unsigned numbers[][2] = { { 1, 1 }, { 1, 4 }, { 2, 2 }, { 2, 4 }, { 4, 2 }, { 6, 3 }, { 3, 12 },
		{ 2, 3 }, { 3, 2 }, { 4, 6 } };

	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		choose(numbers[i][0], numbers[i][1]);
		for (unsigned worker = 0; worker < numbers[i][1]; worker++)
			ck_assert_uint_eq(chosen[worker], numbers[i][0] * HASHES / numbers[i][1]);
	}
}
END_TEST

START_TEST(a_worker_serves_as_few_of_ours_as_its_part_allows)
{
	static const unsigned numbers[][3] = { { 1, 4, 1 }, { 2, 2, 1 }, { 2, 4, 1 }, { 4, 2, 2 }, { 6, 3, 2 },
		{ 2, 3, 2 } };

	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		choose(numbers[i][0], numbers[i][1]);
		for (unsigned worker = 0; worker < numbers[i][1]; worker++)
			ck_assert_uint_eq(used_by[worker], numbers[i][2]);
	}
}
END_TEST

UNIT(links)
{
	const TTest *const facts[] = {
		every_worker_gets_the_same_part,
		a_worker_serves_as_few_of_ours_as_its_part_allows,
	};

	return suite_run("links", facts, SUITE_LEN(facts));
}
