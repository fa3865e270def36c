/* tally.h: texts, and how often each came: errors, cipher suites, agents that answered. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TALLY_TEXT_MAX   96u /* with the final 0; a longer text is cut */
#define TALLY_SUITES_MAX 16u /* rows for "TLS version, cipher suite" */

/* A row of a table. A table is an array of rows, all zero at first; the first row without a text ends it. */
struct tally {
	char text[TALLY_TEXT_MAX];
	uint64_t count;
};

/* The row that counts @text; it is added if there is none. In a table of @max rows, the last row counts all texts that
 * found no room, as "others". */
struct tally *tally_row(struct tally *rows, unsigned max, const char *text, size_t len);

/* Counts "where: what". */
void tally_note(struct tally *rows, unsigned max, const char *where, const char *what);

/* Add the counts of @rows to those of @sum, text by text. Both have @max rows. Texts of @rows need not end. */
void tally_add(struct tally *sum, const struct tally *rows, unsigned max);
