/* joining.h: how an agent gets the sessions, live parts, tombstones and memory of connections that others have, and
 * gives what it has itself. It is a part of its own because all of that goes over links in snapshots, and no other part
 * needs to know what is on its way. Main thread.
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
#pragma once

#include "sslagent/cluster/broadcast/broadcast_receiver.h"
#include "sslagent/cluster/peers/peers.h"

struct connections_seen;
struct session;
struct store;
struct tombstones;

enum joining_state { JOINING_ALONE, JOINING_TAKING, JOINING_REPAIRING, JOINING_JOINED, JOINING_STATE_COUNT };

/* Each operation gets the context of joining_conf. */
struct joining_ops {
	/* An encoded SESS_OBJ came from agent @from. */
	void (*import)(
		void *ctx, agent_index from, const ProtobufCBinaryData *encoded, const struct heard_times *times);
	/* Tell this owner, as connections_seen_take() names it, of the epoch of another one. */
	void (*supersede)(void *ctx, unsigned owner, const struct connection_id *id, uint16_t of);
	/* The last number that thread @worker of this agent gave to what agent @to hears. */
	uint64_t (*numbered)(void *ctx, unsigned worker, unsigned to);
	/* Once: this agent has what it can get. It is ready when this returns. */
	void (*on_ready)(void *ctx);
};

/* All outlive it. */
struct joining_conf {
	struct peers *peers;
	struct store *store;
	struct shelf *live;
	struct connections_seen *seen;
	struct tombstones *tombstones;
	const struct joining_ops *ops;
	void *ctx;
};

/* A snapshot on its way, part by part as the link has room. */
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

/* Has the peer given this agent its part? Counted from the time when the peer entered the membership. */
enum joining_source { SOURCE_UNASKED, SOURCE_ASKED, SOURCE_TAKEN };
/* OWN_DUE: without a link, its ring forgot numbers that are missing here, or it announced a large object. This agent
 * takes its own sessions when there is a link again. */
enum joining_own { PEER_OWN_HERE, PEER_OWN_DUE };

/* What is on its way between this agent and a peer. */
struct joining_peer {
	struct snapshot_giver giver;
	struct snapshot_taker taker;
	uint8_t source;     /* enum joining_source */
	uint8_t own_due;    /* enum joining_own */
	unsigned announced; /* large objects that it announced and sends over the link */
	int64_t alive_ms;   /* when it was last alive: resettling */
};

/* The members of the cluster, and sessions that follow the membership (conf replicas).
 *
 * A living agent is a member. An agent that is away for left_after is no member any more. After a change, when the
 * membership has settled, each agent goes through its store. When an agent is lost, its sessions are sent to the agents
 * that take over its places. The first remaining holder sends a session, or, without one, the agent that made it. A
 * session from another agent is dropped when only others hold it now. An entering agent asks for its part itself
 * (above).
 *
 * Where every agent holds everything it does nothing. */
struct resettling {
	struct placement *before, *after; /* members for which the store is settled, and is being settled; owned */
	int64_t changed_ms, begun_ms;     /* last change of the membership; begin of the walk */
	uint64_t cursor;
	enum { RESETTLED, MEMBERS_CHANGED, RESETTLING } state;
};

/* Embedded. Others read is_ready and resettling.state. */
struct joining {
	struct joining_conf of;
	struct joining_peer *with; /* by agent; owned */
	uint8_t state;             /* enum joining_state */
	bool is_ready;
	int64_t since_ms; /* in this state */
	int64_t started_ms;
	struct peer *seen_from; /* the peer asked for its memory of connections: one is enough */
	struct resettling resettling;
};

/* 0 or CSSL_E_NO_MEMORY; free it in both cases. */
int joining_init(struct joining *j, const struct joining_conf *conf, int64_t now_ms);
void joining_free(struct joining *j); /* legal on a zeroed one */
/* Every 20 to 50 ms. */
void joining_tick(struct joining *j, int64_t now_ms);

/* The members as they are now. Nothing is sent. */
void resettling_look(struct joining *j, int64_t now_ms);
/* Every few milliseconds: the same, and a bounded part of the work of a change. */
void resettling_tick(struct joining *j, int64_t now_ms);

/* What peers_ops tells. on_message takes SNAPSHOT_REQUEST, SNAPSHOT_PART, OBJECT, ABSENT and PONG; 0 or negative. */
void joining_peer_up(struct joining *j, struct peer *p);
void joining_peer_lost(struct joining *j, struct peer *p);
void joining_has_room(struct joining *j, struct peer *p);
int joining_on_message(struct joining *j, struct peer *p, const Cssl__PeerMessage *m);

/* Get what datagrams did not bring, over the link, or when there is a link again: a session that does not fit a
 * datagram; with @id NULL all sessions that the peer made, because its ring forgot numbers that are missing here. */
void joining_fetch(struct joining *j, struct peer *p, const uint8_t *id);

/* Is no snapshot under way with that agent? And nothing else? */
static inline bool joining_is_idle(const struct joining *j, unsigned agent)
{
	return j->with[agent].giver.state == GIVING_NOTHING && j->with[agent].taker.state == TAKING_NOTHING;
}

static inline bool joining_is_quiet(const struct joining *j, unsigned agent)
{
	return joining_is_idle(j, agent) && j->with[agent].announced == 0;
}

/* Between the files of this folder. give: the peer asked for a snapshot, begin (again). give_tombstones: without a
 * request, on every new link. */
void snapshot_give(struct joining *j, struct peer *p, const Cssl__SnapshotRequest *request);
void snapshot_give_tombstones(struct joining *j, struct peer *p);

/* 1 when this agent has to give @session to @peer, which asked for its part, else 0. */
bool resettling_gives(const struct peers *peers, const struct peer *peer, const struct session *session);
