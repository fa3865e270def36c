/* command_agents.c: lists of agents, one agent, and commands to one that end at once. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "csslctl/ask.h"

#define CLOCK_WARN_MS 1000
#define BUSY_PERMILLE 900u
#define WAIT_MS       60000u
#define LOOK_EVERY_MS 200u

/* --- words that every view has --- */

enum style agent_state_style(const char *state)
{
	if (strcmp(state, "ready") == 0)
		return STYLE_GOOD;
	return strcmp(state, "lost") == 0 || strcmp(state, "no backend") == 0 ? STYLE_BAD : STYLE_WARN;
}

void agent_state_cell(struct table *t, const json_t *agent)
{
	const char *state = member_text(agent, "state");
	const bool fails = json_string_length(member(agent, "failing_backends")) > 0;
	table_cell(t, fails ? STYLE_BAD : agent_state_style(state), fails ? "%s!" : "%s", state);
}

void agent_busy_cell(struct table *t, const json_t *agent)
{
	const unsigned permille = (unsigned)member_integer(agent, "busy_permille");
	table_cell(t, permille >= BUSY_PERMILLE ? STYLE_WARN : STYLE_PLAIN, "%u.%u%%", permille / 10, permille % 10);
}

/* --- cells and facts --- */

static bool is_drained(const json_t *agent)
{
	const char *state = member_text(agent, "drain.state");

	return strcmp(state, "none") != 0 && strcmp(state, "-") != 0;
}

static void drain_cell(struct table *t, const json_t *agent)
{
	const char *state = member_text(agent, "drain.state");

	if (!is_drained(agent))
		table_cell(t, STYLE_DIM, "-");
	else if (member_integer(agent, "drain.left") > 0)
		table_cell(t, STYLE_WARN, "%s, %" PRIu64 " of %" PRIu64 " left", state,
			member_integer(agent, "drain.left"), member_integer(agent, "drain.total"));
	else
		table_cell(t, STYLE_WARN, "%s", state);
}

/* "+12 ms", "-1h"; "-" if RAgent does not know it. */
static void clock_cell(struct table *t, const json_t *agent)
{
	const json_t *offset = member(agent, "clock_offset_ms");
	const json_int_t ms = json_integer_value(offset);
	const enum style style = ms > CLOCK_WARN_MS || ms < -CLOCK_WARN_MS ? STYLE_WARN : STYLE_PLAIN;
	char text[QUANTITY_TEXT_MAX];

	if (json_is_integer(offset))
		table_cell(t, style, "%s%s", ms < 0 ? "-" : "+",
			duration_text((uint64_t)(ms < 0 ? -ms : ms) * 1000, text));
	else
		table_cell(t, STYLE_PLAIN, "-");
}

const struct column agent_columns[] = { { "AGENT", .member = "name" }, { "STATE", .cell = agent_state_cell },
	{ "WEIGHT", COLUMN_REAL }, { "LINKS", COLUMN_COUNT, "links.up" },
	{ "SUSPECT", COLUMN_COUNT, "links.suspect", STYLE_WARN }, { "CONNECTIONS", COLUMN_COUNT },
	{ "HANDSHAKES", COLUMN_COUNT }, { "SESSIONS", COLUMN_COUNT }, { "BUSY", COLUMN_RIGHT, .cell = agent_busy_cell },
	{ "VERSION" }, { "CLOCK", COLUMN_RIGHT, .cell = clock_cell }, { "DRAIN", .cell = drain_cell }, { NULL } };

static void drain_left_cell(struct table *t, const json_t *agent)
{
	table_cell(t, STYLE_PLAIN, "%" PRIu64 " of %" PRIu64, member_integer(agent, "drain.left"),
		member_integer(agent, "drain.total"));
}

static void agent_links_cell(struct table *t, const json_t *agent)
{
	table_cell(t, STYLE_PLAIN, "%" PRIu64 ", %" PRIu64 " suspect", member_integer(agent, "links.up"),
		member_integer(agent, "links.suspect"));
}

static void quiet_busy_cell(struct table *t, const json_t *agent)
{
	const unsigned permille = (unsigned)member_integer(agent, "busy_permille");
	table_cell(t, STYLE_PLAIN, "%u.%u%%", permille / 10, permille % 10);
}

