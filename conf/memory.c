/* memory.c: a table of parts for each kind of process. What the kernel keeps for sockets is not in it, nor are the
 * program's own pages beyond a round figure.
 */
#include "conf/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conf/value.h"
#include "net/memory/slabs.h"
#include "net/process/descriptors.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

#define MEMORY_IF_UNKNOWN (2048 * MIB)
#define HANDSHAKES_MIN    64u
#define HANDSHAKES_MAX    1024u
#define CONNECTIONS_MIN   256u
#define CONNECTIONS_MAX   4000000u
#define KEPT_MIN          (16 * MIB)
#define STORE_MIN         MIB
#define PARTIALS_MAX      (64 * MIB)
#define PARTIALS_MIN      MIB

/* Rough figures of memory that does not grow with the number of clients. */
#define RAGENT_ITSELF       (24 * MIB)
#define AGENT_ITSELF        (32 * MIB)
#define AGENT_TABLES        (64 * MIB) /* revocations, families, questions under way */
#define RAGENT_WORKER_SPARE (34 * MIB) /* blocks that wait to be used again */
#define AGENT_WORKER_SPARE  (24 * MIB)
#define RAGENT_CONTROL      (8 * MIB)
#define LINK_BYTES          (5 * MIB / 2) /* rings, output, what is being read */
#define PEER_LINK_BYTES     (36 * MIB)    /* an agent that does not read its snapshot */
#define OBJECT_BYTES        1216u         /* in the ring: as much as a datagram takes */
#define LIVE_OF_STORE       4u
#define SEEN_OF_STORE       4u
#define TABLE_LIVES         3u
#define WITHOUT_LIMIT       (1u << 20)

static uint64_t memory_between(uint64_t value, uint64_t min, uint64_t max)
{
	return value < min ? min : value > max ? max : value;
}

static unsigned most_workers(const struct conf *c)
{
	unsigned most = 1;

	for (size_t i = 0; i < c->agent_count; i++)
		most = c->agents[i].workers > most ? c->agents[i].workers : most;
	return most;
}

static void derive_limits(struct conf_limits *l, uint64_t memory, unsigned workers)
{
	if (l->connections == CONF_DERIVED)
		l->connections = (uint32_t)memory_between(
			memory / 16 / MEMORY_OF_RAGENT_CONNECTION, CONNECTIONS_MIN, CONNECTIONS_MAX);
	if (l->handshakes == CONF_DERIVED)
		l->handshakes = (uint32_t)memory_between(
			memory / 32 / workers / MEMORY_OF_HANDSHAKE, HANDSHAKES_MIN, HANDSHAKES_MAX);
	if (l->handshakes_per_source == CONF_DERIVED)
		l->handshakes_per_source = l->handshakes / 2;
	if (l->kept_len == CONF_DERIVED_SIZE)
		l->kept_len = memory_between(memory / 16 / MIB * MIB, KEPT_MIN, UINT64_MAX);
}

void memory_derive(struct conf *c, uint64_t memory)
{
	const uint64_t m = memory ? memory : MEMORY_IF_UNKNOWN;

	derive_limits(&c->limits, m, most_workers(c));
	for (size_t i = 0; i < c->ragent_count; i++)
		derive_limits(&c->ragents[i].limits, m, c->ragents[i].workers);
	if (conf_line(&c->file, &c->store.bytes) == 0)
		c->store.bytes = memory_between(m / 8 / MIB * MIB, STORE_MIN, c->store.bytes);
	c->memory = m;
}

uint64_t memory_for_partials(const struct conf_limits *l, unsigned workers)
{
	return l->kept_len ? memory_between(l->kept_len / 4 / workers, PARTIALS_MIN, PARTIALS_MAX) : PARTIALS_MAX;
}

static uint64_t of_certificates(const struct conf *c)
{
	for (size_t i = 0; i < c->listener_count; i++)
		if (c->listeners[i].tls.client_certificate != CONF_CLIENT_CERT_NONE)
			return MEMORY_OF_CERTIFICATES;
	return 0;
}

