/* command_mail.c: the state of smtpproxy: its sessions, senders, receivers, source addresses, transactions and queue.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "csslctl/ask.h"

#define FOLLOW_US 500000u

#define COUNT_OF(array) (sizeof array / sizeof *(array))

static void process_cell(struct table *t, const json_t *answer)
{
	table_cell(t, STYLE_PLAIN, "%" PRIu64 ", up %" PRIu64 " s", member_integer(answer, "pid"),
		member_integer(answer, "uptime_s"));
}

void show_mail_status(const struct invocation *in, const json_t *answer)
{
	static const struct column facts[] = { { "name" }, { "process", .cell = process_cell }, { "fairness" },
		{ "sessions", COLUMN_COUNT }, { "destinations", COLUMN_COUNT } };
	static const struct column counts[] = { { "transactions", COLUMN_COUNT }, { "accepted", COLUMN_COUNT },
		{ "refused", COLUMN_COUNT }, { "aborted", COLUMN_COUNT }, { "in_doubt", COLUMN_COUNT },
		{ "turns_expired", COLUMN_COUNT }, { "connections_refused", COLUMN_COUNT },
		{ "connections_failed", COLUMN_COUNT } };
	struct table *t = facts_create();
	size_t i;
	json_t *listener;

	FACTS_OF(t, answer, facts);
	json_array_foreach(member(answer, "listeners"), i, listener) facts_add(t, "listener", STYLE_PLAIN, "%s, %s",
		member_text(listener, "address"), member_text(listener, "original_destination"));
	FACTS_OF(t, member(answer, "counters"), counts);
	table_show(t, &in->screen);
}

const struct column mail_sessions_columns[] = { { "SESSION", COLUMN_RIGHT, "connection" }, { "CLIENT", COLUMN_AS_IS },
	{ "STATE", COLUMN_AS_IS }, { "DESTINATION", COLUMN_AS_IS }, { "TRANSACTIONS", COLUMN_RIGHT },
	{ "ACCEPTED", COLUMN_RIGHT }, { NULL } };

const struct column mail_senders_columns[] = { { "CLIENT", COLUMN_AS_IS }, { "SESSIONS", COLUMN_RIGHT },
	{ "WAITING", COLUMN_RIGHT }, { "SENDING", COLUMN_RIGHT }, { "TRANSACTIONS", COLUMN_RIGHT },
	{ "ACCEPTED", COLUMN_RIGHT }, { NULL } };

const struct column mail_destinations_columns[] = { { "DESTINATION", COLUMN_AS_IS, "address" }, { "TLS", COLUMN_AS_IS },
	{ "SESSIONS", COLUMN_RIGHT }, { "SENDING", COLUMN_RIGHT }, { "IDLE", COLUMN_RIGHT }, { "LIMIT", COLUMN_RIGHT },
	{ "WAITING", COLUMN_RIGHT }, { "SENDERS", COLUMN_RIGHT, "waiting_senders" },
	{ "WAIT ms", COLUMN_RIGHT, "mean_wait_ms" }, { "TRANSACTIONS", COLUMN_RIGHT }, { "ACCEPTED", COLUMN_RIGHT },
	{ NULL } };

const struct column mail_pools_columns[] = { { "SOURCE", COLUMN_AS_IS, "address" }, { "WEIGHT", COLUMN_RIGHT },
	{ NULL } };

const struct column mail_hooks_columns[] = { { "HOOK", COLUMN_AS_IS, "name" }, { "TYPE", COLUMN_AS_IS },
	{ "ADDRESS", COLUMN_AS_IS }, { "STATE", COLUMN_AS_IS }, { "ASKED", COLUMN_RIGHT }, { "REFUSED", COLUMN_RIGHT },
	{ "DEFERRED", COLUMN_RIGHT }, { "DISCARDED", COLUMN_RIGHT }, { "CHANGED", COLUMN_RIGHT },
	{ "FAILED", COLUMN_RIGHT }, { NULL } };

static void show_event(const struct invocation *in, const json_t *e)
{
	if (in->screen.form == SCREEN_JSON) {
		char *text = must(json_dumps(e, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENSURE_ASCII));
		fprintf(in->screen.out, "%s\n", text);
		free(text);
		return;
	}
	char code[24] = "";
	if (member_integer(e, "code"))
		snprintf(code, sizeof code, "%" PRIu64 " ", member_integer(e, "code"));
	char *line = text_format("%s %s %s -> %s <%s> %zu recipients, %" PRIu64 " bytes, waited %" PRIu64 " ms: %s%s",
		member_text(e, "time"), member_text(e, "outcome"), member_text(e, "client"),
		member_text(e, "destination"), member_text(e, "from"), json_array_size(member(e, "recipients")),
		member_integer(e, "size"), member_integer(e, "wait_ms"), code, member_text(e, "text"));
	text_clean(line);
	fprintf(in->screen.out, "%s\n", line);
	free(line);
}

/* The records that were shown so far. */
struct followed {
	char instance[32]; /* the process whose numbers these are; empty: none was asked */
	uint64_t after, newest;
};

