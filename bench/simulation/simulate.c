/* simulate.c: `cssl-bench simulate`: options, one simulation for each combination of them, and what comes of it for an
 * agent: resumptions, bandwidth, CPU, how old a session is when it arrives, and room in the store. */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/command/command.h"
#include "bench/simulation/broadcast_cost.h"
#include "bench/simulation/simulation.h"

#define LIST_MAX       16u
#define STORED_MORE    200u /* bytes of a stored session besides its encoded form */
#define WATCHED        8u
#define SESSIONS_LEAST 20000.0 /* of a run that lasts as long as is good for it */
#define RUN_MS_MIN     2000.0
#define RUN_MS_MAX     20000.0

#define LATER_WORDS  2u     /* the agent of the client's data adopted the connection; it ended */
#define LIVE_LEN_MAX 1000.0 /* fits a datagram */

static const char *const live_names[] = {
	[SIMULATION_SESSIONS_ONLY] = "none", [SIMULATION_BROADCAST] = "broadcast", [SIMULATION_CARRIED] = "carried"
};
#define LIVE_NAMES (sizeof live_names / sizeof live_names[0])

struct list {
	double at[LIST_MAX];
	size_t count;
};

struct simulate_options {
	struct list agents, rates, replicas, losses;
	double seconds, churn, lifetime_s;
	enum simulation_live live;
	unsigned delay_ms, jitter_ms, away_ms, left_ms, watched;
	uint64_t seed;
	struct broadcast_cost cost;
	size_t session_len;
	unsigned live_len;
	enum { AS_TABLE, AS_JSON } print;
};

/* The load of one agent, and what its clients get. */
struct outcome {
	double megabits, datagrams;     /* a second, received; an agent sends as much */
	double cpu, cpu_with_pulls;     /* of one core */
	double at_once, pulled, missed; /* shares of the clients that came back after a second */
	double standing_mb, staleness_p50_ms, staleness_p99_ms;
};

/* Of an agent, for each second: what it makes and what it hears, of each kind. With replicas each peer has a stream of
 * its own, in which a word is numbered. */
static void objects_of(const struct simulation_conf *c, const struct simulation_result *r, double made[BROADCAST_KINDS],
	double heard[BROADCAST_KINDS])
{
	const double seconds = c->run_ms / 1000.0, each = 1 / (seconds * c->watched);

	made[BROADCAST_SESSION] = (double)r->sessions / seconds / r->agents_up;
	made[BROADCAST_LIVE_PART] = c->live == SIMULATION_BROADCAST ? made[BROADCAST_SESSION] : 0;
	made[BROADCAST_WORD] = (double)r->made_words / seconds / r->agents_up * (c->replicas > 0 ? c->agents - 1 : 1);
	heard[BROADCAST_SESSION] = (double)r->objects * each;
	heard[BROADCAST_LIVE_PART] = (double)r->live_parts * each;
	heard[BROADCAST_WORD] = (double)r->words * each;
}

/* A pull is a question, an answer, and a session to take in. */
static double pull_ns(const struct broadcast_cost *c)
{
	return 2 * (c->datagram_ns + c->datagram_peer_ns + c->received_datagram_ns) +
	       c->received_object_ns[BROADCAST_SESSION];
}

