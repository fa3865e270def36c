/* command_sessions.c: the cluster's session cache. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "csslctl/ask.h"
#include "csslctl/text.h"
#include "csslctl/table.h"

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
	static const struct column columns[] = { { "CLIENT" }, { "SERVER NAME" }, { "TLS" }, { "CIPHER SUITE" },
		{ "ORIGIN" }, { "AGE", COLUMN_RIGHT }, { "EXPIRES", COLUMN_RIGHT }, { "HITS", COLUMN_RIGHT },
		{ "SESSION" } };
	char time[QUANTITY_TEXT_MAX];
	struct table *t = table_create(columns, sizeof columns / sizeof columns[0]);
	size_t i;
	json_t *session;

	json_array_foreach(member(answer, "sessions"), i, session)
	{
		TABLE_TEXTS(t, session, "client", "server_name", "version", "cipher_suite", "origin");
		table_cell(t, STYLE_PLAIN, "%s", duration_text(member_integer(session, "age_s") * 1000000, time));
		table_cell(t, STYLE_PLAIN, "%s", duration_text(member_integer(session, "expires_s") * 1000000, time));
		table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(session, "hits"));
		table_cell(t, STYLE_PLAIN, "%s", member_text(session, "id"));
	}
	table_show(t, &in->screen);
}

enum exit_code command_sessions_list(struct invocation *in)
{
	struct filters f;

	if (filters_parse(in, &f) < 0)
		return EXIT_USAGE;
	return listing_show(in, "/v1/sessions", "sessions", f.at, show_list);
}

/* --- show --- */

static void show_holders(const struct invocation *in, const json_t *session)
{
	static const struct column columns[] = { { "AGENT" }, { "HOLDS IT" }, { "HITS", COLUMN_RIGHT },
		{ "EXPIRES", COLUMN_RIGHT } };
	char time[QUANTITY_TEXT_MAX];
	struct table *t = table_create(columns, 4);
	const char *name;
	size_t i;
	json_t *agent;

	json_array_foreach(member(session, "holders"), i, agent)
	{
		table_cell(t, STYLE_PLAIN, "%s", member_text(agent, "agent"));
		table_cell(t, STYLE_GOOD, "yes");
		table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(agent, "hits"));
		table_cell(t, STYLE_PLAIN, "%s", duration_text(member_integer(agent, "expires_s") * 1000000, time));
	}
	json_array_foreach(member(session, "missing"), i, agent)
	{
		table_cell(t, STYLE_PLAIN, "%s", json_string_value(agent));
		table_cell(t, STYLE_WARN, "no");
		table_cell(t, STYLE_PLAIN, "-");
		table_cell(t, STYLE_PLAIN, "-");
	}
	json_object_foreach(member(session, "silent"), name, agent)
	{
		table_cell(t, STYLE_PLAIN, "%s", name);
		table_cell(t, STYLE_BAD, "%s", json_string_value(agent));
		table_cell(t, STYLE_PLAIN, "-");
		table_cell(t, STYLE_PLAIN, "-");
	}
	fputc('\n', in->screen.out);
	table_show(t, &in->screen);
}

static void show_one(const struct invocation *in, const json_t *s)
{
	char age[QUANTITY_TEXT_MAX], family_age[QUANTITY_TEXT_MAX], expires[QUANTITY_TEXT_MAX];
	struct table *t = facts_create();

	facts_add(t, "session", STYLE_HEAD, "%s", member_text(s, "id"));
	facts_add(t, "family", STYLE_PLAIN, "%s", member_text(s, "family_id"));
	facts_add(t, "client", STYLE_PLAIN, "%s", member_text(s, "client"));
	facts_add(t, "server name", STYLE_PLAIN, "%s", member_text(s, "server_name"));
	facts_add(t, "listener", STYLE_PLAIN, "%s", member_text(s, "listener"));
	facts_add(t, "TLS", STYLE_PLAIN, "%s, %s", member_text(s, "version"), member_text(s, "cipher_suite"));
	facts_add(t, "ALPN", STYLE_PLAIN, "%s", member_text(s, "alpn"));
	facts_add(t, "made by", STYLE_PLAIN, "%s", member_text(s, "origin"));
	facts_add(t, "age", STYLE_PLAIN, "%s, its family %s", duration_text(member_integer(s, "age_s") * 1000000, age),
		duration_text(member_integer(s, "family_age_s") * 1000000, family_age));
	facts_add(t, "expires in", STYLE_PLAIN, "%s", duration_text(member_integer(s, "expires_s") * 1000000, expires));
	facts_add(t, "client certificate", STYLE_PLAIN, "%s", member_text(s, "client_certificate"));
	facts_add(t, "hits", STYLE_PLAIN, "%" PRIu64, member_integer(s, "hits"));
	table_show(t, &in->screen);
	show_holders(in, s);
}

enum exit_code command_sessions_show(struct invocation *in)
{
	struct path path;

	path_start(&path, "/v1/sessions");
	path_segment(&path, in->operands[0]);
	return ask_and_show(in, "GET", &path, NULL, show_one);
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
