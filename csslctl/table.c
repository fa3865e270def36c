/* table.c: cells are collected, then printed in columns of the widest. */
#include "csslctl/table.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/array.h"

#define GAP         2u /* between columns */
#define COLUMNS_MAX 16u
#define TITLE_MAX   64u

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

static void table_put(struct table *t, enum style style, const char *format, va_list arguments)
{
	char *text;

	if (vasprintf(&text, format, arguments) < 0)
		text = must(NULL);
	if (array_make_room(&t->cells, &t->cap, t->count, sizeof *t->cells) < 0)
		must(NULL);
	const unsigned width = text_clean(text), column = (unsigned)(t->count % t->column_count);
	t->cells[t->count++] = (struct cell){ text, width, style };
	if (width > t->widths[column])
		t->widths[column] = width;
}

void table_cell(struct table *t, enum style style, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	table_put(t, style, format, arguments);
	va_end(arguments);
}

static const char *path_of(const struct column *c, char name[static TITLE_MAX])
{
	if (c->member)
		return c->member;
	snprintf(name, TITLE_MAX, "%s", c->title);
	for (char *p = name; *p != '\0'; p++)
		*p = *p == ' ' ? '_' : (char)tolower((unsigned char)*p);
	return name;
}

static void add_value(struct table *t, const struct column *c, const json_t *object)
{
	char name[TITLE_MAX];
	const char *path = path_of(c, name);
	const json_t *value = member(object, path);
	const uint64_t n = member_integer(object, path);
	const enum style style = n || c->form == COLUMN_LEFT ? c->style : STYLE_PLAIN;
	char text[QUANTITY_TEXT_MAX];

	switch (c->form) {
	case COLUMN_LEFT: table_cell(t, style, "%s", member_text(object, path)); break;
	case COLUMN_AS_IS:
	case COLUMN_RIGHT:
		/* a daemon of another release may not say it: that is no 0 */
		if (json_is_integer(value))
			table_cell(t, style, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		else
			table_cell(t, style, "%s", json_is_string(value) ? json_string_value(value) : "-");
		break;
	case COLUMN_COUNT: table_cell(t, style, "%" PRIu64, n); break;
	case COLUMN_REAL: table_cell(t, style, "%g", member_real(object, path)); break;
	case COLUMN_SIZE: table_cell(t, style, "%s", size_text((double)n, text)); break;
	case COLUMN_US: table_cell(t, style, "%s", duration_text(n, text)); break;
	case COLUMN_MS: table_cell(t, style, "%s", duration_text(n * 1000, text)); break;
	case COLUMN_S: table_cell(t, style, "%s", duration_text(n * 1000000, text)); break;
	}
}

static void add_cell(struct table *t, const struct column *c, const json_t *object)
{
	if (c->cell)
		c->cell(t, object);
	else
		add_value(t, c, object);
}

void table_row(struct table *t, const json_t *object)
{
	for (unsigned i = 0; i < t->column_count; i++)
		add_cell(t, &t->columns[i], object);
}

/* Blanks are written only before more text, so that no line ends in one. */
static unsigned print_cell(
	const struct table *t, const struct screen *s, unsigned column, const struct cell *c, unsigned owed)
{
	const unsigned missing = t->widths[column] - c->width;
	const bool right = t->columns[column].form >= COLUMN_RIGHT;

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

void rows_show(const struct screen *s, const json_t *objects, const struct column *columns, unsigned count)
{
	struct table *t = table_create(columns, count);
	size_t i;
	json_t *object;

	json_array_foreach(objects, i, object) table_row(t, object);
	table_show(t, s);
}

/* --- facts --- */

struct table *facts_create(void)
{
	static const struct column fact_columns[2];

	return table_create(fact_columns, 2);
}

void facts_add(struct table *t, const char *name, enum style style, const char *format, ...)
{
	va_list arguments;

	table_cell(t, STYLE_DIM, "%s", name);
	va_start(arguments, format);
	table_put(t, style, format, arguments);
	va_end(arguments);
}

void facts_of(struct table *t, const json_t *object, const struct column *facts, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		table_cell(t, STYLE_DIM, "%s", facts[i].title);
		add_cell(t, &facts[i], object);
	}
}
