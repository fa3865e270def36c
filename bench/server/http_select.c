/* http_select.c: preconditions in the order of RFC 9110 13.2.2, then the range. */
#include "bench/server/http_select.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, " \t");
}

/* Is @etag an element of the list @list? Weak elements count only where @weak_counts (If-None-Match compares weakly).
 */
static bool list_has(const char *list, const char *etag, bool weak_counts)
{
	size_t etag_len = strlen(etag);
	const char *at = skip_blanks(list);
	if (strcmp(at, "*") == 0)
		return true;
	while (*at) {
		bool weak = strncmp(at, "W/", 2) == 0;
		at += weak ? 2 : 0;
		/* What is not quoted is no tag (RFC 9110 8.8.3), so nothing behind it can be trusted. */
		if (*at != '"')
			return false;
		const char *end = strchr(at + 1, '"');
		if (!end)
			return false;
		size_t len = (size_t)(end + 1 - at);
		if (len == etag_len && memcmp(at, etag, len) == 0 && (!weak || weak_counts))
			return true;
		at = skip_blanks(end + 1);
		if (*at == ',')
			at = skip_blanks(at + 1);
	}
	return false;
}

enum { RANGE_VALID, RANGE_INVALID, RANGE_UNSATISFIABLE };

/* Digits at *@at into *@out, at most what 64 bits hold. 0 when there are none. */
static bool range_take_number(const char **at, uint64_t *out)
{
	uint64_t n = 0;
	const char *p = *at;
	for (; *p >= '0' && *p <= '9'; p++)
		n = n > (UINT64_MAX - 9) / 10 ? UINT64_MAX : n * 10 + (uint64_t)(*p - '0');
	bool found = p != *at;
	*at = p;
	*out = n;
	return found;
}

/* "-n": the last n bytes. */
static int suffix_range(const char *at, uint64_t size, uint64_t *first, uint64_t *len)
{
	uint64_t n;
	if (!range_take_number(&at, &n) || *skip_blanks(at))
		return RANGE_INVALID;
	if (n == 0 || size == 0)
		return RANGE_UNSATISFIABLE;
	*len = n < size ? n : size;
	*first = size - *len;
	return RANGE_VALID;
}

static int parse_range(const char *text, uint64_t size, uint64_t *first, uint64_t *len)
{
	if (strncmp(text, "bytes=", 6) != 0)
		return RANGE_INVALID;
	const char *at = skip_blanks(text + 6);
	if (*at == '-')
		return suffix_range(at + 1, size, first, len);

	uint64_t from, to = UINT64_MAX;
	if (!range_take_number(&at, &from) || *at++ != '-')
		return RANGE_INVALID;
	if (range_take_number(&at, &to) == 0)
		to = UINT64_MAX;
	if (*skip_blanks(at) || to < from)
		return RANGE_INVALID;
	if (from >= size)
		return RANGE_UNSATISFIABLE;
	if (to >= size)
		to = size - 1;
	*first = from;
	*len = to - from + 1;
	return RANGE_VALID;
}

enum http_selection http_select(
	const struct http_conditions *c, const char *etag, uint64_t size, uint64_t *first, uint64_t *len)
{
	*first = 0;
	*len = size;
	if (c->if_match && !list_has(c->if_match, etag, false))
		return HTTP_PRECONDITION_FAILED;
	if (c->if_none_match && list_has(c->if_none_match, etag, true))
		return HTTP_NOT_MODIFIED;
	/* If-Range is one strong ETag. A date never matches, because no resource here has one. */
	if (!c->range || (c->if_range && strcmp(c->if_range, etag) != 0))
		return HTTP_WHOLE;
	switch (parse_range(c->range, size, first, len)) {
	case RANGE_VALID: return HTTP_PART;
	case RANGE_UNSATISFIABLE: return HTTP_UNSATISFIABLE;
	default: return HTTP_WHOLE;
	}
}
