/* test_broadcast_cost.c: facts of the parts of a cost. */
#include <math.h>

#include "bench/broadcast/broadcast_cost.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const struct broadcast_cost known = { { 1000, 1200, 600 }, 4000, 500, 3000, { 1500, 2000, 700 } };

/* A run as one would measure it if the cost were @known. */
static struct broadcast_run run_of_kind(enum broadcast_kind kind, unsigned peers, double per_datagram)
{
	struct broadcast_run r = { .kind = kind, .peers = peers, .objects = 1000, .datagrams = 1000 / per_datagram };

	r.sender_ns = known.object_ns[kind] + (known.datagram_ns + peers * known.datagram_peer_ns) / per_datagram;
	r.receiver_ns = known.received_object_ns[kind] + known.received_datagram_ns / per_datagram;
	return r;
}

static struct broadcast_run run_of(unsigned peers, double per_datagram)
{
	return run_of_kind(BROADCAST_SESSION, peers, per_datagram);
}

static void near(double found, double expected)
{
	ck_assert_double_le(fabs(found - expected), 0.01 * expected);
}

START_TEST(the_fit_finds_the_parts_that_the_runs_are_made_of)
{
	struct broadcast_run runs[4 * BROADCAST_KINDS];
	struct broadcast_cost found;

	for (unsigned kind = 0; kind < BROADCAST_KINDS; kind++)
		for (unsigned i = 0; i < 4; i++)
			runs[4 * kind + i] = run_of_kind(kind, i < 2 ? 1 : 6, (i % 2 ? 4 : 1) + kind);
	broadcast_cost_fit(runs, 4 * BROADCAST_KINDS, &found);
	for (unsigned kind = 0; kind < BROADCAST_KINDS; kind++) {
		near(found.object_ns[kind], known.object_ns[kind]);
		near(found.received_object_ns[kind], known.received_object_ns[kind]);
	}
	near(found.datagram_ns, known.datagram_ns);
	near(found.datagram_peer_ns, known.datagram_peer_ns);
	near(found.received_datagram_ns, known.received_datagram_ns);
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
	ck_assert_double_ge(found.received_object_ns[BROADCAST_SESSION], 0);
}
END_TEST

UNIT(broadcast_cost)
{
	const TTest *const facts[] = {
		the_fit_finds_the_parts_that_the_runs_are_made_of,
		no_part_of_the_fit_is_below_nothing,
	};

	return suite_run("broadcast_cost", facts, SUITE_LEN(facts));
}