static double share(uint64_t part, uint64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

static struct outcome outcome_of(
	const struct simulate_options *o, const struct simulation_conf *c, const struct simulation_result *r)
{
	const struct simulation_returns *late = &r->returns[SIMULATION_RETURNS - 1];
	double seconds = c->run_ms / 1000.0, each = 1 / (seconds * c->watched);
	double datagrams = (double)r->datagrams * each, made[BROADCAST_KINDS], heard[BROADCAST_KINDS];
	double seals = c->replicas == 0 ? (double)r->seals / seconds / r->agents_up : datagrams;
	double to_peers = datagrams * c->watched / (c->watched - c->watched / (double)c->agents);
	objects_of(c, r, made, heard);
	double ns = broadcast_cost_sender_ns(&o->cost, made, seals, to_peers / (seals > 0 ? seals : 1)) +
		    broadcast_cost_receiver_ns(&o->cost, heard, datagrams);
	struct outcome out = { .megabits = (double)r->bytes * each * 8 / 1e6, .datagrams = datagrams };

	out.at_once = share(late->at_once, late->returned);
	out.pulled = share(late->pulled, late->returned);
	out.missed = share(late->missed, late->returned);
	out.cpu = ns / 1e9;
	out.cpu_with_pulls = out.cpu + made[BROADCAST_SESSION] * out.pulled * pull_ns(&o->cost) / 1e9;
	out.standing_mb =
		r->standing * c->handshakes_per_s * o->lifetime_s * (double)(o->session_len + STORED_MORE) / 1e6;
	out.staleness_p50_ms = (double)histogram_percentile(r->staleness, 50) / 1e6;
	out.staleness_p99_ms = (double)histogram_percentile(r->staleness, 99) / 1e6;
	return out;
}

static void print_head(void)
{
	printf("     live  agents  handshakes/s  replicas  loss  at once  pulled  missed  after 1 ms  Mbit/s  CPU  "
	       "with pulls  "
	       "p50 ms  p99 ms  store MB\n");
}

static void print_row(const struct simulation_conf *c, const struct simulation_result *r, const struct outcome *out)
{
	const struct simulation_returns *soon = &r->returns[0];
	char replicas[16] = "all";

	if (c->replicas > 0)
		snprintf(replicas, sizeof replicas, "%u", c->replicas);
	printf("%9s  %6u  %12.0f  %8s  %3.0f%%  %6.2f%%  %5.2f%%  %5.3f%%  %9.2f%%  %6.1f  %3.0f%%  %9.0f%%  %6.0f  "
	       "%6.0f  "
	       "%8.0f\n",
		live_names[c->live], c->agents, c->handshakes_per_s, replicas, 100 * c->loss, 100 * out->at_once,
		100 * out->pulled, 100 * out->missed, 100 * share(soon->at_once + soon->pulled, soon->returned),
		out->megabits, 100 * out->cpu, 100 * out->cpu_with_pulls, out->staleness_p50_ms, out->staleness_p99_ms,
		out->standing_mb);
	fflush(stdout);
}

static json_t *returns_json(const struct simulation_result *r)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < SIMULATION_RETURNS; i++)
		json_array_append_new(
			rows, json_pack("{s:i, s:I, s:I, s:I, s:I}", "after_ms", (int)simulation_return_ms(i),
				      "returned", (json_int_t)r->returns[i].returned, "at_once",
				      (json_int_t)r->returns[i].at_once, "pulled", (json_int_t)r->returns[i].pulled,
				      "missed", (json_int_t)r->returns[i].missed));
	return rows;
}

static json_t *row_json(const struct simulation_conf *c, const struct simulation_result *r, const struct outcome *out)
{
	json_t *row = json_pack("{s:s, s:i, s:i, s:f, s:i, s:f, s:f, s:i, s:I, s:o}", "live", live_names[c->live],
		"agents", (int)c->agents, "watched", (int)c->watched, "handshakes_per_s", c->handshakes_per_s,
		"replicas", (int)c->replicas, "loss", c->loss, "leaves_per_min", c->leaves_per_min, "run_ms",
		(int)c->run_ms, "sessions", (json_int_t)r->sessions, "returns", returns_json(r));
	json_t *more = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I}", "megabits_per_s",
		out->megabits, "datagrams_per_s", out->datagrams, "cpu", out->cpu, "cpu_with_pulls",
		out->cpu_with_pulls, "staleness_p50_ms", out->staleness_p50_ms, "staleness_p99_ms",
		out->staleness_p99_ms, "standing", r->standing, "standing_mb", out->standing_mb, "numbers_missed",
		(json_int_t)r->numbers_missed, "repeated", (json_int_t)r->repeated, "questions",
		(json_int_t)r->questions, "forgotten", (json_int_t)r->forgotten);

	json_object_update(row, more);
	json_decref(more);
	return row;
}

/* As long as is good for a figure, unless told. */
static unsigned run_ms_of(const struct simulate_options *o, double rate)
{
	double ms = o->seconds > 0 ? o->seconds * 1000 : SESSIONS_LEAST / rate * 1000;

	if (o->seconds <= 0)
		ms = ms < RUN_MS_MIN ? RUN_MS_MIN : ms > RUN_MS_MAX ? RUN_MS_MAX : ms;
	return rate * ms / 1000 > SIMULATION_SESSIONS_MAX ? (unsigned)(SIMULATION_SESSIONS_MAX / rate * 1000)
							  : (unsigned)ms;
}

static struct simulation_conf conf_of(
	const struct simulate_options *o, double agents, double rate, double replicas, double loss)
{
	struct simulation_conf c = { .agents = (unsigned)agents,
		.handshakes_per_s = rate,
		.replicas = replicas >= agents ? 0 : (unsigned)replicas,
		.run_ms = run_ms_of(o, rate),
		.loss = loss / 100,
		.delay_ms = o->delay_ms,
		.jitter_ms = o->jitter_ms,
		.leaves_per_min = o->churn,
		.away_ms = o->away_ms,
		.left_ms = o->left_ms,
		.turn_ms = 1,
		.heartbeat_ms = 100,
		.object_len = o->session_len,
		.live = o->live,
		.live_len = o->live_len,
		.words = o->live == SIMULATION_SESSIONS_ONLY ? 0 : LATER_WORDS,
		.seed = o->seed };

	c.watched = c.agents < o->watched ? c.agents : o->watched;
	return c;
}

