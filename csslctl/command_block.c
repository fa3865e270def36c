/* command_block.c: keeps clients out. */
#include <inttypes.h>
#include <time.h>

#include "csslctl/ask.h"
#include "csslctl/text.h"
#include "csslctl/table.h"

#define BLOCK_MAX_MS 2592000000u

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

void show_blocks(const struct invocation *in, const json_t *answer)
{
	static const struct column columns[] = { { "NETWORK" }, { "ENDS IN", COLUMN_RIGHT }, { "ENDS" } };
	struct table *t = table_create(columns, 3);
	char left[QUANTITY_TEXT_MAX], end[32];
	size_t i;
	json_t *block;

	json_array_foreach(member(answer, "blocks"), i, block)
	{
		const uint64_t s = member_integer(block, "ends_in_s");
		const time_t at = time(NULL) + (time_t)s;
		strftime(end, sizeof end, "%Y-%m-%dT%H:%M:%SZ", gmtime(&at));
		table_cell(t, STYLE_PLAIN, "%s", member_text(block, "network"));
		table_cell(t, STYLE_PLAIN, "%s", s ? duration_text(s * 1000000, left) : "-");
		table_cell(t, STYLE_PLAIN, "%s", s ? end : "when it is unblocked");
	}
	table_show(t, &in->screen);
}
