/* listing.c: appends page after page to the first. */
#include "csslctl/listing.h"

#include <stdlib.h>

#include "csslctl/member.h"
#include "csslctl/memory.h"

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

static size_t length(const struct listing *l)
{
	return json_array_size(member(l->all, l->list));
}

static void next_path(const struct listing *l, struct path *out)
{
	const unsigned wanted = l->limit - (unsigned)length(l);
	char count[16];

	snprintf(count, sizeof count, "%u", wanted < PAGE_MAX ? wanted : PAGE_MAX);
	path_start(out, l->path);
	path_query(out, "limit", count);
	path_query(out, "after", json_string_value(member(l->all, "next")));
	for (const struct listing_filter *f = l->filters; f->name; f++)
		path_query(out, f->name, f->value);
}

/* A page without rows is the last one, even if it names a next page. */
static void append(struct listing *l, const json_t *page)
{
	json_t *rows = member(page, l->list), *next = member(page, "next");

	json_array_extend(member(l->all, l->list), rows);
	if (json_is_string(next) && json_array_size(rows) > 0)
		json_object_set(l->all, "next", next);
	else
		json_object_set_new(l->all, "next", json_null());
}

static enum exit_code collect(struct invocation *in, struct listing *l)
{
	enum exit_code code;

	do {
		struct path path;
		json_t *page;
		next_path(l, &path);
		code = ask(in, "GET", &path, NULL, &page);
		if (code == EXIT_DONE)
			append(l, page);
		json_decref(page);
	} while (code == EXIT_DONE && json_is_string(member(l->all, "next")) && length(l) < l->limit);
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

enum exit_code listing_show(struct invocation *in, const char *fixed_path, const char *list,
	const struct listing_filter *filters, show_answer *show)
{
	struct listing l = { .path = fixed_path, .list = list, .filters = filters };

	if (limit_parse(in, &l.limit) < 0)
		return misused(in, "--limit: '%s' is no number from 1 to %u", in->options[OPTION_LIMIT], LIMIT_MAX);
	l.all = must(json_pack("{s:[], s:n}", list, "next"));
	const enum exit_code code = collect(in, &l);
	if (code == EXIT_DONE && in->screen.form == SCREEN_JSON)
		show_json(in, l.all);
	else if (code == EXIT_DONE)
		show(in, l.all);
	if (code == EXIT_DONE && in->screen.form == SCREEN_HUMAN && json_is_string(member(l.all, "next")))
		fprintf(in->screen.out, "and more: --limit N shows N of them\n");
	json_decref(l.all);
	return code;
}
