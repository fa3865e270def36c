/* test_affinity.c: facts of which agent a client's address belongs to. */
#include <string.h>

#include "ragent/dispatch/dispatch.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define COUNT 4

static struct candidate at[COUNT];

static void begin(void)
{
	static const char *const names[COUNT] = { "a1", "a2", "a3", "a4" };

	for (int i = 0; i < COUNT; i++)
		at[i] = (struct candidate){ .agent = i,
			.node = { .hash = rendezvous_hash(names[i], strlen(names[i])), .weight = 1 } };
}

static struct client_address client(unsigned n)
{
	return (struct client_address){ .len = 4, .bytes = { 10, 0, (uint8_t)(n >> 8), (uint8_t)n } };
}

START_TEST(an_address_always_belongs_to_the_same_agent)
{
	struct client_address c = client(7);

	begin();
	int first = affinity_pick(at, COUNT, &c, 0);
	for (unsigned i = 0; i < 50; i++) {
		at[first].connections += 1000;
		ck_assert_int_eq(affinity_pick(at, COUNT, &c, 0), first);
	}
}
END_TEST

START_TEST(losing_an_agent_moves_only_its_own_addresses)
{
	begin();
	for (unsigned n = 0; n < 1000; n++) {
		struct client_address c = client(n);
		int before = affinity_pick(at, COUNT, &c, 0), after = affinity_pick(at, COUNT - 1, &c, 0);
		if (before < COUNT - 1)
			ck_assert_int_eq(after, before);
	}
}
END_TEST

START_TEST(one_address_cannot_sink_one_agent_where_the_load_is_bounded)
{
	struct client_address c = client(7);
	unsigned total = 0;

	begin();
	for (; total < 1000; total++)
		at[affinity_pick(at, COUNT, &c, 1.25)].connections++;
	for (unsigned i = 0; i < COUNT; i++)
		ck_assert_uint_le(at[i].connections, 1000 * 5 / 16 + 1); /* 1.25 of a fourth */
	ck_assert_uint_eq(at[affinity_pick(at, COUNT, &c, 0)].connections, 1000 * 5 / 16 + 1);
}
END_TEST

START_TEST(a_bound_of_one_is_still_satisfiable)
{
	struct client_address c = client(7);

	begin();
	for (unsigned i = 0; i < 401; i++) {
		int picked = affinity_pick(at, COUNT, &c, 1.0);
		ck_assert_int_ge(picked, 0);
		at[picked].connections++;
	}
}
END_TEST

START_TEST(bounds_follow_the_weights)
{
	struct client_address c = client(7);

	begin();
	at[2].node.weight = 2;
	for (unsigned i = 0; i < 500; i++)
		at[affinity_pick(at, COUNT, &c, 1.0)].connections++;
	ck_assert_uint_ge(at[2].connections, 199);
	ck_assert_uint_le(at[2].connections, 201);
}
END_TEST

START_TEST(without_candidates_there_is_none)
{
	struct client_address c = client(7);

	ck_assert_int_eq(affinity_pick(at, 0, &c, 1.25), -1);
}
END_TEST

UNIT(affinity)
{
	const TTest *const facts[] = {
		an_address_always_belongs_to_the_same_agent,
		losing_an_agent_moves_only_its_own_addresses,
		one_address_cannot_sink_one_agent_where_the_load_is_bounded,
		a_bound_of_one_is_still_satisfiable,
		bounds_follow_the_weights,
		without_candidates_there_is_none,
	};

	return suite_run("affinity", facts, SUITE_LEN(facts));
}
