/* joining.h: which backups count. A part of its own, because the order in which servers are marked decides whether two
 * gateways may own the queue.
 */
#pragma once

#include "smtpproxy/queue/markers/marker.h"

struct queue;

#define JOINING_FULL_AGAIN_MS 5000 /* after its memory was full, a server is filled again */

/* Others may read it; servers.c ends a joining when the other backups have answered. */
struct joining {
	/* a bit for each backup that counts, and that is marked when the others have answered the marker @version; and
	 * the members before that one */
	unsigned mask;
	uint64_t version;
	char members_before[BACKUPS][RUN_ID_LEN + 1];
	uint64_t marked_version; /* the highest that a server has answered; 0: none */
};

/* The members changed: write a new marker to all of them. */
void joining_mark(struct queue *q);
/* The servers that have everything count from now on, if they may. */
void joining_join_filled(struct queue *q);
/* The owner of the queue hears whether a backup is in sync, if that changed. */
void joining_tell_ready(struct queue *q);
