/* broadcast.c: `cssl-bench broadcast`: the cost of sending a session, a live part, or the word that a connection exists
 * to the other agents, with the agents' own code: bytes, and CPU time of the sending thread and of the receiving ones.
 * Runs with few and with many peers, one object a turn and several, are the equations from which the parts of the cost
 * follow. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/broadcast/agents_here.h"
#include "bench/broadcast/broadcast_cost.h"
#include "bench/command/command.h"
#include "bench/command/option_table.h"
#include "proto/sess_obj.h"

#define TURNS_AT_ONCE 12u
#define IDLE_MS       500
#define LOST_MS       200
#define IP_UDP_LEN    28u

enum broadcast_print { PRINT_TABLE, PRINT_JSON };

struct broadcast_options {
	uint64_t objects, peers;
	unsigned print; /* enum broadcast_print */
};

static const struct {
	const char *name;
	enum agents_here_kind made;
	enum conf_live live;
} kinds[] = {
	[BROADCAST_SESSION] = { "session", HERE_SESSION, CONF_LIVE_BROADCAST },
	[BROADCAST_LIVE_PART] = { "live part", HERE_LIVE, CONF_LIVE_BROADCAST },
	[BROADCAST_WORD] = { "word", HERE_LIVE, CONF_LIVE_CARRIED },
};

static const unsigned per_turn[] = { 1, 4, 16, 64 };
#define TURN_SIZES (sizeof per_turn / sizeof per_turn[0])
#define RUNS       (BROADCAST_KINDS * 2 * TURN_SIZES)

struct measured {
	struct broadcast_run runs[RUNS];
	struct broadcast_cost cost;
	size_t session_len, live_len;
};

static void pause_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

static uint64_t clock_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct moment {
	uint64_t at_ns, sender_ns, receivers_ns, sent, received, datagrams, bytes;
};

static struct moment moment_take(struct agents_here *a, unsigned peers)
{
	struct moment m = { .at_ns = clock_now_ns(),
		.sender_ns = agents_here_cpu_ns(a, 0, THREAD_WORKER),
		.sent = agents_here_counted(a, 0, COUNT_OBJECTS_SENT),
		.datagrams = agents_here_counted(a, 0, COUNT_DATAGRAMS_SENT),
		.bytes = agents_here_counted(a, 0, COUNT_DATAGRAM_BYTES_SENT) };

	for (unsigned i = 1; i <= peers; i++) {
		m.receivers_ns += agents_here_cpu_ns(a, i, THREAD_WORKER) + agents_here_cpu_ns(a, i, THREAD_MAIN);
		m.received += agents_here_counted(a, i, COUNT_OBJECTS_RECEIVED);
	}
	return m;
}

