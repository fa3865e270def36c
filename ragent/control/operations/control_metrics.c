/* control_metrics.c: samples of one family stand together, so each counter is looked for in every set. Label values
 * need no escapes: they are names of the cluster file, texts of this program, or texts of agents that were cleaned.
 */
#include "ragent/control/operations/control_metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/heap_tide.h"

#define ENDED_PREFIX   "ended_"
#define PAUSE_PREFIX   "takeover_pause"
#define LATENCY_PREFIX "latency_"
#define DRAIN_PREFIX   "drain_time"
#define REFUSED_PREFIX "handshakes_refused_"

#define FAMILY_MAX 128u

/* @name: of a family, behind "cssl_". */
static void family_begin(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP cssl_%s %s\n# TYPE cssl_%s %s\n", name, help, name, type);
}

static void family_sample(FILE *out, const char *name, const char *label, const char *of, uint64_t value)
{
	fprintf(out, "cssl_%s{%s=\"%s\"} %" PRIu64 "\n", name, label, of, value);
}

/* Begins the family of a counter, and writes its name to @out_name. */
static void family_begin_counter(
	FILE *out, const char *whose, const struct counter_row *row, char out_name[static FAMILY_MAX])
{
	const bool gauge = row->kind == COUNTER_GAUGE;

	snprintf(out_name, FAMILY_MAX, "%s%s%s", whose, row->name, gauge ? "" : "_total");
	family_begin(out, out_name, gauge ? "gauge" : "counter", row->help);
}

/* --- counters --- */

static const struct counted *metrics_find(const struct counter_set *set, const char *name)
{
	for (size_t i = 0; i < set->count; i++) {
		if (strcmp(set->at[i].row.name, name) == 0)
			return &set->at[i];
	}
	return NULL;
}

static void agents_family(FILE *out, const struct counted *c, const struct counter_set *sets, size_t count)
{
	char name[FAMILY_MAX];

	family_begin_counter(out, "agent_", &c->row, name);
	for (size_t i = 0; i < count; i++) {
		const struct counted *value = metrics_find(&sets[i], c->row.name);
		if (value)
			family_sample(out, name, "agent", sets[i].agent, value->value);
	}
}

/* Agents of two releases may run side by side: a family is written with the first set that has its counter. */
static bool was_before(const struct counter_set *sets, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (metrics_find(&sets[i], name))
			return true;
	}
	return false;
}

static bool begins_with(const struct counted *c, const char *prefix)
{
	return strncmp(c->row.name, prefix, strlen(prefix)) == 0;
}

static void agents_counters(FILE *out, const struct counter_set *sets, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < sets[i].count; j++) {
			const struct counted *c = &sets[i].at[j];
			if (!begins_with(c, REFUSED_PREFIX) && !was_before(sets, i, c->row.name))
				agents_family(out, c, sets, count);
		}
	}
}

static void agents_refusals(FILE *out, const struct counter_set *sets, size_t count)
{
	family_begin(out, "agent_handshakes_refused_total", "counter", "Handshakes that came to nothing, by reason");
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < sets[i].count; j++) {
			const struct counted *c = &sets[i].at[j];
			if (begins_with(c, REFUSED_PREFIX))
				fprintf(out,
					"cssl_agent_handshakes_refused_total{agent=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
					sets[i].agent, c->row.name + strlen(REFUSED_PREFIX), c->value);
		}
	}
}

static uint64_t value_of(const struct counter_set *set, const char *name)
{
	const struct counted *c = metrics_find(set, name);

	return c ? c->value : 0;
}

/* Counters of durations are buckets of a histogram; the sum stands beside them. */

struct histogram {
	const char *rows, *sum; /* the names of the buckets' rows up to their suffix, and of the row of the sum */
	double sum_unit;        /* in seconds */
	const struct time_bucket *buckets;
	const char *family, *cause; /* @cause NULL: it has no labels */
};

static uint64_t value_in(const struct counter_set *set, const struct histogram *h, const struct time_bucket *b)
{
	char name[64];

	snprintf(name, sizeof name, "%s%s", h->rows, b->suffix);
	return value_of(set, name);
}

