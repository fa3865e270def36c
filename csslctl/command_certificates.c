/* command_certificates.c: the certificates of all agents, with their ends. Two weeks before, as the alert of
 * conf/prometheus/rules.yaml, they stand out. */
#include "csslctl/command.h"
#include "csslctl/text.h"
#include "csslctl/table.h"

void show_certificates(const struct invocation *in, const json_t *answer)
{
	static const struct column columns[] = { { "DAYS", COLUMN_RIGHT }, { "NAMES" }, { "AGENT" }, { "CERTIFICATE" },
		{ "ENDS" }, { "FILE" }, { "ISSUER" } };
	static const enum style styles[] = { STYLE_PLAIN, STYLE_WARN, STYLE_BAD };
	struct table *t = table_create(columns, sizeof columns / sizeof columns[0]);
	size_t i;
	json_t *c;

	json_array_foreach(member(answer, "certificates"), i, c)
	{
		const json_int_t days = json_integer_value(member(c, "days_left"));
		const char *host = json_string_value(json_array_get(member(c, "hosts"), 0));
		table_cell(t, styles[(days < 14) + (days < 0)], "%" JSON_INTEGER_FORMAT, days);
		table_cell(t, STYLE_PLAIN, "%s%s", host ? host : "-",
			json_array_size(member(c, "hosts")) > 1 ? ",..." : "");
		TABLE_TEXTS(t, c, "agent", "name", "not_after", "file", "issuer");
	}
	table_show(t, &in->screen);
}