static void show_new(const struct invocation *in, struct followed *f, const json_t *answer)
{
	const uint64_t oldest = member_integer(answer, "oldest");
	size_t i;
	json_t *e;

	if (f->instance[0] && oldest > f->after + 1)
		fprintf(stderr, "csslctl mail events: %" PRIu64 " records came too fast to be shown\n",
			oldest - f->after - 1);
	json_array_foreach(member(answer, "events"), i, e)
	{
		show_event(in, e);
		f->after = member_integer(e, "n");
	}
	f->newest = member_integer(answer, "newest");
	fflush(in->screen.out);
}

/* Does another process answer now, whose numbers begin at 1? Then ask again. */
static bool begins_anew(struct followed *f, const json_t *answer)
{
	const char *instance = member_text(answer, "instance");

	if (strcmp(f->instance, instance) == 0)
		return false;
	const bool anew = f->instance[0] && f->after > 0;
	f->after = 0;
	snprintf(f->instance, sizeof f->instance, "%s", instance);
	return anew;
}

/* Show the events that are not shown yet. */
static enum exit_code show_events(struct invocation *in, struct followed *f)
{
	char number[24];
	struct path path;
	json_t *answer;

	snprintf(number, sizeof number, "%" PRIu64, f->after);
	path_start(&path, "/v1/events");
	path_query(&path, "after", number);
	const enum exit_code code = ask(in, "GET", &path, NULL, &answer);
	const bool anew = code == EXIT_DONE && begins_anew(f, answer);
	if (code == EXIT_DONE && !anew)
		show_new(in, f, answer);
	json_decref(answer);
	return anew ? show_events(in, f) : code;
}

/* A poll brings a part of what came meanwhile. */
static void wait_for_events(const struct followed *f)
{
	if (f->after >= f->newest)
		usleep(FOLLOW_US);
}

enum exit_code command_mail_events(struct invocation *in)
{
	struct followed f = { 0 };
	enum exit_code code = show_events(in, &f);

	if (!in->options[OPTION_FOLLOW])
		return code;
	interrupt_watch();
	while (code == EXIT_DONE && !interrupted()) {
		wait_for_events(&f);
		if (!interrupted())
			code = show_events(in, &f);
	}
	return code;
}

/* --- the queue of a mail gateway (smtpproxy with deliver: queue): its state, its messages, and orders --- */

static void paths_cell(struct table *t, const json_t *backup)
{
	const json_t *paths = member(backup, "paths");
	const bool are_two = json_array_size(paths) > 1;

	table_cell(t, STYLE_PLAIN, "%s%s%s", member_text(json_array_get(paths, 0), "state"), are_two ? ", " : "",
		are_two ? member_text(json_array_get(paths, 1), "state") : "");
}

static void show_backups(const struct invocation *in, const json_t *backups)
{
	static const struct column columns[] = { { "BACKUP", COLUMN_RIGHT, "number" },
		{ "SERVER", .member = "address" }, { "STATE" }, { "PATHS", .cell = paths_cell },
		{ "UNANSWERED", COLUMN_COUNT }, { "REFUSED", COLUMN_COUNT }, { "GIVEN UP", COLUMN_COUNT } };

	ROWS_SHOW(&in->screen, backups, columns);
}

