/* servers.h: what the queue does with its two backups. A part of its own, because all that a server says comes through
 * here, and is given to the part that it is for.
 */
#pragma once

#include "smtpproxy/queue/backup/backup.h"

struct queue;

/* Changes whose lost backup has to be left out by a marker first, each with a reference. Only servers.c reads it;
 * queue_destroy() frees it. */
struct waiting {
	struct item **items;
	size_t count, cap;
	uint64_t version; /* of that marker */
};

extern const struct backup_ops servers_ops;

/* Claim what may be claimed, fill and join what may be. Called at each sight and tick, and after an order. */
void servers_consider(struct queue *q);
