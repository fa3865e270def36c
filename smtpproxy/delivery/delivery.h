/* delivery.h: delivers the messages of the queue. Each destination of the queue has up to queue.deliveries couriers,
 * and each courier has one message. Couriers share the connections, the limits and the turns of outward/.
 */
#pragma once

#include "smtpproxy/queue/queue.h"

struct conf_smtpproxy;
struct queue_destination;

/* The objects that a delivery uses. All of them live longer. delivery_begin() sets @queue. */
struct delivery_parts {
	struct worker *worker;
	const struct conf_smtpproxy *conf;
	struct smtpproxy_counters *counters;
	struct outward *outward;
	struct destination_rules *rules;
	struct resolver *resolver;
	struct queue *queue;
	struct probes *probes;     /* of delivery_create() */
	struct couriers *couriers; /* of delivery_create(); all that are on their way */
};

/* Delivers nothing before delivery_begin(). It sets @parts->probes. NULL: out of memory. */
struct delivery *delivery_create(struct delivery_parts *parts);
void delivery_begin(struct delivery *d, struct queue *q);

/* The line of @to is not empty any more: look at it at the end of the turn. */
void delivery_note_due(struct delivery *d, const struct queue_destination *to);
/* Something else changed: look again at the lines that could not go on. */
void delivery_look(struct delivery *d);

/* The queue belongs to another gateway: drop each delivery whose final dot the receiver cannot have yet. */
void delivery_drop(struct delivery *d);

/* Take no more messages. Deliveries that have not sent their final dot go back to the queue. @done is called when the
 * others have their reply, or after @within_ms, but not before this call returns. */
void delivery_stop(struct delivery *d, uint32_t within_ms, void (*done)(void *ctx), void *ctx);
void delivery_destroy(struct delivery *d); /* NULL is legal */

/* A number for the address of the client that brought a message, by its envelope: queue_conf.source_of. It has a key of
 * this process, which delivery_create() makes. */
uint32_t delivery_source_of(struct content_bytes envelope);

/* Use the file that was read again. The one before stays in memory. */
void delivery_follow(struct delivery *d, const struct conf_smtpproxy *conf);
