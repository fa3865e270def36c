/* value.h: one scalar of the cluster file, as text and as a C value. */
#ifndef CSSL_CONF_VALUE_H
#define CSSL_CONF_VALUE_H

#include <stdint.h>

#include "conf/schema.h"

#define VALUE_EXPECTED_MAX 256u

/* Parse @text as @type under the bounds and words of @row into @field (of @size bytes). @folder: what relative paths
 * are relative to,
 * "" for none. 0, CSSL_E_CONFIG (@field is unchanged), CSSL_E_NO_MEMORY. Strings are allocated. */
int value_parse(const struct schema_row *row, enum schema_type type, const char *text, const char *folder, void *field,
	size_t size);

/* What value_parse() takes, for complaints and the manual: "a duration from 10ms to 1min". */
const char *value_expected(const struct schema_row *row, enum schema_type type, char out[static VALUE_EXPECTED_MAX]);

/* "1min30s" in the one or two largest units; "256MiB" in the largest unit that divides. */
#define VALUE_TEXT_MAX 32u
const char *value_duration_text(uint64_t ms, char out[static VALUE_TEXT_MAX]);
const char *value_size_text(uint64_t bytes, char out[static VALUE_TEXT_MAX]);

#endif