void show_agent(const struct invocation *in, const json_t *agent)
{
	static const struct column facts[] = { { "version" }, { "clock", .cell = clock_cell },
		{ "weight", COLUMN_REAL }, { "links up", .cell = agent_links_cell }, { "connections", COLUMN_COUNT },
		{ "handshakes", COLUMN_COUNT }, { "sessions", COLUMN_COUNT }, { "busy", .cell = quiet_busy_cell } };
	static const struct column drain[] = { { "drain", .member = "drain.state", .style = STYLE_WARN },
		{ "  because of", .member = "drain.reason" }, { "  time", COLUMN_MS, "drain.elapsed_ms" },
		{ "  left", .cell = drain_left_cell }, { "  moved", COLUMN_COUNT, "drain.moved" },
		{ "  rested", COLUMN_COUNT, "drain.rested" }, { "  ended", COLUMN_COUNT, "drain.ended", STYLE_BAD },
		{ "  longest pause", COLUMN_US, "drain.longest_pause_us" } };
	const char *state = member_text(agent, "state");
	struct table *t = facts_create();

	facts_add(t, "agent", STYLE_HEAD, "%s", member_text(agent, "name"));
	facts_add(t, "state", agent_state_style(state), "%s", state);
	if (json_string_length(member(agent, "failing_backends")) > 0)
		facts_add(t, "cannot reach", STYLE_BAD, "%s", member_text(agent, "failing_backends"));
	FACTS_OF(t, agent, facts);
	if (is_drained(agent))
		FACTS_OF(t, agent, drain);
	else
		facts_add(t, "drain", STYLE_PLAIN, "none");
	table_show(t, &in->screen);
}

/* RAgent may restart meanwhile, so who does not answer is asked again. */
static bool all_are_ready(const struct invocation *in)
{
	struct path path;
	struct answer answer;
	size_t i;
	json_t *a;

	path_start(&path, "/v1/agents");
	api_ask(in->api, "GET", &path, NULL, &answer);
	bool ready = answer.error[0] == '\0';
	json_array_foreach(member(answer.body, "agents"), i, a) ready =
		ready && agent_state_style(member_text(a, "state")) == STYLE_GOOD &&
		member_integer(a, "links.up") == member_integer(a, "links.total");
	answer_clear(&answer);
	return ready;
}

enum exit_code command_agents(struct invocation *in)
{
	const char *wait = in->options[OPTION_WAIT], *timeout = in->options[OPTION_TIMEOUT];
	uint32_t wait_ms = WAIT_MS;
	bool ready = !wait;

	if (timeout && (!wait || duration_parse(timeout, DURATION_MAX_MS, &wait_ms) < 0))
		return misused(in, "--timeout: '%s' is no time up to 1d, such as 30s, or --wait is missing", timeout);
	const uint64_t end_ms = ask_now_ms() + wait_ms;
	for (uint64_t at_ms; !ready && (at_ms = ask_now_ms()) < end_ms;) {
		api_wait_at_most(in->api, (long)(end_ms - at_ms));
		ready = all_are_ready(in);
		if (!ready)
			usleep(LOOK_EVERY_MS * 1000);
	}
	api_wait_at_most(in->api, ready ? LONG_MAX : 5 * LOOK_EVERY_MS);
	const enum exit_code code = ask_and_show_row(in);
	return code == EXIT_DONE && !ready ? EXIT_REFUSED : code;
}

void show_undrained(const struct invocation *in, const json_t *agent)
{
	fprintf(in->screen.out, "%s takes connections again\n", in->operands[0]);
}

static void show_weighed(const struct invocation *in, const json_t *agent)
{
	fprintf(in->screen.out, "%s has the weight %g\n", in->operands[0], member_real(agent, "weight"));
}

enum exit_code command_weight(struct invocation *in)
{
	struct path path;

	path_start(&path, "/v1/agents");
	path_segment(&path, in->operands[0]);
	path_segment(&path, "weight");
	return ask_and_show(
		in, "POST", &path, must(json_pack("{s:f}", "weight", strtod(in->operands[1], NULL))), show_weighed);
}
