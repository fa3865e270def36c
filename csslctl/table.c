/* table.c: cells are collected, then printed in columns of the widest. */
#include "csslctl/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "csslctl/text.h"

#define GAP         2u /* between columns */
#define COLUMNS_MAX 16u

struct cell {
	char *text;
	unsigned width;
	enum style style;
};

struct table {
	const struct column *columns;
	unsigned column_count;
	unsigned widths[COLUMNS_MAX];
	struct cell *cells;
	size_t count, cap;
};

struct table *table_create(const struct column *columns, unsigned count)
{
	struct table *t = must(calloc(1, sizeof *t));

	assert(count > 0 && count <= COLUMNS_MAX);
	t->columns = columns;
	t->column_count = count;
	for (unsigned i = 0; i < count; i++)
		t->widths[i] = columns[i].title ? (unsigned)strlen(columns[i].title) : 0;
	return t;
}

void table_destroy(struct table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->count; i++)
		free(t->cells[i].text);
	free(t->cells);
	free(t);
}

static void add(struct table *t, enum style style, const char *format, va_list arguments)
{
	char *text;

	if (vasprintf(&text, format, arguments) < 0)
		text = must(NULL);
	if (t->count == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 64;
		t->cells = must(reallocarray(t->cells, t->cap, sizeof *t->cells));
	}
	const unsigned width = text_clean(text), column = (unsigned)(t->count % t->column_count);
	t->cells[t->count++] = (struct cell){ text, width, style };
	if (width > t->widths[column])
		t->widths[column] = width;
}

void table_cell(struct table *t, enum style style, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add(t, style, format, arguments);
	va_end(arguments);
}

void table_texts(struct table *t, const json_t *object, const char *const *paths)
{
	for (; *paths; paths++)
		table_cell(t, STYLE_PLAIN, "%s", member_text(object, *paths));
}

/* Blanks are written only before more text, so that no line ends in one. */
static unsigned print_cell(
	const struct table *t, const struct screen *s, unsigned column, const struct cell *c, unsigned owed)
{
	const unsigned missing = t->widths[column] - c->width;
	const int right = t->columns[column].align == COLUMN_RIGHT;

	if (c->width == 0)
		return owed + missing + GAP;
	fprintf(s->out, "%*s%s%s%s", (int)(owed + (right ? missing : 0)), "", screen_style(s, c->style), c->text,
		c->style == STYLE_PLAIN ? "" : screen_plain(s));
	return (right ? 0 : missing) + GAP;
}

static void print_row(const struct table *t, const struct screen *s, const struct cell *cells)
{
	unsigned owed = 0;

	for (unsigned i = 0; i < t->column_count; i++)
		owed = print_cell(t, s, i, &cells[i], owed);
	fputc('\n', s->out);
}

void table_print(const struct table *t, const struct screen *s)
{
	struct cell head[COLUMNS_MAX];

	assert(t->count % t->column_count == 0);
	for (unsigned i = 0; i < t->column_count && t->columns[0].title; i++) {
		const char *title = t->columns[i].title;
		head[i] = (struct cell){ (char *)title, (unsigned)strlen(title), STYLE_HEAD };
	}
	if (t->columns[0].title)
		print_row(t, s, head);
	for (size_t i = 0; i < t->count; i += t->column_count)
		print_row(t, s, &t->cells[i]);
}

void table_show(struct table *t, const struct screen *s)
{
	table_print(t, s);
	table_destroy(t);
}

static const struct column fact_columns[] = { { NULL, COLUMN_LEFT }, { NULL, COLUMN_LEFT } };

struct table *facts_create(void)
{
	return table_create(fact_columns, 2);
}

void facts_add(struct table *t, const char *name, enum style style, const char *format, ...)
{
	va_list arguments;

	table_cell(t, STYLE_DIM, "%s", name);
	va_start(arguments, format);
	add(t, style, format, arguments);
	va_end(arguments);
}
