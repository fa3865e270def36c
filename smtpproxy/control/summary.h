/* summary.h: the counts of smtpproxy in one JSON object, for programs that may see no mail: RAgent's dashboard. It
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
#ifndef CSSL_SMTPPROXY_SUMMARY_H
#define CSSL_SMTPPROXY_SUMMARY_H

#include "smtpproxy/control/answers.h"

#define SUMMARY_ROWS_MAX 16u /* destinations: those with most to do */

/* As text of one line, which the caller frees. NULL: out of memory. */
char *summary_make(const struct control_view *v);

#endif