static int run(const struct simulate_options *o, const struct simulation_conf *c, json_t *rows)
{
	struct simulation_result result;
	int r = simulation_run(c, &result);

	if (r) {
		fprintf(stderr, "cssl-bench: out of memory\n");
		return EXIT_FAILURE;
	}
	struct outcome out = outcome_of(o, c, &result);
	if (rows)
		json_array_append_new(rows, row_json(c, &result, &out));
	else
		print_row(c, &result, &out);
	free(result.staleness);
	return EXIT_SUCCESS;
}

static int run_all(const struct simulate_options *o, json_t *rows)
{
	int failed = 0;

	for (size_t a = 0; a < o->agents.count; a++)
		for (size_t h = 0; h < o->rates.count; h++)
			for (size_t l = 0; l < o->losses.count; l++)
				for (size_t p = 0; p < o->replicas.count; p++) {
					struct simulation_conf c = conf_of(
						o, o->agents.at[a], o->rates.at[h], o->replicas.at[p], o->losses.at[l]);
					failed |= run(o, &c, rows);
				}
	return failed;
}

static void print_help(void)
{
	printf("cssl-bench simulate [OPTIONS]: a cluster in virtual time\n\n"
	       "Lists have commas; every combination is simulated.\n"
	       "  --agents N,...         3 to %u (3)\n"
	       "  --rate N,...           handshakes per second of the cluster, up to 1000000 (1000)\n"
	       "  --live KIND            broadcast: live parts go to all agents; carried: a word that the connection "
	       "exists;\n"
	       "                         none: sessions only (broadcast)\n"
	       "  --live-bytes N         of a live part (%u)\n"
	       "  --replicas all,N,...   with --live broadcast only all (all)\n"
	       "  --loss PERCENT,...     of datagrams (0)\n"
	       "  --churn N              agents that die per minute (0)\n"
	       "  --away MS, --left MS   how long one is away, and when it counts as gone (15000, 10000)\n"
	       "  --delay MS --jitter MS of the network (1, 1)\n"
	       "  --seconds S            of virtual time (as long as needed for enough sessions)\n"
	       "  --lifetime S           of sessions, for the store (7200)\n"
	       "  --watched N            agents whose receiving is simulated (%u)\n"
	       "  --cost A,...,I         ns: send a session, a live part, a word; seal a datagram, send it to a peer, "
	       "receive it;\n"
	       "                         take in a session, a live part, a word\n"
	       "  --seed N, --json\n",
		SIMULATION_AGENTS_MAX, BROADCAST_LIVE_LEN, WATCHED);
}

/* 0 or -1. "all" is 0. */
static int parse_list(const char *text, double min, double max, struct list *out)
{
	char *end;

	for (out->count = 0; out->count < LIST_MAX; text = end + 1) {
		double value = strncmp(text, "all", 3) == 0 ? 0 : strtod(text, &end);

		if (strncmp(text, "all", 3) == 0)
			end = (char *)text + 3;
		if (end == text || value < min || value > max || (*end != ',' && *end != '\0'))
			return -1;
		out->at[out->count++] = value;
		if (*end == '\0')
			return 0;
	}
	return -1;
}

static int parse_cost(const char *text, struct broadcast_cost *c)
{
	struct list parts;

	if (parse_list(text, 0, 1e9, &parts) != 0 || parts.count != 2 * BROADCAST_KINDS + 3)
		return -1;
	*c = (struct broadcast_cost){
		.datagram_ns = parts.at[3], .datagram_peer_ns = parts.at[4], .received_datagram_ns = parts.at[5]
	};
	memcpy(c->object_ns, parts.at, sizeof c->object_ns);
	memcpy(c->received_object_ns, parts.at + 6, sizeof c->received_object_ns);
	return 0;
}

static int parse_number(const char *text, double max, double *out)
{
	struct list one;
	int r = parse_list(text, 0, max, &one);

	*out = one.at[0];
	return r || one.count != 1 ? -1 : 0;
}

static int parse_unsigned(const char *text, double max, unsigned *out)
{
	double value;
	int r = parse_number(text, max, &value);

	*out = r ? 0 : (unsigned)value;
	return r;
}

/* 0 or -1. */
static int parse_live(const char *text, enum simulation_live *out)
{
	for (unsigned i = 0; i < LIVE_NAMES; i++) {
		if (strcmp(text, live_names[i]) != 0)
			continue;
		*out = (enum simulation_live)i;
		return 0;
	}
	return -1;
}

