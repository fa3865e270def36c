/* table.h: aligned columns, each as wide as its widest cell. */
#pragma once

#include "csslctl/screen.h"
#include "csslctl/text.h"

struct table;

/* How a column, or a fact, shows its member of an object. */
enum column_form {
	COLUMN_LEFT,  /* a text; "-" if there is none */
	COLUMN_AS_IS, /* a text or a number; "-" if it is neither */
	/* these stand on the right side */
	COLUMN_RIGHT, /* as it is */
	COLUMN_COUNT, /* 0 if there is none */
	COLUMN_REAL,
	COLUMN_SIZE, /* bytes */
	COLUMN_US,   /* durations */
	COLUMN_MS,
	COLUMN_S,
};

struct column {
	const char *title; /* NULL in all columns: no head line */
	enum column_form form;
	const char *member; /* a path of text.h; NULL: the title in small letters, with _ for blanks */
	enum style style;   /* of a number: unless it is 0 */
	void (*cell)(struct table *t, const json_t *object); /* adds the cell instead */
};

/* @columns outlive it. */
struct table *table_create(const struct column *columns, unsigned count);
void table_destroy(struct table *t);

/* The next cell, from left to right; a full row begins the next. */
void table_cell(struct table *t, enum style style, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A whole row of cells: what the columns show of @object. */
void table_row(struct table *t, const json_t *object);

/* Without rows, only the head line. */
void table_print(const struct table *t, const struct screen *s);
/* The same, and table_destroy(). */
void table_show(struct table *t, const struct screen *s);

/* A table with a row for each object of an array. */
void rows_show(const struct screen *s, const json_t *objects, const struct column *columns, unsigned count);
#define ROWS_SHOW(s, objects, columns) rows_show(s, objects, columns, sizeof columns / sizeof *columns)

/* Names and values of one thing: lines "name    value". */
struct table *facts_create(void);
void facts_add(struct table *t, const char *name, enum style style, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Those that the rows show of @object, as columns would, and with their titles as names. */
void facts_of(struct table *t, const json_t *object, const struct column *facts, unsigned count);
#define FACTS_OF(t, object, facts) facts_of(t, object, facts, sizeof facts / sizeof *facts)
