/* test_agents_here.c: real agents in one process share what they have, however much their network loses. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench/broadcast/agents_here.h"
#include "net/points/fault.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define AGENTS      3u
#define ROUNDS      300u
#define LOSS        0.1
#define PAUSE_MS    5                                    /* so that hardly two sessions share a turn */
#define OBJECTS     (2 * ROUNDS * AGENTS * (AGENTS - 1)) /* heard, of all: sessions and live parts */
#define PATIENCE_MS 10000

static char rules_path[] = "/tmp/cssl-agents-here-XXXXXX";

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

START_TEST(each_object_comes_to_each_agent_though_a_tenth_of_the_datagrams_is_lost)
{
	uint64_t heard, missed;

	lose();
	struct agents_here *a = agents_here_start(AGENTS, CONF_LIVE_BROADCAST);
	heard = counted(a, COUNT_OBJECTS_RECEIVED);
	missed = counted(a, COUNT_OBJECTS_MISSED);
	for (unsigned i = 0; i < ROUNDS; i++) {
		for (unsigned by = 0; by < AGENTS; by++) {
			agents_here_share(a, by, HERE_SESSION, 1, 1);
			agents_here_share(a, by, HERE_LIVE, 1, 1);
		}
		pause_ms(PAUSE_MS);
	}
	for (unsigned ms = 0; ms < PATIENCE_MS && counted(a, COUNT_OBJECTS_RECEIVED) < heard + OBJECTS; ms += 10)
		pause_ms(10);
	ck_assert_uint_eq(counted(a, COUNT_OBJECTS_RECEIVED) - heard, OBJECTS);
	ck_assert_uint_gt(counted(a, COUNT_OBJECTS_MISSED) - missed, OBJECTS / 20);
	ck_assert_uint_gt(counted(a, COUNT_OBJECTS_REPEATED), 0);
	agents_here_stop(a);
	fault_stop();
	unlink(rules_path);
}
END_TEST

UNIT(agents_here)
{
	const TTest *const facts[] = {
		each_object_comes_to_each_agent_though_a_tenth_of_the_datagrams_is_lost,
	};

	return suite_run_within(120, "agents_here", facts, SUITE_LEN(facts));
}
