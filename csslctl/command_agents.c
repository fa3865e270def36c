/* command_agents.c: lists of agents, one agent, and commands to one that end at once. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "csslctl/agent_words.h"
#include "csslctl/api.h"
#include "csslctl/ask.h"
#include "csslctl/text.h"
#include "csslctl/table.h"

#define CLOCK_WARN_MS  1000
#define WAIT_MS        60000u
#define LOOK_EVERY_MS  200u
#define CLOCK_TEXT_MAX (QUANTITY_TEXT_MAX + 1)

static void drain_cell(struct table *t, const json_t *agent)
{
	const char *state = member_text(agent, "drain.state");

	if (strcmp(state, "none") == 0 || strcmp(state, "-") == 0)
		table_cell(t, STYLE_DIM, "-");
	else if (member_integer(agent, "drain.left") > 0)
		table_cell(t, STYLE_WARN, "%s, %" PRIu64 " of %" PRIu64 " left", state,
			member_integer(agent, "drain.left"), member_integer(agent, "drain.total"));
	else
		table_cell(t, STYLE_WARN, "%s", state);
}

/* "+12 ms", "-1h"; "-" if RAgent does not know it. */
static const char *clock_text(const json_t *agent, char out[static CLOCK_TEXT_MAX])
{
	char text[QUANTITY_TEXT_MAX];
	const json_t *offset = member(agent, "clock_offset_ms");
	const json_int_t ms = json_integer_value(offset);

	if (!json_is_integer(offset))
		snprintf(out, CLOCK_TEXT_MAX, "-");
	else
		snprintf(out, CLOCK_TEXT_MAX, "%s%s", ms < 0 ? "-" : "+",
			duration_text((uint64_t)(ms < 0 ? -ms : ms) * 1000, text));
	return out;
}

static enum style clock_style(const json_t *agent)
{
	const json_int_t ms = json_integer_value(member(agent, "clock_offset_ms"));

	return ms > CLOCK_WARN_MS || ms < -CLOCK_WARN_MS ? STYLE_WARN : STYLE_PLAIN;
}

static void clock_cell(struct table *t, const json_t *agent)
{
	char text[CLOCK_TEXT_MAX];

	table_cell(t, clock_style(agent), "%s", clock_text(agent, text));
}

static void show_list(const struct invocation *in, const json_t *answer)
{
	static const struct column columns[] = { { "AGENT" }, { "STATE" }, { "WEIGHT", COLUMN_RIGHT },
		{ "LINKS", COLUMN_RIGHT }, { "SUSPECT", COLUMN_RIGHT }, { "CONNECTIONS", COLUMN_RIGHT },
		{ "HANDSHAKES", COLUMN_RIGHT }, { "SESSIONS", COLUMN_RIGHT }, { "BUSY", COLUMN_RIGHT }, { "VERSION" },
		{ "CLOCK", COLUMN_RIGHT }, { "DRAIN" } };
	struct table *t = table_create(columns, sizeof columns / sizeof columns[0]);
	size_t i;
	json_t *agent;

	json_array_foreach(member(answer, "agents"), i, agent)
	{
		table_cell(t, STYLE_PLAIN, "%s", member_text(agent, "name"));
		agent_state_cell(t, agent);
		table_cell(t, STYLE_PLAIN, "%g", member_real(agent, "weight"));
		table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(agent, "links.up"));
		table_cell(t, member_integer(agent, "links.suspect") ? STYLE_WARN : STYLE_PLAIN, "%" PRIu64,
			member_integer(agent, "links.suspect"));
		table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(agent, "connections"));
		table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(agent, "handshakes"));
		table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(agent, "sessions"));
		agent_busy_cell(t, agent);
		table_cell(t, STYLE_PLAIN, "%s", member_text(agent, "version"));
		clock_cell(t, agent);
		drain_cell(t, agent);
	}
	table_show(t, &in->screen);
}

static void add_drain(struct table *t, const json_t *drain)
{
	char elapsed[QUANTITY_TEXT_MAX], pause[QUANTITY_TEXT_MAX];
	const char *state = member_text(drain, "state");

	if (strcmp(state, "none") == 0 || strcmp(state, "-") == 0) {
		facts_add(t, "drain", STYLE_PLAIN, "none");
		return;
	}
	facts_add(t, "drain", STYLE_WARN, "%s", state);
	facts_add(t, "  because of", STYLE_PLAIN, "%s", member_text(drain, "reason"));
	facts_add(t, "  time", STYLE_PLAIN, "%s", duration_text(member_integer(drain, "elapsed_ms") * 1000, elapsed));
	facts_add(t, "  left", STYLE_PLAIN, "%" PRIu64 " of %" PRIu64, member_integer(drain, "left"),
		member_integer(drain, "total"));
	facts_add(t, "  moved", STYLE_PLAIN, "%" PRIu64, member_integer(drain, "moved"));
	facts_add(t, "  rested", STYLE_PLAIN, "%" PRIu64, member_integer(drain, "rested"));
	facts_add(t, "  ended", member_integer(drain, "ended") ? STYLE_BAD : STYLE_PLAIN, "%" PRIu64,
		member_integer(drain, "ended"));
	facts_add(t, "  longest pause", STYLE_PLAIN, "%s",
		duration_text(member_integer(drain, "longest_pause_us"), pause));
}

