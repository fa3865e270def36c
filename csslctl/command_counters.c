/* command_counters.c: the counters of all processes, side by side; and what they say of mail behind STARTTLS. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "csslctl/ask.h"

#define SETS_MAX 15u /* side by side; see more agents one by one, with --agent */

static bool counter_is_wanted(const char *pattern, const char *name)
{
	return !pattern || strstr(name, pattern) || fnmatch(pattern, name, 0) == 0;
}

/* Add the counters of one process that PATTERN names, and what is no counter. */
static void set_add(const struct invocation *in, json_t *sets, const char *process, json_t *counters)
{
	json_t *set = must(json_object()), *value;
	const char *name;

	json_object_foreach(counters, name, value)
	{
		if (counter_is_wanted(in->operands[0], name) || !json_is_integer(value))
			json_object_set(set, name, value);
	}
	json_object_set_new(sets, process, set);
}

/* By process; for an agent also RAgent's counters of that agent. */
static json_t *sets_of(const struct invocation *in, const json_t *answer)
{
	const char *only = in->options[OPTION_AGENT], *name;
	json_t *sets = must(json_object()), *counters;

	if (!only)
		set_add(in, sets, "ragent", member(answer, "ragent"));
	json_object_foreach(member(answer, "agents"), name, counters)
	{
		if (json_object_size(sets) == SETS_MAX || (only && strcmp(only, name) != 0))
			continue;
		json_object_update_missing(counters, member(member(answer, "of_agents"), name));
		set_add(in, sets, name, counters);
	}
	return sets;
}

static void counter_add_row(const struct invocation *in, struct table *t, json_t *sets, const char *name)
{
	uint64_t sum = 0;
	const char *process;
	json_t *set;

	json_object_foreach(sets, process, set) sum += member_integer(set, name);
	if (sum == 0 && !in->operands[0])
		return;
	table_cell(t, STYLE_PLAIN, "%s", name);
	json_object_foreach(sets, process, set)
	{
		const json_t *value = json_object_get(set, name);
		if (json_is_integer(value))
			table_cell(t, STYLE_PLAIN, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		else
			table_cell(t, STYLE_DIM, "-");
	}
}

/* Returns how many counters there are. A row stands once, at the first process that has it. */
static size_t show_sets(const struct invocation *in, json_t *sets)
{
	struct column columns[SETS_MAX + 1] = { { "COUNTER" } };
	const char *process, *name;
	json_t *set, *value, *seen = must(json_object());
	unsigned count = 1;

	json_object_foreach(sets, process, set) columns[count++] = (struct column){ process, COLUMN_RIGHT };
	struct table *t = table_create(columns, count);
	json_object_foreach(sets, process, set) json_object_foreach(set, name, value)
	{
		if (!json_is_integer(value) || json_object_get(seen, name))
			continue;
		json_object_set(seen, name, value);
		counter_add_row(in, t, sets, name);
	}
	if (in->screen.form == SCREEN_HUMAN)
		table_print(t, &in->screen);
	table_destroy(t);
	const size_t counters = json_object_size(seen);
	json_decref(seen);
	return counters;
}

/* An agent that did not answer has an "error" in the place of counters. */
static enum exit_code complain_of_silent(const struct invocation *in, json_t *sets)
{
	enum exit_code code = EXIT_DONE;
	const char *process;
	json_t *set;

	json_object_foreach(sets, process, set)
	{
		const char *error = json_string_value(json_object_get(set, "error"));
		if (!error)
			continue;
		complain_of(in, "`csslctl agents` shows who is ready", "%s: %s", process, error);
		code = EXIT_REFUSED;
	}
	return code;
}

static enum exit_code tell_sets(const struct invocation *in, json_t *sets)
{
	if (json_object_size(sets) == 0) {
		complain_of(
			in, "`csslctl agents` lists the agents", "no agent of the name %s", in->options[OPTION_AGENT]);
		return EXIT_REFUSED;
	}
	if (in->screen.form == SCREEN_JSON)
		show_json(in, sets);
	const size_t counters = show_sets(in, sets);
	const enum exit_code code = complain_of_silent(in, sets);
	if (code != EXIT_DONE || counters > 0)
		return code;
	complain_of(
		in, "without a pattern it shows all that are not zero", "no counter's name fits %s", in->operands[0]);
	return EXIT_REFUSED;
}

enum exit_code command_counters(struct invocation *in)
{
	struct path path;
	json_t *answer;

	path_start(&path, "/v1/counters");
	enum exit_code code = ask(in, "GET", &path, NULL, &answer);
	json_t *sets = code == EXIT_DONE ? sets_of(in, answer) : NULL;
	if (sets)
		code = tell_sets(in, sets);
	json_decref(sets);
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

static uint64_t counter_value_of(const json_t *answer, const struct row *row)
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
		const uint64_t value = counter_value_of(answer, &rows[i]);
		table_cell(t, STYLE_PLAIN, "%s", rows[i].name);
		table_cell(t, value ? rows[i].unless_zero : STYLE_PLAIN, "%" PRIu64, value);
		table_cell(t, STYLE_DIM, "%s", rows[i].meaning);
	}
	table_show(t, &in->screen);
}