static void spare_state_cell(struct table *t, const json_t *spare)
{
	const char *state = member_text(spare, "state");

	table_cell(t, STYLE_PLAIN, "%s", strcmp(state, "seen") == 0 ? "answers" : state);
}

/* Servers of the file without a copy of the queue. */
static void show_spares(const struct invocation *in, const json_t *spares)
{
	static const struct column columns[] = { { "SPARE", .member = "address" },
		{ "STATE", .cell = spare_state_cell } };

	if (json_array_size(spares))
		ROWS_SHOW(&in->screen, spares, columns);
}

static void show_lines(const struct invocation *in, const json_t *lines)
{
	static const struct column columns[] = { { "DESTINATION" }, { "MESSAGES", COLUMN_COUNT },
		{ "READY", COLUMN_COUNT }, { "DEFERRED", COLUMN_COUNT }, { "TAKEN", COLUMN_COUNT },
		{ "HELD", COLUMN_COUNT }, { "A MINUTE", COLUMN_COUNT, "rate_per_minute" }, { "FLOW" } };

	ROWS_SHOW(&in->screen, lines, columns);
}

static void copy_cells(struct table *t, const json_t *line, size_t at, const json_t *backup)
{
	const json_t *paths = member(backup, "paths"), *changes = json_array_get(member(line, "changes"), at);

	table_cell(t, STYLE_PLAIN, "%s", member_text(line, "destination"));
	table_cell(t, STYLE_PLAIN, "%zu", at);
	for (size_t p = 0; p < 2; p++)
		table_cell(t, STYLE_PLAIN, "%s", member_text(json_array_get(paths, p), "state"));
	table_cell(t, STYLE_PLAIN, "%s", json_is_true(member(backup, "in_sync")) ? "yes" : "no");
	table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(changes, "answered"));
	table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(changes, "unanswered"));
}

/* A backup holds all destinations, so its paths and "in sync" are the same for each; the changes are not. */
static void show_copies(const struct invocation *in, const json_t *lines, const json_t *backups)
{
	static const struct column columns[] = { { "DESTINATION" }, { "BACKUP", COLUMN_RIGHT }, { "PATH 1" },
		{ "PATH 2" }, { "IN SYNC" }, { "CHANGES", COLUMN_RIGHT }, { "UNANSWERED", COLUMN_RIGHT } };
	struct table *t = table_create(columns, COUNT_OF(columns));
	json_t *line, *backup;
	size_t i, at;

	json_array_foreach(lines, i, line) json_array_foreach(backups, at, backup) copy_cells(t, line, at, backup);
	table_show(t, &in->screen);
}

static void memory_cell(struct table *t, const json_t *answer)
{
	char bytes[QUANTITY_TEXT_MAX], most[QUANTITY_TEXT_MAX];

	table_cell(t, STYLE_PLAIN, "%s of %s", size_text((double)member_integer(answer, "memory"), bytes),
		size_text((double)member_integer(answer, "memory_max"), most));
}

static void show_state(const struct invocation *in, const json_t *answer)
{
	static const struct column facts[] = { { "memory", .cell = memory_cell }, { "epoch", COLUMN_COUNT },
		{ "in_sync", COLUMN_COUNT }, { "messages", COLUMN_COUNT }, { "unstored", COLUMN_COUNT },
		{ "stored", COLUMN_COUNT }, { "recovered", COLUMN_COUNT }, { "delivered", COLUMN_COUNT },
		{ "unreadable", COLUMN_COUNT }, { "deletes_unconfirmed", COLUMN_COUNT },
		{ "states_unconfirmed", COLUMN_COUNT }, { "orders_unstored", COLUMN_COUNT },
		{ "backups_replaced", COLUMN_COUNT } };
	const json_t *backups = member(answer, "backups"), *lines = member(answer, "destinations");
	struct table *t = facts_create();
	size_t i;
	json_t *backup;

	json_array_foreach(backups, i, backup) json_object_set_new(backup, "number", json_integer((json_int_t)i));
	facts_add(t, "queue", STYLE_PLAIN, "%s, %s", member_text(answer, "name"), member_text(answer, "state"));
	FACTS_OF(t, answer, facts);
	table_show(t, &in->screen);
	show_backups(in, backups);
	show_spares(in, member(answer, "spares"));
	show_lines(in, lines);
	show_copies(in, lines, backups);
}

