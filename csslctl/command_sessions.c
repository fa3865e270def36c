/* command_sessions.c: the cluster's session cache. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "csslctl/ask.h"

/* --- filters --- */

/* Options that a session has to meet together, and options that stand alone. In a query, and in the body of a
 * revocation. */
static const struct {
	const char *member;
	enum option option;
	enum { CRITERION, ALONE } kind;
} filters[] = {
	{ "server_name", OPTION_SERVER_NAME },
	{ "client", OPTION_CLIENT },
	{ "version", OPTION_TLS },
	{ "cipher", OPTION_CIPHER },
	{ "min_age_s", OPTION_OLDER_THAN },
	{ "max_age_s", OPTION_YOUNGER_THAN },
	{ "family_id", OPTION_FAMILY },
	{ "client_certificate", OPTION_CLIENT_CERTIFICATE },
	{ "session_id", OPTION_ID, ALONE },
	{ "all", OPTION_ALL, ALONE },
};
#define FILTERS (sizeof filters / sizeof filters[0])

/* The API takes ages in seconds. 0, or -1 after it told the operator. */
static int age_parse(const struct invocation *in, enum option option, char out[static 16])
{
	uint32_t ms;

	if (duration_parse(in->options[option], DURATION_MAX_MS, &ms) < 0) {
		misused(in, "--%s: '%s' is no time up to 1d, such as 10min", option_row(option)->name,
			in->options[option]);
		return -1;
	}
	snprintf(out, 16, "%u", ms / 1000);
	return 0;
}

static bool is_age(enum option option)
{
	return option == OPTION_OLDER_THAN || option == OPTION_YOUNGER_THAN;
}

/* The criteria of a query; their texts are the operator's, or in @ages. 0, or -1 after it told the operator. */
static int query_of(const struct invocation *in, struct listing_filter out[static FILTERS + 1], char ages[static 2][16])
{
	unsigned age = 0;

	*out = (struct listing_filter){ NULL, NULL };
	for (size_t i = 0; i < FILTERS; i++) {
		const enum option option = filters[i].option;
		const char *text = in->options[option];
		if (!text)
			continue;
		if (is_age(option)) {
			if (age_parse(in, option, ages[age]) < 0)
				return -1;
			text = ages[age++];
		}
		*out++ = (struct listing_filter){ filters[i].member, text };
		*out = (struct listing_filter){ NULL, NULL };
	}
	return 0;
}

/* --- list --- */

const struct column session_columns[] = { { "CLIENT" }, { "SERVER NAME" }, { "TLS", .member = "version" },
	{ "CIPHER SUITE" }, { "ORIGIN" }, { "AGE", COLUMN_S, "age_s" }, { "EXPIRES", COLUMN_S, "expires_s" },
	{ "HITS", COLUMN_COUNT }, { "SESSION", .member = "id" }, { NULL } };

enum exit_code command_sessions_list(struct invocation *in)
{
	struct listing_filter query[FILTERS + 1];
	char ages[2][16];

	if (query_of(in, query, ages) < 0)
		return EXIT_USAGE;
	return listing_show(in, query);
}

/* --- show --- */

static void add_without(struct table *t, const char *agent, enum style style, const char *why)
{
	table_cell(t, STYLE_PLAIN, "%s", agent);
	table_cell(t, style, "%s", why);
	table_cell(t, STYLE_PLAIN, "-");
	table_cell(t, STYLE_PLAIN, "-");
}

static void held_cell(struct table *t, const json_t *holder)
{
	table_cell(t, STYLE_GOOD, "yes");
}

static void show_holders(const struct invocation *in, const json_t *session)
{
	static const struct column columns[] = { { "AGENT" }, { "HOLDS IT", .cell = held_cell },
		{ "HITS", COLUMN_COUNT }, { "EXPIRES", COLUMN_S, "expires_s" } };
	struct table *t = table_create(columns, 4);
	const char *name;
	size_t i;
	json_t *agent;

	json_array_foreach(member(session, "holders"), i, agent) table_row(t, agent);
	json_array_foreach(member(session, "missing"), i, agent)
		add_without(t, json_string_value(agent), STYLE_WARN, "no");
	json_object_foreach(member(session, "silent"), name, agent)
		add_without(t, name, STYLE_BAD, json_string_value(agent));
	fputc('\n', in->screen.out);
	table_show(t, &in->screen);
}

static void session_tls_cell(struct table *t, const json_t *s)
{
	table_cell(t, STYLE_PLAIN, "%s, %s", member_text(s, "version"), member_text(s, "cipher_suite"));
}

