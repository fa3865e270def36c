/* broadcast.c: `cssl-bench broadcast`: the cost of sending a session to the other agents, with the agents' own code:
 * bytes, and CPU time of the sending thread and of the receiving ones. Runs with few and with many peers, one session a
 * turn and several, are the equations from which the parts of the cost follow. */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/command/command.h"
#include "bench/simulation/agents_here.h"
#include "bench/simulation/broadcast_cost.h"

#define TURNS_AT_ONCE 12u
#define IDLE_MS       500
#define LOST_MS       200
#define IP_UDP_LEN    28u
#define STORE_BYTES   (UINT64_C(256) << 20)

struct broadcast_options {
	unsigned objects, peers;
	enum { PRINT_TABLE, PRINT_JSON } print;
};

static const unsigned per_turn[] = { 1, 4, 16, 64 };
#define TURN_SIZES (sizeof per_turn / sizeof per_turn[0])

static void pause_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct moment {
	uint64_t at_ns, sender_ns, receivers_ns, sent, received, datagrams, bytes;
};

static struct moment look(struct agents_here *a, unsigned peers)
{
	struct moment m = { .at_ns = now_ns(),
		.sender_ns = agents_here_cpu_ns(a, 0, THREAD_WORKER),
		.sent = agents_here_counted(a, 0, COUNT_OBJECTS_SENT),
		.datagrams = agents_here_counted(a, 0, COUNT_DATAGRAMS_SENT),
		.bytes = agents_here_counted(a, 0, COUNT_DATAGRAM_BYTES_SENT) };

	for (unsigned i = 1; i <= peers; i++) {
		m.receivers_ns += agents_here_cpu_ns(a, i, THREAD_MAIN);
		m.received += agents_here_counted(a, i, COUNT_OBJECTS_RECEIVED);
	}
	return m;
}

