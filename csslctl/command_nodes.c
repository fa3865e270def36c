/* command_nodes.c: commands to all processes: make new keys, read certificates again, change the log level. */
#include "csslctl/ask.h"
#include "csslctl/member.h"
#include "csslctl/memory.h"
#include "csslctl/table.h"

static void show_nodes(const struct invocation *in, const json_t *answer)
{
	static const struct column columns[] = { { "NODE" }, { "RESULT" } };
	struct table *t = table_create(columns, 2);
	size_t i;
	const char *name;
	json_t *node;

	json_array_foreach(member(answer, "done"), i, node)
	{
		table_cell(t, STYLE_PLAIN, "%s", json_string_value(node));
		table_cell(t, STYLE_GOOD, "done");
	}
	json_object_foreach(member(answer, "failed"), name, node)
	{
		table_cell(t, STYLE_PLAIN, "%s", name);
		table_cell(t, STYLE_BAD, "%s", json_string_value(node));
	}
	table_show(t, &in->screen);
}

/* If one process failed, show the others' results too. */
static enum exit_code ask_all(struct invocation *in, const char *fixed_path)
{
	struct path path;
	json_t *answer;

	path_start(&path, fixed_path);
	const enum exit_code code = ask(in, "POST", &path, must(json_object()), &answer);
	if (in->screen.form == SCREEN_HUMAN && member(answer, "done"))
		show_nodes(in, answer);
	else if (in->screen.form == SCREEN_JSON && code == EXIT_DONE)
		show_json(in, answer);
	json_decref(answer);
	return code;
}

enum exit_code command_keys_rotate(struct invocation *in)
{
	return ask_all(in, "/v1/keys/rotate");
}

enum exit_code command_reload(struct invocation *in)
{
	return ask_all(in, "/v1/reload");
}

static void show_levels(const struct invocation *in, const json_t *answer)
{
	static const struct column columns[] = { { "NODE" }, { "LEVEL" }, { "CONFIGURED" } };
	struct table *t = table_create(columns, 3);
	const char *name;
	json_t *node;

	json_object_foreach(member(answer, "levels"), name, node)
	{
		const int silent = json_is_string(member(node, "error"));
		table_cell(t, STYLE_PLAIN, "%s", name);
		table_cell(t, silent ? STYLE_BAD : STYLE_PLAIN, "%s", member_text(node, silent ? "error" : "level"));
		table_cell(t, STYLE_DIM, "%s", silent ? "-" : member_text(node, "configured"));
	}
	table_show(t, &in->screen);
}

static json_t *level_change(const struct invocation *in)
{
	json_t *body = must(json_pack("{s:s}", "level", in->operands[0]));

	if (in->options[OPTION_NODE])
		json_object_set_new(body, "node", must(json_string(in->options[OPTION_NODE])));
	return body;
}

enum exit_code command_log_level(struct invocation *in)
{
	struct path path;
	json_t *answer;

	if (!in->operands[0] && in->options[OPTION_NODE])
		return misused(in, "--node goes with a level");
	path_start(&path, "/v1/log-level");
	if (!in->operands[0])
		return ask_and_show(in, "GET", &path, NULL, show_levels);
	const enum exit_code code = ask(in, "PUT", &path, level_change(in), &answer);
	if (in->screen.form == SCREEN_HUMAN && member(answer, "levels"))
		show_levels(in, answer);
	else if (in->screen.form == SCREEN_JSON && code == EXIT_DONE)
		show_json(in, answer);
	json_decref(answer);
	return code;
}
