/* link.h: the link from this worker to one worker of an agent: its opening, its health, its frames, its streams; opened
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
#ifndef CSSL_RAGENT_LINK_H
#define CSSL_RAGENT_LINK_H

#include "conf/conf.h"
#include "net/worker.h"
#include "proto/frame.h"
#include "proto/link.pb-c.h"
#include "proto/opening.h"
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
	struct link_waiter *next, *prev; /* the ring of those who wait, which the link's own member closes; NULL: it
					    does not wait */
	void (*fn)(struct link_waiter *w);
};

struct link_ops {
	/* A frame on a stream of @holder; the payload is valid during the call. 0, or negative: the agent broke the
	 * protocol, the link ends at the end of this turn. */
	int (*on_frame)(void *holder, struct link *l, const struct frame *f);
	/* The link is lost, and with it this stream, which is forgotten. */
	void (*on_stream_lost)(void *holder, struct link *l, uint32_t stream);

	/* The link itself; @ctx is that of its parameters. */
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
	struct ragent_counters *counters;
	const struct link_ops *ops;
	void *ctx;
};

/* Pointers in @p outlive the link. NULL: out of memory. Connects from the next loop turn on. */
struct link *link_create(const struct link_params *p);
/* Any state, twice. Streams are lost; on_closed comes once, later. */
void link_close(struct link *l);
/* Lose it without a word, now, and wait until link_unpark(): its connection belongs to another process
 * (link_handover.h), or will come from there. No stream is on it any more. Not while one of its callbacks runs. */
void link_park(struct link *l);
/* Connect again. */
void link_unpark(struct link *l);
/* After on_closed, or before the loop first turned; NULL is legal. */
void link_destroy(struct link *l);

/* Every ping_ms: says PING, and finds out who is silent. */
void link_tick(struct link *l);

enum link_state link_state(const struct link *l);
const char *link_state_name(enum link_state s);
/* What the drawing above says: 1 or 0. */
int link_may_go(enum link_state from, enum link_state to);
int link_agent(const struct link *l);
unsigned link_agent_worker(const struct link *l);
/* What the agent said of itself in the opening; valid in UP and SUSPECT. */
const struct link_hello *link_peer(const struct link *l);
/* What was known of the agent's process when the link was last lost. One whose connection ends is lost a little later
 * than at the end of its turn where that tells whether the process is dead: as soon as it is, at most 100 ms. */
enum peer_fate link_fate(const struct link *l);
/* When the agent's process is known dead by now, the link is lost at the end of this turn, though its end was not seen
 * yet. */
void link_lose_if_dead(struct link *l);
/* Frames can be sent: UP or SUSPECT. */
int link_open(const struct link *l);

/* A new stream for @holder. 0: out of memory or out of ids. */
uint32_t link_stream_begin(struct link *l, void *holder);
/* Nothing more comes for it. */
void link_stream_end(struct link *l, uint32_t stream);

/* 0, or negative: the link is lost (at the end of this turn). */
int link_send(struct link *l, uint32_t stream, enum frame_type type, uint8_t flags, const void *payload, size_t len);
int link_send_message(struct link *l, uint32_t stream, enum frame_type type, const ProtobufCMessage *message);

/* More than the limit waits for the kernel: DATA should wait too. 1 or 0. */
int link_full(const struct link *l);
size_t link_queued(const struct link *l); /* bytes that wait to be taken by the network */
/* @w->fn is called once, when there is room again; who waits longest comes first. Nothing happens where @w waits
 * already. A lost link forgets who waits. */
void link_wait(struct link *l, struct link_waiter *w);
void link_wait_cancel(struct link_waiter *w);

#endif
