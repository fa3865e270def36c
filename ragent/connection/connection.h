/* connection.h: one client's TCP connection, from accept to close, whoever owns its TLS state meanwhile. It keeps the
 * client's records until they are consumed, commits the owner's records towards the client, and gives the connection to
 * the next owner. Used only from its worker's thread.
 *
 *           PREAMBLE --> RELAYED                                               service smtp, in clear
 *            ^   | STARTTLS
 *            |   v
 *     PROXY --> HELLO --> HANDSHAKING --KEPT--> OWNED <--REFUSED-- MOVING
 *                           |  ^  |              ^ |                 ^ |
 *                           |  +--+              | +-----MOVE--------+ |
 *                HANDED_OFF |  agent refused     |ADOPTED              | HANDED_OFF
 *                           |  or lost           |                     |
 *                           +-----------------> ADOPTING <-------------+
 *                                                ^  |
 *                                   next record  |  | adopter lost
 *                                                RESTING <-- MOVING: HANDED_OFF to rest
 *                                                            OWNED, MOVING: owner lost, and
 *                                                            another one may adopt
 *
 * While no agent takes anything: HELLO, HANDSHAKING --> WAITING --> HANDSHAKING.
 * The link to its agent broke: PREAMBLE, RELAYED, HANDSHAKING, OWNED, ADOPTING, FINISHING --> REATTACHING --> the state
 * before; MOVING --> OWNED --> REATTACHING. If the agent is lost, REATTACHING --> RESTING, or in a handshake
 * HANDSHAKING, WAITING. In the process after one that died, a connection with an agent begins as REATTACHING, and goes
 * on in PREAMBLE, RELAYED, HANDSHAKING, OWNED, ADOPTING or FINISHING. An owner may freeze it by itself (it drains):
 * OWNED --> ADOPTING. It is told to end one: OWNED
 * --> FINISHING. Every state may go to LINGERING (the client gets what is queued and FIN, a last bit of its input is
 * discarded) and to CLOSING (its handle is being closed), LINGERING only to CLOSING.
 */
#pragma once

#include "proto/end_reason.h"
#include "ragent/dispatch/dispatch.h"

/* A successor process reads these numbers: add new states at the end. */
enum connection_state {
	CONNECTION_PROXY,       /* waits for its PROXY header */
	CONNECTION_HELLO,       /* waits for its first records */
	CONNECTION_WAITING,     /* waits for an agent to begin its handshake */
	CONNECTION_HANDSHAKING, /* an agent makes the handshake under epoch 1 */
	CONNECTION_OWNED,       /* an agent is owner */
	CONNECTION_MOVING,      /* its owner was told to freeze it */
	CONNECTION_ADOPTING,    /* an agent was told to adopt it */
	CONNECTION_RESTING,     /* no agent owns it; the next record finds one, or its deadline after a loss */
	CONNECTION_FINISHING,   /* its owner was told to say goodbye */
	CONNECTION_LINGERING,   /* over; the client gets the rest */
	CONNECTION_CLOSING,     /* its handle is being closed */
	CONNECTION_PREAMBLE,    /* an agent speaks with its client in clear, before STARTTLS */
	CONNECTION_RELAYED,     /* an agent passes on mail in clear */
	CONNECTION_REATTACHING, /* its agent still has it; the link to it broke */
};
#define CONNECTION_STATE_COUNT (CONNECTION_REATTACHING + 1)

struct connection;
struct connection_home;

enum connection_end_how { END_ORDERLY, END_AT_ONCE, END_RESET };

/* A client was accepted on @front, and wanted to go to @server. Takes over @fd. On any error it counts and logs the
 * error and closes the connection. */
void connection_accept(struct connection_home *home, struct front *front, int fd, const struct sockaddr_storage *peer,
	const struct sockaddr_storage *server);
/* A client that can have no connection: it is counted, logged, and told so if it would begin in clear. Closes @fd. */
void connection_turn_away(struct connection_home *home, const struct front *front, int fd, enum end_reason reason);

