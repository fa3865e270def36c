/* document.h: reads a whole configuration file into a C object, by the table of its keys. */
#ifndef CSSL_CONF_DOCUMENT_H
#define CSSL_CONF_DOCUMENT_H

#include <stddef.h>

#include "conf/load.h"

/* Where the faults of a file go: @error is terminated, one line for each fault. */
struct document_errors {
	char *out;
	size_t cap;
};

/* Parse @text of the file @name into the zeroed @object. 0, CSSL_E_CONFIG or CSSL_E_NO_MEMORY with the faults in
 * @errors; in each case @object may hold values for schema_free(), and @marks lines. */
int document_parse(const char *text, size_t len, const char *name, const struct schema_map *map, void *object,
	struct marks *marks, const struct document_errors *errors);

/* The bytes of the file @path, to be freed by the caller; at most one more than a parser takes. NULL: it cannot be
 * read; @errors says why. */
char *document_read(const char *path, size_t *len, const struct document_errors *errors);

#endif
