/* command_counters.c: the counters of all processes, side by side; and what they say of mail behind STARTTLS. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "csslctl/ask.h"

#define SETS_MAX 15u /* side by side; see more agents one by one, with --agent */

/* The counters of one process; for an agent also RAgent's counters of that agent. */
struct set {
	const char *name;
	const json_t *counters;
};

static unsigned sets_of(const struct invocation *in, const json_t *answer, struct set sets[static SETS_MAX])
{
	const char *only = in->options[OPTION_AGENT], *name;
	unsigned count = 0;
	json_t *counters;

	if (!only)
		sets[count++] = (struct set){ "ragent", member(answer, "ragent") };
	json_object_foreach(member(answer, "agents"), name, counters)
	{
		if (count == SETS_MAX || (only && strcmp(only, name) != 0))
			continue;
		json_object_update_missing(counters, (json_t *)member(member(answer, "of_agents"), name));
		sets[count++] = (struct set){ name, counters };
	}
	return count;
}

static int is_wanted(const char *pattern, const char *name)
{
	return !pattern || strstr(name, pattern) || fnmatch(pattern, name, 0) == 0;
}

/* Show a row once, at the first process that has it. */
static int is_first(const struct set *sets, unsigned at, const char *name)
{
	for (unsigned i = 0; i < at; i++)
		if (json_object_get(sets[i].counters, name))
			return 0;
	return 1;
}

static void add_row(struct table *t, const struct set *sets, unsigned count, const char *name, const char *pattern)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += member_integer(sets[i].counters, name);
	if (sum == 0 && !pattern)
		return;
	table_cell(t, STYLE_PLAIN, "%s", name);
	for (unsigned i = 0; i < count; i++) {
		const json_t *value = json_object_get(sets[i].counters, name);
		if (json_is_integer(value))
			table_cell(t, STYLE_PLAIN, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		else
			table_cell(t, STYLE_DIM, "-");
	}
}

static void show_sets(const struct invocation *in, const struct set *sets, unsigned count)
{
	struct column columns[SETS_MAX + 1] = { { "COUNTER" } };
	const char *pattern = in->operands[0], *name;
	json_t *value;

	for (unsigned i = 0; i < count; i++)
		columns[i + 1] = (struct column){ sets[i].name, COLUMN_RIGHT };
	struct table *t = table_create(columns, count + 1);
	for (unsigned i = 0; i < count; i++)
		json_object_foreach((json_t *)sets[i].counters, name,
			value) if (json_is_integer(value) && is_wanted(pattern, name) && is_first(sets, i, name))
			add_row(t, sets, count, name, pattern);
	table_show(t, &in->screen);
}

/* Show only the counters that PATTERN names, as the API gave them. */
static void show_sets_json(const struct invocation *in, const struct set *sets, unsigned count)
{
	json_t *out = must(json_object()), *value;
	const char *name;

	for (unsigned i = 0; i < count; i++) {
		json_t *one = must(json_object());
		json_object_foreach((json_t *)sets[i].counters, name,
			value) if (is_wanted(in->operands[0], name) || !json_is_integer(value))
			json_object_set(one, name, value);
		json_object_set_new(out, sets[i].name, one);
	}
	show_json(in, out);
	json_decref(out);
}

static enum exit_code complain_of_nothing(const struct invocation *in, const struct set *sets, unsigned count)
{
	const char *pattern = in->operands[0], *name;
	json_t *value;

	for (unsigned i = 0; i < count; i++)
		json_object_foreach((json_t *)sets[i].counters, name, value)
		{
			if (is_wanted(pattern, name))
				return EXIT_DONE;
		}
	complain_of(in, "without a pattern it shows all that are not zero", "no counter's name fits %s", pattern);
	return EXIT_REFUSED;
}

/* An agent that did not answer has an "error" in the place of counters. */
static enum exit_code complain_of_silent(const struct invocation *in, const struct set *sets, unsigned count)
{
	enum exit_code code = EXIT_DONE;

	for (unsigned i = 0; i < count; i++) {
		const char *error = json_string_value(json_object_get(sets[i].counters, "error"));
		if (!error)
			continue;
		complain_of(in, "`csslctl agents` shows who is ready", "%s: %s", sets[i].name, error);
		code = EXIT_REFUSED;
	}
	return code;
}

enum exit_code command_counters(struct invocation *in)
{
	struct set sets[SETS_MAX];
	struct path path;
	json_t *answer;

