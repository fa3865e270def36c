/* answers.h: the answers of the control API, in one table of paths. */
#pragma once

#include <jansson.h>

#include "smtpproxy/sender/session.h"

/* For json_pack()'s "I". */
#define INT(n) ((json_int_t)(n))

#define ANSWERS_ROWS_MAX 1000u /* in one list; "truncated" tells that there are more */

/* The objects that the API describes. They outlive the control socket. */
struct control_view {
	const struct conf_smtpproxy *conf;
	const struct sender_home *home;
	const struct replies *replies; /* that receivers gave */
	const char *version;
	int64_t started_ms; /* by the wall clock */
};

/* A new object for GET @path, or NULL: there is no such path. @after: for events, only those with higher numbers. */
json_t *answers_find(const struct control_view *v, const char *path, uint64_t after);

/* The counters as a new object: name and value. */
json_t *answers_counters(const struct sender_home *home);

/* A new array: the first @most addresses that connections come from. */
json_t *answers_sources(const struct smtpproxy_outward *c, size_t most);

/* The text of /metrics (Prometheus, text format 0.0.4); the caller frees it. NULL: out of memory. */
char *answers_metrics(const struct control_view *v);

/* deliver: queue:
 *
 *   GET  /v1/queue                       its state, backups and destinations
 *   GET  /v1/queue/messages              the oldest messages; ?after=N: those behind the id N
 *   GET  /v1/queue/messages/ID           one: sender, recipients, and what became of each
 *   POST /v1/queue/messages/ID/ACTION    retry, hold, release, delete
 *   POST /v1/queue/takeover              queue_take_over()
 *   POST /v1/queue/destinations/NAME/stop, /start, /rate/N    queue_order(); N: messages a minute, 0: no limit
 */

/* A new object, or NULL: there is no such path or message. */
json_t *answers_queue_find(const struct control_view *v, const char *path, uint64_t after);

enum answers_act { ACT_DONE, ACT_UNKNOWN, ACT_REFUSED };
/* REFUSED: the state of the message, or of the queue, does not allow it. */
enum answers_act answers_queue_act(const struct control_view *v, const char *path);

/* Appends a gauge to /metrics. */
void answers_gauge(FILE *f, const char *name, const char *help, int64_t n);
/* The same for all of the queue. */
void answers_queue_metrics(const struct control_view *v, FILE *f);

/* summary.c: the counts of smtpproxy in one JSON object, for programs that may see no mail: RAgent's dashboard. It
 * names receivers, domains of the queue and hooks, and no sender, recipient or client.
 *
 *   {"name", "version", "uptime_s", "deliver": "relay" or "queue", "counters": {...},
 *    "sessions": {"now", "waiting", "sending"},
 *    "destinations": {"total", "rows": [{"address", "limit", "ceiling", "sending", "idle", "waiting", "transactions",
 *                     "accepted", "mean_wait_ms"}]},
 *    "sources": [{"address", "weight"}], "hooks": [{"name", "state", "asked", "refused", "deferred", "failed"}],
 *    "queue": null, or {"state", "in_sync", "messages", "bytes", "deferred", "held", "unstored", "stored", "delivered",
 *              "backups": [state, state],
 *              "destinations": {"total", "rows": [{"destination", "flow", "messages", "deferred", "held"}]}}}
 */

#define SUMMARY_ROWS_MAX 16u /* destinations: those with most to do */

/* As text of one line, which the caller frees. NULL: out of memory. */
char *summary_make(const struct control_view *v);
