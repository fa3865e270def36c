/* test_placement.c: facts of which agents hold a session. */
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "proto/placement.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define AGENTS   8u
#define IDS      20000u
#define REPLICAS 2u

static struct placement *placement;

static struct placement *of_agents(unsigned agents)
{
	struct placement *p = placement_create(agents);

	ck_assert_ptr_nonnull(p);
	for (unsigned agent = 0; agent < agents; agent++) {
		char name[16];

		snprintf(name, sizeof(name), "a%u", agent + 1);
		placement_name(p, agent, name);
		placement_set(p, agent, MEMBER_HERE);
	}
	return p;
}

static void setup(void)
{
	placement = of_agents(AGENTS);
}

/* Ids that differ in few bits: the check and the random part of real ones differ in many. */
static const uint8_t *id_of(uint32_t number)
{
	static uint8_t id[SESSION_ID_LEN];

	memcpy(id + 8, &number, sizeof(number));
	return id;
}

START_TEST(holders_are_as_many_as_wanted_and_different)
{
	for (uint32_t i = 0; i < 1000; i++) {
		struct placement_ranks r = placement_rank(placement, id_of(i), REPLICAS);

		ck_assert_uint_eq(r.count, REPLICAS);
		ck_assert_uint_ne(r.agents[0], r.agents[1]);
	}
}
END_TEST

START_TEST(all_members_hold_when_more_are_wanted)
{
	struct placement_ranks r;

	for (unsigned agent = 3; agent < AGENTS; agent++)
		placement_set(placement, agent, MEMBER_AWAY);
	r = placement_rank(placement, id_of(1), 5);
	ck_assert_uint_eq(r.count, 3);
	for (unsigned agent = 0; agent < 3; agent++)
		ck_assert(placement_has(&r, agent));
	ck_assert(!placement_has(&r, 3));
}
END_TEST

START_TEST(fewer_wanted_are_the_first_of_more)
{
	for (uint32_t i = 0; i < 1000; i++) {
		struct placement_ranks few = placement_rank(placement, id_of(i), 2);
		struct placement_ranks many = placement_rank(placement, id_of(i), 5);

		ck_assert_uint_eq(many.count, 5);
		ck_assert_uint_eq(few.agents[0], many.agents[0]);
		ck_assert_uint_eq(few.agents[1], many.agents[1]);
	}
}
END_TEST

START_TEST(every_agent_holds_its_share)
{
	double share = (double)REPLICAS / AGENTS, slack = 5 * sqrt(IDS * share * (1 - share));
	unsigned held[AGENTS] = { 0 };

	for (uint32_t i = 0; i < IDS; i++) {
		struct placement_ranks r = placement_rank(placement, id_of(i), REPLICAS);

		for (unsigned at = 0; at < r.count; at++)
			held[r.agents[at]]++;
	}
	for (unsigned agent = 0; agent < AGENTS; agent++)
		ck_assert_double_le(fabs(held[agent] - IDS * share), slack);
}
END_TEST

START_TEST(one_that_leaves_moves_only_what_it_held)
{
	for (uint32_t i = 0; i < 2000; i++) {
		struct placement_ranks before = placement_rank(placement, id_of(i), REPLICAS + 1), after;

		placement_set(placement, 5, MEMBER_AWAY);
		after = placement_rank(placement, id_of(i), REPLICAS);
		placement_set(placement, 5, MEMBER_HERE);
		for (unsigned at = 0, was = 0; at < REPLICAS; at++, was++) {
			was += before.agents[was] == 5;
			ck_assert_uint_eq(after.agents[at], before.agents[was]);
		}
	}
}
END_TEST

START_TEST(every_process_comes_to_the_same_answer)
{
	static const uint16_t known[4][REPLICAS] = { { 0, 6 }, { 3, 7 }, { 4, 7 }, { 4, 5 } };
	uint8_t id[SESSION_ID_LEN] = { 0 };

	for (unsigned i = 0; i < 4; i++) {
		struct placement_ranks r;

		memset(id, (int)(i + 1), sizeof(id));
		r = placement_rank(placement, id, REPLICAS);
		ck_assert_mem_eq(r.agents, known[i], sizeof(known[i]));
	}
}
END_TEST

START_TEST(a_copy_has_the_members_of_its_original)
{
	struct placement *copy = of_agents(AGENTS);

	placement_set(placement, 2, MEMBER_AWAY);
	placement_copy(copy, placement);
	for (unsigned agent = 0; agent < AGENTS; agent++)
		ck_assert_int_eq(placement_get(copy, agent), agent == 2 ? MEMBER_AWAY : MEMBER_HERE);
	placement_destroy(copy);
}
END_TEST

START_TEST(without_members_nobody_holds)
{
	struct placement *empty = placement_create(3);

	ck_assert_uint_eq(placement_rank(empty, id_of(1), REPLICAS).count, 0);
	placement_destroy(empty);
}
END_TEST

START_TEST(destroying_nothing_is_legal)
{
	placement_destroy(NULL);
}
END_TEST

UNIT(placement)
{
	const TTest *facts[] = {
		holders_are_as_many_as_wanted_and_different,
		all_members_hold_when_more_are_wanted,
		fewer_wanted_are_the_first_of_more,
		every_agent_holds_its_share,
		one_that_leaves_moves_only_what_it_held,
		every_process_comes_to_the_same_answer,
		a_copy_has_the_members_of_its_original,
		without_members_nobody_holds,
		destroying_nothing_is_legal,
	};
	return suite_run_with("placement", setup, facts, SUITE_LEN(facts));
}
