/* cluster.h: this agent as a member of the cluster: the replicated session store, live parts of other agents, the
 * broadcast, the agent-agent links. One per process. Workers call it from their threads, hear the broadcast, and send
 * their own; links and timers run on the main loop.
 *
 * broadcast/ numbers, seals, believes and repairs; peers/ has the links; joining/ has the snapshots; cluster_root.h
 * joins them. What it keeps is in sslagent/sessions/.
 */
#pragma once

#include "conf/conf.h"
#include "proto/sess_obj.h"
#include "sslagent/sessions/connections_seen.h"
#include "sslagent/sessions/tombstones.h"
#include "sslagent/tls/session_source.h"

struct cluster;

/* @main: the main loop. Either it does not run yet, or it runs in the calling thread. @conf, @self, @ring (agents.key)
 * outlive it. Workers have the indexes 0..self->workers-1. NULL with a message. */
struct cluster *cluster_create(struct worker *main, const struct conf *conf, const struct conf_agent *self,
	const struct key_ring *ring, char *error, size_t error_cap);
/* @fn of a worker, on its thread: it gets the connections that the worker claimed, and that another agent owns now by
 * its own word, under the epoch @of. The worker must not seal for them any more. */
typedef void (*superseded_fn)(void *ctx, const struct connection_id *id, uint16_t of);
/* A worker joins (on its thread, in worker_start's start function or later) and leaves (on its thread too); between
 * them it hears the other agents and may send. @superseded may be NULL. After it has left, its pulls and passes never
 * call done. 0 or negative. */
int cluster_join_worker(struct cluster *c, struct worker *w, superseded_fn superseded, void *ctx);
void cluster_leave_worker(struct cluster *c, struct worker *w);

/* On the main loop, when every worker has left: stop sockets and links; @on_closed comes on the main loop when every
 * handle is closed; then call cluster_destroy(). Without cluster_close() destroy only when the loop never ran. */
void cluster_close(struct cluster *c, void (*on_closed)(void *ctx), void *ctx);
void cluster_destroy(struct cluster *c);

struct cluster_identity {
	uint64_t boot_id;
	const uint8_t *id_check_key; /* SESSION_ID_CHECK_KEY_LEN bytes: it makes ids of sessions */
};
const struct cluster_identity *cluster_identity(const struct cluster *c);

/* READY: the snapshot was taken, or the agent was alone for alone_after_ms. */
enum cluster_state { CLUSTER_JOINING, CLUSTER_READY, CLUSTER_CLOSING };
enum cluster_state cluster_state(const struct cluster *c);

struct session_source *cluster_session_source(struct cluster *c);
/* How many sessions are here, and their bytes, which may be NULL. True: every agent holds them all; else each holds
 * only a part (broadcast.replicas). */
bool cluster_count_sessions(const struct cluster *c, uint64_t *count, uint64_t *bytes);
/* NULL: out of memory. The caller destroys it before the cluster goes. */
struct session_listing;
struct session_query;
struct session_listing *cluster_list_sessions(struct cluster *c, const struct session_query *q);

/* Live parts. share: send it to the peers and store nothing here (conf live: broadcast). With another conf, tell the
 * peers only that the connection exists, and where it froze. find: find a live part of this connection with an epoch
 * below @epoch_below and exactly these generations, and decode it into @out (the caller destroys it). 0 or
 * CSSL_E_NOT_FOUND. */
int cluster_share_live(struct cluster *c, struct worker *w, const struct sess_obj *obj);
int cluster_find_live(struct cluster *c, const struct connection_id *id, uint16_t epoch_below, uint32_t read_generation,
	uint32_t write_generation, struct sess_obj *out);

/* cluster_shared_clock_ms(): the clock that all agents share, for the age of live parts; it is no time of day.
 * cluster_made_ms(): the time on this agent's own clock when @part was made, or SEEN_MADE_UNKNOWN. */
int64_t cluster_shared_clock_ms(const struct cluster *c);
int64_t cluster_made_ms(const struct cluster *c, const struct live_part *part);

/* As in connections_seen.h, for connections that this agent saw or that a peer told of. */
int cluster_claim(struct cluster *c, const struct connection_id *id, const struct seen_claim *claim);
void cluster_leave(struct cluster *c, const struct connection_id *id, uint16_t epoch);
bool cluster_knows(struct cluster *c, const struct connection_id *id, int64_t made_ms);

/* Remember it, without a word to the peers. */
void cluster_note(struct cluster *c, const struct connection_id *id, const struct seen_mark *at);

/* Tell the peers, and remember. adopted: this agent owns the connection now (in doubt if it took it over at @at
 * so), or its keys have changed. stopped: the connection ended or rests; peers may drop its live part. */
void cluster_tell_adopted(struct cluster *c, struct worker *w, const struct connection_id *id,
	const struct seen_mark *at, uint32_t read_generation, enum seen_doubt doubt);
void cluster_tell_stopped(struct cluster *c, struct worker *w, const struct connection_id *id,
	const struct seen_mark *at, enum seen_stop stop);

/* Revoke here and on all live peers, from any thread; @done on the main loop, exactly once, within about a second, or
 * when the cluster closes. It takes @r over, which is from malloc; NULL: out of memory, nothing was revoked. A peer is
 * alive when it has a link or is heard. When this agent holds the session, its whole family is revoked. */
struct revoke_result {
	uint64_t sessions;
	size_t confirmed_count, unconfirmed_count;
	const char **confirmed, **unconfirmed; /* names of agents, of the cluster file */
	const char *names[];
};
void cluster_revoke(
	struct cluster *c, const revoke_what *what, void (*done)(void *ctx, struct revoke_result *r), void *ctx);

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

/* Pass @p to @target. The call takes @p over in every case and sends a duplicate of its fd. @done on @w, exactly once,
 * in bounded time: 0 when the target has it; negative when the socket cannot go there (other host, no link, refused).
 */
void cluster_pass_backend(struct cluster *c, struct worker *w, const char *target, struct passed_backend *p,
	void (*done)(void *ctx, int error), void *ctx);
/* 1 when this agent can send descriptors to @target. */
bool cluster_can_pass_to(const struct cluster *c, const char *target);
/* Take the backend that came for this connection and epoch. Works once. 0 and *out; CSSL_E_NOT_FOUND. A backend that is
 * not taken within 10 s is closed: its socket resets if its SO_LINGER asks for it and its former owner is gone. */
int cluster_take_passed(struct cluster *c, const struct connection_id *id, uint16_t epoch, struct passed_backend *out);