static bool has_preambles(const struct conf *c)
{
	for (size_t i = 0; i < c->listener_count; i++)
		if (conf_has_preamble(&c->listeners[i]))
			return true;
	return false;
}

/* Those that may come above a limit; 0: there is no limit. */
static uint64_t with_control(const struct conf *c, uint64_t connections)
{
	for (size_t i = 0; connections && i < c->listener_count; i++)
		if (conf_is_control(c, &c->listeners[i]))
			connections += CONF_CONTROL_PLACES;
	return connections;
}

/* @limit 0: none. */
static struct memory_part memory_up_to(const char *what, uint64_t limit, uint64_t each)
{
	return (struct memory_part){ what, limit ? limit : 1, limit ? each : UINT64_MAX };
}

/* The next process makes connections of its own before it gives those of the dead one back. So may the one after it,
 * if the next one dies while it restores. The third one restores nothing, or, after a kill, what the table has room for
 * (NOTES_RESTORE_KILLS); the others of its connections end with it. */
static struct memory_part of_restore(const struct conf_limits *l, uint64_t of_connection)
{
	if (l->connections == 0 || l->kept_len == 0)
		return memory_up_to("restore after a death", 0, 0);
	return (struct memory_part){ "restore after a death", TABLE_LIVES - 1,
		l->connections * of_connection + l->kept_len };
}

static uint64_t links_of_ragent(const struct conf *c, const struct conf_ragent *r)
{
	uint64_t links = 0;

	for (size_t i = 0; i < c->agent_count; i++)
		links += (uint64_t)c->agents[i].workers * r->workers;
	return links;
}

static uint64_t links_of_agent(const struct conf *c, const struct conf_agent *a)
{
	uint64_t links = 0;

	for (size_t i = 0; i < c->ragent_count; i++)
		links += (uint64_t)c->ragents[i].workers * a->workers;
	return links;
}

size_t memory_of_ragent(
	const struct conf *c, const struct conf_ragent *r, struct memory_part out[static MEMORY_PARTS_MAX])
{
	const struct conf_limits *l = &r->limits;
	const uint64_t of_connection = MEMORY_OF_RAGENT_CONNECTION + of_certificates(c);
	size_t n = 0;

	out[n++] = memory_up_to("connections", with_control(c, l->connections), of_connection);
	out[n++] = memory_up_to("kept bytes", l->kept_len, 1);
	out[n++] = of_restore(l, of_connection);
	out[n++] = (struct memory_part){ "partial records", r->workers, memory_for_partials(l, r->workers) };
	out[n++] = (struct memory_part){ "links and their rings", links_of_ragent(c, r), LINK_BYTES };
	out[n++] = (struct memory_part){ "spare blocks", r->workers, RAGENT_WORKER_SPARE };
	out[n++] = (struct memory_part){ "control socket", 1, RAGENT_CONTROL };
	out[n++] = (struct memory_part){ "the process itself", 1, RAGENT_ITSELF };
	return n;
}

uint32_t memory_table_connections(const struct conf_ragent *r)
{
	return r->limits.connections ? r->limits.connections : WITHOUT_LIMIT;
}

/* A slab has at least seven blocks, so what it cannot use is less than an eighth of it. Bytes that are kept for
 * connections are in the table as well, so that the next process has them. */
uint64_t memory_of_table(const struct conf *c, const struct conf_ragent *r)
{
	const uint64_t kept = r->limits.kept_len / 7 * 8;
	const uint64_t of_connection = MEMORY_OF_RAGENT_CONNECTION + of_certificates(c) + MEMORY_OF_WAITING_RECORDS;
	const uint64_t each = of_connection * 8 / 7 + 1;
	const uint64_t of_worker = (uint64_t)MEMORY_RAGENT_SLAB_SIZES * (SLABS_SPARE + 1) * SLAB_LEN;

	return TABLE_LIVES * (memory_table_connections(r) * each + kept + r->workers * of_worker);
}