/* Until everything that was said is heard; what was lost is repaired by and by. */
static void wait_heard(struct agents_here *a, unsigned peers, uint64_t each)
{
	const uint64_t until_ns = now_ns() + LOST_MS * UINT64_C(1000000);

	for (unsigned i = 1; i <= peers; i++)
		while (agents_here_counted(a, i, COUNT_OBJECTS_RECEIVED) < each && now_ns() < until_ns)
			nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

/* The cost of an idle cluster, in ns of CPU per ns: only timers and heartbeats run. */
struct idle {
	double sender, receivers;
};

static struct idle measure_idle(struct agents_here *a, unsigned peers)
{
	struct moment before = look(a, peers), after;

	pause_ms(IDLE_MS);
	after = look(a, peers);
	double ns = (double)(after.at_ns - before.at_ns);
	return (struct idle){ (double)(after.sender_ns - before.sender_ns) / ns,
		(double)(after.receivers_ns - before.receivers_ns) / ns };
}

static void measure(struct agents_here *a, unsigned objects, struct broadcast_run *run)
{
	struct idle idle = measure_idle(a, run->peers);
	uint64_t heard = agents_here_counted(a, 1, COUNT_OBJECTS_RECEIVED);
	struct moment before = look(a, run->peers), after;

	for (unsigned said = 0; said < objects; said += TURNS_AT_ONCE * run->per_turn) {
		agents_here_share(a, 0, TURNS_AT_ONCE, run->per_turn);
		heard += TURNS_AT_ONCE * run->per_turn;
		wait_heard(a, run->peers, heard);
	}
	after = look(a, run->peers);
	double ns = (double)(after.at_ns - before.at_ns);
	run->objects = (double)(after.sent - before.sent);
	run->datagrams = (double)(after.datagrams - before.datagrams) / run->peers;
	run->bytes = (double)(after.bytes - before.bytes) / run->peers;
	run->sender_ns = ((double)(after.sender_ns - before.sender_ns) - idle.sender * ns) / run->objects;
	run->receiver_ns = ((double)(after.receivers_ns - before.receivers_ns) - idle.receivers * ns) /
			   (double)(after.received - before.received);
}

/* All sizes of a turn with so many peers. */
static size_t measure_with(unsigned peers, const struct broadcast_options *o, struct broadcast_run *runs)
{
	struct agents_here_conf conf = { .agents = peers + 1, .store_bytes = STORE_BYTES };
	struct agents_here *a = agents_here_start(&conf);

	for (size_t i = 0; i < TURN_SIZES; i++) {
		runs[i] = (struct broadcast_run){ .peers = peers, .per_turn = per_turn[i] };
		measure(a, o->objects, &runs[i]);
	}
	size_t object_len = agents_here_object_len(a);
	agents_here_stop(a);
	return object_len;
}

/* On the wire, for each peer. */
static double bytes_of(const struct broadcast_run *r)
{
	return (r->bytes + r->datagrams * IP_UDP_LEN) / r->objects;
}

static void print_table(
	const struct broadcast_run *runs, size_t count, const struct broadcast_cost *cost, size_t object_len)
{
	printf("an encoded session: %zu bytes\n\n", object_len);
	printf("peers  sessions a turn  in a datagram  bytes per session and peer  sender us  receiver us\n");
	for (size_t i = 0; i < count; i++)
		printf("%5u  %15u  %13.1f  %26.0f  %9.2f  %11.2f\n", runs[i].peers, runs[i].per_turn,
			runs[i].objects / runs[i].datagrams, bytes_of(&runs[i]), runs[i].sender_ns / 1000,
			runs[i].receiver_ns / 1000);
	printf("\nsender:   %.2f us a session + %.2f us a datagram + %.2f us a datagram and peer\n",
		cost->object_ns / 1000, cost->datagram_ns / 1000, cost->datagram_peer_ns / 1000);
	printf("receiver: %.2f us a session + %.2f us a datagram\n", cost->received_object_ns / 1000,
		cost->received_datagram_ns / 1000);
}

static int print_json(
	const struct broadcast_run *runs, size_t count, const struct broadcast_cost *cost, size_t object_len)
{
	json_t *rows = json_array(), *out;

	for (size_t i = 0; i < count; i++)
		json_array_append_new(rows,
			json_pack("{s:i, s:i, s:f, s:f, s:f, s:f, s:f}", "peers", (int)runs[i].peers,
				"sessions_per_turn", (int)runs[i].per_turn, "sessions", runs[i].objects, "datagrams",
				runs[i].datagrams, "bytes_per_session_and_peer", bytes_of(&runs[i]), "sender_us",
				runs[i].sender_ns / 1000, "receiver_us", runs[i].receiver_ns / 1000));
	out = json_pack("{s:i, s:o, s:{s:f, s:f, s:f, s:f, s:f}}", "session_bytes", (int)object_len, "runs", rows,
		"cost", "object_ns", cost->object_ns, "datagram_ns", cost->datagram_ns, "datagram_peer_ns",
		cost->datagram_peer_ns, "received_object_ns", cost->received_object_ns, "received_datagram_ns",
		cost->received_datagram_ns);
	if (!out || json_dumpf(out, stdout, JSON_INDENT(2)) != 0)
		return EXIT_FAILURE;
	printf("\n");
	json_decref(out);
	return EXIT_SUCCESS;
}

static void print_help(void)
{
	printf("cssl-bench broadcast [OPTIONS]: what a session costs on its way to the other agents\n\n"
	       "  --objects N  sessions of each run (50000)\n"
	       "  --peers N    the larger number of peers, 2 to %u (6)\n"
	       "  --json       for programs\n",
		AGENTS_HERE_MAX - 1);
}

/* 0; 1: there is nothing left to do; -1: bad options. */
static int parse(int argc, char **argv, struct broadcast_options *o)
{
	static const struct option options[] = {
		{ "objects", required_argument, NULL, 'o' },
		{ "peers", required_argument, NULL, 'p' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL },
	};

	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (option) {
		case 'o': o->objects = (unsigned)strtoul(optarg, NULL, 10); break;
		case 'p': o->peers = (unsigned)strtoul(optarg, NULL, 10); break;
		case 'j': o->print = PRINT_JSON; break;
		case 'h': print_help(); return 1;
		default: return -1;
		}
	}
	return o->objects > 0 && o->peers >= 2 && o->peers < AGENTS_HERE_MAX && optind == argc ? 0 : -1;
}

int broadcast_main(int argc, char **argv)
{
	struct broadcast_options o = { .objects = 50000, .peers = 6 };
	struct broadcast_run runs[2 * TURN_SIZES];
	struct broadcast_cost cost;
	int r = parse(argc, argv, &o);

	if (r < 0)
		fprintf(stderr, "cssl-bench broadcast: bad options; --help lists them\n");
	if (r != 0)
		return r < 0 ? 2 : EXIT_SUCCESS;
	measure_with(1, &o, runs);
	size_t object_len = measure_with(o.peers, &o, runs + TURN_SIZES);
	broadcast_cost_fit(runs, 2 * TURN_SIZES, &cost);
	if (o.print == PRINT_JSON)
		return print_json(runs, 2 * TURN_SIZES, &cost, object_len);
	print_table(runs, 2 * TURN_SIZES, &cost, object_len);
	return EXIT_SUCCESS;
}