static void show_messages(const struct invocation *in, const json_t *answer)
{
	static const struct column columns[] = { { "MESSAGE", .member = "id" }, { "STATE" }, { "DESTINATION" },
		{ "BYTES", COLUMN_COUNT }, { "ATTEMPTS", COLUMN_COUNT }, { "AGE s", COLUMN_COUNT },
		{ "DUE IN s", COLUMN_COUNT } };

	ROWS_SHOW(&in->screen, member(answer, "messages"), columns);
}

static void show_message(const struct invocation *in, const json_t *answer)
{
	static const struct column facts[] = { { "id" }, { "state" }, { "destination" }, { "client" }, { "from" },
		{ "bytes", COLUMN_COUNT }, { "attempts", COLUMN_COUNT }, { "age_s", COLUMN_COUNT },
		{ "due_in_s", COLUMN_COUNT } };
	struct table *t = facts_create();
	json_t *one;
	size_t i;

	FACTS_OF(t, answer, facts);
	json_array_foreach(member(answer, "recipients"), i, one) facts_add(t, "to", STYLE_PLAIN, "%s: %s %s",
		member_text(one, "to"), member_text(one, "fate"), member_text(one, "reply"));
	table_show(t, &in->screen);
}

static void show_nothing(const struct invocation *in, const json_t *answer)
{
}

/* The words that may follow `mail queue`. */
static const struct action {
	const char *name, *method, *path;
	enum { OF_QUEUE, OF_MESSAGE, OF_DESTINATION } of;
	unsigned operands; /* behind it */
	show_answer *show;
} actions[] = {
	{ "list", "GET", "/v1/queue/messages", OF_QUEUE, 0, show_messages },
	{ "show", "GET", "/v1/queue/messages", OF_MESSAGE, 1, show_message },
	{ "retry", "POST", "/v1/queue/messages", OF_MESSAGE, 1, show_nothing },
	{ "hold", "POST", "/v1/queue/messages", OF_MESSAGE, 1, show_nothing },
	{ "release", "POST", "/v1/queue/messages", OF_MESSAGE, 1, show_nothing },
	{ "delete", "POST", "/v1/queue/messages", OF_MESSAGE, 1, show_nothing },
	{ "stop", "POST", "/v1/queue/destinations", OF_DESTINATION, 1, show_nothing },
	{ "start", "POST", "/v1/queue/destinations", OF_DESTINATION, 1, show_nothing },
	{ "rate", "POST", "/v1/queue/destinations", OF_DESTINATION, 2, show_nothing },
	{ "takeover", "POST", "/v1/queue/takeover", OF_QUEUE, 0, show_nothing },
};

static const struct action *action_find(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(actions); i++)
		if (strcmp(actions[i].name, name) == 0)
			return &actions[i];
	return NULL;
}

enum exit_code command_mail_queue(struct invocation *in)
{
	static const char *const needs[] = { [OF_QUEUE] = "takes no message",
		[OF_MESSAGE] = "needs a message",
		[OF_DESTINATION] = "needs a destination, and only rate a number behind it" };
	const char *name = in->operands[0], *of = in->operands[1], *number = in->operands[2];
	const struct action *a = name ? action_find(name) : NULL;
	struct path path;

	path_start(&path, a ? a->path : "/v1/queue");
	if (!name)
		return ask_and_show(in, "GET", &path, NULL, show_state);
	if (!a)
		return misused(in,
			"'%s' is none of list, show, retry, hold, release, delete, stop, start, rate, takeover", name);
	if ((of != NULL) + (number != NULL) != (int)a->operands)
		return misused(in, "%s %s", name, needs[a->of]);
	if (of)
		path_segment(&path, of);
	if (of && strcmp(a->method, "POST") == 0)
		path_segment(&path, name);
	if (number)
		path_segment(&path, number);
	return ask_and_show(in, a->method, &path, NULL, a->show);
}
