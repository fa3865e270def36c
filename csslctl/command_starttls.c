/* command_starttls.c: mail at the listeners of service smtp, out of the counters of RAgent and of all agents. */
#include <fnmatch.h>
#include <inttypes.h>

#include "csslctl/command.h"
#include "csslctl/text.h"
#include "csslctl/table.h"

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

static uint64_t value_of(const json_t *answer, const struct row *row)
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
		const uint64_t value = value_of(answer, &rows[i]);
		table_cell(t, STYLE_PLAIN, "%s", rows[i].name);
		table_cell(t, value ? rows[i].unless_zero : STYLE_PLAIN, "%" PRIu64, value);
		table_cell(t, STYLE_DIM, "%s", rows[i].meaning);
	}
	table_show(t, &in->screen);
}
