/* value.h: one scalar of the cluster file, as text and as a C value. */
#pragma once

#include <stdint.h>

#include "conf/schema.h"

#define VALUE_EXPECTED_MAX 256u

/* Parse @text as @type into @field (of @size bytes), with the bounds and words of @row. Relative paths are relative to
 * @folder ("": stay). 0, CSSL_E_CONFIG (@field is unchanged) or CSSL_E_NO_MEMORY. Strings are allocated. */
int value_parse(const struct schema_row *row, enum schema_type type, const char *text, const char *folder, void *field,
	size_t size);

/* The values that value_parse() takes, in words for complaints and the manual: "a duration from 10ms to 1min". */
const char *value_expected(const struct schema_row *row, enum schema_type type, char out[static VALUE_EXPECTED_MAX]);

/* A duration in its one or two largest units ("1min30s"); a size in the largest unit that divides it ("256MiB"). */
#define VALUE_TEXT_MAX 32u
const char *value_duration_text(uint64_t ms, char out[static VALUE_TEXT_MAX]);
const char *value_size_text(uint64_t bytes, char out[static VALUE_TEXT_MAX]);
