/* connection_fields.h: how a connection is written for another process (proto/fields.h): tables for members that are
 * numbers, and tags for all others. For connection_pack.c and connection_unpack.c.
 */
#pragma once

#include "proto/fields.h"

extern const struct field connection_rows[];
extern const size_t connection_row_count;
extern const struct field busy_rows[];
extern const size_t busy_row_count;
extern const struct field agreed_rows[];
extern const size_t agreed_row_count;
extern const struct field preamble_rows[];
extern const size_t preamble_row_count;

/* The numbers never change. Beside each are its members. */
enum connection_tag {
	TAG_LISTENER = 200,     /* front */
	TAG_CURRENT = 201,      /* current: a place */
	TAG_FROZEN = 202,       /* frozen: a place */
	TAG_UNIQUE_ID = 203,    /* endpoints: unique_id, unique_id_len */
	TAG_KEPT = 204,         /* kept: how many bytes were consumed (4) | sent (4) | data from start to end */
	TAG_COPY = 207,         /* copies: current (not former), as read generation (4) | write generation (4) | copy */
	TAG_COPY_PENDING = 208, /* pending, likewise */
	TAG_DOWNLOAD = 209,     /* note.current; links call it DOWNLOAD, too */
	TAG_AGREED = 210,       /* agreed: length (2) | alpn | length (2) | server_name | its other members as fields */
	TAG_INPUT = 211,        /* client: bytes that were read and not used */
	TAG_OUTPUT = 212,       /* client: bytes that were not written; drained counts as if they were */
	TAG_PREAMBLE = 213,     /* preamble */
};

#define PLACE_LEN       8u /* agent (2) | its worker (2) | stream (4) */
#define COPY_HEADER_LEN 8u
#define KEPT_HEADER_LEN 8u
#define FIXED_LEN_MAX   8u /* of a tag's value, before bytes of any length */
#define TAG_COUNT       16u
