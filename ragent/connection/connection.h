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
 *                                                            OWNED, MOVING: owner lost at a checkpoint
 *
 * While no agent takes anything: HELLO, HANDSHAKING --> WAITING --> HANDSHAKING.
 * An owner may freeze it by itself (it drains): OWNED --> ADOPTING. It is told to end one: OWNED --> FINISHING.
 * Every state may go to LINGERING (the client gets what is queued and FIN, a last bit of its input is discarded) and to
 * CLOSING (its handle is being closed), LINGERING only to CLOSING.
 */
#ifndef CSSL_RAGENT_CONNECTION_H
#define CSSL_RAGENT_CONNECTION_H

#include "proto/end_reason.h"
#include "proto/sess_obj.h"
#include "ragent/connection/connection_description.h"
#include "ragent/dispatch/front.h"
#include "ragent/link/link.h"

#define CONNECTION_STATES(X)                                                                                           \
	X(PROXY, "waits for its PROXY header")                                                                         \
	X(HELLO, "waits for its first records")                                                                        \
	X(WAITING, "waits for an agent to begin its handshake")                                                        \
	X(HANDSHAKING, "an agent makes the handshake under epoch 1")                                                   \
	X(OWNED, "an agent is owner")                                                                                  \
	X(MOVING, "its owner was told to freeze it")                                                                   \
	X(ADOPTING, "an agent was told to adopt it")                                                                   \
	X(RESTING, "no agent owns it; the next record finds one")                                                      \
	X(FINISHING, "its owner was told to say goodbye")                                                              \
	X(LINGERING, "over; the client gets the rest")                                                                 \
	X(CLOSING, "its handle is being closed")                                                                       \
	X(PREAMBLE, "an agent speaks with its client in clear, before STARTTLS")                                       \
	X(RELAYED, "an agent passes on mail in clear")

enum connection_state {
#define X(name, text) CONNECTION_##name,
	CONNECTION_STATES(X) /* a successor reads their numbers: new ones come last */
#undef X
};
#define CONNECTION_STATE_COUNT (CONNECTION_RELAYED + 1)

struct connection;
struct connection_home;

enum connection_end_how { END_ORDERLY, END_RESET };

/* A client was accepted on @front; @fd is taken over. Whatever goes wrong is counted, logged and closes it. */
void connection_accept(struct connection_home *home, struct front *front, int fd, const struct sockaddr_storage *peer);

/* For links: the holder of a stream is a connection. */
int connection_on_frame(void *holder, struct link *l, const struct frame *f);
void connection_on_stream_lost(void *holder, struct link *l, uint32_t stream);

/* For its worker: its length; how much more only some connections have at a time; something came for one that is
 * compact. */
size_t connection_len(void);
size_t connection_busy_len(void);
void connection_on_input(void *holder);

/* End it: the owner is told, the client gets what is queued and FIN, or a reset. Legal in any state. */
void connection_end(struct connection *c, enum end_reason reason, enum connection_end_how how);

/* This process stops: end it as soon as that cuts nothing off (now, or at the next checkpoint). */
void connection_drain(struct connection *c);

/* The time for that is over. */
void connection_kill(struct connection *c);

/* Of ended connections whose lines the log left out: how many. */
void connection_tell_left_out(struct connection_home *home);

/* End the clients that hold back the rest of a record for too long, or with too many others. */
void connection_end_partials(struct connection_home *home);

/* The result of an ordered move or rest. */
struct move_result {
	enum { MOVE_DONE, MOVE_CONFLICT, MOVE_UNAVAILABLE } outcome;
	int from, to; /* agents; to NO_AGENT: it rests */
	uint32_t epoch;
	uint64_t pause_us;
	const char *reason; /* unless done; valid in the call only */
};

/* Embedded in the orderer; one may stand for many connections. */
struct move_order {
	void (*done)(struct move_order *o, const struct move_result *r);
};

struct move_wish {
	int target;
	Cssl__Cause cause; /* MOVE or DRAIN: the latter may end at another agent than @target */
	uint32_t
		deadline_ms; /* how long the owner may wait for a checkpoint where it cannot pass the backend; 0: not */
};

/* Move to another agent; give back to no agent until its next record comes. @order->done comes exactly once, possibly
 * from within. */
void connection_order_move(struct connection *c, const struct move_wish *wish, struct move_order *order);
void connection_order_rest(struct connection *c, struct move_order *order);

/* It has a settled owner that it may leave: 1 or 0. */
int connection_may_move(const struct connection *c);
/* Besides, nothing is open in it, and its service allows that no agent knows it: 1 or 0. */
int connection_may_rest(const struct connection *c);
/* The agent where its stream is; NO_AGENT: it has none. */
int connection_place(const struct connection *c);
/* Who should get it when it leaves that agent; NO_AGENT: nobody is up. */
int connection_successor(const struct connection *c, int agent);
/* The agent of its client's address, as agents and weights are now; NO_AGENT where connections stay. */
int connection_belongs_to(const struct connection *c);

/* It speaks with an agent in clear, which nobody can move: 1 or 0. */
int connection_speaks_clear(const struct connection *c);

/* Let its owner say goodbye, close_notify at a checkpoint and else an alert, and end it. Without an owner that could
 * it ends at once: in order at a checkpoint, else by a reset. */
void connection_send_finish(struct connection *c, enum end_reason reason);

const struct connection_id *connection_identity(const struct connection *c);
struct connection *connection_next(const struct connection *c);
enum connection_state connection_state(const struct connection *c);
const char *connection_state_name(enum connection_state s);
/* What the drawing above says: 1 or 0. */
int connection_may_go(enum connection_state from, enum connection_state to);

/* For people. Strings in @out are valid as long as the connection is. */
void connection_describe(const struct connection *c, struct connection_description *out);

#endif
