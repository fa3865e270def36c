/* test_rendezvous.c: facts of the rendezvous hash. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/rendezvous.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define KEYS  60000u
#define NODES 5u

static void nodes_make(struct rendezvous_node nodes[static NODES])
{
	for (unsigned i = 0; i < NODES; i++) {
		char name[16];
		snprintf(name, sizeof(name), "agent%u", i);
		nodes[i] = (struct rendezvous_node){ .hash = rendezvous_hash(name, strlen(name)), .weight = 1 };
	}
}

/* Neighbouring addresses, as a real network has them. */
static uint64_t key_of(uint32_t number)
{
	uint8_t address[4] = { 10, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number };
	return rendezvous_hash(address, sizeof(address));
}

static void count_keys(const struct rendezvous_node nodes[static NODES], unsigned counts[static NODES])
{
	memset(counts, 0, NODES * sizeof(*counts));
	for (uint32_t k = 0; k < KEYS; k++)
		counts[rendezvous_pick(nodes, NODES, key_of(k), NULL, NULL)]++;
}

/* Five standard deviations of a binomial distribution. */
static void assert_share(unsigned count, double share)
{
	double slack = 5 * sqrt(KEYS * share * (1 - share));
	ck_assert_double_le(fabs(count - KEYS * share), slack);
}

static int is_not(const void *ctx, size_t index)
{
	return index != *(const size_t *)ctx;
}

static int none(const void *ctx, size_t index)
{
	return 0;
}

START_TEST(equal_weights_share_equally)
{
	struct rendezvous_node nodes[NODES];
	unsigned counts[NODES];
	nodes_make(nodes);
	count_keys(nodes, counts);
	for (unsigned i = 0; i < NODES; i++)
		assert_share(counts[i], 1.0 / NODES);
}
END_TEST

START_TEST(weights_shift_keys_in_proportion)
{
	static const double weights[NODES] = { 1, 2, 3, 0.5, 3.5 };
	struct rendezvous_node nodes[NODES];
	unsigned counts[NODES];
	nodes_make(nodes);
	for (unsigned i = 0; i < NODES; i++)
		nodes[i].weight = weights[i];
	count_keys(nodes, counts);
	for (unsigned i = 0; i < NODES; i++)
		assert_share(counts[i], weights[i] / 10);
}
END_TEST

START_TEST(raising_a_weight_moves_keys_only_to_that_node)
{
	struct rendezvous_node nodes[NODES], heavier[NODES];
	unsigned moved = 0;
	nodes_make(nodes);
	nodes_make(heavier);
	heavier[3].weight = 2;
	for (uint32_t k = 0; k < KEYS; k++) {
		int before = rendezvous_pick(nodes, NODES, key_of(k), NULL, NULL);
		int after = rendezvous_pick(heavier, NODES, key_of(k), NULL, NULL);
		ck_assert(after == before || after == 3);
		moved += after != before;
	}
	assert_share(moved, 2.0 / 6 - 1.0 / 5);
}
END_TEST

START_TEST(removing_a_node_moves_only_its_keys)
{
	struct rendezvous_node nodes[NODES];
	size_t gone = 2;
	unsigned inherited[NODES] = { 0 };
	nodes_make(nodes);
	for (uint32_t k = 0; k < KEYS; k++) {
		int before = rendezvous_pick(nodes, NODES, key_of(k), NULL, NULL);
		int after = rendezvous_pick(nodes, NODES, key_of(k), is_not, &gone);
		if (before != 2)
			ck_assert_int_eq(after, before);
		else
			inherited[after]++;
	}
	/* ... and spreads them over all others. */
	for (unsigned i = 0; i < NODES; i++) {
		if (i != gone)
			assert_share(inherited[i], 1.0 / NODES / (NODES - 1));
	}
	ck_assert_uint_eq(inherited[gone], 0);
}
END_TEST

START_TEST(the_order_of_the_nodes_does_not_matter)
{
	struct rendezvous_node nodes[NODES], turned[NODES];
	nodes_make(nodes);
	for (unsigned i = 0; i < NODES; i++)
		turned[i] = nodes[NODES - 1 - i];
	for (uint32_t k = 0; k < 1000; k++) {
		int straight = rendezvous_pick(nodes, NODES, key_of(k), NULL, NULL);
		ck_assert_int_eq(rendezvous_pick(turned, NODES, key_of(k), NULL, NULL), (int)NODES - 1 - straight);
	}
}
END_TEST

START_TEST(small_numbers_as_keys_spread_too)
{
	struct rendezvous_node nodes[NODES];
	unsigned counts[NODES] = { 0 };
	nodes_make(nodes);
	/* Also with node hashes that are small numbers. */
	for (unsigned i = 0; i < NODES; i++)
		nodes[i].hash = i;
	for (uint64_t k = 0; k < KEYS; k++)
		counts[rendezvous_pick(nodes, NODES, k, NULL, NULL)]++;
	for (unsigned i = 0; i < NODES; i++)
		assert_share(counts[i], 1.0 / NODES);
}
END_TEST

START_TEST(weight_zero_takes_no_keys)
{
	struct rendezvous_node nodes[NODES];
	unsigned counts[NODES];
	nodes_make(nodes);
	nodes[1].weight = 0;
	count_keys(nodes, counts);
	ck_assert_uint_eq(counts[1], 0);
}
END_TEST

START_TEST(without_an_allowed_node_nothing_is_picked)
{
	struct rendezvous_node nodes[NODES];
	nodes_make(nodes);
	ck_assert_int_eq(rendezvous_pick(nodes, 0, 1, NULL, NULL), -1);
	ck_assert_int_eq(rendezvous_pick(nodes, NODES, 1, none, NULL), -1);
	for (unsigned i = 0; i < NODES; i++)
		nodes[i].weight = 0;
	ck_assert_int_eq(rendezvous_pick(nodes, NODES, 1, NULL, NULL), -1);
}
END_TEST

START_TEST(the_hash_is_the_same_in_every_release)
{
	/* Two releases in one cluster must choose the same agent for a key. */
	ck_assert_uint_eq(rendezvous_hash("agent0", 6), UINT64_C(0x2663c44306b66314));
	ck_assert_uint_eq(rendezvous_hash("", 0), UINT64_C(0xc59761c97b795969));
}
END_TEST

UNIT(rendezvous)
{
	const TTest *facts[] = {
		equal_weights_share_equally,
		weights_shift_keys_in_proportion,
		raising_a_weight_moves_keys_only_to_that_node,
		removing_a_node_moves_only_its_keys,
		the_order_of_the_nodes_does_not_matter,
		small_numbers_as_keys_spread_too,
		weight_zero_takes_no_keys,
		without_an_allowed_node_nothing_is_picked,
		the_hash_is_the_same_in_every_release,
	};
	return suite_run("rendezvous", facts, SUITE_LEN(facts));
}
