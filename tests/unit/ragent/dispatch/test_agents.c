/* test_agents.c: facts of the table of agents. */
#include <string.h>

#include "proto/error.h"
#include "ragent/dispatch/agents.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct conf_agent rows[2] = { { .name = (char *)"a1", .weight = 1, .workers = 1 },
	{ .name = (char *)"a2", .weight = 1, .workers = 1 } };
static const struct conf conf = { .agents = rows, .agent_count = 2 };
static struct agents *a;

static const struct agent_load ready = { .ready = AGENT_READY, .handshake_us = 500, .sessions = 7 };

static const char *state(int agent)
{
	struct agent_status s;

	agents_status(a, agent, &s);
	return s.state;
}

START_TEST(an_agent_takes_something_new_once_it_said_that_it_is_ready)
{
	a = agents_create(&conf);
	ck_assert_str_eq(state(0), "lost");
	agents_link_up(a, 0, 1);
	ck_assert_str_eq(state(0), "joining");
	ck_assert(!agents_take_new(a, 0));
	agents_set_load(a, 0, &ready);
	ck_assert_str_eq(state(0), "ready");
	ck_assert(agents_take_new(a, 0));
	ck_assert(!agents_take_new(a, 1));
	agents_destroy(a);
}
END_TEST

START_TEST(a_leaving_agent_takes_nothing_new_until_it_is_born_again)
{
	a = agents_create(&conf);
	agents_link_up(a, 0, 1);
	agents_set_load(a, 0, &ready);
	agents_drain(a, 0, DRAIN_LEAVING, 100, 50);
	agents_set_load(a, 0, &ready);
	ck_assert(!agents_take_new(a, 0));
	ck_assert_str_eq(state(0), "leaving");
	agents_link_up(a, 0, 1); /* a second link of the same process */
	ck_assert(!agents_take_new(a, 0));
	agents_link_down(a, 0);
	agents_link_down(a, 0);
	agents_link_up(a, 0, 2);
	agents_set_load(a, 0, &ready);
	ck_assert(agents_take_new(a, 0));
	agents_destroy(a);
}
END_TEST

static void come_up(int agent, uint64_t boot_id)
{
	agents_link_up(a, agent, boot_id);
	agents_set_load(a, agent, &ready);
}

START_TEST(an_operators_drain_outlasts_boots)
{
	a = agents_create(&conf);
	come_up(0, 1);
	agents_enter(a, 0, AGENT_OWNERSHIPS);
	agents_drain(a, 0, DRAIN_BY_OPERATOR, 100, 50);
	ck_assert(!agents_take_new(a, 0));
	ck_assert_str_eq(state(0), "draining");
	agents_leave(a, 0, AGENT_OWNERSHIPS);
	drain_settle(agents_drain_of(a, 0), 120, agents_share(a, 0, AGENT_OWNERSHIPS));
	ck_assert_str_eq(state(0), "drained");
	agents_link_down(a, 0);
	come_up(0, 2);
	ck_assert(!agents_take_new(a, 0));
	ck_assert_int_eq(agents_undrain(a, 0), 0);
	ck_assert(agents_take_new(a, 0));
	ck_assert_int_eq(agents_undrain(a, 0), CSSL_E_STATE);
	agents_destroy(a);
}
END_TEST

START_TEST(an_agent_that_leaves_while_an_operator_drains_it_is_free_with_its_next_boot)
{
	a = agents_create(&conf);
	come_up(0, 1);
	agents_drain(a, 0, DRAIN_BY_OPERATOR, 100, 50);
	agents_drain(a, 0, DRAIN_LEAVING, 110, 500);
	ck_assert_uint_eq(drain_left_ms(agents_drain_of(a, 0), 110), 40);
	ck_assert_int_eq(agents_undrain(a, 0), 0);
	ck_assert_str_eq(state(0), "leaving");
	ck_assert(!agents_take_new(a, 0));
	ck_assert_int_eq(agents_undrain(a, 0), CSSL_E_STATE);
	agents_link_down(a, 0);
	come_up(0, 2);
	ck_assert(agents_take_new(a, 0));
	agents_destroy(a);
}
END_TEST

START_TEST(a_leaving_agents_drain_has_one_deadline_however_many_links_say_so)
{
	a = agents_create(&conf);
	come_up(0, 1);
	agents_drain(a, 0, DRAIN_LEAVING, 100, 50);
	agents_drain(a, 0, DRAIN_LEAVING, 120, 50);
	ck_assert_uint_eq(drain_left_ms(agents_drain_of(a, 0), 100), 50);
	agents_destroy(a);
}
END_TEST

/* Has it changed since this was asked last? */
static int generation_is_new(void)
{
	static uint64_t before;
	int is_new = agents_generation(a) != before;

	before = agents_generation(a);
	return is_new;
}

START_TEST(the_generation_changes_with_who_takes_new_work_and_with_weights)
{
	a = agents_create(&conf);
	generation_is_new();
	agents_link_up(a, 0, 1);
	ck_assert(generation_is_new());
	agents_set_load(a, 0, &ready);
	ck_assert(generation_is_new());
	agents_set_load(a, 0, &ready);
	ck_assert(!generation_is_new());
	agents_link_up(a, 0, 1);
	ck_assert(!generation_is_new());
	agents_link_down(a, 0);
	ck_assert(!generation_is_new());
	agents_drain(a, 0, DRAIN_BY_OPERATOR, 1, 1);
	ck_assert(generation_is_new());
	agents_undrain(a, 0);
	ck_assert(generation_is_new());
	agents_set_weight(a, 0, 2);
	ck_assert(generation_is_new());
	agents_link_down(a, 0);
	ck_assert(generation_is_new());
	agents_destroy(a);
}
END_TEST

