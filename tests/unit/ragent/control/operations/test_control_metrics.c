/* test_control_metrics.c: facts of the metrics' text, as promtool and the text format demand them. */
#include <stdlib.h>
#include <string.h>

#include "ragent/control/operations/control_metrics.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const struct counted own[] = {
	{ { "hellos", "first records", COUNTER_MONOTONIC }, 7 },
	{ { "connections_open", "now", COUNTER_GAUGE }, 3 },
	{ { "takeover_pauses_2ms", "at most 2 ms", COUNTER_MONOTONIC }, 2 },
	{ { "takeover_pauses_8ms", "at most 8 ms", COUNTER_MONOTONIC }, 3 },
	{ { "takeover_pauses_longer", "longer", COUNTER_MONOTONIC }, 1 },
	{ { "takeover_pause_ms", "together", COUNTER_MONOTONIC }, 5021 },
	{ { "latency_wake_sum_us", "together", COUNTER_MONOTONIC }, 1800 },
	{ { "latency_wake_250us", "at most 250 us", COUNTER_MONOTONIC }, 2 },
	{ { "drain_time_sum_ms", "together", COUNTER_MONOTONIC }, 2500 },
	{ { "drain_time_1s", "at most 1 s", COUNTER_MONOTONIC }, 1 },
	{ { "drain_time_longer", "longer", COUNTER_MONOTONIC }, 1 },
	{ { "ended_done", "done", COUNTER_MONOTONIC }, 5 },
	{ { "ended_agent_lost", "agent lost", COUNTER_MONOTONIC }, 1 },
};
static const struct counted first[] = {
	{ { "adopted", "Connections adopted", COUNTER_MONOTONIC }, 11 },
	{ { "handshakes_refused_cipher", "No cipher suite", COUNTER_MONOTONIC }, 3 },
};
static const struct counted third[] = {
	{ { "new_in_this_release", "Known to one agent only", COUNTER_GAUGE }, 4 },
	{ { "adopted", "Connections adopted", COUNTER_MONOTONIC }, UINT64_C(1) << 52 },
};
static const struct counted seen_of_a1[] = {
	{ { "latency_wake_sum_us", "together", COUNTER_MONOTONIC }, 1500 },
	{ { "latency_wake_250us", "at most 250 us", COUNTER_MONOTONIC }, 1 },
	{ { "latency_wake_4ms", "at most 4 ms", COUNTER_MONOTONIC }, 1 },
};
static const struct counted seen_of_a2[] = {
	{ { "latency_wake_sum_us", "together", COUNTER_MONOTONIC }, 300 },
	{ { "latency_wake_1ms", "at most 1 ms", COUNTER_MONOTONIC }, 1 },
};
static Cssl__LinkResponse__Counters__Certificate web = { .name = (char *)"web", .not_after_s = INT64_C(4102444800) };
static Cssl__LinkResponse__Counters__Certificate *const certificates[] = { &web };
static const struct counter_set sets[] = {
	{ .at = own, .count = sizeof own / sizeof own[0] },
	{ .agent = "a1", .at = first, .count = 2, .seen = seen_of_a1, .seen_count = 3 },
	{ .agent = "a2", .error = "not up", .seen = seen_of_a2, .seen_count = 2 },
	{ .agent = "a3", .at = third, .count = 2, .certificates = certificates, .certificate_count = 1 },
};

static struct conf_agent conf_agents[] = { { .name = (char *)"a1", .weight = 1 }, { .name = (char *)"a2", .weight = 1 },
	{ .name = (char *)"a3", .weight = 1 } };
static struct conf_listener conf_listeners[] = { { .name = (char *)"sf" }, { .name = (char *)"sl" } };
static const struct conf conf = { .agents = conf_agents, .agent_count = 3 };
static const struct conf_ragent self = { .name = (char *)"r1" };
static struct front fronts[] = { { .conf = &conf_listeners[0], .connections = 6 },
	{ .conf = &conf_listeners[1], .connections = 2 } };
static struct shared_notes noted = { .deaths = { [DEATH_HUNG] = 3 },
	.fates = { .went_on = 40,
		.reset = 7,
		.outdated = 1,
		.not_restored = 2,
		.given_up = 1,
		.starts_without_restore = 2,
		.pause_us = 90000 } };
static struct notes notes = { .shared = &noted };
static struct ragent_shared shared = {
	.conf = &conf, .self = &self, .fronts = fronts, .front_count = 2, .notes = &notes
};
/* Each counted a part of what the listeners did. */
static struct listener_counters listeners[2][2] = { { { .accepted = 4 }, { .accepted = 4 } },
	{ { .accepted = 5 }, { 0 } } };
static struct ragent_worker rw[2] = { { .home.of_listeners = listeners[0] }, { .home.of_listeners = listeners[1] } };
static struct ragent_worker *const workers[] = { &rw[0], &rw[1] };

