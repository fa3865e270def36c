/* delivery.h: delivers what is in the queue: for each destination of the queue up to queue.deliveries couriers, each
 * with one message. They share the connections, the limits and the turns of outward/.
 */
#ifndef CSSL_SMTPPROXY_DELIVERY_H
#define CSSL_SMTPPROXY_DELIVERY_H

#include "smtpproxy/outward/outward.h"
#include "smtpproxy/queue/queue.h"

struct delivery;

/* What it uses, all of which lives longer. @queue is set by delivery_begin(). */
struct delivery_parts {
	struct worker *worker;
	const struct conf_smtpproxy *conf;
	struct smtpproxy_counters *counters;
	struct outward *outward;
	struct queue *queue;
};

/* NULL: out of memory. Nothing is delivered before delivery_begin(). */
struct delivery *delivery_create(const struct delivery_parts *parts);
void delivery_begin(struct delivery *d, struct queue *q);

/* A line of the queue is not empty any more, or something else changed: look at all lines at the end of the turn. */
void delivery_look(struct delivery *d);

/* The queue belongs to another gateway: drop each delivery that has not sent its final dot. */
void delivery_drop(struct delivery *d);

/* Take no more. Deliveries that have not sent their final dot go back to the queue; @done is called, not from within
 * this call, when the others have their reply or @within_ms are over. */
void delivery_stop(struct delivery *d, uint32_t within_ms, void (*done)(void *ctx), void *ctx);
void delivery_destroy(struct delivery *d); /* NULL is legal */

/* The file was read again. The one before lives on. */
void delivery_follow(struct delivery *d, const struct conf_smtpproxy *conf);

unsigned delivery_under_way(const struct delivery *d);

#endif
