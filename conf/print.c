/* print.c: the numbers that follow from a cluster file. */
#include <inttypes.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/memory.h"
#include "conf/schema.h"
#include "conf/value.h"
#include "net/socket/address.h"

#define SESSION_BYTES 600u /* of an entry in the store: ~300 bytes of session, its names, links and index */

static uint32_t longest_lifetime_s(const struct conf *c)
{
	uint32_t longest = 0;
	for (size_t i = 0; i < c->listener_count; i++)
		if (c->listeners[i].tls.session_lifetime_s > longest)
			longest = c->listeners[i].tls.session_lifetime_s;
	return longest;
}

/* The share of the cluster's sessions that one agent stores: as one of the replicas, or because it made the session. */
static double share_of_agent(const struct conf *c)
{
	const double agents = (double)c->agent_count, replicas = c->broadcast.replicas;
	if (replicas == 0 || replicas >= agents)
		return 1;
	return (replicas + 1 - replicas / agents) / agents;
}

static void print_replicas(const struct conf *c, FILE *out)
{
	if (c->broadcast.replicas == 0 || c->broadcast.replicas >= c->agent_count)
		fprintf(out, "sessions: every agent holds all\n");
	else
		fprintf(out,
			"sessions: %" PRIu32
			" of %zu agents hold each, and the one that made it: %.0f %% of all on each "
			"agent\n",
			c->broadcast.replicas, c->agent_count, 100 * share_of_agent(c));
}

/* Each handshake, full or resumed, leaves one session: the one it was resumed from is used up or replaced. */
static void print_store(const struct conf *c, FILE *out)
{
	static const unsigned rates[] = { 1, 10, 100, 1000, 10000 };
	char size[VALUE_TEXT_MAX], text[VALUE_TEXT_MAX];
	const uint64_t sessions = c->store.bytes / SESSION_BYTES;
	const uint32_t lifetime_s = longest_lifetime_s(c);
	fprintf(out,
		"store: %s on each agent: about %" PRIu64 " sessions of %u bytes, at most %" PRIu64
		" of one client address\n",
		value_size_text(c->store.bytes, size), sessions, SESSION_BYTES,
		sessions * c->store.per_source_percent / 100);
	fprintf(out, "  handshakes/s in the cluster   a session can be resumed for\n");
	for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
		const uint64_t stay_s = (uint64_t)((double)sessions / share_of_agent(c) / rates[i]);
		if (stay_s >= lifetime_s)
			fprintf(out, "  %27u   %s (its lifetime)\n", rates[i],
				value_duration_text((uint64_t)lifetime_s * 1000, text));
		else
			fprintf(out, "  %27u   %s (then the store is full)\n", rates[i],
				value_duration_text(stay_s * 1000, text));
	}
}

/* Connections that are open stay in this memory, ended ones for `remember`. */
static void print_seen(const struct conf *c, FILE *out)
{
	char text[VALUE_TEXT_MAX];
	const uint64_t connections = memory_for_seen(c) / MEMORY_OF_SEEN_CONNECTION;

	fprintf(out,
		"  remembers %" PRIu64 " connections of the cluster: %" PRIu64
		" new ones a second for %s, if few stay open\n",
		connections, connections / c->broadcast.remember_s,
		value_duration_text((uint64_t)c->broadcast.remember_s * 1000, text));
}

/* The word of the file for a value of a listener's key. */
static const char *listener_word(const char *key, int value)
{
	const struct schema_word *w = schema_find(schema_find(&schema_cluster, "listeners")->map, key)->words;
	while (w->word && w->value != value)
		w++;
	return w->word;
}

static void print_listener(const struct conf_listener *l, FILE *out)
{
	char text[ADDRESS_TEXT_MAX];
	fprintf(out, "listener %s: %s, migration %s, handshakes %s, resumptions %s;", l->name,
		listener_word("mode", l->mode), listener_word("migration", l->migration),
		listener_word("handshake", l->handshake), listener_word("resumption", l->resumption));
	for (size_t i = 0; i < l->listen.count; i++)
		fprintf(out, " %s", address_format((const struct sockaddr *)&l->listen.at[i], text));
	fprintf(out, "%s to backend %s\n", l->listen.count == 0 ? " on agents only" : "", l->backend);
}

void conf_check_print(const struct conf *c, FILE *out)
{
	fprintf(out, "%s: ragents %zu, agents %zu, listeners %zu, backends %zu, certificates %zu\n", c->file.path,
		c->ragent_count, c->agent_count, c->listener_count, c->backend_count, c->certificate_count);
	for (size_t i = 0; i < c->listener_count; i++)
		print_listener(&c->listeners[i], out);
	print_replicas(c, out);
	print_store(c, out);
	print_seen(c, out);
	memory_print(c, out);
}
