/* command_connections.c: client connections: a list, one connection, and commands to one. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "csslctl/ask.h"
#include "csslctl/form.h"
#include "csslctl/text.h"
#include "csslctl/table.h"

/* --- the list --- */

static void add_row(struct table *t, const json_t *c)
{
	char age[QUANTITY_TEXT_MAX], idle[QUANTITY_TEXT_MAX], bytes[QUANTITY_TEXT_MAX];
	const char *owner = member_text(c, "owner");

	table_cell(t, STYLE_PLAIN, "%.*s", (int)ID_SHOWN, member_text(c, "id"));
	TABLE_TEXTS(t, c, "client", "listener", "state");
	table_cell(t, *owner == '-' ? STYLE_DIM : STYLE_PLAIN, "%s", owner);
	table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(c, "moves"));
	table_cell(t, STYLE_PLAIN, "%s", duration_text(member_integer(c, "age_ms") * 1000, age));
	table_cell(t, STYLE_PLAIN, "%s", duration_text(member_integer(c, "idle_ms") * 1000, idle));
	table_cell(t, STYLE_PLAIN, "%s", size_text((double)member_integer(c, "server_bytes"), bytes));
	TABLE_TEXTS(t, c, "tls.version", "tls.server_name");
}

static void show_list(const struct invocation *in, const json_t *answer)
{
	static const struct column columns[] = { { "CONNECTION" }, { "CLIENT" }, { "LISTENER" }, { "STATE" },
		{ "OWNER" }, { "MOVES", COLUMN_RIGHT }, { "AGE", COLUMN_RIGHT }, { "IDLE", COLUMN_RIGHT },
		{ "SENT", COLUMN_RIGHT }, { "TLS" }, { "SERVER NAME" } };
	struct table *t = table_create(columns, sizeof columns / sizeof columns[0]);
	size_t i;
	json_t *connection;

	json_array_foreach(member(answer, "connections"), i, connection) add_row(t, connection);
	table_show(t, &in->screen);
}

enum exit_code command_connections(struct invocation *in)
{
	const struct listing_filter filters[] = {
		{ "agent", in->options[OPTION_AGENT] },
		{ "listener", in->options[OPTION_LISTENER] },
		{ "client", in->options[OPTION_CLIENT] },
		{ NULL },
	};

	return listing_show(in, "/v1/connections", "connections", filters, show_list);
}

/* --- one connection --- */

/* Complete the id that the operator typed. */
static enum exit_code whole_id(struct invocation *in, const char *typed, char out[static ID_DIGITS + 1])
{
	char before[ID_DIGITS + 1];
	struct path path;
	json_t *page;

	if (!id_is_beginning(typed))
		return misused(in, "'%s' is no connection id: %u hexadecimal digits, or the first %u of them or more",
			typed, ID_DIGITS, ID_DIGITS_MIN);
	snprintf(out, ID_DIGITS + 1, "%s", typed);
	if (strlen(typed) == ID_DIGITS)
		return EXIT_DONE;
	path_start(&path, "/v1/connections");
	path_query(&path, "limit", "2");
	if (id_before(typed, before) == 0)
		path_query(&path, "after", before);
	enum exit_code code = ask(in, "GET", &path, NULL, &page);
	const json_t *list = member(page, "connections");
	const char *first = member_text(json_array_get(list, 0), "id"),
		   *second = member_text(json_array_get(list, 1), "id");
	if (code == EXIT_DONE && strncmp(first, typed, strlen(typed)) != 0) {
		complain_of(in, in->command->remedy, "no connection's id begins with %s", typed);
		code = EXIT_REFUSED;
	} else if (code == EXIT_DONE && strncmp(second, typed, strlen(typed)) == 0) {
		complain_of(in, "say more of its digits", "several connections' ids begin with %s", typed);
		code = EXIT_REFUSED;
	}
	snprintf(out, ID_DIGITS + 1, "%s", first);
	json_decref(page);
	return code;
}

/* @method on the connection that the first operand names. */
static enum exit_code ask_of_one(
	struct invocation *in, const char *method, const char *what, json_t *body, show_answer *show)
{
	char id[ID_DIGITS + 1];
	struct path path;
	const enum exit_code code = whole_id(in, in->operands[0], id);

	if (code != EXIT_DONE) {
		json_decref(body);
		return code;
	}
	path_start(&path, "/v1/connections");
	path_segment(&path, id);
	if (what)
		path_segment(&path, what);
	return ask_and_show(in, method, &path, body, show);
}

static void add_tls(struct table *t, const json_t *tls)
{
	if (!json_is_object(tls)) {
		facts_add(t, "TLS", STYLE_PLAIN, "the handshake has not ended");
		return;
	}
	facts_add(t, "TLS", STYLE_PLAIN, "%s, %s", member_text(tls, "version"), member_text(tls, "cipher_suite"));
	facts_add(t, "handshake", STYLE_PLAIN, "%s", json_is_true(member(tls, "resumed")) ? "resumed" : "full");
	facts_add(t, "server name", STYLE_PLAIN, "%s", member_text(tls, "server_name"));
	facts_add(t, "ALPN", STYLE_PLAIN, "%s", member_text(tls, "alpn"));
	facts_add(t, "session", STYLE_PLAIN, "%s", member_text(tls, "session_id"));
	facts_add(t, "family", STYLE_PLAIN, "%s", member_text(tls, "family_id"));
}

