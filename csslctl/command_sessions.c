/* command_sessions.c: the cluster's session cache. */
#include <inttypes.h>
#include <stdlib.h>

#include "csslctl/ask.h"
#include "csslctl/member.h"
#include "csslctl/memory.h"
#include "csslctl/table.h"

/* Every agent holds every session once it has heard of it, so the fullest store counts. */
static json_t *counted(const json_t *status)
{
	json_t *agents = must(json_object()), *agent;
	json_int_t most = 0;
	size_t i;

	json_array_foreach(member(status, "agents"), i, agent)
	{
		const json_int_t n = (json_int_t)member_integer(agent, "sessions");
		json_object_set_new(agents, member_text(agent, "name"), json_integer(n));
		most = n > most ? n : most;
	}
	return must(json_pack("{s:I, s:o}", "sessions", most, "agents", agents));
}

static void show_count(const struct invocation *in, const json_t *count)
{
	static const struct column columns[] = { { "AGENT" }, { "SESSIONS", COLUMN_RIGHT } };
	struct table *t = table_create(columns, 2);
	const char *name;
	json_t *n;

	fprintf(in->screen.out, "%" PRIu64 " sessions\n\n", member_integer(count, "sessions"));
	json_object_foreach(member(count, "agents"), name, n)
	{
		table_cell(t, STYLE_PLAIN, "%s", name);
		table_cell(t, STYLE_PLAIN, "%" PRIu64, (uint64_t)json_integer_value(n));
	}
	table_print(t, &in->screen);
	table_destroy(t);
}

enum exit_code command_sessions_count(struct invocation *in)
{
	struct path path;
	json_t *status;

	path_start(&path, "/v1/status");
	const enum exit_code code = ask(in, "GET", &path, NULL, &status);
	json_t *count = code == EXIT_DONE ? counted(status) : NULL;
	if (count && in->screen.form == SCREEN_JSON)
		show_json(in, count);
	else if (count)
		show_count(in, count);
	json_decref(count);
	json_decref(status);
	return code;
}

/* --- revoke --- */

static const struct {
	enum option option;
	const char *member;
} revocations[] = {
	{ OPTION_ID, "session_id" },
	{ OPTION_FAMILY, "family_id" },
	{ OPTION_SERVER_NAME, "server_name" },
	{ OPTION_CLIENT, "client_address" },
	{ OPTION_ALL, "all" },
};

static json_t *revocation_body(const struct invocation *in, unsigned *given)
{
	json_t *body = must(json_object());

	*given = 0;
	for (size_t i = 0; i < sizeof revocations / sizeof revocations[0]; i++) {
		const char *value = in->options[revocations[i].option];
		if (!value)
			continue;
		++*given;
		json_object_set_new(body, revocations[i].member,
			revocations[i].option == OPTION_ALL ? json_true() : json_string(value));
	}
	return body;
}

static char *names_of(const json_t *names)
{
	char *text = text_format("%s", "");
	size_t i;
	json_t *name;

	json_array_foreach(names, i, name)
	{
		char *longer = text_format("%s%s%s", text, i > 0 ? ", " : "", json_string_value(name));
		free(text);
		text = longer;
	}
	return text;
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
	unsigned given;
	json_t *answer, *body = revocation_body(in, &given);

	if (given != 1) {
		json_decref(body);
		return misused(in, "say which: one of --id, --family, --server-name, --client, --all");
	}
	path_start(&path, "/v1/sessions/revoke");
	enum exit_code code = ask(in, "POST", &path, body, &answer);
	if (code == EXIT_DONE && in->screen.form == SCREEN_JSON)
		show_json(in, answer);
	else if (code == EXIT_DONE)
		show_revoked(in, answer);
	if (code == EXIT_DONE && json_array_size(member(answer, "unconfirmed")) > 0) {
		char *names = names_of(member(answer, "unconfirmed"));
		complain_of(in, "they hear of it when they are back; `csslctl agents` shows who is up",
			"not confirmed by %s", names);
		free(names);
		code = EXIT_REFUSED;
	}
	json_decref(answer);
	return code;
}
