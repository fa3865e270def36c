/* path.h: the path and query of a request, percent-encoded (RFC 3986) as they are put together. */
#ifndef CSSL_CSSLCTL_PATH_H
#define CSSL_CSSLCTL_PATH_H

#include <stddef.h>

#define PATH_LEN_MAX 2048u

/* A part that does not fit is left out, and @whole is PATH_CUT. No name is that long. */
struct path {
	char text[PATH_LEN_MAX];
	size_t len;
	enum { QUERY_NONE, QUERY_BEGUN } query;
	enum { PATH_WHOLE, PATH_CUT } whole;
};

/* @fixed: "/v1/agents", taken unchanged. */
void path_start(struct path *p, const char *fixed);
/* Add "/" and one segment of any bytes. */
void path_segment(struct path *p, const char *segment);
/* Add a parameter; nothing if @value is NULL. */
void path_query(struct path *p, const char *name, const char *value);

#endif
