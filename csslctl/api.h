/* api.h: the control API over HTTP: a UNIX socket, or a URL with a token. One connection, kept between requests. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "csslctl/place.h"

#define API_ERROR_MAX 512u

/* --- the path and query of a request, percent-encoded (RFC 3986) as they are put together --- */

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

/* --- questions --- */

struct api;

/* Reads the token and does not connect yet. @p is used in the call only. NULL: @error has the reason. */
struct api *api_create(const struct place *p, char error[static API_ERROR_MAX]);
void api_destroy(struct api *a);

struct answer {
	long status;               /* 0: no answer came */
	json_t *body;              /* owned; NULL when it is no JSON */
	char error[API_ERROR_MAX]; /* why no answer came, or the API's own words; "" for 2xx */
	const char *remedy;        /* NULL: none is known */
};

/* @body: owned from now on; NULL for none. */
void api_ask(struct api *a, const char *method, const struct path *path, json_t *body, struct answer *out);
/* For an answer to each of the next questions. It is 30 s at first, and never longer. */
void api_wait_at_most(struct api *a, long ms);
void answer_clear(struct answer *a);
