/* ask.c: the API's answer becomes output and exit code. */
#include "csslctl/ask.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "csslctl/text.h"

uint64_t ask_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void complain_with(const struct invocation *in, const char *remedy, const char *format, va_list arguments)
{
	char *reason;

	if (vasprintf(&reason, format, arguments) < 0)
		reason = must(NULL);
	text_clean(reason);
	fflush(in->screen.out);
	fprintf(stderr, "csslctl %s", in->command->name);
	for (unsigned i = 0; i < OPERANDS_MAX && in->operands[i]; i++)
		fprintf(stderr, " %s", in->operands[i]);
	fprintf(stderr, ": %s\n", reason);
	if (remedy)
		fprintf(stderr, "  %s\n", remedy);
	free(reason);
}

void complain_of(const struct invocation *in, const char *remedy, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	complain_with(in, remedy, format, arguments);
	va_end(arguments);
}

enum exit_code misused(const struct invocation *in, const char *format, ...)
{
	va_list arguments;
	char *remedy = text_format("see `csslctl help %s`", in->command->name);

	va_start(arguments, format);
	complain_with(in, remedy, format, arguments);
	va_end(arguments);
	free(remedy);
	return EXIT_USAGE;
}

void show_json(const struct invocation *in, const json_t *value)
{
	char *text = must(json_dumps(value, JSON_INDENT(2) | JSON_ENSURE_ASCII));

	fprintf(in->screen.out, "%s\n", text);
	free(text);
}

enum exit_code ask(struct invocation *in, const char *method, const struct path *path, json_t *body, json_t **answer)
{
	struct answer a;

	*answer = NULL;
	if (path->whole == PATH_CUT) {
		json_decref(body);
		return misused(in, "too long: nothing has such a name");
	}
	api_ask(in->api, method, path, body, &a);
	if (a.status == 0) {
		complain_of(in, a.remedy, "%s", a.error);
		answer_clear(&a);
		return EXIT_UNREACHABLE;
	}
	*answer = a.body;
	if (a.error[0] == '\0')
		return EXIT_DONE;
	const bool is_misused = a.status == 400, command_knows = in->command->remedy && a.status == 404;
	if (is_misused)
		misused(in, "%s", a.error);
	else
		complain_of(in, command_knows ? in->command->remedy : a.remedy, "%s", a.error);
	if (in->screen.form == SCREEN_JSON)
		show_json(in, a.body);
	return is_misused ? EXIT_USAGE : EXIT_REFUSED;
}

char *names_of(const json_t *names)
{
	char *text;
	size_t i, len;
	json_t *name;
	FILE *out = must(open_memstream(&text, &len));

	json_array_foreach(names, i, name) fprintf(out, "%s%s", i > 0 ? ", " : "", json_string_value(name));
	fclose(out);
	return must(text);
}

/* Of agents without which the rest was done. */
static enum exit_code complain_of_missing(const struct invocation *in, const json_t *answer)
{
	char *names = names_of(member(answer, "unconfirmed"));
	enum exit_code code = *names ? EXIT_REFUSED : EXIT_DONE;
	const char *agent;
	json_t *error;

	if (*names)
		complain_of(in, "they hear of it when they are back; `csslctl agents` shows who is ready",
			"not confirmed by %s", names);
	free(names);
	json_object_foreach(member(answer, "failed"), agent, error)
	{
		complain_of(in, "see its log, and `csslctl agents`", "%s: %s", agent, json_string_value(error));
		code = EXIT_REFUSED;
	}
	return code;
}

static void show_people(const struct invocation *in, const json_t *answer, show_answer *show)
{
	const struct command *c = in->command;
	unsigned count = 0;

	if (show) {
		show(in, answer);
		return;
	}
	while (c->columns[count].title)
		count++;
	rows_show(&in->screen, member(answer, c->list), c->columns, count);
}

enum exit_code ask_and_show(
	struct invocation *in, const char *method, const struct path *path, json_t *body, show_answer *show)
{
	json_t *answer;
	enum exit_code code = ask(in, method, path, body, &answer);
	const bool is_more_than_a_reason = json_object_size(answer) > 1;

