/* cluster.h: this agent as a member of the cluster: the replicated session store, the live parts heard of, the
 * broadcast, the agent-agent links. One per process. Workers call it from their threads; it runs on the main loop (UDP
 * receive, agent-agent links, timers), and each worker sends its datagrams from a socket of its own.
 *
 * Behind it, each its own file pair: store (sessions, segmented LRU by bytes, expiry, share per source), tombstones
 * (revocations), live_table (live parts), connections_seen (epochs and sequences), broadcast_sender /
 * broadcast_receiver (numbering, ring, window, repair; pure: bytes and time in, bytes out), peer (one other agent),
 * peer_link (agent-agent link), sending_keys, ticket_keys, pulls, passed_backends.
 */
#ifndef CSSL_SSLAGENT_CLUSTER_H
#define CSSL_SSLAGENT_CLUSTER_H

#include "conf/conf.h"
#include "net/worker.h"
#include "proto/sess_obj.h"
#include "sslagent/sessions/connections_seen.h"
#include "sslagent/sessions/tombstones.h"
#include "sslagent/tls/session_source.h"

struct cluster;

/* @main: loop of the process, not yet running or running in the calling thread. @conf, @self, @ring (agents.key)
 * outlive it. Workers have the indexes 0..self->workers-1. NULL with a message. */
struct cluster *cluster_create(struct worker *main, const struct conf *conf, const struct conf_agent *self,
	const struct key_ring *ring, char *error, size_t error_cap);
/* A worker joins (on its thread, in worker_start's start function or later) and leaves (on its thread too); between
 * them it may send. Leaving forgets its pulls and passes: their done will not come. 0 or negative. */
int cluster_join_worker(struct cluster *c, struct worker *w);
void cluster_leave_worker(struct cluster *c, struct worker *w);
/* On the main loop, when every worker has left: stop sockets and links; @on_closed comes on the main loop when every
 * handle is closed; then destroy. cluster_destroy() without close only when the loop never ran. */
void cluster_close(struct cluster *c, void (*on_closed)(void *ctx), void *ctx);
void cluster_destroy(struct cluster *c);

uint64_t cluster_boot_id(const struct cluster *c);
const uint8_t *cluster_id_check_key(const struct cluster *c);

/* Joined (snapshot taken, or alone for alone_after_ms). */
enum cluster_state { CLUSTER_JOINING, CLUSTER_READY, CLUSTER_CLOSING };
enum cluster_state cluster_state(const struct cluster *c);

struct session_source *cluster_session_source(struct cluster *c);
/* @bytes may be NULL. */
uint64_t cluster_session_count(const struct cluster *c, uint64_t *bytes);
/* Does each agent hold a part of them (broadcast.replicas)? */
int cluster_sessions_are_spread(const struct cluster *c);
/* NULL: out of memory. The caller destroys it before the cluster goes. */
struct session_listing;
struct session_query;
struct session_listing *cluster_list_sessions(struct cluster *c, const struct session_query *q);

/* Live parts. share: store nothing here, tell the peers (conf live: broadcast; else only that there is such a
 * connection, and where it froze). find: a live part of this connection with an epoch below @epoch_below and exactly
 * these generations, decoded into @out (caller destroys). 0 or CSSL_E_NOT_FOUND. */
int cluster_share_live(struct cluster *c, struct worker *w, const struct sess_obj *obj);
int cluster_find_live(struct cluster *c, const struct connection_id *id, uint16_t epoch_below, uint32_t read_generation,
	uint32_t write_generation, struct sess_obj *out);

/* The clock that the agents share, for the age of live parts; no time of day. And what such a time is on this agent's
 * own clock, or SEEN_MADE_UNKNOWN. */
int64_t cluster_shared_clock_ms(const struct cluster *c);
int64_t cluster_made_ms(const struct cluster *c, const struct live_part *part);

/* As connections_seen.h: what was seen here or told by a peer. */
int cluster_claim(struct cluster *c, const struct connection_id *id, const struct seen_claim *claim);
int cluster_knows(struct cluster *c, const struct connection_id *id, int64_t made_ms);

/* Announce to the peers, and remember. adopted: this agent owns it, or owns it under other keys than before. stopped:
 * it ended, or rests; nobody needs the live part that they have of it. */
void cluster_tell_adopted(struct cluster *c, struct worker *w, const struct connection_id *id,
	const struct seen_mark *at, uint32_t read_generation);
void cluster_tell_stopped(struct cluster *c, struct worker *w, const struct connection_id *id,
	const struct seen_mark *at, enum seen_stop stop);

/* Revoke here and on all live peers, from any thread; @done on the main loop, exactly once, within a second or so (when
 * the cluster closes before that: then). Names are valid in the call only. Live peers are those with a link and those
 * that are heard. A session goes with its family where this agent has it. */
struct revoke_result {
	uint64_t sessions;
	const char *const *confirmed;
	size_t confirmed_count;
	const char *const *unconfirmed;
	size_t unconfirmed_count;
};
void cluster_revoke(struct cluster *c, const struct revoke_what *what,
	void (*done)(void *ctx, const struct revoke_result *r), void *ctx);

/* Bytes that wait on all agent-agent links. On the main loop. */
uint64_t cluster_links_queued(const struct cluster *c);

/* New sending key and new ticket key. On the main loop. */
void cluster_rotate(struct cluster *c);

/* The backend half of a move (agents on one host, UNIX agent-agent link). */
struct passed_backend {
	struct connection_id connection;
	uint16_t next_epoch;
	char backend[64];
	uint8_t *to_backend, *from_backend, *service_state; /* owned: malloc, wiped by passed_backend_destroy */
	size_t to_backend_len, from_backend_len, service_state_len;
	enum { BACKEND_READING, BACKEND_EOF } from_state;
	enum { BACKEND_WRITING, BACKEND_SHUT } to_state;
	int fd; /* owned */
};
void passed_backend_destroy(struct passed_backend *p);

/* Pass to @target; @p is taken over whatever happens (its fd is duplicated into the message). @done on @w, exactly
 * once, bounded time: 0 when the target has it; negative when it cannot follow (other host, no link, refused). */
void cluster_pass_backend(struct cluster *c, struct worker *w, const char *target, struct passed_backend *p,
	void (*done)(void *ctx, int error), void *ctx);
/* 1 when @target could get descriptors from here. */
int cluster_can_pass_to(const struct cluster *c, const char *target);
/* What came for this connection and epoch, once. 0 and *out; CSSL_E_NOT_FOUND. What nobody takes within 10 s is closed:
 * the socket resets if it says so (SO_LINGER) and its former owner is gone. */
int cluster_take_passed(struct cluster *c, const struct connection_id *id, uint16_t epoch, struct passed_backend *out);

#endif
