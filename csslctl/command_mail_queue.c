/* command_mail_queue.c: the queue of a mail gateway (smtpproxy with deliver: queue): its state, its messages, and an
 * operator's orders. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "csslctl/ask.h"
#include "csslctl/text.h"
#include "csslctl/table.h"

#define COUNT_OF(array) (sizeof array / sizeof *(array))

static void show_backups(const struct invocation *in, const json_t *answer)
{
	static const struct column columns[] = { { "BACKUP", COLUMN_RIGHT }, { "SERVER" }, { "STATE" }, { "PATHS" },
		{ "UNANSWERED", COLUMN_RIGHT }, { "REFUSED", COLUMN_RIGHT }, { "GIVEN UP", COLUMN_RIGHT } };
	struct table *t = table_create(columns, COUNT_OF(columns));
	json_t *backup, *paths;
	size_t i;

	json_array_foreach(member(answer, "backups"), i, backup)
	{
		paths = member(backup, "paths");
		table_cell(t, STYLE_PLAIN, "%zu", i);
		TABLE_TEXTS(t, backup, "address", "state");
		table_cell(t, STYLE_PLAIN, "%s%s%s", member_text(json_array_get(paths, 0), "state"),
			json_array_size(paths) > 1 ? ", " : "",
			json_array_size(paths) > 1 ? member_text(json_array_get(paths, 1), "state") : "");
		table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(backup, "unanswered"));
		table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(backup, "refused"));
		table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(backup, "given_up"));
	}
	table_show(t, &in->screen);
}

/* Servers of the file without a copy of the queue. */
static void show_spares(const struct invocation *in, const json_t *answer)
{
	static const struct column columns[] = { { "SPARE" }, { "STATE" } };
	struct table *t;
	json_t *spare;
	size_t i;

	if (!json_array_size(member(answer, "spares")))
		return;
	t = table_create(columns, COUNT_OF(columns));
	json_array_foreach(member(answer, "spares"), i, spare)
	{
		const int answers = !strcmp(member_text(spare, "state"), "seen");

		table_cell(t, STYLE_PLAIN, "%s", member_text(spare, "address"));
		table_cell(t, STYLE_PLAIN, "%s", answers ? "answers" : member_text(spare, "state"));
	}
	table_show(t, &in->screen);
}

static void show_lines(const struct invocation *in, const json_t *answer)
{
	static const struct column columns[] = { { "DESTINATION" }, { "MESSAGES", COLUMN_RIGHT },
		{ "READY", COLUMN_RIGHT }, { "DEFERRED", COLUMN_RIGHT }, { "TAKEN", COLUMN_RIGHT },
		{ "HELD", COLUMN_RIGHT }, { "A MINUTE", COLUMN_RIGHT }, { "FLOW" } };
	static const char *const counts[] = { "messages", "ready", "deferred", "taken", "held", "rate_per_minute" };
	struct table *t = table_create(columns, COUNT_OF(columns));
	json_t *line;
	size_t i;

	json_array_foreach(member(answer, "destinations"), i, line)
	{
		table_cell(t, STYLE_PLAIN, "%s", member_text(line, "destination"));
		for (size_t c = 0; c < COUNT_OF(counts); c++)
			table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(line, counts[c]));
		table_cell(t, STYLE_PLAIN, "%s", member_text(line, "flow"));
	}
	table_show(t, &in->screen);
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
static void show_copies(const struct invocation *in, const json_t *answer)
{
	static const struct column columns[] = { { "DESTINATION" }, { "BACKUP", COLUMN_RIGHT }, { "PATH 1" },
		{ "PATH 2" }, { "IN SYNC" }, { "CHANGES", COLUMN_RIGHT }, { "UNANSWERED", COLUMN_RIGHT } };
	struct table *t = table_create(columns, COUNT_OF(columns));
	json_t *line, *backup;
	size_t i, at;

	json_array_foreach(member(answer, "destinations"), i, line)
		json_array_foreach(member(answer, "backups"), at, backup) copy_cells(t, line, at, backup);
	table_show(t, &in->screen);
}

static void show_state(const struct invocation *in, const json_t *answer)
{
	static const char *const counts[] = { "epoch", "in_sync", "messages", "unstored", "stored", "recovered",
		"delivered", "unreadable", "deletes_unconfirmed", "states_unconfirmed", "orders_unstored",
		"backups_replaced" };
	struct table *t = facts_create();
	char bytes[QUANTITY_TEXT_MAX], most[QUANTITY_TEXT_MAX];

	facts_add(t, "queue", STYLE_PLAIN, "%s, %s", member_text(answer, "name"), member_text(answer, "state"));
	facts_add(t, "memory", STYLE_PLAIN, "%s of %s", size_text((double)member_integer(answer, "memory"), bytes),
		size_text((double)member_integer(answer, "memory_max"), most));
	for (size_t c = 0; c < COUNT_OF(counts); c++)
		facts_add(t, counts[c], STYLE_PLAIN, "%" PRIu64, member_integer(answer, counts[c]));
	table_show(t, &in->screen);
	show_backups(in, answer);
	show_spares(in, answer);
	show_lines(in, answer);
	show_copies(in, answer);
}

static void show_list(const struct invocation *in, const json_t *answer)
{
	static const struct column columns[] = { { "MESSAGE" }, { "STATE" }, { "DESTINATION" },
		{ "BYTES", COLUMN_RIGHT }, { "ATTEMPTS", COLUMN_RIGHT }, { "AGE s", COLUMN_RIGHT },
		{ "DUE IN s", COLUMN_RIGHT } };
	static const char *const counts[] = { "bytes", "attempts", "age_s", "due_in_s" };
	struct table *t = table_create(columns, COUNT_OF(columns));
	json_t *one;
	size_t i;

	json_array_foreach(member(answer, "messages"), i, one)
	{
		TABLE_TEXTS(t, one, "id", "state", "destination");
		for (size_t c = 0; c < COUNT_OF(counts); c++)
			table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(one, counts[c]));
	}
	table_show(t, &in->screen);
}

static void show_one(const struct invocation *in, const json_t *answer)
{
	static const char *const texts[] = { "id", "state", "destination", "client", "from" };
	static const char *const counts[] = { "bytes", "attempts", "age_s", "due_in_s" };
	struct table *t = facts_create();
	json_t *one;
	size_t i;

	for (i = 0; i < COUNT_OF(texts); i++)
		facts_add(t, texts[i], STYLE_PLAIN, "%s", member_text(answer, texts[i]));
	for (i = 0; i < COUNT_OF(counts); i++)
		facts_add(t, counts[i], STYLE_PLAIN, "%" PRIu64, member_integer(answer, counts[i]));
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
	{ "list", "GET", "/v1/queue/messages", OF_QUEUE, 0, show_list },
	{ "show", "GET", "/v1/queue/messages", OF_MESSAGE, 1, show_one },
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
		if (!strcmp(actions[i].name, name))
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

	if (!name)
		return get_and_show(in, "/v1/queue", show_state);
	if (!a)
		return misused(in,
			"'%s' is none of list, show, retry, hold, release, delete, stop, start, rate, takeover", name);
	if ((of != NULL) + (number != NULL) != (int)a->operands)
		return misused(in, "%s %s", name, needs[a->of]);
	path_start(&path, a->path);
	if (of)
		path_segment(&path, of);
	if (of && !strcmp(a->method, "POST"))
		path_segment(&path, name);
	if (number)
		path_segment(&path, number);
	return ask_and_show(in, a->method, &path, NULL, a->show);
}
