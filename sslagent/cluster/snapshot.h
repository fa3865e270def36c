/* snapshot.h: sends the sessions, live parts, memory of connections and tombstones of one agent to another, part by
 * part as the link has room. */
#ifndef CSSL_SSLAGENT_SNAPSHOT_H
#define CSSL_SSLAGENT_SNAPSHOT_H

#include <stdint.h>

#include "proto/peer.pb-c.h"

struct peer;

enum giving { GIVING_NOTHING, GIVING_SESSIONS, GIVING_LIVE, GIVING_SEEN, GIVING_LAST, GIVING_STATE_COUNT };

struct snapshot_giver {
	uint8_t state; /* enum giving */
	uint8_t scope; /* Cssl__SnapshotRequest__Scope */
	uint8_t seen;  /* 1: the memory of connections, too; 0: not */
	uint64_t cursor;
	uint64_t given;
	uint64_t *heard; /* by agent and worker: the last number when it began; owned */
};

enum taking { TAKING_NOTHING, TAKING_ALL, TAKING_OWN, TAKING_STATE_COUNT };

struct snapshot_taker {
	uint8_t state; /* enum taking */
	uint8_t due;   /* enum taking: ask for it when the one under way ends */
	uint64_t taken;
	int64_t begun_ms, heard_ms;
};

/* The peer asked for a snapshot: begin (again). */
int snapshot_give(struct peer *p, const Cssl__PeerMessage *request);
void snapshot_stop_giving(struct peer *p);
/* The link has room again. */
void snapshot_go_on(struct peer *p);
/* All tombstones, without a request: on every new link. */
void snapshot_give_tombstones(struct peer *p);

/* An object of it came. */
void snapshot_goes_on(struct peer *p, int64_t now_ms);
/* Ask for a snapshot: at once, or when the one under way ends. */
void snapshot_want(struct peer *p, enum taking what);
int snapshot_take_part(struct peer *p, const Cssl__PeerMessage *part);

/* The link is lost. */
void snapshot_stop(struct peer *p);

#endif