static char *text;

static void make(void)
{
	const struct agent_load ready = { .ready = AGENT_READY,
		.busy_permille = 125,
		.handshake_us = 300,
		.clock = AGENT_CLOCK_KNOWN,
		.clock_offset_ms = -1500 };
	const struct agent_load cut_off = { .ready = AGENT_READY,
		.backends = AGENT_CUT_OFF,
		.failing_backends = "web at unix:/run/web: no such file" };
	const struct operations o = {
		.main = worker_create(0, "main"), .shared = &shared, .workers = workers, .worker_count = 2
	};

	shared.agents = agents_create(&conf);
	agents_link_up(shared.agents, 0, 1);
	agents_link_up(shared.agents, 0, 1);
	agents_link_up(shared.agents, 2, 1);
	agents_set_load(shared.agents, 0, &ready);
	agents_set_load(shared.agents, 2, &cut_off);
	text = metrics_text(&o, sets, 4);
	ck_assert_ptr_nonnull(text);
	agents_destroy(shared.agents);
	worker_destroy(o.main);
}

static void has(const char *line)
{
	ck_assert_msg(strstr(text, line) != NULL, "no %s in\n%s", line, text);
}

START_TEST(a_counter_of_ragent_is_a_family_of_its_own)
{
	make();
	has("# TYPE cssl_ragent_deaths_total counter\n"
	    "cssl_ragent_deaths_total{cause=\"killed\"} 0\ncssl_ragent_deaths_total{cause=\"crashed\"} 0\n"
	    "cssl_ragent_deaths_total{cause=\"hung\"} 3\n");
	has("cssl_ragent_connections_at_deaths_total{fate=\"went_on\"} 40\n"
	    "cssl_ragent_connections_at_deaths_total{fate=\"began_anew\"} 0\n"
	    "cssl_ragent_connections_at_deaths_total{fate=\"not_saved\"} 3\n"
	    "cssl_ragent_connections_at_deaths_total{fate=\"outdated\"} 1\n"
	    "cssl_ragent_connections_at_deaths_total{fate=\"not_restored\"} 2\n"
	    "cssl_ragent_connections_at_deaths_total{fate=\"given_up\"} 1\n");
	has("cssl_ragent_starts_without_restore_total 2\n");
	has("cssl_ragent_death_pause_seconds_total 0.090000\n");
	has("# HELP cssl_ragent_hellos_total first records\n# TYPE cssl_ragent_hellos_total counter\n"
	    "cssl_ragent_hellos_total 7\n");
	has("# TYPE cssl_ragent_connections_open gauge\ncssl_ragent_connections_open 3\n");
	free(text);
}
END_TEST

START_TEST(the_end_of_a_certificate_is_a_gauge)
{
	make();
	has("# TYPE cssl_agent_certificate_not_after_seconds gauge\n"
	    "cssl_agent_certificate_not_after_seconds{agent=\"a3\",certificate=\"web\"} 4102444800\n");
	free(text);
}
END_TEST

START_TEST(ends_are_one_family_with_a_label)
{
	make();
	has("# TYPE cssl_ragent_connections_ended_total counter\n"
	    "cssl_ragent_connections_ended_total{reason=\"done\"} 5\n"
	    "cssl_ragent_connections_ended_total{reason=\"agent_lost\"} 1\n");
	free(text);
}
END_TEST

START_TEST(changes_of_ownership_are_one_histogram_by_agent_and_cause)
{
	make();
	has("# TYPE cssl_ragent_ownership_change_seconds histogram\n"
	    "cssl_ragent_ownership_change_seconds_bucket{agent=\"a1\",cause=\"hand_off\",le=\"0.00025\"} 0\n");
	has("cssl_ragent_ownership_change_seconds_bucket{agent=\"a1\",cause=\"wake\",le=\"0.001\"} 1\n"
	    "cssl_ragent_ownership_change_seconds_bucket{agent=\"a1\",cause=\"wake\",le=\"0.004\"} 2\n");
	has("cssl_ragent_ownership_change_seconds_bucket{agent=\"a1\",cause=\"wake\",le=\"+Inf\"} 2\n"
	    "cssl_ragent_ownership_change_seconds_sum{agent=\"a1\",cause=\"wake\"} 0.0015\n"
	    "cssl_ragent_ownership_change_seconds_count{agent=\"a1\",cause=\"wake\"} 2\n");
	ck_assert_ptr_null(strstr(text, "latency_"));
	free(text);
}
END_TEST

START_TEST(changes_of_ownership_are_told_of_an_agent_that_does_not_answer)
{
	make();
	has("cssl_ragent_ownership_change_seconds_sum{agent=\"a2\",cause=\"wake\"} 0.0003\n"
	    "cssl_ragent_ownership_change_seconds_count{agent=\"a2\",cause=\"wake\"} 1\n");
	free(text);
}
END_TEST