/* @agent NULL: without labels. */
static void family_histogram(FILE *out, const struct histogram *h, const char *agent, const struct counter_set *set)
{
	const struct time_bucket *b = h->buckets;
	char labels[256] = "", name[96];
	uint64_t up_to = 0;

	if (agent)
		snprintf(labels, sizeof labels, "agent=\"%s\",cause=\"%s\"", agent, h->cause);
	snprintf(name, sizeof name, "cssl_ragent_%s", h->family);
	for (; b->up_to_us < UINT64_MAX; b++) {
		up_to += value_in(set, h, b);
		fprintf(out, "%s_bucket{%s%sle=\"%g\"} %" PRIu64 "\n", name, labels, agent ? "," : "",
			(double)b->up_to_us * 1e-6, up_to);
	}
	up_to += value_in(set, h, b);
	fprintf(out, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", name, labels, agent ? "," : "", up_to);
	fprintf(out, agent ? "%s_sum{%s} %.9g\n" : "%s_sum%s %.9g\n", name, labels,
		(double)value_of(set, h->sum) * h->sum_unit);
	fprintf(out, agent ? "%s_count{%s} %" PRIu64 "\n" : "%s_count%s %" PRIu64 "\n", name, labels, up_to);
}

#define LATENCY(cause)                                                                                                 \
	{                                                                                                              \
		LATENCY_PREFIX #cause "_", LATENCY_PREFIX #cause "_sum_us", 1e-6, latency_buckets,                     \
			"ownership_change_seconds", #cause                                                             \
	}

static void own_histograms(FILE *out, const struct counter_set *own)
{
	static const struct histogram pause = { PAUSE_PREFIX "s_", PAUSE_PREFIX "_ms", 1e-3, takeover_buckets,
		"takeover_pause_seconds", NULL };
	static const struct histogram drain = { DRAIN_PREFIX "_", DRAIN_PREFIX "_sum_ms", 1e-3, drain_buckets,
		"drain_seconds", NULL };

	family_begin(out, "ragent_takeover_pause_seconds", "histogram",
		"From the loss of an agent to the next record a client got");
	family_histogram(out, &pause, NULL, own);
	family_begin(out, "ragent_drain_seconds", "histogram", "How long drains took, to their end or their deadline");
	family_histogram(out, &drain, NULL, own);
}

/* Write samples for every agent of the cluster file, so that a rate() sees the first change, too. Their number is
 * agents times causes times ten. */
static void changes_of_owner(FILE *out, const struct counter_set *sets, size_t count)
{
	static const struct histogram by_cause[] = { LATENCY(hand_off), LATENCY(move), LATENCY(drain), LATENCY(wake),
		LATENCY(takeover), LATENCY(rest) };

	family_begin(out, "ragent_ownership_change_seconds", "histogram",
		"How long nobody had a connection that this agent took then, or let go to rest");
	for (size_t i = 0; i < count; i++) {
		const struct counter_set seen = { .at = sets[i].seen, .count = sets[i].seen_count };
		for (size_t c = 0; c < sizeof by_cause / sizeof by_cause[0]; c++)
			family_histogram(out, &by_cause[c], sets[i].agent, &seen);
	}
}

static void own_counters(FILE *out, const struct counter_set *own)
{
	char name[FAMILY_MAX];

	for (size_t i = 0; i < own->count; i++) {
		if (begins_with(&own->at[i], ENDED_PREFIX) || begins_with(&own->at[i], PAUSE_PREFIX) ||
			begins_with(&own->at[i], LATENCY_PREFIX) || begins_with(&own->at[i], DRAIN_PREFIX))
			continue;
		family_begin_counter(out, "ragent_", &own->at[i].row, name);
		fprintf(out, "cssl_%s %" PRIu64 "\n", name, own->at[i].value);
	}
	own_histograms(out, own);
	family_begin(out, "ragent_connections_ended_total", "counter", "Client connections that ended, by reason");
	for (size_t i = 0; i < own->count; i++) {
		if (begins_with(&own->at[i], ENDED_PREFIX))
			family_sample(out, "ragent_connections_ended_total", "reason",
				own->at[i].row.name + strlen(ENDED_PREFIX), own->at[i].value);
	}
}

/* --- state --- */

enum gauge { UP, LINKS_UP, CONNECTIONS, HANDSHAKES, BACKENDS_FAILING, BUSY, CLOCK, HANDSHAKE_TIME, GAUGE_COUNT };

static const struct {
	const char *name, *help;
} agent_gauges[GAUGE_COUNT] = {
	[UP] = { "agent_up", "Is the agent up and taking new work: 1 or 0" },
	[LINKS_UP] = { "agent_links_up", "Links of this RAgent to it that are up" },
	[CONNECTIONS] = { "agent_connections", "Connections that it owns, by its own count" },
	[HANDSHAKES] = { "agent_handshakes", "Handshakes under way" },
	[BACKENDS_FAILING] = { "agent_backends_failing",
		"1: it could not connect to a backend just now (`csslctl agent` has the error), else 0" },
	[BUSY] = { "agent_busy_ratio", "CPU time of its busiest loop over the last second" },
	[CLOCK] = { "agent_clock_offset_seconds", "Its time of day less RAgent's; NaN: unknown" },
	[HANDSHAKE_TIME] = { "agent_handshake_seconds", "Mean time of its last handshakes" },
};

static double gauge_of(const struct agent_status *a, enum gauge gauge)
{
	switch (gauge) {
	case UP: return strcmp(a->state, "ready") == 0 || strcmp(a->state, "no backend") == 0;
	case LINKS_UP: return a->links_up;
	case CONNECTIONS: return (double)a->connections;
	case HANDSHAKES: return (double)a->handshakes;
	case BACKENDS_FAILING: return *a->failing_backends != 0;
	case BUSY: return a->busy_permille / 1000.0;
	case CLOCK: return a->clock == AGENT_CLOCK_KNOWN ? (double)a->clock_offset_ms / 1e3 : (double)NAN;
	default: return a->handshake_us / 1e6;
	}
}

static void agents_state(FILE *out, const struct agents *agents)
{
	struct agent_status s;

	for (enum gauge g = 0; g < GAUGE_COUNT; g++) {
		family_begin(out, agent_gauges[g].name, "gauge", agent_gauges[g].help);
		for (unsigned a = 0; a < agents_count(agents); a++) {
			agents_status(agents, (int)a, &s);
			fprintf(out, "cssl_%s{agent=\"%s\"} %.10g\n", agent_gauges[g].name, s.name, gauge_of(&s, g));
		}
	}
}

/* Every listener has the same counters. */
static void listeners_counters(FILE *out, const struct operations *o)
{
	char name[FAMILY_MAX];

	for (size_t row = 0; o->shared->front_count && row < LISTENER_COUNTER_COUNT; row++) {
		family_begin_counter(out, "listener_", listener_counter_row(row), name);
		for (size_t i = 0; i < o->shared->front_count; i++)
			family_sample(out, name, "listener", o->shared->fronts[i].conf->name,
				operations_count_listener(o, i, row));
	}
}

static void deaths_families(FILE *out, const struct notes *n)
{
	static struct shared_notes none;
	const struct shared_notes *shared = n ? n->shared : &none;
	const struct fates *f = &shared->fates;
	const uint64_t known = f->outdated + f->not_restored + f->given_up, reset = f->reset;
	const struct {
		const char *name;
		uint64_t count;
	} fates[] = { { "went_on", f->went_on }, { "began_anew", f->fresh },
		{ "not_saved", reset > known ? reset - known : 0 }, { "outdated", f->outdated },
		{ "not_restored", f->not_restored }, { "given_up", f->given_up } };

	family_begin(out, "ragent_deaths_total", "counter",
		"Processes that died and that the keeper followed by the next one");
	for (unsigned i = 0; i < DEATH_CAUSE_COUNT; i++)
		family_sample(
			out, "ragent_deaths_total", "cause", death_cause_name((enum death_cause)i), shared->deaths[i]);
	family_begin(out, "ragent_connections_at_deaths_total", "counter",
		"Client connections at these deaths, by what became of them");
	for (unsigned i = 0; i < sizeof fates / sizeof fates[0]; i++)
		family_sample(out, "ragent_connections_at_deaths_total", "fate", fates[i].name, fates[i].count);
	family_begin(out, "ragent_starts_without_restore_total", "counter",
		"Processes that restored no connection, because two before died restoring");
	fprintf(out, "cssl_ragent_starts_without_restore_total %" PRIu64 "\n", f->starts_without_restore);
	family_begin(
		out, "ragent_death_pause_seconds_total", "counter", "Time from deaths until the next process served");
	fprintf(out, "cssl_ragent_death_pause_seconds_total %.6f\n", (double)f->pause_us / 1e6);
}

static void own_state(FILE *out, const struct operations *o)
{
	family_begin(out, "ragent_info", "gauge", "Constant 1: name and version of this RAgent");
	fprintf(out, "cssl_ragent_info{name=\"%s\",version=\"%s\"} 1\n", o->shared->self->name, CSSL_VERSION);
	family_begin(out, "ragent_uptime_seconds", "gauge", "Time since its start");
	fprintf(out, "cssl_ragent_uptime_seconds %" PRIu64 "\n", (worker_now_ms(o->main) - o->started_ms) / 1000);
	deaths_families(out, o->shared->notes);
	family_begin(out, "ragent_resident_bytes", "gauge", "Memory in RAM");
	fprintf(out, "cssl_ragent_resident_bytes %" PRIu64 "\n", resident_bytes());
	family_begin(out, "listener_connections", "gauge", "Client connections now");
	for (size_t i = 0; i < o->shared->front_count; i++)
		family_sample(out, "listener_connections", "listener", o->shared->fronts[i].conf->name,
			o->shared->fronts[i].connections);
	listeners_counters(out, o);
}

static void agents_certificates(FILE *out, const struct counter_set *sets, size_t count)
{
	family_begin(out, "agent_certificate_not_after_seconds", "gauge",
		"End of a certificate that it has loaded, in seconds since 1970");
	for (size_t i = 0; i < count; i++) {
		for (size_t c = 0; c < sets[i].certificate_count; c++)
			fprintf(out,
				"cssl_agent_certificate_not_after_seconds{agent=\"%s\",certificate=\"%s\"} %" PRId64
				"\n",
				sets[i].agent, sets[i].certificates[c]->name, sets[i].certificates[c]->not_after_s);
	}
}

char *metrics_text(const struct operations *o, const struct counter_set *sets, size_t count)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	own_state(out, o);
	agents_state(out, o->shared->agents);
	own_counters(out, &sets[0]);
	changes_of_owner(out, sets + 1, count - 1);
	agents_counters(out, sets + 1, count - 1);
	agents_refusals(out, sets + 1, count - 1);
	agents_certificates(out, sets + 1, count - 1);
	const int failed = ferror(out);
	if (fclose(out) == 0 && !failed)
		return text;
	free(text);
	return NULL;
}
