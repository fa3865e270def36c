/* answers_queue.h: the control API of deliver: queue.
 *
 *   GET  /v1/queue                       its state, backups and destinations
 *   GET  /v1/queue/messages              the oldest messages; ?after=N: those behind the id N
 *   GET  /v1/queue/messages/ID           one: sender, recipients, and what became of each
 *   POST /v1/queue/messages/ID/ACTION    retry, hold, release, delete
 *   POST /v1/queue/takeover              queue_take_over()
 *   POST /v1/queue/destinations/NAME/stop, /start, /rate/N    queue_order(); N: messages a minute, 0: no limit
 */
#ifndef CSSL_SMTPPROXY_ANSWERS_QUEUE_H
#define CSSL_SMTPPROXY_ANSWERS_QUEUE_H

#include "smtpproxy/control/answers.h"

/* A new object, or NULL: there is no such path or message. */
json_t *answers_queue_find(const struct control_view *v, const char *path, uint64_t after);

enum answers_act { ACT_DONE, ACT_UNKNOWN, ACT_REFUSED };
/* REFUSED: the state of the message, or of the queue, does not allow it. */
enum answers_act answers_queue_act(const struct control_view *v, const char *path);

/* Appends gauges of the queue to /metrics. */
void answers_queue_metrics(const struct control_view *v, FILE *f);

#endif
