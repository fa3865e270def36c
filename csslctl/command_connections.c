/* command_connections.c: client connections: a list, one connection, and commands to one. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "csslctl/ask.h"
#include "csslctl/form.h"

/* --- the list --- */

static void id_cell(struct table *t, const json_t *c)
{
	table_cell(t, STYLE_PLAIN, "%.*s", (int)ID_SHOWN, member_text(c, "id"));
}

static void owner_cell(struct table *t, const json_t *c)
{
	const char *owner = member_text(c, "owner");

	table_cell(t, *owner == '-' ? STYLE_DIM : STYLE_PLAIN, "%s", owner);
}

const struct column connection_columns[] = { { "CONNECTION", .cell = id_cell }, { "CLIENT" }, { "LISTENER" },
	{ "STATE" }, { "OWNER", .cell = owner_cell }, { "MOVES", COLUMN_COUNT }, { "AGE", COLUMN_MS, "age_ms" },
	{ "IDLE", COLUMN_MS, "idle_ms" }, { "SENT", COLUMN_SIZE, "server_bytes" }, { "TLS", .member = "tls.version" },
	{ "SERVER NAME", .member = "tls.server_name" }, { NULL } };

enum exit_code command_connections(struct invocation *in)
{
	const struct listing_filter filters[] = {
		{ "agent", in->options[OPTION_AGENT] },
		{ "listener", in->options[OPTION_LISTENER] },
		{ "client", in->options[OPTION_CLIENT] },
		{ NULL },
	};

	return listing_show(in, filters);
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

static void resumed_cell(struct table *t, const json_t *c)
{
	table_cell(t, STYLE_PLAIN, "%s", json_is_true(member(c, "tls.resumed")) ? "resumed" : "full");
}

static void tls_cell(struct table *t, const json_t *c)
{
	table_cell(t, STYLE_PLAIN, "%s, %s", member_text(c, "tls.version"), member_text(c, "tls.cipher_suite"));
}

static void add_tls(struct table *t, const json_t *c)
{
	static const struct column facts[] = { { "TLS", .cell = tls_cell }, { "handshake", .cell = resumed_cell },
		{ "server name", .member = "tls.server_name" }, { "ALPN", .member = "tls.alpn" },
		{ "session", .member = "tls.session_id" }, { "family", .member = "tls.family_id" } };

	if (json_is_object(member(c, "tls")))
		FACTS_OF(t, c, facts);
	else
		facts_add(t, "TLS", STYLE_PLAIN, "the handshake has not ended");
}

static void add_traffic(struct table *t, const char *label, uint64_t records, uint64_t bytes)
{
	char text[QUANTITY_TEXT_MAX];

	facts_add(t, label, STYLE_PLAIN, "%" PRIu64 " records, %s", records, size_text((double)bytes, text));
}

static void show_history(const struct invocation *in, const json_t *history)
{
	static const struct column columns[] = { { "AGENT" }, { "CAUSE" }, { "EPOCH", COLUMN_COUNT },
		{ "AGO", COLUMN_MS, "ago_ms" }, { "PAUSE", COLUMN_US, "pause_us" } };

	fputc('\n', in->screen.out);
	ROWS_SHOW(&in->screen, history, columns);
}

static void show_one(const struct invocation *in, const json_t *c)
{
	static const struct column agents[] = { { "handshake by", .member = "handshake_agent" },
		{ "affinity", .member = "affinity_agent" }, { "moves", COLUMN_COUNT } };
	char age[QUANTITY_TEXT_MAX], idle[QUANTITY_TEXT_MAX];
	struct table *t = facts_create();

	facts_add(t, "connection", STYLE_HEAD, "%s", member_text(c, "id"));
	facts_add(t, "client", STYLE_PLAIN, "%s", member_text(c, "client"));
	facts_add(t, "server", STYLE_PLAIN, "%s, listener %s", member_text(c, "server"), member_text(c, "listener"));
	facts_add(t, "state", STYLE_PLAIN, "%s", member_text(c, "state"));
	facts_add(t, "owner", STYLE_PLAIN, "%s, epoch %" PRIu64, member_text(c, "owner"), member_integer(c, "epoch"));
	if (json_is_string(member(c, "preamble_agent")))
		facts_add(t, "in clear with", STYLE_PLAIN, "%s", member_text(c, "preamble_agent"));
	FACTS_OF(t, c, agents);
	facts_add(t, "age", STYLE_PLAIN, "%s, idle for %s", duration_text(member_integer(c, "age_ms") * 1000, age),
		duration_text(member_integer(c, "idle_ms") * 1000, idle));
	add_traffic(t, "from client", member_integer(c, "client_records"), member_integer(c, "client_bytes"));
	add_traffic(t, "to client", member_integer(c, "server_records"), member_integer(c, "server_bytes"));
	facts_add(t, "generations", STYLE_PLAIN, "read %" PRIu64 ", write %" PRIu64,
		member_integer(c, "read_generation"), member_integer(c, "write_generation"));
	add_tls(t, c);
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