START_TEST(an_agent_without_a_backend_takes_its_share_and_is_not_called_ready)
{
	struct agent_load cut_off = ready;
	struct agent_status s;

	cut_off.backends = AGENT_CUT_OFF;
	cut_off.failing_backends = "web at 192.0.2.1:80: connection refused";
	a = agents_create(&conf);
	agents_link_up(a, 0, 1);
	agents_set_load(a, 0, &cut_off);
	ck_assert_str_eq(state(0), "no backend");
	ck_assert(agents_take_new(a, 0));
	agents_status(a, 0, &s);
	ck_assert_str_eq(s.failing_backends, cut_off.failing_backends);
	agents_set_load(a, 0, &ready);
	ck_assert_str_eq(state(0), "ready");
	agents_set_load(a, 0, &cut_off);
	agents_link_down(a, 0);
	agents_status(a, 0, &s);
	ck_assert_str_eq(s.failing_backends, ""); /* nobody knows */
	agents_link_up(a, 0, 2);
	agents_status(a, 0, &s);
	ck_assert_str_eq(s.failing_backends, "");
	cut_off.failing_backends = "a\"b\\c\nd\177e\033";
	agents_set_load(a, 0, &cut_off);
	agents_status(a, 0, &s);
	ck_assert_str_eq(s.failing_backends, "a?b?c?d?e?"); /* an agent may be hostile */
	agents_destroy(a);
}
END_TEST

START_TEST(an_agent_is_lost_when_all_its_links_are)
{
	a = agents_create(&conf);
	agents_link_up(a, 0, 1);
	agents_link_up(a, 0, 1);
	agents_set_load(a, 0, &ready);
	agents_link_down(a, 0);
	ck_assert_str_eq(state(0), "ready");
	agents_link_down(a, 0);
	ck_assert_str_eq(state(0), "lost");
	agents_link_up(a, 0, 1);
	ck_assert_str_eq(state(0), "joining"); /* what it said before the loss counts no more */
	agents_destroy(a);
}
END_TEST

START_TEST(an_agent_is_suspect_when_every_link_is_silent)
{
	a = agents_create(&conf);
	agents_link_up(a, 0, 1);
	agents_link_up(a, 0, 1);
	agents_set_load(a, 0, &ready);
	agents_link_suspect(a, 0);
	ck_assert_str_eq(state(0), "ready");
	agents_link_suspect(a, 0);
	ck_assert_str_eq(state(0), "suspect");
	agents_link_recovered(a, 0);
	ck_assert_str_eq(state(0), "ready");
	agents_destroy(a);
}
END_TEST

START_TEST(shares_are_counted_per_agent)
{
	struct candidate c;

	a = agents_create(&conf);
	agents_enter(a, 0, AGENT_CONNECTIONS);
	agents_enter(a, 0, AGENT_CONNECTIONS);
	agents_enter(a, 0, AGENT_HANDSHAKES);
	agents_leave(a, 0, AGENT_CONNECTIONS);
	agents_candidate(a, 0, &c);
	ck_assert_uint_eq(c.connections, 1);
	ck_assert_uint_eq(c.handshakes, 1);
	agents_candidate(a, 1, &c);
	ck_assert_uint_eq(c.connections + c.handshakes, 0);
	agents_destroy(a);
}
END_TEST

START_TEST(version_and_clock_are_those_of_its_last_word)
{
	struct agent_status s;
	struct agent_load load = ready;

	load.version = "1.2-of-a-release-with-a-name-that-has-no-room";
	load.clock = AGENT_CLOCK_KNOWN;
	load.clock_offset_ms = -3600000;
	a = agents_create(&conf);
	agents_link_up(a, 0, 1);
	agents_status(a, 0, &s);
	ck_assert_str_eq(s.version, "");
	ck_assert_int_eq(s.clock, AGENT_CLOCK_UNKNOWN);
	agents_set_load(a, 0, &load);
	agents_status(a, 0, &s);
	ck_assert_str_eq(s.version, "1.2-of-a-release-with-a-name-th");
	ck_assert_int_eq(s.clock_offset_ms, -3600000);
	agents_link_down(a, 0);
	agents_status(a, 0, &s);
	ck_assert_str_ne(s.version, "");
	ck_assert_int_eq(s.clock, AGENT_CLOCK_UNKNOWN);
	agents_link_up(a, 0, 2); /* another boot may be another release */
	agents_status(a, 0, &s);
	ck_assert_str_eq(s.version, "");
	agents_destroy(a);
}
END_TEST

START_TEST(agents_are_found_by_name)
{
	a = agents_create(&conf);
	ck_assert_int_eq(agents_find(a, "a2"), 1);
	ck_assert_int_eq(agents_find(a, "a3"), NO_AGENT);
	ck_assert_str_eq(agents_name(a, NO_AGENT), "none");
	agents_destroy(a);
}
END_TEST

UNIT(agents)
{
	const TTest *const facts[] = {
		an_agent_takes_something_new_once_it_said_that_it_is_ready,
		a_leaving_agent_takes_nothing_new_until_it_is_born_again,
		an_operators_drain_outlasts_boots,
		an_agent_that_leaves_while_an_operator_drains_it_is_free_with_its_next_boot,
		a_leaving_agents_drain_has_one_deadline_however_many_links_say_so,
		the_generation_changes_with_who_takes_new_work_and_with_weights,
		an_agent_without_a_backend_takes_its_share_and_is_not_called_ready,
		an_agent_is_lost_when_all_its_links_are,
		an_agent_is_suspect_when_every_link_is_silent,
		shares_are_counted_per_agent,
		version_and_clock_are_those_of_its_last_word,
		agents_are_found_by_name,
	};

	return suite_run("agents", facts, SUITE_LEN(facts));
}