static int take_option(int option, const char *text, struct simulate_options *o)
{
	double seed;
	int r;

	switch (option) {
	case 'a': return parse_list(text, 3, SIMULATION_AGENTS_MAX, &o->agents);
	case 'r': return parse_list(text, 1, 1e6, &o->rates);
	case 'R': return parse_list(text, 0, 8, &o->replicas);
	case 'l': return parse_list(text, 0, 90, &o->losses);
	case 'v': return parse_live(text, &o->live);
	case 'b': return parse_unsigned(text, LIVE_LEN_MAX, &o->live_len);
	case 'c': return parse_number(text, 1e4, &o->churn);
	case 'A': return parse_unsigned(text, 1e6, &o->away_ms);
	case 'L': return parse_unsigned(text, 1e6, &o->left_ms);
	case 'd': return parse_unsigned(text, 1e4, &o->delay_ms);
	case 'j': return parse_unsigned(text, 1e4, &o->jitter_ms);
	case 's': return parse_number(text, 1e4, &o->seconds);
	case 'f': return parse_number(text, 1e6, &o->lifetime_s);
	case 'w': return parse_unsigned(text, 64, &o->watched);
	case 'C': return parse_cost(text, &o->cost);
	case 'J': o->print = AS_JSON; return 0;
	case 'S':
		r = parse_number(text, 9e15, &seed);
		o->seed = r ? 0 : (uint64_t)seed;
		return r;
	default: return -1;
	}
}

/* Live parts go to all agents only where sessions do (rules_broadcast). */
static int are_possible(const struct simulate_options *o)
{
	for (size_t i = 0; i < o->replicas.count; i++)
		if (o->live == SIMULATION_BROADCAST && o->replicas.at[i] > 0)
			return 0;
	return o->live_len >= sizeof(uint64_t);
}

/* 0; 1: there is nothing left to do; -1: bad options. */
static int parse(int argc, char **argv, struct simulate_options *o)
{
	static const struct option options[] = { { "agents", required_argument, NULL, 'a' },
		{ "rate", required_argument, NULL, 'r' }, { "replicas", required_argument, NULL, 'R' },
		{ "loss", required_argument, NULL, 'l' }, { "live", required_argument, NULL, 'v' },
		{ "live-bytes", required_argument, NULL, 'b' }, { "churn", required_argument, NULL, 'c' },
		{ "away", required_argument, NULL, 'A' }, { "left", required_argument, NULL, 'L' },
		{ "delay", required_argument, NULL, 'd' }, { "jitter", required_argument, NULL, 'j' },
		{ "seconds", required_argument, NULL, 's' }, { "lifetime", required_argument, NULL, 'f' },
		{ "watched", required_argument, NULL, 'w' }, { "cost", required_argument, NULL, 'C' },
		{ "seed", required_argument, NULL, 'S' }, { "json", no_argument, NULL, 'J' },
		{ "help", no_argument, NULL, 'h' }, { NULL } };

	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (option == 'h') {
			print_help();
			return 1;
		}
		if (take_option(option, optarg, o) != 0)
			return -1;
	}
	return optind == argc && o->watched >= 2 && are_possible(o) ? 0 : -1;
}

int simulate_main(int argc, char **argv)
{
	struct simulate_options o = { .agents = { { 3 }, 1 },
		.rates = { { 1000 }, 1 },
		.replicas = { { 0 }, 1 },
		.losses = { { 0 }, 1 },
		.lifetime_s = 7200,
		.delay_ms = 1,
		.jitter_ms = 1,
		.away_ms = 15000,
		.left_ms = 10000,
		.watched = WATCHED,
		.seed = 1,
		.cost = broadcast_cost_measured,
		.live = SIMULATION_BROADCAST,
		.session_len = BROADCAST_SESSION_LEN,
		.live_len = BROADCAST_LIVE_LEN };
	int r = parse(argc, argv, &o);

	if (r < 0)
		fprintf(stderr, "cssl-bench simulate: bad options; --help lists them\n");
	if (r != 0)
		return r < 0 ? 2 : EXIT_SUCCESS;
	if (o.print == AS_TABLE) {
		print_head();
		return run_all(&o, NULL);
	}
	json_t *rows = json_array();
	r = rows ? run_all(&o, rows) : EXIT_FAILURE;
	if (r == EXIT_SUCCESS && json_dumpf(rows, stdout, JSON_INDENT(1)) != 0)
		r = EXIT_FAILURE;
	printf("\n");
	json_decref(rows);
	return r;
}
