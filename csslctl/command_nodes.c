/* command_nodes.c: what every process is asked to do: new keys, certificates read again. */
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
	table_print(t, &in->screen);
	table_destroy(t);
}

/* Where one did not, the others did: that is shown too. */
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
