/* http_select.h: conditional and range requests (RFC 9110 sections 13 and 14) for a representation with a strong ETag
 * and a known size: which part of it a request selects. Text in, numbers out. */
#pragma once

#include <stdint.h>

/* Field values; NULL: the request has no such field. */
struct http_conditions {
	const char *if_match, *if_none_match, *if_range, *range;
};

enum http_selection {
	HTTP_WHOLE,               /* 200: *first 0, *len the size */
	HTTP_PART,                /* 206 */
	HTTP_NOT_MODIFIED,        /* 304 */
	HTTP_PRECONDITION_FAILED, /* 412 */
	HTTP_UNSATISFIABLE,       /* 416 */
};

/* @etag: with its quotes. Several ranges, and a Range field that is not valid, select the whole (RFC 9110 14.2). */
enum http_selection http_select(
	const struct http_conditions *c, const char *etag, uint64_t size, uint64_t *first, uint64_t *len);
