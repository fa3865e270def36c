/* test_simulation_reality.c: three real agents and three simulated ones, at the same rate and with the same loss, do
 * the same: within a quarter, as the real ones' turns are as long as the machine makes them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench/simulation/agents_here.h"
#include "bench/simulation/broadcast_cost.h"
#include "bench/simulation/simulation.h"
#include "net/fault.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define AGENTS      3u
#define ROUNDS      600u
#define LOSS        0.1
#define PAUSE_MS    5 /* so that hardly two sessions share a turn, here or there */
#define SETTLE_MS   1500
#define TOLERANCE   0.25
#define LIVE_LEN    BROADCAST_LIVE_LEN
#define OBJECTS     (2 * ROUNDS * AGENTS * (AGENTS - 1)) /* heard, of all: sessions and live parts */
#define PATIENCE_MS 10000

static char rules_path[] = "/tmp/cssl-simulation-XXXXXX";

static void pause_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

static void lose(void)
{
	int fd = mkstemp(rules_path);
	FILE *f = fdopen(fd, "w");

	ck_assert_ptr_nonnull(f);
	fprintf(f, "udp.send drop %g\n", LOSS);
	fclose(f);
	setenv("CSSL_FAULTS", rules_path, 1);
	fault_start("bench");
}

static uint64_t counted(struct agents_here *a, enum agent_counter which)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < AGENTS; i++)
		sum += agents_here_counted(a, i, which);
	return sum;
}

struct told {
	double objects, missed, repeated, datagrams, bytes;
};

static struct told tell(struct agents_here *a)
{
	return (struct told){ (double)counted(a, COUNT_OBJECTS_RECEIVED), (double)counted(a, COUNT_OBJECTS_MISSED),
		(double)counted(a, COUNT_OBJECTS_REPEATED), (double)counted(a, COUNT_DATAGRAMS_SENT),
		(double)counted(a, COUNT_DATAGRAM_BYTES_SENT) };
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Each handshake makes a session and a live part, as by default. Every object reached every other agent. The result is
 * for one object, without the messages that agents also send while no object is made.
 */
static struct told really(double *per_s)
{
	struct agents_here *a = agents_here_start(
		&(struct agents_here_conf){ .agents = AGENTS, .live = CONF_LIVE_BROADCAST, .store_bytes = 64 << 20 });
	struct told before, after, out;
	double begun;

	pause_ms(SETTLE_MS);
	before = tell(a);
	begun = seconds();
	for (unsigned i = 0; i < ROUNDS; i++) {
		for (unsigned by = 0; by < AGENTS; by++)
			agents_here_share(a, by, HERE_BOTH, 1, 1);
		pause_ms(PAUSE_MS);
	}
	*per_s = ROUNDS * AGENTS / (seconds() - begun);
	after = tell(a);
	for (unsigned ms = 0; ms < PATIENCE_MS && after.objects < before.objects + OBJECTS; ms += 10) {
		pause_ms(10);
		after = tell(a);
	}
	out.objects = after.objects - before.objects;
	out.missed = (after.missed - before.missed) / out.objects;
	out.repeated = (after.repeated - before.repeated) / out.objects;
	out.datagrams = (after.datagrams - before.datagrams) / out.objects;
	out.bytes = (after.bytes - before.bytes) / out.objects;
	agents_here_stop(a);
	return out;
}

static void near(const char *what, double real, double simulated)
{
	fprintf(stderr, "%s: really %.4f, simulated %.4f\n", what, real, simulated);
	ck_assert_msg(fabs(simulated / real - 1) <= TOLERANCE, "%s: really %g, simulated %g", what, real, simulated);
}

START_TEST(a_simulated_cluster_does_what_a_real_one_does)
{
	struct simulation_conf c = { .agents = AGENTS,
		.watched = AGENTS,
		.run_ms = 6000,
		.loss = LOSS,
		.turn_ms = 1,
		.heartbeat_ms = 100,
		.object_len = 298,
		.live = SIMULATION_BROADCAST,
		.live_len = LIVE_LEN,
		.seed = 1 };
	struct simulation_result r;
	struct told real;

	lose();
	real = really(&c.handshakes_per_s);
	fault_stop();
	unlink(rules_path);
	ck_assert_double_eq(real.objects, OBJECTS);
	ck_assert_int_eq(simulation_run(&c, &r), 0);
	ck_assert_uint_eq(r.objects, r.sent_objects);
	ck_assert_uint_eq(r.live_parts, r.sent_objects);
	double heard = (double)(r.objects + r.live_parts);
	near("missed of an object", real.missed, (double)r.numbers_missed / heard);
	near("repeated of an object", real.repeated, (double)r.repeated / heard);
	near("datagrams for an object", real.datagrams, (double)(r.datagrams + r.questions) / heard);
	near("bytes for an object", real.bytes, ((double)r.bytes - 28 * (double)r.datagrams) / heard);
	free(r.staleness);
}
END_TEST

UNIT(simulation_reality)
{
	const TTest *const facts[] = {
		a_simulated_cluster_does_what_a_real_one_does,
	};

	return suite_run_within(120, "simulation_reality", facts, SUITE_LEN(facts));
}
