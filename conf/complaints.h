/* complaints.h: the faults of a configuration file, collected, so that one run shows them all.
 * One line each: `file:line: key 'x': found 'y', expected z`. */
#ifndef CSSL_CONF_COMPLAINTS_H
#define CSSL_CONF_COMPLAINTS_H

#include <stddef.h>

struct complaints {
	const char *file;
	char *out; /* terminated, without a newline at its end; the caller's */
	size_t cap, len;
	unsigned count;
	unsigned unsaid; /* had no room in @out */
};

void complaints_start(struct complaints *c, const char *file, char *out, size_t cap);

/* @line 0: of the file as a whole. @key NULL: of no key. @found: in words ("nothing", "a list"). The rest: printf-like
 * what was expected. */
void complain(struct complaints *c, unsigned line, const char *key, const char *found, const char *expected, ...)
	__attribute__((format(printf, 5, 6)));

/* As complain(), @value is quoted, shortened and freed of control characters. */
void complain_value(struct complaints *c, unsigned line, const char *key, const char *value, const char *expected, ...)
	__attribute__((format(printf, 5, 6)));

/* A sentence that does not fit the form (files that cannot be read, ...). */
void complain_plain(struct complaints *c, unsigned line, const char *sentence, ...)
	__attribute__((format(printf, 3, 4)));

#endif
