/* print.c: the schema as a manual, and what a cluster file means in numbers. */
#include <inttypes.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/schema.h"
#include "conf/value.h"
#include "net/address.h"

#define SESSION_BYTES 600u /* of an entry in the store: ~300 bytes of session, its names, links and index */
#define HELP_WIDTH    112u

static void print_indent(FILE *out, unsigned depth)
{
	fprintf(out, "%*s", (int)(2 * depth), "");
}

/* Words of @text, filled into lines. */
static void print_wrapped(FILE *out, unsigned depth, const char *text)
{
	size_t column = HELP_WIDTH;
	for (const char *word = text; *word != '\0';) {
		const size_t len = strcspn(word, " ");
		if (column + 1 + len > HELP_WIDTH) {
			if (word != text)
				fputc('\n', out);
			print_indent(out, depth);
			column = 2 * depth;
		} else {
			fputc(' ', out);
			column++;
		}
		fwrite(word, 1, len, out);
		column += len;
		word += len + (word[len] == ' ');
	}
	fputc('\n', out);
}

static void print_row(FILE *out, const struct schema_row *row, unsigned depth)
{
	char expected[VALUE_EXPECTED_MAX];
	const char *what = row->type == SCHEMA_MAP ? "a map"
			   : row->type == SCHEMA_LIST
				   ? "a list of maps"
				   : value_expected(row, row->type == SCHEMA_ITEMS ? row->item : row->type, expected);
	print_indent(out, depth);
	fprintf(out, "%s: %s%s", row->key, row->type == SCHEMA_ITEMS ? "a list, each " : "", what);
	if (row->presence == SCHEMA_REQUIRED)
		fputs("; required", out);
	if (row->fallback)
		fprintf(out, "; default %s", row->fallback);
	fputc('\n', out);
	print_wrapped(out, depth + 2, row->help);
}

/* A map that stands in two places (limits, health) is described at the first. */
static void print_map(FILE *out, const struct schema_map *map, unsigned depth)
{
	for (const struct schema_row *row = map->rows; row->key; row++) {
		print_row(out, row, depth);
		if (row->map && row->presence != SCHEMA_INHERITED)
			print_map(out, row->map, depth + 1);
	}
}

void conf_help_print(FILE *out)
{
	print_map(out, &schema_cluster, 0);
}

static uint32_t longest_lifetime_s(const struct conf *c)
{
	uint32_t longest = 0;
	for (size_t i = 0; i < c->listener_count; i++) {
		if (c->listeners[i].tls.session_lifetime_s > longest)
			longest = c->listeners[i].tls.session_lifetime_s;
	}
	return longest;
}

/* Of the cluster's sessions, the part that stands on one agent: the holders' copies, and the one of the agent that made
 * it where that is no holder. */
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
	fprintf(out, "%s: ragents %zu, agents %zu, listeners %zu, backends %zu, certificates %zu\n", c->path,
		c->ragent_count, c->agent_count, c->listener_count, c->backend_count, c->certificate_count);
	for (size_t i = 0; i < c->listener_count; i++)
		print_listener(&c->listeners[i], out);
	print_replicas(c, out);
	print_store(c, out);
}
