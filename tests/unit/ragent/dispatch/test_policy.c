/* test_policy.c: facts of the policies. */
#include <string.h>

#include "ragent/dispatch/dispatch.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define COUNT 3
#define BOUND 1.25

static struct candidate at[COUNT];
static unsigned picked[COUNT];

static void begin(void)
{
	memset(picked, 0, sizeof picked);
	for (int i = 0; i < COUNT; i++)
		at[i] = (struct candidate){ .agent = i, .node = { .hash = (uint64_t)i, .weight = 1 } };
}

static size_t pick(struct policy *p, int affinity)
{
	size_t i = policy_pick(p, at, COUNT, affinity);

	ck_assert_uint_lt(i, COUNT);
	picked[i]++;
	return i;
}

START_TEST(round_robin_is_even)
{
	struct policy *p = policy_create(CONF_ROUND_ROBIN, BOUND);

	begin();
	for (unsigned i = 0; i < 300; i++)
		pick(p, 0);
	for (unsigned i = 0; i < COUNT; i++)
		ck_assert_uint_eq(picked[i], 100);
	policy_destroy(p);
}
END_TEST

START_TEST(weighted_follows_the_weights_and_spreads_them)
{
	struct policy *p = policy_create(CONF_WEIGHTED, BOUND);
	size_t last = COUNT;
	unsigned in_a_row = 0;

	begin();
	at[0].node.weight = 5;
	at[1].node.weight = 3;
	at[2].node.weight = 2;
	for (unsigned i = 0; i < 100; i++) {
		size_t now = pick(p, 0);
		in_a_row = now == last ? in_a_row + 1 : 1;
		last = now;
		ck_assert_uint_le(in_a_row, 2);
	}
	ck_assert_uint_eq(picked[0], 50);
	ck_assert_uint_eq(picked[1], 30);
	ck_assert_uint_eq(picked[2], 20);
	policy_destroy(p);
}
END_TEST

START_TEST(least_connections_fills_the_emptiest_by_weight)
{
	struct policy *p = policy_create(CONF_LEAST_CONNECTIONS, BOUND);

	begin();
	at[0].node.weight = 2;
	for (unsigned i = 0; i < 400; i++)
		at[pick(p, 0)].connections++;
	ck_assert_uint_eq(at[0].connections, 200);
	ck_assert_uint_eq(at[1].connections, 100);
	ck_assert_uint_eq(at[2].connections, 100);
	policy_destroy(p);
}
END_TEST

START_TEST(least_connections_takes_turns_among_equals)
{
	struct policy *p = policy_create(CONF_LEAST_CONNECTIONS, BOUND);

	begin();
	for (unsigned i = 0; i < 30; i++)
		pick(p, 0);
	for (unsigned i = 0; i < COUNT; i++)
		ck_assert_uint_eq(picked[i], 10);
	policy_destroy(p);
}
END_TEST

START_TEST(shortest_response_waits_where_waiting_is_shortest)
{
	struct policy *p = policy_create(CONF_SHORTEST_RESPONSE, BOUND);

	begin();
	at[0].handshake_us = 2000;
	at[1].handshake_us = 500;
	at[2].handshake_us = 900;
	ck_assert_uint_eq(pick(p, 0), 1);
	at[1].handshakes = 1; /* 1000 us now */
	ck_assert_uint_eq(pick(p, 0), 2);
	at[2].handshakes = 5;
	at[1].handshakes = 7;
	ck_assert_uint_eq(pick(p, 0), 0);
	policy_destroy(p);
}
END_TEST

START_TEST(local_without_a_bound_stays_whatever_the_affinity_agent_has_to_do)
{
	struct policy *p = policy_create(CONF_LOCAL, 0);

	begin();
	at[1].handshakes = 10000;
	ck_assert_uint_eq(pick(p, 1), 1);
	policy_destroy(p);
}
END_TEST

START_TEST(local_stays_until_the_affinity_agent_is_clearly_busier)
{
	struct policy *p = policy_create(CONF_LOCAL, BOUND);

	begin();
	at[1].handshakes = 5;
	ck_assert_uint_eq(pick(p, 1), 1);
	at[1].handshakes = 100;
	at[0].handshakes = 2;
	at[2].handshakes = 1;
	ck_assert_uint_eq(pick(p, 1), 2);
	at[0].handshakes = at[2].handshakes = 100;
	ck_assert_uint_eq(pick(p, 1), 1);
	policy_destroy(p);
}
END_TEST

UNIT(policy)
{
	const TTest *const facts[] = {
		round_robin_is_even,
		weighted_follows_the_weights_and_spreads_them,
		least_connections_fills_the_emptiest_by_weight,
		least_connections_takes_turns_among_equals,
		shortest_response_waits_where_waiting_is_shortest,
		local_without_a_bound_stays_whatever_the_affinity_agent_has_to_do,
		local_stays_until_the_affinity_agent_is_clearly_busier,
	};

	return suite_run("policy", facts, SUITE_LEN(facts));
}