	if (in->screen.form == SCREEN_HUMAN && (code == EXIT_DONE || is_more_than_a_reason))
		show_people(in, answer, show);
	else if (code == EXIT_DONE)
		show_json(in, answer);
	if (code == EXIT_DONE)
		code = complain_of_missing(in, answer);
	json_decref(answer);
	return code;
}

enum exit_code ask_and_show_row(struct invocation *in)
{
	const struct command *c = in->command;
	const char *hole = strstr(c->path, "/{}");
	char head[64];
	struct path path;

	snprintf(head, sizeof head, "%.*s", (int)(hole ? (size_t)(hole - c->path) : strlen(c->path)), c->path);
	path_start(&path, head);
	if (hole)
		path_segment(&path, in->operands[0]);
	if (hole && hole[3] != '\0')
		path_segment(&path, hole + 4);
	return ask_and_show(in, c->method == ORDERS ? "POST" : "GET", &path,
		c->method == ORDERS ? must(json_object()) : NULL, c->show);
}

/* --- lists: page after page is appended to the first --- */

#define LIMIT_DEFAULT 100u
#define LIMIT_MAX     10000000u
#define PAGE_MAX      1000u

/* The collected rows have the form of a page: the list, and the beginning of the next page. */
struct listing {
	const char *path, *list;
	const struct listing_filter *filters;
	unsigned limit;
	json_t *all;
};

static size_t listing_length(const struct listing *l)
{
	return json_array_size(member(l->all, l->list));
}

static void next_path(const struct listing *l, struct path *out)
{
	const unsigned wanted = l->limit - (unsigned)listing_length(l);
	char count[16];

	snprintf(count, sizeof count, "%u", wanted < PAGE_MAX ? wanted : PAGE_MAX);
	path_start(out, l->path);
	path_query(out, "limit", count);
	path_query(out, "after", json_string_value(member(l->all, "next")));
	for (const struct listing_filter *f = l->filters; f->name; f++)
		path_query(out, f->name, f->value);
}

/* A page without rows is the last one, even if it names a next page. */
static void listing_append(struct listing *l, const json_t *page)
{
	json_t *rows = member(page, l->list), *next = member(page, "next");

	json_array_extend(member(l->all, l->list), rows);
	if (json_is_string(next) && json_array_size(rows) > 0)
		json_object_set(l->all, "next", next);
	else
		json_object_set_new(l->all, "next", json_null());
}

static enum exit_code listing_collect(struct invocation *in, struct listing *l)
{
	enum exit_code code;

	do {
		struct path path;
		json_t *page;
		next_path(l, &path);
		code = ask(in, "GET", &path, NULL, &page);
		if (code == EXIT_DONE)
			listing_append(l, page);
		json_decref(page);
	} while (code == EXIT_DONE && json_is_string(member(l->all, "next")) && listing_length(l) < l->limit);
	return code;
}

static int limit_parse(const struct invocation *in, unsigned *limit)
{
	const char *text = in->options[OPTION_LIMIT];
	char *end;

	*limit = LIMIT_DEFAULT;
	if (!text)
		return 0;
	const unsigned long n = strtoul(text, &end, 10);
	*limit = (unsigned)n;
	return *text >= '0' && *text <= '9' && *end == '\0' && n >= 1 && n <= LIMIT_MAX ? 0 : -1;
}

enum exit_code listing_show(struct invocation *in, const struct listing_filter *filters)
{
	struct listing l = { .path = in->command->path, .list = in->command->list, .filters = filters };

	if (limit_parse(in, &l.limit) < 0)
		return misused(in, "--limit: '%s' is no number from 1 to %u", in->options[OPTION_LIMIT], LIMIT_MAX);
	l.all = must(json_pack("{s:[], s:n}", l.list, "next"));
	const enum exit_code code = listing_collect(in, &l);
	if (code == EXIT_DONE && in->screen.form == SCREEN_JSON)
		show_json(in, l.all);
	else if (code == EXIT_DONE)
		show_people(in, l.all, NULL);
	if (code == EXIT_DONE && in->screen.form == SCREEN_HUMAN && json_is_string(member(l.all, "next")))
		fprintf(in->screen.out, "and more: --limit N shows N of them\n");
	json_decref(l.all);
	return code;
}
