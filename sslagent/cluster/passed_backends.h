/* passed_backends.h: backend sockets on their way between agents of one host. It is a part of its own because a socket
 * has two owners for a round trip, and one in the end. A socket that this agent sends waits for the other's
 * confirmation (main thread). A socket that it received waits for the SSL_ID that claims it (any thread). The sender
 * keeps its own descriptor until the confirmation, so after a failure it still has the socket.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

#include "proto/peer.pb-c.h"

struct cluster;

#define PASS_PATIENCE_MS 1000
#define CLAIM_WITHIN_MS  10000
#define PASSES_END       INT64_MAX /* the time when every pass has failed, and no backend is claimed any more */

struct pass;
struct peer;
struct unclaimed;

/* Embedded. */
struct passed_backends {
	LIST_HEAD(, pass) passes; /* the main thread's */
	pthread_mutex_t lock;
	LIST_HEAD(unclaimed_list, unclaimed) unclaimed;
	unsigned unclaimed_count;
};
#define PASSED_BACKENDS_NONE                                                                                           \
	{                                                                                                              \
		.lock = PTHREAD_MUTEX_INITIALIZER                                                                      \
	}

/* Takes PASSED_BACKEND, PASSED_BACKEND_TAKEN and PASSED_BACKEND_WITHDRAWN. 0 or negative. */
int passed_backends_on_message(struct cluster *c, struct peer *from, const Cssl__PeerMessage *m);
void passed_backends_peer_lost(struct cluster *c, struct peer *peer);

/* With PASSES_END the cluster closes. */
void passed_backends_tick(struct cluster *c, int64_t now_ms);
