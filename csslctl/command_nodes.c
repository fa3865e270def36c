/* command_nodes.c: commands to all processes: make new keys, read certificates again, change the log level. */
#include "csslctl/ask.h"
#include "csslctl/text.h"
#include "csslctl/table.h"

void show_nodes(const struct invocation *in, const json_t *answer)
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

	path_start(&path, "/v1/log-level");
	if (in->operands[0])
		return ask_and_show(in, "PUT", &path, level_change(in), show_levels);
	if (in->options[OPTION_NODE])
		return misused(in, "--node goes with a level");
	return ask_and_show(in, "GET", &path, NULL, show_levels);
}
