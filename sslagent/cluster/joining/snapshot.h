/* snapshot.h: the sessions, live parts, memory of connections and tombstones of one agent on their way to another, part
 * by part as the link has room. Only for the files of joining/: joining.c takes, snapshot_give.c gives. */
#ifndef CSSL_SSLAGENT_SNAPSHOT_H
#define CSSL_SSLAGENT_SNAPSHOT_H

#include <stdint.h>

#include "proto/peer.pb-c.h"

struct joining;
struct peer;

enum giving { GIVING_NOTHING, GIVING_SESSIONS, GIVING_LIVE, GIVING_SEEN, GIVING_LAST, GIVING_STATE_COUNT };

struct snapshot_giver {
	uint8_t state; /* enum giving */
	uint8_t scope; /* Cssl__SnapshotRequest__Scope */
	bool seen;     /* the memory of connections, too */
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
void snapshot_give(struct joining *j, struct peer *p, const Cssl__SnapshotRequest *request);
void snapshot_stop_giving(struct joining *j, struct peer *p);
/* All tombstones, without a request: on every new link. */
void snapshot_give_tombstones(struct joining *j, struct peer *p);

#endif