	path_start(&path, "/v1/counters");
	enum exit_code code = ask(in, "GET", &path, NULL, &answer);
	const unsigned count = code == EXIT_DONE ? sets_of(in, answer, sets) : 0;
	if (code == EXIT_DONE && count == 0) {
		complain_of(
			in, "`csslctl agents` lists the agents", "no agent of the name %s", in->options[OPTION_AGENT]);
		code = EXIT_REFUSED;
	} else if (code == EXIT_DONE) {
		if (in->screen.form == SCREEN_JSON)
			show_sets_json(in, sets, count);
		else
			show_sets(in, sets, count);
		code = complain_of_silent(in, sets, count);
		if (code == EXIT_DONE)
			code = complain_of_nothing(in, sets, count);
	}
	json_decref(answer);
	return code;
}

/* --- mail at the listeners of service smtp, out of the counters of RAgent and of all agents --- */

enum counted_by { BY_RAGENT, BY_AGENTS };

/* @counters: a shell pattern. */
static const struct row {
	const char *name, *counters;
	enum counted_by by;
	enum style unless_zero;
	const char *meaning;
} rows[] = {
	{ "before STARTTLS", "preambles_under_way", BY_RAGENT, STYLE_PLAIN, "clients now" },
	{ "now in clear", "connections_relayed", BY_RAGENT, STYLE_PLAIN, "clients now, by their listener's leave" },
	{ "began in clear", "preambles", BY_RAGENT, STYLE_PLAIN, "clients" },
	{ "STARTTLS done", "starttls_done", BY_RAGENT, STYLE_PLAIN, "clients went on with TLS" },
	{ "injections", "starttls_injections", BY_RAGENT, STYLE_WARN,
		"clients reset: bytes in clear came where TLS had to begin" },
	{ "refused", "preambles_refused", BY_RAGENT, STYLE_WARN,
		"clients: too many had not said STARTTLS, or of one address" },
	{ "made room", "preambles_displaced", BY_RAGENT, STYLE_WARN, "clients ended before STARTTLS for others" },
	{ "agent lost", "preambles_lost", BY_RAGENT, STYLE_WARN,
		"clients ended in clear: before STARTTLS, or in their mail" },
	{ "begun again", "preambles_restarted", BY_RAGENT, STYLE_PLAIN, "clients got another agent in time" },
	{ "repeated", "mail_repeated", BY_AGENTS, STYLE_PLAIN,
		"mails said again to the mail server, as their agent was lost" },
	{ "asked about", "mail_asked", BY_AGENTS, STYLE_PLAIN, "mails whose fate an agent asked for (XCSSLTX)" },
	{ "server failed", "mail_421_backend_*", BY_AGENTS, STYLE_WARN,
		"clients behind TLS told 421: their mail server" },
	{ "given up", "mail_421_[!b]*", BY_AGENTS, STYLE_PLAIN,
		"clients behind TLS ended by us: 421, or they broke SMTP" },
};

/* The sum of these counters. */
static uint64_t sum_of(json_t *counters, const char *pattern)
{
	const char *name;
	json_t *value;
	uint64_t sum = 0;

	json_object_foreach(counters, name, value)
	{
		if (fnmatch(pattern, name, 0) == 0)
			sum += (uint64_t)json_integer_value(value);
	}
	return sum;
}

static uint64_t value_of(const json_t *answer, const struct row *row)
{
	const char *agent;
	json_t *counters;
	uint64_t sum = 0;

	if (row->by == BY_RAGENT)
		return sum_of(member(answer, "ragent"), row->counters);
	json_object_foreach(member(answer, "agents"), agent, counters)
	{
		sum += sum_of(counters, row->counters);
	}
	return sum;
}

void show_starttls(const struct invocation *in, const json_t *answer)
{
	static const struct column columns[] = { { NULL }, { NULL, COLUMN_RIGHT }, { NULL } };
	struct table *t = table_create(columns, sizeof columns / sizeof columns[0]);

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const uint64_t value = value_of(answer, &rows[i]);
		table_cell(t, STYLE_PLAIN, "%s", rows[i].name);
		table_cell(t, value ? rows[i].unless_zero : STYLE_PLAIN, "%" PRIu64, value);
		table_cell(t, STYLE_DIM, "%s", rows[i].meaning);
	}
	table_show(t, &in->screen);
}