START_TEST(pauses_are_one_histogram)
{
	make();
	has("# TYPE cssl_ragent_takeover_pause_seconds histogram\n"
	    "cssl_ragent_takeover_pause_seconds_bucket{le=\"0.002\"} 2\n"
	    "cssl_ragent_takeover_pause_seconds_bucket{le=\"0.004\"} 2\n"
	    "cssl_ragent_takeover_pause_seconds_bucket{le=\"0.008\"} 5\n");
	has("cssl_ragent_takeover_pause_seconds_bucket{le=\"1.024\"} 5\n"
	    "cssl_ragent_takeover_pause_seconds_bucket{le=\"+Inf\"} 6\n"
	    "cssl_ragent_takeover_pause_seconds_sum 5.021\ncssl_ragent_takeover_pause_seconds_count 6\n");
	ck_assert_ptr_null(strstr(text, "takeover_pauses_"));
	free(text);
}
END_TEST

START_TEST(drains_are_one_histogram)
{
	make();
	has("# TYPE cssl_ragent_drain_seconds histogram\ncssl_ragent_drain_seconds_bucket{le=\"0.25\"} 0\n"
	    "cssl_ragent_drain_seconds_bucket{le=\"1\"} 1\n");
	has("cssl_ragent_drain_seconds_bucket{le=\"+Inf\"} 2\n"
	    "cssl_ragent_drain_seconds_sum 2.5\ncssl_ragent_drain_seconds_count 2\n");
	ck_assert_ptr_null(strstr(text, "drain_time"));
	free(text);
}
END_TEST

START_TEST(refused_handshakes_are_one_family_with_a_label)
{
	make();
	has("# TYPE cssl_agent_handshakes_refused_total counter\n"
	    "cssl_agent_handshakes_refused_total{agent=\"a1\",reason=\"cipher\"} 3\n");
	ck_assert_ptr_null(strstr(text, "refused_cipher"));
	free(text);
}
END_TEST

START_TEST(samples_of_all_agents_stand_together_whatever_their_release)
{
	make();
	has("# TYPE cssl_agent_adopted_total counter\ncssl_agent_adopted_total{agent=\"a1\"} 11\n"
	    "cssl_agent_adopted_total{agent=\"a3\"} 4503599627370496\n");
	has("# TYPE cssl_agent_new_in_this_release gauge\ncssl_agent_new_in_this_release{agent=\"a3\"} 4\n");
	free(text);
}
END_TEST

START_TEST(the_state_of_agents_and_listeners_is_told)
{
	make();
	has("cssl_agent_up{agent=\"a1\"} 1\ncssl_agent_up{agent=\"a2\"} 0\ncssl_agent_up{agent=\"a3\"} 1\n");
	has("cssl_agent_backends_failing{agent=\"a1\"} 0\ncssl_agent_backends_failing{agent=\"a2\"} 0\n"
	    "cssl_agent_backends_failing{agent=\"a3\"} 1\n");
	has("cssl_agent_clock_offset_seconds{agent=\"a1\"} -1.5\ncssl_agent_clock_offset_seconds{agent=\"a2\"} nan\n");
	has("cssl_agent_links_up{agent=\"a1\"} 2\ncssl_agent_links_up{agent=\"a2\"} 0\n");
	has("cssl_agent_busy_ratio{agent=\"a1\"} 0.125\n");
	has("cssl_agent_handshake_seconds{agent=\"a1\"} 0.0003\n");
	has("cssl_listener_connections{listener=\"sf\"} 6\n");
	has("# TYPE cssl_listener_accepted_total counter\ncssl_listener_accepted_total{listener=\"sf\"} 9\n"
	    "cssl_listener_accepted_total{listener=\"sl\"} 4\n");
	has("cssl_ragent_info{name=\"r1\",version=\"");
	free(text);
}
END_TEST

START_TEST(no_family_comes_twice)
{
	make();
	for (char *at = text; (at = strstr(at, "# TYPE ")) != NULL; at++) {
		char line[256];
		snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
		ck_assert_msg(strstr(at + 1, line) == NULL, "%s", line);
	}
	free(text);
}
END_TEST

UNIT(control_metrics)
{
	const TTest *const facts[] = { a_counter_of_ragent_is_a_family_of_its_own, the_end_of_a_certificate_is_a_gauge,
		ends_are_one_family_with_a_label, pauses_are_one_histogram, drains_are_one_histogram,
		refused_handshakes_are_one_family_with_a_label,
		changes_of_ownership_are_one_histogram_by_agent_and_cause,
		changes_of_ownership_are_told_of_an_agent_that_does_not_answer,
		samples_of_all_agents_stand_together_whatever_their_release, the_state_of_agents_and_listeners_is_told,
		no_family_comes_twice };

	return suite_run("control_metrics", facts, SUITE_LEN(facts));
}
