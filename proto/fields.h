/* fields.h: the members of a struct as tagged fields, for state that another release has to read: a RAgent process
 * hands it over to its successor. One table for each struct drives writing, reading and checking.
 *
 * A field is tag (2) | length (4) | value. A number is big endian and has as many bytes as the member has in the
 * release that wrote it. A reader takes every value that its own member can hold. It refuses an unknown tag: a newer
 * release wrote it, and ignoring it could lose state. A missing tag leaves the member unchanged. Tags are never reused.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

#define FIELD_HEADER_LEN 6u

enum field_kind { FIELD_UINT, FIELD_INT, FIELD_BYTES };

struct field {
	const char *name;
	uint32_t offset;
	uint16_t size, tag;
	uint8_t kind; /* enum field_kind */
	uint64_t max; /* of FIELD_UINT: the largest value; FIELD_ANY: all that the member can hold */
};

#define FIELD_ANY UINT64_MAX
#define FIELD_OF(type, tag_, kind_, member, max_)                                                                      \
	{                                                                                                              \
		.name = #member, .offset = offsetof(type, member), .size = sizeof(((type *)0)->member), .tag = (tag_), \
		.kind = (kind_), .max = (max_)                                                                         \
	}

/* Members are integers of 1, 2, 4 or 8 bytes, doubles (as the bits of an integer), or arrays of bytes. */
size_t fields_len(const struct field *rows, size_t count);
void fields_write(struct wire_writer *w, const void *object, const struct field *rows, size_t count);

/* A field that is in no table: a whole one, and only the header (the caller writes the @len bytes behind it). */
void field_write(struct wire_writer *w, uint16_t tag, const void *value, size_t len);
void field_begin(struct wire_writer *w, uint16_t tag, size_t len);

struct field_item {
	uint16_t tag;
	uint32_t len;
	const uint8_t *value; /* into the input */
};

#define FIELDS_END  1
#define FIELD_OTHER 1

/* The next field at @r. 0, FIELDS_END, or CSSL_E_TRUNCATED. */
int field_next(struct wire_reader *r, struct field_item *out);

/* Store @item in its member of @object. 0; FIELD_OTHER: no row has that tag; CSSL_E_RANGE: the member cannot have this
 * value. */
int field_store(void *object, const struct field *rows, size_t count, const struct field_item *item);

/* Read an item that is in no table as an unsigned number, at most @max. 0 or CSSL_E_RANGE. */
int field_number(const struct field_item *item, uint64_t max, uint64_t *out);
