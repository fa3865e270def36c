/* link.h: the link from this worker to one worker of an agent: its opening, health, frames and streams. It is opened
 * again after a loss. Used only from its worker's thread.
 *
 *        +---- link_unpack() ---+
 *        |                      v
 *     WAITING --> OPENING -->  UP <--> SUSPECT
 *        ^           |          |         |
 *        |           v          v         v
 *        +-------- LOSING (its handles are being closed)
 *                    |
 *                    v  after link_close()
 *                  CLOSED
 *
 * WAITING goes to LOSING too when the link is closed.
 */
#pragma once

#include "conf/conf.h"
#include "net/stream/framed.h"
#include "proto/frame.h"
#include "proto/link.pb-c.h"
#include "ragent/counters.h"
#include "ragent/link/peer_process.h"

#define LINK_STATES(X)                                                                                                 \
	X(WAITING)                                                                                                     \
	X(OPENING)                                                                                                     \
	X(UP)                                                                                                          \
	X(SUSPECT)                                                                                                     \
	X(LOSING)                                                                                                      \
	X(CLOSED)

enum link_state {
#define X(name) LINK_##name,
	LINK_STATES(X)
#undef X
};
#define LINK_STATE_COUNT (LINK_CLOSED + 1)

struct link;

/* Embedded in a holder of streams that could not send because the link's output is full. */
struct link_waiter {
	struct link_waiter *next, *prev; /* the ring of waiters, closed by the link's own member; NULL: not waiting */
	void (*fn)(struct link_waiter *w);
};

struct link_ops {
	/* A frame on a stream of @holder; the payload is valid during the call. 0, or negative: the agent broke the
	 * protocol, the link ends at the end of this turn. */
	int (*on_frame)(void *holder, struct link *l, const struct frame *f);
	/* A frame on a stream of @holder comes soon, FRAMED_LATER or FRAMED_NEXT. */
	void (*foresee)(const void *holder, enum framed_distance distance);
	/* The link is lost, and this stream with it. The link forgets the stream. */
	void (*on_stream_lost)(void *holder, struct link *l, uint32_t stream);

	/* The link's state changed; @ctx comes from its parameters. */
	void (*on_state)(void *ctx, struct link *l, enum link_state from, enum link_state to);
	void (*on_load)(void *ctx, struct link *l, const Cssl__LinkLoad *load);
	void (*on_leaving)(void *ctx, struct link *l);
	/* @response is owned by the callee. */
	void (*on_response)(void *ctx, struct link *l, Cssl__LinkResponse *response);
	/* After link_close(): may be destroyed. */
	void (*on_closed)(void *ctx, struct link *l);
};

struct link_params {
	struct worker *worker;
	const struct conf_agent *agent;
	int agent_index; /* in the agent table */
	unsigned agent_worker;
	const struct key_ring *ring; /* link.key */
	struct link_hello hello;     /* ours; target_worker is filled in */
	struct conf_health health;
	const uint8_t *secret; /* of the proof that the next process will show; NULL: none will come */
	struct ragent_counters *counters;
	const struct link_ops *ops;
	void *ctx;
};

/* Pointers in @p outlive the link. NULL: out of memory. Connects from the next loop turn on. */
struct link *link_create(const struct link_params *p);
/* Legal in any state, and twice. Streams are lost; on_closed comes once, later. */
void link_close(struct link *l);
/* Drop the connection now, without callbacks, and wait until link_return(). The connection belongs to another process
 * (link_handover.h), or will come from one. Call it only without streams, and not while a callback of the link runs. */
void link_leave(struct link *l);
/* Connect again. */
void link_return(struct link *l);
/* Call it after on_closed, or before the first turn of the loop. NULL is legal. */
void link_destroy(struct link *l);

/* Call it every ping_ms: it sends PING and checks for silence. */
void link_tick(struct link *l);

enum link_state link_state(const struct link *l);
/* 1 when the drawing above has this change, else 0. */
bool link_may_go(enum link_state from, enum link_state to);
int link_agent(const struct link *l);
unsigned link_agent_worker(const struct link *l);
/* Of the agent's hello: its name, boot id, worker and id check key; valid in UP and SUSPECT. */
const struct link_hello *link_peer(const struct link *l);
/* The fate of the agent's process at the last loss of the link. When the connection ends, the link may wait up to 100
 * ms, until it knows whether the process is dead. */
enum peer_fate link_fate(const struct link *l);
/* If the agent's process is dead, lose the link at the end of this turn, even before its connection ends. */
void link_lose_if_dead(struct link *l);
/* UP, before any other frame: say the proof that a link of the next process will show, if one will come. */
void link_prove(struct link *l);
/* May the streams outlive the link? */
bool link_outlived(const struct link *l);
/* LOSING: its connection broke, and its agent may live. So it opens again at once, and the streams may go on.
 */
bool link_comes_again(const struct link *l);
/* LOSING: why it could not be opened, or was lost. */
int link_failure(const struct link *l);
/* Frames can be sent: UP or SUSPECT. */
bool link_open(const struct link *l);

/* Why the handshake of that stream failed, in the agent's words; "": it was not told. Valid until the next frame. */
const char *link_cause(const struct link *l, uint32_t stream);

/* A new stream for @holder. 0: out of memory or out of ids. */
uint32_t link_stream_begin(struct link *l, void *holder);
/* No more callbacks come for this stream. */
void link_stream_end(struct link *l, uint32_t stream);

/* 0, or negative: the link is lost (at the end of this turn). */
int link_send(struct link *l, uint32_t stream, enum frame_type type, uint8_t flags, const void *payload, size_t len);
int link_send_message(struct link *l, uint32_t stream, enum frame_type type, const ProtobufCMessage *message);

/* Do more bytes than the limit wait for the kernel? Then DATA should wait too. */
bool link_full(const struct link *l);
size_t link_queued(const struct link *l); /* bytes that wait for the network */
/* @w->fn is called once, when there is room again; the longest waiter comes first. If @w waits already, nothing
 * changes. A lost link forgets its waiters. */
void link_wait(struct link *l, struct link_waiter *w);
void link_wait_cancel(struct link_waiter *w);
