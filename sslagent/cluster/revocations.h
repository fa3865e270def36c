/* revocations.h: this agent applies a revocation, then sends it over every link. It is a part of its own because it
 * owes its caller one answer in bounded time, whoever is lost meanwhile. It is over when each live peer has confirmed
 * it or REVOCATION_PATIENCE_MS have passed, but not before every agent takes a session made from then on for newer than
 * the revocation. A peer without a link gets the tombstone when its link comes back. Main thread; any thread may call
 * cluster_revoke(). */
#pragma once

#include <stdint.h>

#include "proto/peer.pb-c.h"

struct cluster;

#define REVOCATION_PATIENCE_MS 1000
#define REVOCATION_SETTLE_MS   5

struct peer;
struct revocation;

/* Embedded; all zero at first. Others read under_way: NULL, none waits. */
struct revocations {
	struct revocation *under_way;
	unsigned count;
	uint64_t token;
};

#define REVOCATIONS_END INT64_MAX /* the time when every revocation is over */

/* Takes REVOKE and REVOKED of a peer. 0 or negative. */
int revocations_on_message(struct cluster *c, struct peer *p, const Cssl__PeerMessage *m);
void revocations_peer_lost(struct cluster *c, struct peer *peer);
/* With REVOCATIONS_END the cluster closes: end every one now. */
void revocations_tick(struct cluster *c, int64_t now_ms);
