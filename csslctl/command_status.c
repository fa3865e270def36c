/* command_status.c: the cluster at a glance, its listeners and its certificates. */
#include <inttypes.h>

#include "csslctl/command.h"

static unsigned agents_ready(const json_t *agents)
{
	unsigned up = 0;
	size_t i;
	json_t *agent;

	json_array_foreach(agents, i, agent) up += agent_state_style(member_text(agent, "state")) == STYLE_GOOD;
	return up;
}

static void add_deaths(struct table *t, const json_t *deaths)
{
	const uint64_t killed = member_integer(deaths, "killed"), crashed = member_integer(deaths, "crashed"),
		       hung = member_integer(deaths, "hung");

	if (killed + crashed + hung > 0)
		facts_add(t, "deaths", STYLE_WARN, "%" PRIu64 " killed, %" PRIu64 " crashed, %" PRIu64 " hung", killed,
			crashed, hung);
}

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

static void status_links_cell(struct table *t, const json_t *agent)
{
	const uint64_t up = member_integer(agent, "links_up"), all = member_integer(agent, "links");

	table_cell(t, up < all ? STYLE_WARN : STYLE_PLAIN, "%" PRIu64 "/%" PRIu64, up, all);
}

static void list_agents(const struct invocation *in, const json_t *agents)
{
	static const struct column columns[] = { { "AGENT", .member = "name" }, { "STATE", .cell = agent_state_cell },
		{ "LINKS", COLUMN_RIGHT, .cell = status_links_cell }, { "CONNECTIONS", COLUMN_COUNT },
		{ "HANDSHAKES", COLUMN_COUNT }, { "SESSIONS", COLUMN_COUNT },
		{ "BUSY", COLUMN_RIGHT, .cell = agent_busy_cell } };

	fputc('\n', in->screen.out);
	ROWS_SHOW(&in->screen, agents, columns);
}

static void addresses_cell(struct table *t, const json_t *listener)
{
	char text[512] = "";
	size_t i, len = 0;
	json_t *address;

	json_array_foreach(member(listener, "addresses"), i, address) if (len < sizeof text) len +=
		(size_t)snprintf(text + len, sizeof text - len, "%s%s", len ? " " : "", json_string_value(address));
	table_cell(t, STYLE_PLAIN, "%s", len ? text : "-");
}

static void list_listeners(const struct invocation *in, const json_t *listeners)
{
	static const struct column columns[] = { { "LISTENER", .member = "name" }, { "MODE" }, { "MIGRATION" },
		{ "HANDSHAKE" }, { "RESUMPTION" }, { "CONNECTIONS", COLUMN_COUNT },
		{ "ADDRESSES", .cell = addresses_cell } };

	fputc('\n', in->screen.out);
	ROWS_SHOW(&in->screen, listeners, columns);
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

/* --- listeners --- */

static void first_address_cell(struct table *t, const json_t *listener)
{
	const json_t *addresses = member(listener, "addresses");
	const char *first = json_string_value(json_array_get(addresses, 0));

	table_cell(t, STYLE_PLAIN, "%s%s", first ? first : "-", json_array_size(addresses) > 1 ? " ..." : "");
}

const struct column listener_columns[] = { { "LISTENER", .member = "name" }, { "STATE" }, { "MODE" }, { "SERVICE" },
	{ "BACKEND" }, { "CAPTURE", .member = "original_destination" }, { "CONNECTIONS", COLUMN_COUNT },
	{ "FULL", COLUMN_COUNT, "handshakes_full" }, { "RESUMED", COLUMN_COUNT, "handshakes_resumed" },
	{ "FAILED", COLUMN_COUNT, "handshakes_failed", STYLE_WARN }, { "REFUSED", COLUMN_COUNT, .style = STYLE_WARN },
	{ "IN", COLUMN_SIZE, "client_bytes" }, { "OUT", COLUMN_SIZE, "server_bytes" },
	{ "ADDRESS", .cell = first_address_cell }, { NULL } };

/* --- certificates of all agents: two weeks before their end, as the alert of conf/prometheus/rules.yaml, they stand
 * out --- */

static void days_cell(struct table *t, const json_t *certificate)
{
	static const enum style styles[] = { STYLE_PLAIN, STYLE_WARN, STYLE_BAD };
	const json_int_t days = json_integer_value(member(certificate, "days_left"));

	table_cell(t, styles[(days < 14) + (days < 0)], "%" JSON_INTEGER_FORMAT, days);
}

static void hosts_cell(struct table *t, const json_t *certificate)
{
	const json_t *hosts = member(certificate, "hosts");
	const char *first = json_string_value(json_array_get(hosts, 0));

	table_cell(t, STYLE_PLAIN, "%s%s", first ? first : "-", json_array_size(hosts) > 1 ? ",..." : "");
}

const struct column certificate_columns[] = { { "DAYS", COLUMN_RIGHT, .cell = days_cell },
	{ "NAMES", .cell = hosts_cell }, { "AGENT" }, { "CERTIFICATE", .member = "name" },
	{ "ENDS", .member = "not_after" }, { "FILE" }, { "ISSUER" }, { NULL } };