/* The connections of all RAgents may come to one agent. 0: there is no limit. */
static uint64_t connections_of_agent(const struct conf *c, const struct conf_agent *a)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->ragent_count; i++) {
		if (c->ragents[i].limits.connections == 0)
			return 0;
		sum += with_control(c, c->ragents[i].limits.connections);
	}
	if (a->direct_count && c->limits.connections == 0)
		return 0;
	return sum + (a->direct_count ? c->limits.connections : 0);
}

size_t memory_of_agent(
	const struct conf *c, const struct conf_agent *a, struct memory_part out[static MEMORY_PARTS_MAX])
{
	const struct conf_limits *l = &c->limits;
	size_t n = 0;

	out[n++] = memory_up_to("half-open handshakes", (uint64_t)l->handshakes * a->workers, MEMORY_OF_HANDSHAKE);
	if (has_preambles(c))
		out[n++] = memory_up_to("preambles", (uint64_t)l->preambles * a->workers, MEMORY_OF_PREAMBLE);
	out[n++] = memory_up_to(
		"connections", connections_of_agent(c, a), MEMORY_OF_AGENT_CONNECTION + of_certificates(c));
	out[n++] = memory_up_to("kept bytes", l->kept_len, 1);
	out[n++] = (struct memory_part){ "sessions (store)", 1, c->store.bytes };
	out[n++] = (struct memory_part){ "live parts of others", c->broadcast.live == CONF_LIVE_BROADCAST,
		c->store.bytes / LIVE_OF_STORE };
	out[n++] = (struct memory_part){ "connections remembered", 1, memory_for_seen(c) };
	out[n++] = (struct memory_part){ "broadcast's ring", (uint64_t)(a->workers + 1) * c->broadcast.ring,
		OBJECT_BYTES };
	out[n++] = (struct memory_part){ "tables", 1, AGENT_TABLES };
	out[n++] = (struct memory_part){ "links and their rings", links_of_agent(c, a), LINK_BYTES };
	out[n++] = (struct memory_part){ "links to other agents", c->agent_count - 1, PEER_LINK_BYTES };
	out[n++] = (struct memory_part){ "spare blocks", a->workers, AGENT_WORKER_SPARE };
	out[n++] = (struct memory_part){ "the process itself", 1, AGENT_ITSELF };
	return n;
}

/* A link has a socket, memory, and a descriptor of the process at its other end. */
uint64_t memory_descriptors_of_ragent(const struct conf *c, const struct conf_ragent *r, uint64_t connections)
{
	return connections ? connections + 3 * links_of_ragent(c, r) + DESCRIPTORS_BESIDE : 0;
}

/* Each connection has one to its backend; that of a direct listener has one to the client, too. */
uint64_t memory_descriptors_of_agent(const struct conf *c, const struct conf_agent *a)
{
	const uint64_t connections = connections_of_agent(c, a), direct = a->direct_count ? c->limits.connections : 0;

	return connections ? connections + direct + 3 * links_of_agent(c, a) + c->agent_count + DESCRIPTORS_BESIDE : 0;
}

uint64_t memory_for_seen(const struct conf *c)
{
	return c->store.bytes / SEEN_OF_STORE;
}

uint64_t memory_sum(const struct memory_part *parts, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		if (parts[i].each == UINT64_MAX)
			return UINT64_MAX;
		sum += parts[i].count * parts[i].each;
	}
	return sum;
}

/* --- for --check --- */

static const char *size_text(uint64_t bytes, char out[static VALUE_TEXT_MAX])
{
	if (bytes == UINT64_MAX)
		return "no bound";
	if (bytes >= MIB)
		bytes = (bytes + MIB - 1) / MIB * MIB;
	if (bytes % (1024 * MIB) != 0 && bytes >= MIB) {
		snprintf(out, VALUE_TEXT_MAX, "%" PRIu64 "MiB", bytes / MIB);
		return out;
	}
	return value_size_text(bytes, out);
}

