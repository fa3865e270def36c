/* command_counters.c: the counters of all processes, side by side. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "csslctl/ask.h"
#include "csslctl/text.h"
#include "csslctl/table.h"

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