/* For links: the holder of a stream is a connection. */
int connection_on_frame(void *holder, struct link *l, const struct frame *f);
void connection_foresee_frame(const void *holder, enum framed_distance distance);
void connection_on_stream_lost(void *holder, struct link *l, uint32_t stream);

/* For the connections that wait for their owner since its link broke, or the process before died: the link is up, or
 * its agent is not there. */
enum reattach_how { REATTACH_BY_ASKING, REATTACH_IN_VAIN };
void connection_reattach_all(struct connection_home *home, struct link *l, enum reattach_how how);

/* For its worker: the length of a connection, and the call for input of a compact one. */
size_t connection_len(void);
void connection_on_input(void *holder);

/* End it: the owner is told. The client gets all queued bytes and FIN; or a reset; or, AT_ONCE, FIN and nothing that is
 * queued, which is for a connection that is not compact, after discard_behind_words(). Legal in any state. */
void connection_end(struct connection *c, enum end_reason reason, enum connection_end_how how);

/* If this process stops (connection_home_drain()): end the connection if that cuts nothing off now. */
void connection_drain_if_idle(struct connection *c);
/* The time for that is over: end it now. */
void connection_kill(struct connection *c);

/* An operator ends it: ORDERLY where that cuts nothing off, else as its owner may, and by RESET while it has none; or
 * by RESET. 1; 0: it ends already. */
bool connection_end_by_operator(struct connection *c, enum connection_end_how how);

/* --- for a handover (ragent/handover) --- */

/* End the connection now, not at the end of this turn, if the client's TCP connection is broken. Do not call it
 * while one of its callbacks runs, except that which tells so. */
void connection_end_if_broken(struct connection *c);
/* If it waits for its owner, or not all of its owner's frames have come again: the owner is lost, because what it needs
 * to go on with it is not handed over. This may end it. */
void connection_stop_reattaching(struct connection *c);
/* Would it do so to any? */
bool connection_home_waits_for_owners(const struct connection_home *home);
/* The connection is the other process's now: forget it, and tell no one. */
void connection_let_go(struct connection *c);

/* --- moves --- */

/* The result of an ordered move or rest. */
struct move_result {
	enum { MOVE_DONE, MOVE_CONFLICT, MOVE_UNAVAILABLE } outcome;
	int from, to; /* agents; @to NO_AGENT: it rests */
	uint32_t epoch;
	uint64_t pause_us;
	const char *reason; /* NULL if done; valid during the call only */
};

/* Embedded in the object that orders the move; one order may serve many connections. */
struct move_order {
	void (*done)(struct move_order *o, const struct move_result *r);
};

struct move_wish {
	int target;           /* NO_AGENT: to rest */
	Cssl__Cause cause;    /* of a move: MOVE or DRAIN, which may end at another agent than @target */
	uint32_t deadline_ms; /* how long the owner may wait for a checkpoint if it cannot pass its backend connection;
				 0: not at all */
};

/* Move the connection to another agent; or let it rest: no agent owns it until its next record. Calls @order->done
 * exactly once, maybe before it returns. */
void connection_order(struct connection *c, const struct move_wish *wish, struct move_order *order);

/* 1: it has a settled owner that may give it up. Else 0. */
bool connection_may_move(const struct connection *c);
/* 1: the same, nothing is open in it, and its service allows that no agent owns it. Else 0. */
bool connection_may_rest(const struct connection *c);
/* Tell its owner to say goodbye (close_notify at a checkpoint, else an alert) and to end it. If no owner can do
 * that, it ends at once: in order at a checkpoint, else by a reset. */
void connection_send_finish(struct connection *c, enum end_reason reason);

/* The client's descriptor. The connection keeps it. */
int connection_fd(const struct connection *c);
const struct connection_id *connection_identity(const struct connection *c);
struct connection *connection_next(const struct connection *c);
const char *connection_state_name(enum connection_state s);
/* Does the drawing above allow this change? */
bool connection_may_go(enum connection_state from, enum connection_state to);
