/* command_certificates.c: the certificates of all agents, with their ends. Two weeks before, as the alert of
 * conf/prometheus/rules.yaml, they stand out. */
#include "csslctl/ask.h"
#include "csslctl/member.h"
#include "csslctl/table.h"

static void show(const struct invocation *in, const json_t *answer)
{
	static const struct column columns[] = { { "DAYS", COLUMN_RIGHT }, { "NAMES" }, { "AGENT" }, { "CERTIFICATE" },
		{ "ENDS" }, { "FILE" }, { "ISSUER" } };
	static const char *const texts[] = { "agent", "name", "not_after", "file", "issuer" };
	struct table *t = table_create(columns, sizeof columns / sizeof columns[0]);
	const char *agent;
	size_t i;
	json_t *c, *error;

	json_array_foreach(member(answer, "certificates"), i, c)
	{
		const json_int_t days = json_integer_value(member(c, "days_left"));
		const char *host = json_string_value(json_array_get(member(c, "hosts"), 0));
		table_cell(t,
			days < 0    ? STYLE_BAD
			: days < 14 ? STYLE_WARN
				    : STYLE_PLAIN,
			"%" JSON_INTEGER_FORMAT, days);
		table_cell(t, STYLE_PLAIN, "%s%s", host ? host : "-",
			json_array_size(member(c, "hosts")) > 1 ? ",..." : "");
		for (unsigned m = 0; m < sizeof texts / sizeof texts[0]; m++)
			table_cell(t, STYLE_PLAIN, "%s", member_text(c, texts[m]));
	}
	table_print(t, &in->screen);
	table_destroy(t);
	json_object_foreach((json_t *)member(answer, "failed"), agent, error)
		complain_of(in, "`csslctl agents` shows who is up", "%s: %s", agent, json_string_value(error));
}

enum exit_code command_certificates(struct invocation *in)
{
	return get_and_show(in, "/v1/certificates", show);
}
