/* queue_side.h: the parts that `deliver: queue` adds to the process: the queue, its delivery, and their end in order.
 */
#pragma once

#include "conf/smtpproxy.h"
#include "smtpproxy/delivery/delivery.h"

struct queue_side;

struct queue_side_ops {
	/* Messages can be stored, or they cannot any more, so that the listening sockets have to be closed. */
	void (*on_change)(void *ctx);
	/* Another gateway has the queue now: the process has to end. */
	void (*on_deposed)(void *ctx);
	/* queue_side_stop() is done. */
	void (*on_stopped)(void *ctx);
};

/* Read the key file and the passwords. NULL with @error. */
struct queue_side *queue_side_create(const struct smtpproxy_queue *conf, char *error, size_t cap);
/* Make the queue, and connect to the Redis servers. It sets @parts->queue and @parts->probes. 0, or negative with
 * @error. */
int queue_side_open(struct queue_side *s, struct delivery_parts *parts, const struct queue_side_ops *ops, void *ctx,
	char *error, size_t cap);
/* No sender is left: deliveries end within that time, and the Redis servers answer within the rest of it (or 2 s). */
void queue_side_stop(struct queue_side *s, uint32_t within_ms);
/* The file was read again: deliveries follow it; the queue and its backups stay. */
void queue_side_follow(struct queue_side *s, const struct conf_smtpproxy *conf);
void queue_side_destroy(struct queue_side *s); /* after on_stopped, or not opened; NULL is legal */
