/* command_status.c: the cluster at a glance. */
#include <inttypes.h>
#include <stdlib.h>

#include "csslctl/agent_words.h"
#include "csslctl/command.h"
#include "csslctl/text.h"
#include "csslctl/table.h"

static unsigned agents_ready(const json_t *agents)
{
	unsigned up = 0;
	size_t i;
	json_t *agent;

	json_array_foreach(agents, i, agent) up += agent_state_style(member_text(agent, "state")) == STYLE_GOOD;
	return up;
}

/* A RAgent of an older release gives none. */
static void add_deaths(struct table *t, const json_t *deaths)
{
	const uint64_t killed = member_integer(deaths, "killed"), crashed = member_integer(deaths, "crashed"),
		       hung = member_integer(deaths, "hung");

	if (killed + crashed + hung > 0)
		facts_add(t, "deaths", STYLE_WARN, "%" PRIu64 " killed, %" PRIu64 " crashed, %" PRIu64 " hung", killed,
			crashed, hung);
}

/* Likewise. */
static void add_fates(struct table *t, const json_t *fates)
{
	const uint64_t went_on = member_integer(fates, "went_on"), reset = member_integer(fates, "reset");
	const uint64_t outdated = member_integer(fates, "outdated"), given_up = member_integer(fates, "given_up"),
		       not_restored = member_integer(fates, "not_restored"), known = outdated + not_restored + given_up;
	char pause[QUANTITY_TEXT_MAX];

	if (member_integer(fates, "last_pause_us") > 0)
		facts_add(t, "at deaths", reset ? STYLE_WARN : STYLE_PLAIN,
			"%" PRIu64 " connections went on, %" PRIu64 " reset; last pause %s", went_on, reset,
			duration_text(member_integer(fates, "last_pause_us"), pause));
	if (reset)
		facts_add(t, "reset because", STYLE_WARN,
			"%" PRIu64 " not saved, %" PRIu64 " outdated, %" PRIu64 " not restored, %" PRIu64 " given up",
			reset > known ? reset - known : 0, outdated, not_restored, given_up);
	if (member_integer(fates, "starts_without_restore") > 0)
		facts_add(t, "not restored", STYLE_BAD, "%" PRIu64 " times, because processes died while they restored",
			member_integer(fates, "starts_without_restore"));
}

static void show_self(const struct invocation *in, const json_t *status)
{
	char age[QUANTITY_TEXT_MAX];
	const json_t *agents = member(status, "agents");
	const unsigned up = agents_ready(agents), count = (unsigned)json_array_size(agents);
	struct table *t = facts_create();

	facts_add(t, "ragent", STYLE_HEAD, "%s", member_text(status, "name"));
	facts_add(t, "version", STYLE_PLAIN, "%s", member_text(status, "version"));
	facts_add(t, "state", STYLE_PLAIN, "%s for %s", member_text(status, "state"),
		duration_text(member_integer(status, "uptime_s") * 1000000, age));
	add_deaths(t, member(status, "deaths"));
	add_fates(t, member(status, "at_deaths"));
	facts_add(t, "workers", STYLE_PLAIN, "%" PRIu64, member_integer(status, "workers"));
	facts_add(t, "connections", STYLE_PLAIN, "%" PRIu64, member_integer(status, "connections"));
	facts_add(t, "agents ready", up == count ? STYLE_GOOD : up > 0 ? STYLE_WARN : STYLE_BAD, "%u of %u", up, count);
	table_show(t, &in->screen);
}

static void list_agents(const struct invocation *in, const json_t *agents)
{
	static const struct column columns[] = { { "AGENT" }, { "STATE" }, { "LINKS", COLUMN_RIGHT },
		{ "CONNECTIONS", COLUMN_RIGHT }, { "HANDSHAKES", COLUMN_RIGHT }, { "SESSIONS", COLUMN_RIGHT },
		{ "BUSY", COLUMN_RIGHT } };
	struct table *t = table_create(columns, sizeof columns / sizeof columns[0]);
	size_t i;
	json_t *agent;

	json_array_foreach(agents, i, agent)
	{
		const uint64_t up = member_integer(agent, "links_up"), all = member_integer(agent, "links");
		table_cell(t, STYLE_PLAIN, "%s", member_text(agent, "name"));
		agent_state_cell(t, agent);
		table_cell(t, up < all ? STYLE_WARN : STYLE_PLAIN, "%" PRIu64 "/%" PRIu64, up, all);
		table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(agent, "connections"));
		table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(agent, "handshakes"));
		table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(agent, "sessions"));
		agent_busy_cell(t, agent);
	}
	fputc('\n', in->screen.out);
	table_show(t, &in->screen);
}

static void addresses_cell(struct table *t, const json_t *addresses)
{
	char text[512] = "";
	size_t i, len = 0;
	json_t *address;

	json_array_foreach(addresses, i, address) if (len < sizeof text) len +=
		(size_t)snprintf(text + len, sizeof text - len, "%s%s", len ? " " : "", json_string_value(address));
	table_cell(t, STYLE_PLAIN, "%s", len ? text : "-");
}

static void list_listeners(const struct invocation *in, const json_t *listeners)
{
	static const struct column columns[] = { { "LISTENER" }, { "MODE" }, { "MIGRATION" }, { "HANDSHAKE" },
		{ "RESUMPTION" }, { "CONNECTIONS", COLUMN_RIGHT }, { "ADDRESSES" } };
	struct table *t = table_create(columns, sizeof columns / sizeof columns[0]);
	size_t i;
	json_t *listener;

	json_array_foreach(listeners, i, listener)
	{
		TABLE_TEXTS(t, listener, "name", "mode", "migration", "handshake", "resumption");
		table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(listener, "connections"));
		addresses_cell(t, member(listener, "addresses"));
	}
	fputc('\n', in->screen.out);
	table_show(t, &in->screen);
}

void show_status(const struct invocation *in, const json_t *status)
{
	show_self(in, status);
	list_agents(in, member(status, "agents"));
	list_listeners(in, member(status, "listeners"));
}

void show_ready(const struct invocation *in, const json_t *answer)
{
	fprintf(in->screen.out, "%" PRIu64 " agents are ready\n", member_integer(answer, "ready"));
}
