/* command_listeners.c: the listeners of RAgent, each with its counters. */
#include <inttypes.h>

#include "csslctl/command.h"
#include "csslctl/text.h"
#include "csslctl/table.h"

static void count_cell(struct table *t, const json_t *listener, const char *name, enum style unless_zero)
{
	const uint64_t n = member_integer(listener, name);

	table_cell(t, n ? unless_zero : STYLE_PLAIN, "%" PRIu64, n);
}

static void bytes_cell(struct table *t, const json_t *listener, const char *name)
{
	char text[QUANTITY_TEXT_MAX];

	table_cell(t, STYLE_PLAIN, "%s", size_text((double)member_integer(listener, name), text));
}

void show_listeners(const struct invocation *in, const json_t *answer)
{
	static const struct column columns[] = { { "LISTENER" }, { "STATE" }, { "MODE" }, { "SERVICE" }, { "BACKEND" },
		{ "CAPTURE" }, { "CONNECTIONS", COLUMN_RIGHT }, { "FULL", COLUMN_RIGHT }, { "RESUMED", COLUMN_RIGHT },
		{ "FAILED", COLUMN_RIGHT }, { "REFUSED", COLUMN_RIGHT }, { "IN", COLUMN_RIGHT },
		{ "OUT", COLUMN_RIGHT }, { "ADDRESS" } };
	struct table *t = table_create(columns, sizeof columns / sizeof columns[0]);
	size_t i;
	json_t *l;

	json_array_foreach(member(answer, "listeners"), i, l)
	{
		const json_t *addresses = member(l, "addresses");
		const char *first = json_string_value(json_array_get(addresses, 0));
		TABLE_TEXTS(t, l, "name", "state", "mode", "service", "backend", "original_destination");
		count_cell(t, l, "connections", STYLE_PLAIN);
		count_cell(t, l, "handshakes_full", STYLE_PLAIN);
		count_cell(t, l, "handshakes_resumed", STYLE_PLAIN);
		count_cell(t, l, "handshakes_failed", STYLE_WARN);
		count_cell(t, l, "refused", STYLE_WARN);
		bytes_cell(t, l, "client_bytes");
		bytes_cell(t, l, "server_bytes");
		table_cell(t, STYLE_PLAIN, "%s%s", first ? first : "-", json_array_size(addresses) > 1 ? " ..." : "");
	}
	table_show(t, &in->screen);
}
