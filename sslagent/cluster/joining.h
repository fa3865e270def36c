/* joining.h: how an agent comes to know what the cluster knows.
 *
 *   ALONE      no peer that is ready is linked; after alone_after_ms this agent is ready by itself
 *   TAKING     a snapshot of everything is on its way from one ready peer; missing numbers are not asked for yet.
 *              Where agents hold parts (conf replicas): its part of what each ready peer has, from every one of them
 *   REPAIRING  the snapshot is here; what it had not is asked for
 *   JOINED     ready; a snapshot of everything was taken
 *
 * An agent that became ready alone takes the snapshot when a ready peer appears. Apart from that, a peer whose ring has
 * forgotten numbers that are missing here is asked for a snapshot of its own sessions; and where agents hold parts, one
 * that enters the membership (again) is asked for this agent's.
 */
#ifndef CSSL_SSLAGENT_JOINING_H
#define CSSL_SSLAGENT_JOINING_H

#include <stdint.h>

struct cluster;
struct peer;

enum joining_state { JOINING_ALONE, JOINING_TAKING, JOINING_REPAIRING, JOINING_JOINED, JOINING_STATE_COUNT };

struct joining {
	uint8_t state;    /* enum joining_state */
	int64_t since_ms; /* in this state */
	int64_t started_ms;
	struct peer *from;      /* TAKING; NULL where agents hold parts: peers say themselves (peer_source) */
	struct peer *seen_from; /* who was asked what it remembers of connections: one is enough */
};

void joining_start(struct cluster *c, int64_t now_ms);
void joining_tick(struct cluster *c, int64_t now_ms);
/* @peer is asked for everything: 1 when also for what it remembers of connections. */
int joining_takes_seen(struct cluster *c, struct peer *peer);
/* The snapshot of everything is complete; or the peer it came from is lost. */
void joining_taken(struct cluster *c, struct peer *from, int64_t now_ms);
void joining_peer_lost(struct cluster *c, struct peer *peer, int64_t now_ms);

#endif
