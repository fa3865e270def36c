/* answers.h: the answers of the control API, in one table of paths. */
#ifndef CSSL_SMTPPROXY_ANSWERS_H
#define CSSL_SMTPPROXY_ANSWERS_H

#include <jansson.h>

#include "smtpproxy/sender/session.h"

/* For json_pack()'s "I". */
#define INT(n) ((json_int_t)(n))

#define ANSWERS_ROWS_MAX 1000u /* in one list; "truncated" tells that there are more */

/* The objects that the API describes. They outlive the control socket. */
struct control_view {
	const struct conf_smtpproxy *conf;
	const struct sender_home *home;
	const char *version;
	int64_t started_ms; /* by the wall clock */
};

/* A new object for GET @path, or NULL: there is no such path. @after: for events, only those with higher numbers. */
json_t *answers_find(const struct control_view *v, const char *path, uint64_t after);

/* The counters as a new object: name and value. */
json_t *answers_counters(const struct sender_home *home);

/* The text of /metrics (Prometheus, text format 0.0.4); the caller frees it. NULL: out of memory. */
char *answers_metrics(const struct control_view *v);

#endif
