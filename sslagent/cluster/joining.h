/* joining.h: how a new agent learns the sessions of the cluster.
 *
 *   ALONE      no ready peer is linked; after alone_after_ms this agent is ready by itself
 *   TAKING     a snapshot of everything is on its way from one ready peer; missing numbers are not asked for yet.
 *              Where agents hold parts (conf replicas): its part of what each ready peer has, from every one of them
 *   REPAIRING  the snapshot is here; missing numbers are asked for
 *   JOINED     ready; a snapshot of everything was taken
 *
 * An agent that became ready alone takes the snapshot when a ready peer appears. When the ring of a peer has forgotten
 * numbers that are missing here, this agent asks that peer for a snapshot of its own sessions. Where agents hold parts,
 * this agent asks each peer that enters the membership (again) for this agent's part.
 */
#ifndef CSSL_SSLAGENT_JOINING_H
#define CSSL_SSLAGENT_JOINING_H

#include <stdbool.h>
#include <stdint.h>

struct cluster;
struct peer;

enum joining_state { JOINING_ALONE, JOINING_TAKING, JOINING_REPAIRING, JOINING_JOINED, JOINING_STATE_COUNT };

struct joining {
	uint8_t state;    /* enum joining_state */
	int64_t since_ms; /* in this state */
	int64_t started_ms;
	struct peer *seen_from; /* the peer asked for its memory of connections: one is enough */
};

void joining_start(struct cluster *c, int64_t now_ms);
void joining_tick(struct cluster *c, int64_t now_ms);
/* This agent asks @peer for everything. 1: ask it for its memory of connections too. */
bool joining_takes_seen(struct cluster *c, struct peer *peer);
/* The peer is lost, maybe with the snapshot that it gave (peer_source). */
void joining_peer_lost(struct cluster *c, struct peer *peer);

#endif
