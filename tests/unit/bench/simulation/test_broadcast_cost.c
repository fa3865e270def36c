/* test_broadcast_cost.c: facts of the parts of a cost. */
#include <math.h>

#include "bench/simulation/broadcast_cost.h"
#include "tests/unit/proto/suite.h"

static const struct broadcast_cost known = { 1000, 4000, 500, 3000, 1500 };

/* A run as one would measure it if the cost were @known. */
static struct broadcast_run run_of(unsigned peers, double per_datagram)
{
	struct broadcast_run r = { .peers = peers, .objects = 1000, .datagrams = 1000 / per_datagram };

	r.sender_ns = broadcast_cost_sender_ns(&known, 1, 1 / per_datagram, peers);
	r.receiver_ns = broadcast_cost_receiver_ns(&known, 1, 1 / per_datagram);
	return r;
}

static void near(double found, double expected)
{
	ck_assert_double_le(fabs(found - expected), 0.01 * expected);
}

START_TEST(a_cost_is_the_sum_of_its_parts)
{
	near(broadcast_cost_sender_ns(&known, 8, 2, 10), 8 * 1000 + 2 * 4000 + 2 * 10 * 500);
	near(broadcast_cost_receiver_ns(&known, 8, 2), 8 * 1500 + 2 * 3000);
}
END_TEST

START_TEST(the_fit_finds_the_parts_that_the_runs_are_made_of)
{
	struct broadcast_run runs[] = { run_of(1, 1), run_of(1, 4), run_of(6, 1), run_of(6, 4) };
	struct broadcast_cost found;

	broadcast_cost_fit(runs, 4, &found);
	near(found.object_ns, known.object_ns);
	near(found.datagram_ns, known.datagram_ns);
	near(found.datagram_peer_ns, known.datagram_peer_ns);
	near(found.received_datagram_ns, known.received_datagram_ns);
	near(found.received_object_ns, known.received_object_ns);
}
END_TEST

START_TEST(no_part_of_the_fit_is_below_nothing)
{
	struct broadcast_run runs[] = { run_of(1, 1), run_of(1, 4), run_of(6, 1), run_of(6, 4) };
	struct broadcast_cost found;

	runs[1].receiver_ns = runs[0].receiver_ns * 2; /* as a disturbed machine measures */
	runs[3].receiver_ns = runs[2].receiver_ns * 2;
	broadcast_cost_fit(runs, 4, &found);
	ck_assert_double_ge(found.received_datagram_ns, 0);
	ck_assert_double_ge(found.received_object_ns, 0);
}
END_TEST

int main(void)
{
	const TTest *const facts[] = {
		a_cost_is_the_sum_of_its_parts,
		the_fit_finds_the_parts_that_the_runs_are_made_of,
		no_part_of_the_fit_is_below_nothing,
	};

	return suite_run("broadcast_cost", facts, SUITE_LEN(facts));
}