static void add_traffic(struct table *t, const json_t *c, const char *label, const char *side)
{
	char bytes[QUANTITY_TEXT_MAX], name[32];

	snprintf(name, sizeof name, "%s_records", side);
	const uint64_t records = member_integer(c, name);
	snprintf(name, sizeof name, "%s_bytes", side);
	facts_add(t, label, STYLE_PLAIN, "%" PRIu64 " records, %s", records,
		size_text((double)member_integer(c, name), bytes));
}

static void show_history(const struct invocation *in, const json_t *history)
{
	static const struct column columns[] = { { "AGENT" }, { "CAUSE" }, { "EPOCH", COLUMN_RIGHT },
		{ "AGO", COLUMN_RIGHT }, { "PAUSE", COLUMN_RIGHT } };
	char ago[QUANTITY_TEXT_MAX], pause[QUANTITY_TEXT_MAX];
	struct table *t = table_create(columns, sizeof columns / sizeof columns[0]);
	size_t i;
	json_t *owner;

	json_array_foreach(history, i, owner)
	{
		TABLE_TEXTS(t, owner, "agent", "cause");
		table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(owner, "epoch"));
		table_cell(t, STYLE_PLAIN, "%s", duration_text(member_integer(owner, "ago_ms") * 1000, ago));
		table_cell(t, STYLE_PLAIN, "%s", duration_text(member_integer(owner, "pause_us"), pause));
	}
	fputc('\n', in->screen.out);
	table_show(t, &in->screen);
}

static void show_one(const struct invocation *in, const json_t *c)
{
	char age[QUANTITY_TEXT_MAX], idle[QUANTITY_TEXT_MAX];
	struct table *t = facts_create();

	facts_add(t, "connection", STYLE_HEAD, "%s", member_text(c, "id"));
	facts_add(t, "client", STYLE_PLAIN, "%s", member_text(c, "client"));
	facts_add(t, "server", STYLE_PLAIN, "%s, listener %s", member_text(c, "server"), member_text(c, "listener"));
	facts_add(t, "state", STYLE_PLAIN, "%s", member_text(c, "state"));
	facts_add(t, "owner", STYLE_PLAIN, "%s, epoch %" PRIu64, member_text(c, "owner"), member_integer(c, "epoch"));
	if (json_is_string(member(c, "preamble_agent")))
		facts_add(t, "in clear with", STYLE_PLAIN, "%s", member_text(c, "preamble_agent"));
	facts_add(t, "handshake by", STYLE_PLAIN, "%s", member_text(c, "handshake_agent"));
	facts_add(t, "affinity", STYLE_PLAIN, "%s", member_text(c, "affinity_agent"));
	facts_add(t, "moves", STYLE_PLAIN, "%" PRIu64, member_integer(c, "moves"));
	facts_add(t, "age", STYLE_PLAIN, "%s, idle for %s", duration_text(member_integer(c, "age_ms") * 1000, age),
		duration_text(member_integer(c, "idle_ms") * 1000, idle));
	add_traffic(t, c, "from client", "client");
	add_traffic(t, c, "to client", "server");
	facts_add(t, "generations", STYLE_PLAIN, "read %" PRIu64 ", write %" PRIu64,
		member_integer(c, "read_generation"), member_integer(c, "write_generation"));
	add_tls(t, member(c, "tls"));
	table_show(t, &in->screen);
	if (json_array_size(member(c, "history")) > 0)
		show_history(in, member(c, "history"));
}

enum exit_code command_connection(struct invocation *in)
{
	return ask_of_one(in, "GET", NULL, NULL, show_one);
}

static void show_moved(const struct invocation *in, const json_t *moved)
{
	char pause[QUANTITY_TEXT_MAX];

	fprintf(in->screen.out, "moved from %s to %s, epoch %" PRIu64 ", pause %s\n", member_text(moved, "from"),
		member_text(moved, "to"), member_integer(moved, "epoch"),
		duration_text(member_integer(moved, "pause_us"), pause));
}

enum exit_code command_move(struct invocation *in)
{
	return ask_of_one(in, "POST", "move", must(json_pack("{s:s}", "agent", in->operands[1])), show_moved);
}

static void show_rested(const struct invocation *in, const json_t *rested)
{
	fprintf(in->screen.out, "rests since %s let it go; its next record wakes it\n", member_text(rested, "from"));
}

enum exit_code command_rest(struct invocation *in)
{
	return ask_of_one(in, "POST", "rest", must(json_object()), show_rested);
}

static void show_ended(const struct invocation *in, const json_t *answer)
{
	fprintf(in->screen.out, "%" PRIu64 " connections end\n", member_integer(answer, "ended"));
}

enum exit_code command_end(struct invocation *in)
{
	const char *id = in->operands[0], *agent = in->options[OPTION_AGENT], *listener = in->options[OPTION_LISTENER],
		   *client = in->options[OPTION_CLIENT];
	char whole[ID_DIGITS + 1];
	struct path path;

	if (!id == !(agent || listener || client))
		return misused(in, "say which: ID alone, or any of --agent, --listener, --client");
	const enum exit_code code = id ? whole_id(in, id, whole) : EXIT_DONE;
	if (code != EXIT_DONE)
		return code;
	path_start(&path, "/v1/connections/end");
	path_query(&path, "id", id ? whole : NULL);
	path_query(&path, "agent", agent);
	path_query(&path, "listener", listener);
	path_query(&path, "client", client);
	return ask_and_show(in, "POST", &path, must(json_object()), show_ended);
}
