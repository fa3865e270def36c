/* api.h: the control API over HTTP: a UNIX socket, or a URL with a token. One connection, kept between requests. */
#ifndef CSSL_CSSLCTL_API_H
#define CSSL_CSSLCTL_API_H

#include <jansson.h>

#include "csslctl/path.h"
#include "csslctl/place.h"

#define API_ERROR_MAX 512u

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

#endif
