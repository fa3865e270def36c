/* command_sessions.c: the cluster's session cache. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "csslctl/ask.h"

/* --- filters --- */

#define FILTERS_MAX 9u

/* The API takes ages in seconds; these are their texts. */
struct filters {
	struct listing_filter at[FILTERS_MAX];
	char older[16], younger[16];
};

/* 0, or -1 after it told the operator. */
static int age_parse(const struct invocation *in, enum option option, char out[static 16])
{
	const char *text = in->options[option];
	uint32_t ms;

	out[0] = '\0';
	if (!text)
		return 0;
	if (duration_parse(text, DURATION_MAX_MS, &ms) < 0) {
		misused(in, "--%s: '%s' is no time up to 1d, such as 10min", option_row(option)->name, text);
		return -1;
	}
	snprintf(out, 16, "%u", ms / 1000);
	return 0;
}

static int filters_parse(const struct invocation *in, struct filters *f)
{
	if (age_parse(in, OPTION_OLDER_THAN, f->older) < 0 || age_parse(in, OPTION_YOUNGER_THAN, f->younger) < 0)
		return -1;
	const struct listing_filter at[FILTERS_MAX] = {
		{ "server_name", in->options[OPTION_SERVER_NAME] },
		{ "client", in->options[OPTION_CLIENT] },
		{ "version", in->options[OPTION_TLS] },
		{ "cipher", in->options[OPTION_CIPHER] },
		{ "min_age_s", f->older[0] ? f->older : NULL },
		{ "max_age_s", f->younger[0] ? f->younger : NULL },
		{ "family_id", in->options[OPTION_FAMILY] },
		{ "client_certificate", in->options[OPTION_CLIENT_CERTIFICATE] },
		{ NULL },
	};
	memcpy(f->at, at, sizeof at);
	return 0;
}

/* --- list --- */

static void show_list(const struct invocation *in, const json_t *answer)
{
	static const struct column columns[] = { { "CLIENT" }, { "SERVER NAME" }, { "TLS", .member = "version" },
		{ "CIPHER SUITE" }, { "ORIGIN" }, { "AGE", COLUMN_S, "age_s" }, { "EXPIRES", COLUMN_S, "expires_s" },
		{ "HITS", COLUMN_COUNT }, { "SESSION", .member = "id" } };

	ROWS_SHOW(&in->screen, member(answer, "sessions"), columns);
}

enum exit_code command_sessions_list(struct invocation *in)
{
	struct filters f;

	if (filters_parse(in, &f) < 0)
		return EXIT_USAGE;
	return listing_show(in, "/v1/sessions", "sessions", f.at, show_list);
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

static void tls_cell(struct table *t, const json_t *s)
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
		{ "TLS", .cell = tls_cell }, { "ALPN" }, { "made by", .member = "origin" },
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
	struct filters f;
	struct path path;

	if (filters_parse(in, &f) < 0)
		return EXIT_USAGE;
	path_start(&path, "/v1/sessions/count");
	for (const struct listing_filter *at = f.at; at->name; at++)
		path_query(&path, at->name, at->value);
	return ask_and_show(in, "GET", &path, NULL, show_count);
}

/* --- revoke --- */

/* Options that stand alone, and options that a session has to meet together. */
static const struct {
	enum option option;
	const char *member;
	enum { ALONE, CRITERION } kind;
} revocations[] = {
	{ OPTION_ID, "session_id", ALONE },
	{ OPTION_ALL, "all", ALONE },
	{ OPTION_FAMILY, "family_id", CRITERION },
	{ OPTION_SERVER_NAME, "server_name", CRITERION },
	{ OPTION_CLIENT, "client", CRITERION },
	{ OPTION_TLS, "version", CRITERION },
	{ OPTION_CIPHER, "cipher", CRITERION },
	{ OPTION_OLDER_THAN, "min_age_s", CRITERION },
	{ OPTION_YOUNGER_THAN, "max_age_s", CRITERION },
	{ OPTION_CLIENT_CERTIFICATE, "client_certificate", CRITERION },
};

/* NULL: the operator was told of a wrong age. */
static json_t *revocation_member(const struct invocation *in, enum option option)
{
	char seconds[16];

	if (option == OPTION_ALL)
		return json_true();
	if (option != OPTION_OLDER_THAN && option != OPTION_YOUNGER_THAN)
		return json_string(in->options[option]);
	return age_parse(in, option, seconds) < 0 ? NULL : json_integer(strtol(seconds, NULL, 10));
}

/* NULL: the command line is wrong, and the operator was told why. */
static json_t *revocation_body(const struct invocation *in)
{
	json_t *body = must(json_object());
	unsigned alone = 0, criteria = 0;

	for (size_t i = 0; i < sizeof revocations / sizeof revocations[0]; i++) {
		if (!in->options[revocations[i].option])
			continue;
		json_t *value = revocation_member(in, revocations[i].option);
		if (!value) {
			json_decref(body);
			return NULL;
		}
		*(revocations[i].kind == ALONE ? &alone : &criteria) += 1;
		json_object_set_new(body, revocations[i].member, value);
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
