/* command_mail.c: the state of smtpproxy: its sessions, senders, receivers, source addresses and transactions. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "csslctl/ask.h"
#include "csslctl/screen.h"
#include "csslctl/text.h"
#include "csslctl/table.h"

#define FOLLOW_US 500000u

/* A column of a list: its title, and the member that it shows. */
struct shown {
	struct column column;
	const char *member;
};

#define SHOWN_MAX 12u

static void value_cell(struct table *t, const json_t *value)
{
	if (json_is_integer(value))
		table_cell(t, STYLE_PLAIN, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else
		table_cell(t, STYLE_PLAIN, "%s", json_is_string(value) ? json_string_value(value) : "-");
}

static void show_rows(const struct invocation *in, const json_t *rows, const struct shown *shown, unsigned count)
{
	struct column columns[SHOWN_MAX];
	size_t i;
	json_t *row;

	for (unsigned c = 0; c < count; c++)
		columns[c] = shown[c].column;
	struct table *t = table_create(columns, count);
	json_array_foreach(rows, i, row)
	{
		for (unsigned c = 0; c < count; c++)
			value_cell(t, member(row, shown[c].member));
	}
	table_show(t, &in->screen);
}

#define COUNT_OF(array)       (sizeof array / sizeof *(array))
#define SHOW(in, rows, shown) show_rows(in, rows, shown, COUNT_OF(shown))

void show_mail_status(const struct invocation *in, const json_t *answer)
{
	static const char *const counts[] = { "transactions", "accepted", "refused", "aborted", "in_doubt",
		"turns_expired", "connections_refused", "connections_failed" };
	struct table *t = facts_create();
	size_t i;
	json_t *listener;

	facts_add(t, "name", STYLE_PLAIN, "%s", member_text(answer, "name"));
	facts_add(t, "process", STYLE_PLAIN, "%" PRIu64 ", up %" PRIu64 " s", member_integer(answer, "pid"),
		member_integer(answer, "uptime_s"));
	facts_add(t, "fairness", STYLE_PLAIN, "%s", member_text(answer, "fairness"));
	facts_add(t, "sessions", STYLE_PLAIN, "%" PRIu64, member_integer(answer, "sessions"));
	facts_add(t, "destinations", STYLE_PLAIN, "%" PRIu64, member_integer(answer, "destinations"));
	json_array_foreach(member(answer, "listeners"), i, listener) facts_add(t, "listener", STYLE_PLAIN, "%s, %s",
		member_text(listener, "address"), member_text(listener, "original_destination"));
	for (size_t c = 0; c < COUNT_OF(counts); c++)
		facts_add(t, counts[c], STYLE_PLAIN, "%" PRIu64, member_integer(member(answer, "counters"), counts[c]));
	table_show(t, &in->screen);
}

void show_mail_sessions(const struct invocation *in, const json_t *answer)
{
	static const struct shown shown[] = { { { "SESSION", COLUMN_RIGHT }, "connection" }, { { "CLIENT" }, "client" },
		{ { "STATE" }, "state" }, { { "DESTINATION" }, "destination" },
		{ { "TRANSACTIONS", COLUMN_RIGHT }, "transactions" }, { { "ACCEPTED", COLUMN_RIGHT }, "accepted" } };
	SHOW(in, member(answer, "sessions"), shown);
}

void show_mail_senders(const struct invocation *in, const json_t *answer)
{
	static const struct shown shown[] = { { { "CLIENT" }, "client" }, { { "SESSIONS", COLUMN_RIGHT }, "sessions" },
		{ { "WAITING", COLUMN_RIGHT }, "waiting" }, { { "SENDING", COLUMN_RIGHT }, "sending" },
		{ { "TRANSACTIONS", COLUMN_RIGHT }, "transactions" }, { { "ACCEPTED", COLUMN_RIGHT }, "accepted" } };
	SHOW(in, member(answer, "senders"), shown);
}

void show_mail_destinations(const struct invocation *in, const json_t *answer)
{
	static const struct shown shown[] = { { { "DESTINATION" }, "address" }, { { "TLS" }, "tls" },
		{ { "SESSIONS", COLUMN_RIGHT }, "sessions" }, { { "SENDING", COLUMN_RIGHT }, "sending" },
		{ { "IDLE", COLUMN_RIGHT }, "idle" }, { { "LIMIT", COLUMN_RIGHT }, "limit" },
		{ { "WAITING", COLUMN_RIGHT }, "waiting" }, { { "SENDERS", COLUMN_RIGHT }, "waiting_senders" },
		{ { "WAIT ms", COLUMN_RIGHT }, "mean_wait_ms" }, { { "TRANSACTIONS", COLUMN_RIGHT }, "transactions" },
		{ { "ACCEPTED", COLUMN_RIGHT }, "accepted" } };
	SHOW(in, member(answer, "destinations"), shown);
}

void show_mail_pools(const struct invocation *in, const json_t *answer)
{
	static const struct shown shown[] = { { { "SOURCE" }, "address" }, { { "WEIGHT", COLUMN_RIGHT }, "weight" } };
	SHOW(in, member(answer, "sources"), shown);
}

void show_mail_hooks(const struct invocation *in, const json_t *answer)
{
	static const struct shown shown[] = { { { "HOOK" }, "name" }, { { "TYPE" }, "type" },
		{ { "ADDRESS" }, "address" }, { { "STATE" }, "state" }, { { "ASKED", COLUMN_RIGHT }, "asked" },
		{ { "REFUSED", COLUMN_RIGHT }, "refused" }, { { "DEFERRED", COLUMN_RIGHT }, "deferred" },
		{ { "DISCARDED", COLUMN_RIGHT }, "discarded" }, { { "CHANGED", COLUMN_RIGHT }, "changed" },
		{ { "FAILED", COLUMN_RIGHT }, "failed" } };
	SHOW(in, member(answer, "hooks"), shown);
}

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

/* 1: another process answers now, whose numbers begin at 1: ask again. */
static int begins_anew(struct followed *f, const json_t *answer)
{
	const char *instance = member_text(answer, "instance");

	if (strcmp(f->instance, instance) == 0)
		return 0;
	const int anew = f->instance[0] && f->after > 0;
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
	const int anew = code == EXIT_DONE && begins_anew(f, answer);
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
