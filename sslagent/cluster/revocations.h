/* revocations.h: this agent applies a revocation, then sends it over every link. It is over when each live peer has
 * confirmed it or REVOCATION_PATIENCE_MS have passed, but not before every agent takes a session made from then on for
 * newer than the revocation. A peer without a link gets the tombstone when its link comes back. Main thread; any thread
 * may call cluster_revoke(). */
#ifndef CSSL_SSLAGENT_REVOCATIONS_H
#define CSSL_SSLAGENT_REVOCATIONS_H

#include "proto/peer.pb-c.h"
#include "sslagent/cluster/cluster.h"

#define REVOCATION_PATIENCE_MS 1000
#define REVOCATION_SETTLE_MS   5

struct peer;
struct revocation;

/* Embedded; all zero at first. */
struct revocations {
	struct revocation *under_way;
	unsigned count;
	uint64_t token;
};

/* Apply a revocation in this agent. *sessions is the number of removed sessions. 0 or negative. */
int revocation_apply(struct cluster *c, const revoke_what *what, int64_t now_ms, uint64_t *sessions);

/* The revocation of a session must cover all sessions with which the client could go on: a resumption in TLS 1.3 makes
 * new sessions from it. 1: the session is here, and @what became its family, whose id is in @family; else 0. */
bool revocation_widen(struct cluster *c, revoke_what *what, uint8_t family[static FAMILY_ID_LEN], int64_t now_ms);

/* @family: of FAMILY_ID_LEN bytes; NULL: the agent does not know the session. An asking agent that did not know it
 * either now revokes the family, at all agents again. */
void revocations_confirmed(struct cluster *c, struct peer *from, uint64_t token, const uint8_t *family);
void revocations_peer_lost(struct cluster *c, struct peer *peer);
void revocations_tick(struct cluster *c, int64_t now_ms);
/* 1: some wait for a tick; 0: none. */
bool revocations_wait(const struct revocations *all);
/* The cluster closes: end every one now. */
void revocations_finish(struct cluster *c);

#endif
