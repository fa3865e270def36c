/* complaints.h: collects the faults of a configuration file, so that one run shows all.
 * One line each: `file:line: key 'x': found 'y', expected z`. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct complaints {
	const char *file;
	char *out; /* the caller's; terminated, without a newline at the end */
	size_t cap, len;
	unsigned count;
	unsigned unsaid; /* those that had no room in @out */
};

void complaints_start(struct complaints *c, const char *file, char *out, size_t cap);

/* @line 0: the fault is of the whole file. @key NULL: of no key. @found: words ("nothing", "a list"). @expected:
 * printf-like, what the file should have. */
void complain(struct complaints *c, unsigned line, const char *key, const char *found, const char *expected, ...)
	__attribute__((format(printf, 5, 6)));

/* As complain(), with the value found: it is quoted, shortened, and loses control characters. */
void complain_value(struct complaints *c, unsigned line, const char *key, const char *value, const char *expected, ...)
	__attribute__((format(printf, 5, 6)));

/* A sentence that does not fit the form (files that cannot be read, ...). */
void complain_plain(struct complaints *c, unsigned line, const char *sentence, ...)
	__attribute__((format(printf, 3, 4)));

/* Finds the word that was probably meant by an unknown one. */

/* Embedded; the caller owns the words. */
struct nearest {
	const char *written, *word;
	size_t distance;
};
#define NEAREST_TO(text) ((struct nearest){ .written = (text), .distance = SIZE_MAX })

void nearest_try(struct nearest *n, const char *word);

/* NULL: none is near. */
const char *nearest_found(const struct nearest *n);
