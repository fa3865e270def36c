/* test_simulation.c: facts of simulated clusters whose outcome is known beforehand. */
#include <math.h>
#include <stdlib.h>

#include "bench/simulation/simulation.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const struct simulation_conf usual = { .agents = 5,
	.watched = 5,
	.handshakes_per_s = 1000,
	.run_ms = 3000,
	.delay_ms = 1,
	.jitter_ms = 1,
	.away_ms = 1500,
	.left_ms = 500,
	.turn_ms = 1,
	.heartbeat_ms = 100,
	.object_len = 298,
	.seed = 7 };

static struct simulation_result simulate(const struct simulation_conf *c)
{
	struct simulation_result r;

	ck_assert_int_eq(simulation_run(c, &r), 0);
	return r;
}

static uint64_t missed(const struct simulation_result *r)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < SIMULATION_RETURNS; i++)
		sum += r->returns[i].missed;
	return sum;
}

START_TEST(without_loss_every_session_comes_to_every_agent_once)
{
	struct simulation_conf c = usual;
	struct simulation_result r;

	c.jitter_ms = 0; /* an early object makes its receiver ask for the ones before */
	r = simulate(&c);
	ck_assert_uint_gt(r.sessions, 2500);
	ck_assert_uint_eq(r.objects, r.sent_objects);
	ck_assert_uint_eq(r.objects, r.sessions * (usual.agents - 1));
	ck_assert_uint_eq(r.numbers_missed + r.repeated + r.questions + r.duplicate, 0);
	ck_assert_double_eq(r.standing, 1);
	ck_assert_uint_le(histogram_percentile(r.staleness, 100), 4000000);
	free(r.staleness);
}
END_TEST

/* Beside a session, each handshake makes a live part or a word; other agents say more words. Everybody hears them. */
START_TEST(live_parts_and_words_come_to_every_agent_once)
{
	struct simulation_conf c = usual;
	struct simulation_result sessions = simulate(&c), r;

	c.live_len = 330;
	c.words = 2;
	for (c.live = SIMULATION_BROADCAST; c.live <= SIMULATION_CARRIED; c.live++) {
		r = simulate(&c);
		unsigned words = c.live == SIMULATION_CARRIED ? 3 : 2;

		ck_assert_uint_eq(r.objects, r.sessions * (usual.agents - 1));
		ck_assert_uint_eq(r.live_parts, c.live == SIMULATION_BROADCAST ? r.objects : 0);
		ck_assert_uint_eq(r.made_words, r.sessions * words);
		ck_assert_uint_eq(r.words, r.objects * words);
		ck_assert_double_gt(
			(double)r.bytes / (double)r.sessions, (double)sessions.bytes / (double)sessions.sessions);
		free(r.staleness);
	}
	free(sessions.staleness);
}
END_TEST

START_TEST(lost_datagrams_are_repaired)
{
	struct simulation_conf c = usual;
	struct simulation_result r;

	c.loss = 0.1;
	r = simulate(&c);
	ck_assert_uint_eq(r.objects, r.sent_objects);
	ck_assert_double_gt((double)r.numbers_missed, 0.05 * (double)r.sent_objects);
	ck_assert_double_lt((double)r.numbers_missed, 0.2 * (double)r.sent_objects);
	ck_assert_uint_ge(r.repeated, r.numbers_missed / 2);
	ck_assert_uint_eq(missed(&r), 0);
	free(r.staleness);
}
END_TEST

START_TEST(loss_makes_some_sessions_late)
{
	struct simulation_conf c = usual;
	struct simulation_result good = simulate(&c), bad;

	c.loss = 0.1;
	bad = simulate(&c);
	ck_assert_uint_gt(histogram_percentile(bad.staleness, 99), histogram_percentile(good.staleness, 99) * 3);
	free(good.staleness);
	free(bad.staleness);
}
END_TEST

/* The share of the sessions that an agent has as a replica, or as the origin that is not a replica. */
START_TEST(with_replicas_each_agent_has_its_part)
{
	for (unsigned replicas = 1; replicas <= 3; replicas++) {
		struct simulation_conf c = usual;
		struct simulation_result r;
		double n = c.agents, expected = (replicas + 1 - replicas / n) / n;

		c.replicas = replicas;
		r = simulate(&c);
		ck_assert_double_le(fabs(r.standing - expected), 0.02);
		ck_assert_uint_eq(r.objects, r.sent_objects);
		ck_assert_uint_eq(missed(&r), 0);
		ck_assert_uint_gt(r.returns[3].pulled, 0);
		free(r.staleness);
	}
}
END_TEST

START_TEST(replicas_send_less)
{
	struct simulation_conf c = usual;
	struct simulation_result all = simulate(&c), two;

	c.replicas = 2;
	two = simulate(&c);
	ck_assert_double_lt((double)two.bytes, 0.6 * (double)all.bytes);
	free(all.staleness);
	free(two.staleness);
}
END_TEST

START_TEST(a_sample_of_receivers_tells_what_all_would)
{
	struct simulation_conf c = usual;
	struct simulation_result all, some;

	c.agents = 30;
	c.loss = 0.05;
	c.watched = 30;
	all = simulate(&c);
	c.watched = 6;
	some = simulate(&c);
	ck_assert_double_le(fabs((double)all.bytes / 30 / ((double)some.bytes / 6) - 1), 0.05);
	ck_assert_double_le(fabs((double)all.numbers_missed / 30 / ((double)some.numbers_missed / 6) - 1), 0.1);
	free(all.staleness);
	free(some.staleness);
}
END_TEST

START_TEST(clients_of_dead_agents_resume_at_others)
{
	struct simulation_conf c = usual;
	struct simulation_result r;

	c.leaves_per_min = 60;
	for (c.replicas = 0; c.replicas <= 2; c.replicas += 2) {
		uint64_t returned = 0;

		r = simulate(&c);
		for (unsigned i = 0; i < SIMULATION_RETURNS; i++)
			returned += r.returns[i].returned;
		ck_assert_double_lt(r.agents_up, 5);
		ck_assert_double_lt((double)missed(&r), 0.02 * (double)returned);
		free(r.staleness);
	}
}
END_TEST

START_TEST(the_same_seed_has_the_same_outcome)
{
	struct simulation_conf c = usual;
	struct simulation_result one, same, other;

	c.loss = 0.1;
	one = simulate(&c);
	same = simulate(&c);
	c.seed++;
	other = simulate(&c);
	ck_assert_uint_eq(one.bytes, same.bytes);
	ck_assert_uint_eq(one.numbers_missed, same.numbers_missed);
	ck_assert_uint_eq(one.questions, same.questions);
	ck_assert_uint_ne(one.bytes, other.bytes);
	free(one.staleness);
	free(same.staleness);
	free(other.staleness);
}
END_TEST

UNIT(simulation)
{
	const TTest *const facts[] = {
		without_loss_every_session_comes_to_every_agent_once,
		live_parts_and_words_come_to_every_agent_once,
		lost_datagrams_are_repaired,
		loss_makes_some_sessions_late,
		with_replicas_each_agent_has_its_part,
		replicas_send_less,
		a_sample_of_receivers_tells_what_all_would,
		clients_of_dead_agents_resume_at_others,
		the_same_seed_has_the_same_outcome,
	};

	return suite_run_within(60, "simulation", facts, SUITE_LEN(facts));
}
