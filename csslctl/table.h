/* table.h: aligned columns, each as wide as its widest cell. */
#ifndef CSSL_CSSLCTL_TABLE_H
#define CSSL_CSSLCTL_TABLE_H

#include "csslctl/text.h"
#include "csslctl/screen.h"

struct table;

struct column {
	const char *title; /* NULL in all columns: no head line */
	enum { COLUMN_LEFT, COLUMN_RIGHT } align;
};

/* @columns outlive it. */
struct table *table_create(const struct column *columns, unsigned count);
void table_destroy(struct table *t);

/* The next cell, from left to right; a full row begins the next. */
void table_cell(struct table *t, enum style style, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Cells with the texts of @object by paths of member.h, the last of which is NULL. */
void table_texts(struct table *t, const json_t *object, const char *const *paths);
#define TABLE_TEXTS(t, object, ...) table_texts(t, object, (const char *const[]){ __VA_ARGS__, NULL })

/* Without rows, only the head line. */
void table_print(const struct table *t, const struct screen *s);
/* The same, and table_destroy(). */
void table_show(struct table *t, const struct screen *s);

/* Names and values of one thing: lines "name    value". */
struct table *facts_create(void);
void facts_add(struct table *t, const char *name, enum style style, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
