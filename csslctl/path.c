/* path.c: encodes all but unreserved characters (RFC 3986 2.3). */
#include "csslctl/path.h"

#include <string.h>

static void put(struct path *p, const char *bytes, size_t len)
{
	if (p->len + len >= sizeof p->text) {
		p->whole = PATH_CUT;
		return;
	}
	memcpy(p->text + p->len, bytes, len);
	p->len += len;
	p->text[p->len] = '\0';
}

static int is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("-._~", c) != NULL);
}

static void put_encoded(struct path *p, const char *text)
{
	static const char digits[] = "0123456789ABCDEF";

	for (; *text != '\0'; text++) {
		const unsigned char byte = (unsigned char)*text;
		const char encoded[] = { '%', digits[byte >> 4], digits[byte & 15] };
		if (is_unreserved(*text))
			put(p, text, 1);
		else
			put(p, encoded, sizeof encoded);
	}
}

void path_start(struct path *p, const char *fixed)
{
	*p = (struct path){ .len = 0 };
	put(p, fixed, strlen(fixed));
}

void path_segment(struct path *p, const char *segment)
{
	put(p, "/", 1);
	put_encoded(p, segment);
}

void path_query(struct path *p, const char *name, const char *value)
{
	if (!value)
		return;
	put(p, p->query == QUERY_NONE ? "?" : "&", 1);
	p->query = QUERY_BEGUN;
	put(p, name, strlen(name));
	put(p, "=", 1);
	put_encoded(p, value);
}