static void print_parts(const char *whose, const struct memory_part *parts, size_t count, FILE *out)
{
	char text[VALUE_TEXT_MAX], each[VALUE_TEXT_MAX];

	fprintf(out, "memory of %s: at most %s\n", whose, size_text(memory_sum(parts, count), text));
	for (size_t i = 0; i < count; i++) {
		const struct memory_part *p = &parts[i];
		if (p->count == 0)
			continue;
		fprintf(out, "  %-22s %10s", p->what,
			size_text(p->each == UINT64_MAX ? p->each : p->count * p->each, text));
		if (p->each == UINT64_MAX || p->count == 1 || p->each == 1)
			fputc('\n', out);
		else
			fprintf(out, "   %" PRIu64 " of %s\n", p->count, value_size_text(p->each, each));
	}
}

/* Nodes with the same figures share a line. */
static bool memory_is_same(const struct memory_part *a, const struct memory_part *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (a[i].count != b[i].count || a[i].each != b[i].each)
			return false;
	return true;
}

enum nodes { RAGENTS, AGENTS };

static size_t parts_of(const struct conf *c, enum nodes kind, size_t node, struct memory_part *out)
{
	return kind == RAGENTS ? memory_of_ragent(c, &c->ragents[node], out)
			       : memory_of_agent(c, &c->agents[node], out);
}

static const char *memory_name_of(const struct conf *c, enum nodes kind, size_t node)
{
	return kind == RAGENTS ? c->ragents[node].name : c->agents[node].name;
}

static void print_table(const struct conf *c, const struct conf_ragent *r, FILE *out)
{
	char text[VALUE_TEXT_MAX];

	fprintf(out,
		"  after a death, the next process can go on with %u connections: %s of addresses, which take\n"
		"  memory only when they are used\n",
		memory_table_connections(r), size_text(memory_of_table(c, r), text));
}

/* Returns the sum of all; UINT64_MAX: there is no bound. */
static uint64_t print_nodes(const struct conf *c, enum nodes kind, FILE *out)
{
	const size_t all = kind == RAGENTS ? c->ragent_count : c->agent_count;
	const char *word = kind == RAGENTS ? "ragent" : "agent";
	uint64_t sum = 0;
	struct memory_part parts[MEMORY_PARTS_MAX], next[MEMORY_PARTS_MAX];
	char whose[160];

	for (size_t i = 0, last; i < all; i = last + 1) {
		size_t count = parts_of(c, kind, i, parts);
		for (last = i; last + 1 < all; last++) {
			parts_of(c, kind, last + 1, next);
			if (!memory_is_same(parts, next, count))
				break;
		}
		if (last == i)
			snprintf(whose, sizeof whose, "%s %s", word, memory_name_of(c, kind, i));
		else
			snprintf(whose, sizeof whose, "each %s from %s to %s", word, memory_name_of(c, kind, i),
				memory_name_of(c, kind, last));
		print_parts(whose, parts, count, out);
		if (kind == RAGENTS)
			print_table(c, &c->ragents[i], out);
		const uint64_t each = memory_sum(parts, count);
		sum = each == UINT64_MAX || sum == UINT64_MAX ? UINT64_MAX : sum + (last + 1 - i) * each;
	}
	return sum;
}

void memory_print(const struct conf *c, FILE *out)
{
	char text[VALUE_TEXT_MAX];

	if (c->memory)
		fprintf(out, "limits that the file does not set follow from %s of memory\n",
			size_text(c->memory, text));
	const uint64_t of_ragents = print_nodes(c, RAGENTS, out), of_agents = print_nodes(c, AGENTS, out);
	fprintf(out, "memory of all of them, if they are on one host: at most %s\n",
		size_text(of_ragents > UINT64_MAX - of_agents ? UINT64_MAX : of_ragents + of_agents, text));
}