/* Until everything that was said is heard; what was lost is repaired by and by. */
static void wait_heard(struct agents_here *a, unsigned peers, uint64_t each)
{
	const uint64_t until_ns = clock_now_ns() + LOST_MS * UINT64_C(1000000);

	for (unsigned i = 1; i <= peers; i++)
		while (agents_here_counted(a, i, COUNT_OBJECTS_RECEIVED) < each && clock_now_ns() < until_ns)
			nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

/* The cost of an idle cluster, in ns of CPU per ns: only timers and heartbeats run. */
struct idle {
	double sender, receivers;
};

static struct idle measure_idle(struct agents_here *a, unsigned peers)
{
	struct moment before = moment_take(a, peers), after;

	pause_ms(IDLE_MS);
	after = moment_take(a, peers);
	double ns = (double)(after.at_ns - before.at_ns);
	return (struct idle){ (double)(after.sender_ns - before.sender_ns) / ns,
		(double)(after.receivers_ns - before.receivers_ns) / ns };
}

static void broadcast_measure(struct agents_here *a, uint64_t objects, struct broadcast_run *run)
{
	struct idle idle = measure_idle(a, run->peers);
	uint64_t heard = agents_here_counted(a, 1, COUNT_OBJECTS_RECEIVED);
	struct moment before = moment_take(a, run->peers), after;

	for (uint64_t said = 0; said < objects; said += TURNS_AT_ONCE * run->per_turn) {
		agents_here_share(a, 0, kinds[run->kind].made, TURNS_AT_ONCE, run->per_turn);
		heard += TURNS_AT_ONCE * run->per_turn;
		wait_heard(a, run->peers, heard);
	}
	after = moment_take(a, run->peers);
	double ns = (double)(after.at_ns - before.at_ns);
	run->objects = (double)(after.sent - before.sent);
	run->datagrams = (double)(after.datagrams - before.datagrams) / run->peers;
	run->bytes = (double)(after.bytes - before.bytes) / run->peers;
	run->sender_ns = ((double)(after.sender_ns - before.sender_ns) - idle.sender * ns) / run->objects;
	run->receiver_ns = ((double)(after.receivers_ns - before.receivers_ns) - idle.receivers * ns) /
			   (double)(after.received - before.received);
}

/* All sizes of a turn with so many peers. Returns the bytes of an encoded object; of a word there is none. */
static size_t measure_with(
	enum broadcast_kind kind, unsigned peers, const struct broadcast_options *o, struct broadcast_run *runs)
{
	struct agents_here *a = agents_here_start(peers + 1, kinds[kind].live);

	for (size_t i = 0; i < TURN_SIZES; i++) {
		runs[i] = (struct broadcast_run){ .kind = kind, .peers = peers, .per_turn = per_turn[i] };
		broadcast_measure(a, kind == BROADCAST_SESSION ? o->objects : o->objects / 2, &runs[i]);
	}
	size_t object_len = agents_here_object_len(a, kinds[kind].made);
	agents_here_stop(a);
	return object_len;
}

/* Each kind with one peer and with many. */
static void measure_all(const struct broadcast_options *o, struct measured *m)
{
	size_t len[BROADCAST_KINDS];

	for (unsigned kind = 0; kind < BROADCAST_KINDS; kind++) {
		struct broadcast_run *runs = m->runs + kind * 2 * TURN_SIZES;

		measure_with(kind, 1, o, runs);
		len[kind] = measure_with(kind, (unsigned)o->peers, o, runs + TURN_SIZES);
	}
	m->session_len = len[BROADCAST_SESSION];
	m->live_len = len[BROADCAST_LIVE_PART];
	broadcast_cost_fit(m->runs, RUNS, &m->cost);
}

/* On the wire, for each peer. */
static double run_bytes(const struct broadcast_run *r)
{
	return (r->bytes + r->datagrams * IP_UDP_LEN) / r->objects;
}

static void print_table(const struct measured *m)
{
	printf("an encoded session: %zu bytes; a live part: %zu bytes\n\n", m->session_len, m->live_len);
	printf("what       peers  objects a turn  in a datagram  bytes per object and peer  sender us  receiver us\n");
	for (size_t i = 0; i < RUNS; i++) {
		const struct broadcast_run *r = &m->runs[i];

		printf("%-9s  %5u  %14u  %13.1f  %25.0f  %9.2f  %11.2f\n", kinds[r->kind].name, r->peers, r->per_turn,
			r->objects / r->datagrams, run_bytes(r), r->sender_ns / 1000, r->receiver_ns / 1000);
	}
	printf("\nsender:   %.2f us a datagram + %.2f us a datagram and peer\n", m->cost.datagram_ns / 1000,
		m->cost.datagram_peer_ns / 1000);
	printf("receiver: %.2f us a datagram\n", m->cost.received_datagram_ns / 1000);
	for (unsigned kind = 0; kind < BROADCAST_KINDS; kind++)
		printf("%-9s: %.2f us at the sender, %.2f us at a receiver\n", kinds[kind].name,
			m->cost.object_ns[kind] / 1000, m->cost.received_object_ns[kind] / 1000);
}

static json_t *cost_json(const struct broadcast_cost *c)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "session_ns", c->object_ns[BROADCAST_SESSION],
		"live_ns", c->object_ns[BROADCAST_LIVE_PART], "word_ns", c->object_ns[BROADCAST_WORD], "datagram_ns",
		c->datagram_ns, "datagram_peer_ns", c->datagram_peer_ns, "received_datagram_ns",
		c->received_datagram_ns, "received_session_ns", c->received_object_ns[BROADCAST_SESSION],
		"received_live_ns", c->received_object_ns[BROADCAST_LIVE_PART], "received_word_ns",
		c->received_object_ns[BROADCAST_WORD]);
}

static int broadcast_print_json(const struct measured *m)
{
	json_t *rows = json_array(), *out;

	for (size_t i = 0; i < RUNS; i++) {
		const struct broadcast_run *r = &m->runs[i];

		json_array_append_new(
			rows, json_pack("{s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f}", "what", kinds[r->kind].name,
				      "peers", (int)r->peers, "objects_per_turn", (int)r->per_turn, "objects",
				      r->objects, "datagrams", r->datagrams, "bytes_per_object_and_peer", run_bytes(r),
				      "sender_us", r->sender_ns / 1000, "receiver_us", r->receiver_ns / 1000));
	}
	out = json_pack("{s:i, s:i, s:o, s:o}", "session_bytes", (int)m->session_len, "live_bytes", (int)m->live_len,
		"runs", rows, "cost", cost_json(&m->cost));
	if (!out || json_dumpf(out, stdout, JSON_INDENT(2)) != 0)
		return EXIT_FAILURE;
	printf("\n");
	json_decref(out);
	return EXIT_SUCCESS;
}

static const struct option_row rows[] = {
	OPTION_NUMBER(0, "objects", "N", struct broadcast_options, objects, 1, 1e9, 1,
		"sessions of each run; half as many live parts and words (default 50000)"),
	OPTION_NUMBER(0, "peers", "N", struct broadcast_options, peers, 2, AGENTS_HERE_MAX - 1, 1,
		"the larger number of peers (default 6)"),
	OPTION_FLAG(0, "json", struct broadcast_options, print, PRINT_JSON, "for programs"),
};

static const struct option_command command = { "broadcast",
	"cssl-bench broadcast [OPTIONS]: the cost of sessions and live parts on their way to the other agents\n\n",
	NULL, rows, sizeof rows / sizeof rows[0], OPTIONS_ONLY };

int broadcast_main(int argc, char **argv)
{
	struct broadcast_options o = { .objects = 50000, .peers = 6 };
	struct measured m;
	const enum option_parse parsed = option_table_parse(&command, argc, argv, &o);

	if (parsed != OPTIONS_PARSED)
		return parsed;
	measure_all(&o, &m);
	if (o.print == PRINT_JSON)
		return broadcast_print_json(&m);
	print_table(&m);
	return EXIT_SUCCESS;
}
