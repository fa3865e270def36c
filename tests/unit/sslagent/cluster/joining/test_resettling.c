/* test_resettling.c: who is a member, and who gives a session to an agent that enters. */
#include <sodium.h>
#include <stdatomic.h>
#include <string.h>

#include "sslagent/sessions/store.h"
#include "tests/unit/sslagent/cluster/joining/lone_joining.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

static struct lone_joining agents[LONE_AGENTS];

static void setup(void)
{
	for (unsigned i = 0; i < LONE_AGENTS; i++)
		lone_joining_start(&agents[i], i, 1);
}

static void teardown(void)
{
	for (unsigned i = 0; i < LONE_AGENTS; i++)
		lone_joining_stop(&agents[i]);
}

static enum membership member(const struct lone_joining *l, unsigned agent)
{
	return placement_get(l->peers.placement, agent);
}

START_TEST(who_lives_is_a_member_and_who_is_away_for_long_is_none)
{
	struct lone_joining *l = &agents[1];

	ck_assert_int_eq(member(l, 1), MEMBER_HERE);
	ck_assert_int_eq(member(l, 0), MEMBER_AWAY);
	atomic_store(&l->peers.flags[0].alive, 1);
	resettling_tick(&l->joining, 1000);
	ck_assert_int_eq(member(l, 0), MEMBER_HERE);
	atomic_store(&l->peers.flags[0].alive, 0);
	resettling_tick(&l->joining, 1000 + LONE_LEFT_MS - 1);
	ck_assert_int_eq(member(l, 0), MEMBER_HERE);
	resettling_tick(&l->joining, 1000 + LONE_LEFT_MS);
	ck_assert_int_eq(member(l, 0), MEMBER_AWAY);
}
END_TEST

START_TEST(one_that_left_is_asked_for_its_part_when_it_comes_back)
{
	struct lone_joining *l = &agents[1];

	atomic_store(&l->peers.flags[0].alive, 1);
	resettling_tick(&l->joining, 1000);
	l->joining.with[0].source = SOURCE_TAKEN;
	atomic_store(&l->peers.flags[0].alive, 0);
	resettling_tick(&l->joining, 1000 + LONE_LEFT_MS);
	ck_assert_int_eq(l->joining.with[0].source, SOURCE_UNASKED);
}
END_TEST

START_TEST(a_change_is_settled_only_by_an_agent_that_is_ready)
{
	struct lone_joining *l = &agents[1];
	int64_t now_ms = 1000;

	atomic_store(&l->peers.flags[0].alive, 1);
	resettling_tick(&l->joining, now_ms);
	ck_assert_int_eq(l->joining.resettling.state, MEMBERS_CHANGED);
	l->peers.at[0]->readiness = PEER_READY;
	resettling_tick(&l->joining, now_ms += 60000);
	ck_assert_int_eq(l->joining.resettling.state, MEMBERS_CHANGED);
	l->joining.is_ready = true;
	resettling_tick(&l->joining, now_ms += 5);
	ck_assert_int_eq(l->joining.resettling.state, RESETTLING);
	resettling_tick(&l->joining, now_ms += 5); /* there is no session to move */
	ck_assert_int_eq(l->joining.resettling.state, RESETTLED);
}
END_TEST

/* So it gets each session once, and no two agents send it the same. */
START_TEST(exactly_one_agent_gives_a_session_to_a_holder_that_enters)
{
	struct session s = { 0 };

	for (unsigned i = 0; i < LONE_AGENTS; i++)
		for (unsigned agent = 0; agent < LONE_AGENTS; agent++)
			placement_set(agents[i].peers.placement, agent, MEMBER_HERE);
	for (unsigned n = 0; n < 200; n++) {
		unsigned givers = 0;

		randombytes_buf(s.id, sizeof(s.id));
		const struct placement_ranks holders = placement_rank(agents[0].peers.placement, s.id, 1);
		for (unsigned i = 0; i < 2; i++)
			givers += resettling_gives(&agents[i].peers, agents[i].peers.at[2], &s);
		ck_assert_uint_eq(givers, placement_has(&holders, 2) ? 1 : 0);
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, who_lives_is_a_member_and_who_is_away_for_long_is_none);
	tcase_add_test(tcase, one_that_left_is_asked_for_its_part_when_it_comes_back);
	tcase_add_test(tcase, a_change_is_settled_only_by_an_agent_that_is_ready);
	tcase_add_test(tcase, exactly_one_agent_gives_a_session_to_a_holder_that_enters);
}

UNIT(resettling)
{
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	return run_suite("resettling", add);
}