static void ages_cell(struct table *t, const json_t *s)
{
	char age[QUANTITY_TEXT_MAX], family_age[QUANTITY_TEXT_MAX];

	table_cell(t, STYLE_PLAIN, "%s, its family %s", duration_text(member_integer(s, "age_s") * 1000000, age),
		duration_text(member_integer(s, "family_age_s") * 1000000, family_age));
}

void show_session(const struct invocation *in, const json_t *s)
{
	static const struct column facts[] = { { "session", .member = "id", .style = STYLE_HEAD },
		{ "family", .member = "family_id" }, { "client" }, { "server name" }, { "listener" },
		{ "TLS", .cell = session_tls_cell }, { "ALPN" }, { "made by", .member = "origin" },
		{ "age", .cell = ages_cell }, { "expires in", COLUMN_S, "expires_s" }, { "client certificate" },
		{ "hits", COLUMN_COUNT } };
	struct table *t = facts_create();

	FACTS_OF(t, s, facts);
	table_show(t, &in->screen);
	show_holders(in, s);
}

/* --- count --- */

static void show_count(const struct invocation *in, const json_t *count)
{
	static const struct column columns[] = { { "AGENT" }, { "SESSIONS", COLUMN_RIGHT } };
	struct table *t = table_create(columns, 2);
	const char *name;
	json_t *n;

	const uint64_t sessions = member_integer(count, "sessions");
	fprintf(in->screen.out, "%" PRIu64 " session%s\n\n", sessions, sessions == 1 ? "" : "s");
	json_object_foreach(member(count, "agents"), name, n)
	{
		table_cell(t, STYLE_PLAIN, "%s", name);
		table_cell(t, STYLE_PLAIN, "%" PRIu64, (uint64_t)json_integer_value(n));
	}
	json_object_foreach(member(count, "silent"), name, n)
	{
		table_cell(t, STYLE_PLAIN, "%s", name);
		table_cell(t, STYLE_BAD, "%s", json_string_value(n));
	}
	table_show(t, &in->screen);
}

enum exit_code command_sessions_count(struct invocation *in)
{
	struct listing_filter query[FILTERS + 1];
	char ages[2][16];
	struct path path;

	if (query_of(in, query, ages) < 0)
		return EXIT_USAGE;
	path_start(&path, "/v1/sessions/count");
	for (const struct listing_filter *at = query; at->name; at++)
		path_query(&path, at->name, at->value);
	return ask_and_show(in, "GET", &path, NULL, show_count);
}

/* --- revoke --- */

/* NULL: the operator was told of a wrong age. */
static json_t *revocation_member(const struct invocation *in, enum option option)
{
	char seconds[16];

	if (option == OPTION_ALL)
		return json_true();
	if (!is_age(option))
		return json_string(in->options[option]);
	return age_parse(in, option, seconds) < 0 ? NULL : json_integer(strtol(seconds, NULL, 10));
}

/* NULL: the command line is wrong, and the operator was told why. */
static json_t *revocation_body(const struct invocation *in)
{
	json_t *body = must(json_object());
	unsigned alone = 0, criteria = 0;

	for (size_t i = 0; i < FILTERS; i++) {
		if (!in->options[filters[i].option])
			continue;
		json_t *value = revocation_member(in, filters[i].option);
		if (!value) {
			json_decref(body);
			return NULL;
		}
		*(filters[i].kind == ALONE ? &alone : &criteria) += 1;
		json_object_set_new(body, filters[i].member, value);
	}
	if (alone + (criteria > 0) == 1)
		return body;
	json_decref(body);
	misused(in, "say which: --id or --all alone, or any of --family, --server-name, --client, --tls, --cipher, "
		    "--older-than, --younger-than, --client-certificate");
	return NULL;
}

static void show_revoked(const struct invocation *in, const json_t *answer)
{
	const uint64_t sessions = member_integer(answer, "sessions");

	fprintf(in->screen.out, "%" PRIu64 " session%s revoked\n", sessions, sessions == 1 ? "" : "s");
	char *names = names_of(member(answer, "confirmed"));
	fprintf(in->screen.out, "confirmed by %s\n", names);
	free(names);
}

enum exit_code command_sessions_revoke(struct invocation *in)
{
	struct path path;
	json_t *body = revocation_body(in);

	if (!body)
		return EXIT_USAGE;
	path_start(&path, "/v1/sessions/revoke");
	return ask_and_show(in, "POST", &path, body, show_revoked);
}
