/* command_nodes.c: commands to RAgent and all agents: make new keys, read certificates again, change the log level,
 * keep clients out. */
#include <inttypes.h>
#include <time.h>

#include "csslctl/ask.h"

#define BLOCK_MAX_MS 2592000000u

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

/* --- blocks --- */

static void show_done(const struct invocation *in, const json_t *answer)
{
	fprintf(in->screen.out, "done; %" PRIu64 " connections ended\n", member_integer(answer, "ended"));
}

/* `block`, and `unblock`, which is a block of 0 seconds. */
enum exit_code command_block(struct invocation *in)
{
	const char *text = in->options[OPTION_FOR];
	char seconds[16];
	uint32_t ms = 0;
	struct path path;

	if (text && (duration_parse(text, BLOCK_MAX_MS, &ms) < 0 || ms < 1000))
		return misused(in, "--for: '%s' is no time from 1s to 30d, such as 2h", text);
	snprintf(seconds, sizeof seconds, "%u", ms / 1000);
	path_start(&path, "/v1/blocks");
	path_query(&path, "network", in->operands[0]);
	path_query(&path, "seconds", text || in->command->name[0] == 'u' ? seconds : NULL);
	return ask_and_show(in, "POST", &path, must(json_object()), show_done);
}

static void ends_cell(struct table *t, const json_t *block)
{
	const time_t at = time(NULL) + (time_t)member_integer(block, "ends_in_s");
	char end[32];

	strftime(end, sizeof end, "%Y-%m-%dT%H:%M:%SZ", gmtime(&at));
	table_cell(t, STYLE_PLAIN, "%s", member_integer(block, "ends_in_s") ? end : "when it is unblocked");
}

static void block_left_cell(struct table *t, const json_t *block)
{
	const uint64_t s = member_integer(block, "ends_in_s");
	char left[QUANTITY_TEXT_MAX];

	table_cell(t, STYLE_PLAIN, "%s", s ? duration_text(s * 1000000, left) : "-");
}

const struct column block_columns[] = { { "NETWORK" }, { "ENDS IN", COLUMN_RIGHT, .cell = block_left_cell },
	{ "ENDS", .cell = ends_cell }, { NULL } };