static void show_one(const struct invocation *in, const json_t *agent)
{
	const char *state = member_text(agent, "state");
	const unsigned busy = (unsigned)member_integer(agent, "busy_permille");
	char clock[CLOCK_TEXT_MAX];
	struct table *t = facts_create();

	facts_add(t, "agent", STYLE_HEAD, "%s", member_text(agent, "name"));
	facts_add(t, "state", agent_state_style(state), "%s", state);
	if (json_string_length(member(agent, "failing_backends")) > 0)
		facts_add(t, "cannot reach", STYLE_BAD, "%s", member_text(agent, "failing_backends"));
	facts_add(t, "version", STYLE_PLAIN, "%s", member_text(agent, "version"));
	facts_add(t, "clock", clock_style(agent), "%s", clock_text(agent, clock));
	facts_add(t, "weight", STYLE_PLAIN, "%g", member_real(agent, "weight"));
	facts_add(t, "links up", STYLE_PLAIN, "%" PRIu64 ", %" PRIu64 " suspect", member_integer(agent, "links.up"),
		member_integer(agent, "links.suspect"));
	facts_add(t, "connections", STYLE_PLAIN, "%" PRIu64, member_integer(agent, "connections"));
	facts_add(t, "handshakes", STYLE_PLAIN, "%" PRIu64, member_integer(agent, "handshakes"));
	facts_add(t, "sessions", STYLE_PLAIN, "%" PRIu64, member_integer(agent, "sessions"));
	facts_add(t, "busy", STYLE_PLAIN, "%u.%u%%", busy / 10, busy % 10);
	add_drain(t, member(agent, "drain"));
	table_show(t, &in->screen);
}

/* RAgent may restart meanwhile, so who does not answer is asked again. */
static int all_are_ready(const struct invocation *in)
{
	struct path path;
	struct answer answer;
	size_t i;
	json_t *a;

	path_start(&path, "/v1/agents");
	api_ask(in->api, "GET", &path, NULL, &answer);
	int ready = answer.error[0] == '\0';
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
	int ready = !wait;

	if (timeout && (!wait || duration_parse(timeout, DURATION_MAX_MS, &wait_ms) < 0))
		return misused(in, "--timeout: '%s' is no time up to 1d, such as 30s, or --wait is missing", timeout);
	const uint64_t end_ms = now_ms() + wait_ms;
	for (uint64_t at_ms; !ready && (at_ms = now_ms()) < end_ms;) {
		api_wait_at_most(in->api, (long)(end_ms - at_ms));
		ready = all_are_ready(in);
		if (!ready)
			usleep(LOOK_EVERY_MS * 1000);
	}
	api_wait_at_most(in->api, ready ? LONG_MAX : 5 * LOOK_EVERY_MS);
	const enum exit_code code = get_and_show(in, "/v1/agents", show_list);
	return code == EXIT_DONE && !ready ? EXIT_REFUSED : code;
}

enum exit_code command_agent(struct invocation *in)
{
	struct path path;

	path_start(&path, "/v1/agents");
	path_segment(&path, in->operands[0]);
	return ask_and_show(in, "GET", &path, NULL, show_one);
}

static enum exit_code tell(struct invocation *in, const char *what, json_t *body, show_answer *show)
{
	struct path path;

	path_start(&path, "/v1/agents");
	path_segment(&path, in->operands[0]);
	path_segment(&path, what);
	return ask_and_show(in, "POST", &path, must(body), show);
}

static void show_undrained(const struct invocation *in, const json_t *agent)
{
	fprintf(in->screen.out, "%s takes connections again\n", in->operands[0]);
}

enum exit_code command_undrain(struct invocation *in)
{
	return tell(in, "undrain", json_object(), show_undrained);
}

static void show_weighed(const struct invocation *in, const json_t *agent)
{
	fprintf(in->screen.out, "%s has the weight %g\n", in->operands[0], member_real(agent, "weight"));
}

enum exit_code command_weight(struct invocation *in)
{
	return tell(in, "weight", json_pack("{s:f}", "weight", strtod(in->operands[1], NULL)), show_weighed);
}
