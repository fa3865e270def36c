/* connection_internal.h: what the connection's own files say to each other: connection.c (life, states, end),
 * connection_client.c (the client's side), connection_compact.c (what a silent connection does without),
 * connection_agent.c (frames from agents), connection_records.c (their counts), connection_move.c (open, adopt),
 * connection_order.c (moves and rests that somebody ordered), connection_later.c (what nobody waits for),
 * connection_takeover.c, connection_end.c, connection_saved.c (for the next process). Nobody else looks inside.
 */
#ifndef CSSL_RAGENT_CONNECTION_INTERNAL_H
#define CSSL_RAGENT_CONNECTION_INTERNAL_H

#include "net/stream.h"
#include "net/timer.h"
#include "proto/first_bytes.h"
#include "proto/tls_record.h"
#include "ragent/connection/agreed.h"
#include "ragent/connection/connection.h"
#include "ragent/connection/copies.h"
#include "ragent/connection/download.h"
#include "net/endpoints.h"
#include "ragent/connection/exposure.h"
#include "ragent/connection/kept.h"
#include "ragent/connection/position.h"
#include "ragent/connection/connection_home.h"

/* A stream on a link; link NULL: none. */
struct place {
	struct link *link;
	uint32_t stream;
};

/* What follows the client's last record. */
enum client_tail { TAIL_NONE, TAIL_FIN, TAIL_VIOLATION };
/* Does the current stream know? Each new one has to be told again. */
enum tail_told { TAIL_UNTOLD, TAIL_TOLD };
/* Does the client get more records? */
enum server_side {
	SERVER_OPEN,
	SERVER_FIN,
	SERVER_CLOSE_NOTIFY, /* and FIN */
	SERVER_SAID_LAST     /* close_notify or a fatal alert; FIN is still to come */
};
/* OVERDUE: the owner was told to freeze it, and its time is over: what it says of that in the end is for nobody. */
enum move_answer { MOVE_ANSWER_NOT_DUE, MOVE_ANSWER_OVERDUE };
/* LATER: most often the owner ends the connection before it would be told (connection_later.c). */
enum fin_telling { FIN_AT_ONCE, FIN_LATER };
enum client_reading { CLIENT_READING, CLIENT_PAUSED };
enum source_counted { SOURCE_NOT_COUNTED, SOURCE_COUNTED };
/* Has its slot the sealed copy, and what was agreed, as they are now? */
enum slot_side { SIDE_STALE, SIDE_SAVED };

/* DATA bytes of the current stream. What earlier owners sent and the client has not taken counts as its own, so that
 * one window bounds all that waits for the client, however often it moves. */
struct stream_account {
	uint64_t base;     /* drained before this stream */
	uint64_t received; /* on this stream, and undrained before */
	uint64_t told;     /* drained, as the last ACCEPTED said */
};

/* The memory that only a busy connection needs: its client's stream, what came that is not done with, what a move
 * needs. A silent connection that leaves nothing over is compact (connection_compact.c): it has no busy part, only its
 * descriptor. */
struct busy_part {
	struct stream client;
	struct connection *connection; /* NULL: it is compact, or gone; this is freed with its handle */
	struct connection_home *home;
	struct turn_end compact_due;
	struct deadline later; /* what nobody waits for is said then */

	struct place frozen; /* ADOPTING: the owner before, until the successor has adopted */
	struct link_waiter waiter;
	struct kept kept;
	struct partial partial;       /* of the client's next record */
	struct holding holding;       /* of its worker's budget */
	struct handshake_place place; /* from its hello to the end of its handshake */
	struct exposure exposure;
	struct download *download; /* of the response under way; NULL: none */
	struct preamble *preamble; /* service smtp, until the handshake is over; NULL: none */
	struct move_order *order;
	struct tls_record_header bad; /* TAIL_VIOLATION */
	uint64_t move_began_ns;       /* since when nobody owns it, or its owner, asked to go, is silent; 0: not so */
	uint32_t move_limit_ms;       /* MOVING: for the owner to freeze it, or to refuse */
	uint8_t move_answer;          /* enum move_answer */
	uint8_t fin;                  /* enum fin_telling */
	uint64_t wait_began_ms;       /* for an agent to begin the handshake; 0: it does not wait */
	uint64_t pause_began_ms;      /* the client waits because an owner was lost; 0: it does not */
	uint64_t discard_began_ms;    /* LINGERING: its client sent on since then; 0: it did not */
};

struct connection {
	struct connection_home *home;
	struct front *front;
	struct connection *next, **prev; /* the worker's list */
	struct busy_part *busy;          /* NULL: it is compact */
	struct deadline deadline;        /* what for depends on the state */
	struct connection_id id;
	struct endpoints endpoints;

	struct place current; /* the only one whose frames count */
	struct stream_account account;
	struct position position;
	struct copies copies;
	struct agreed *agreed; /* NULL: the handshake has not ended */

	uint64_t queued, drained; /* DATA bytes given to and taken from the client's output */
	uint64_t client_bytes;
	uint64_t bytes_read;     /* of the client, all that were used; BYTES_UNKNOWN */
	struct table_slot *slot; /* NULL: it was never saved for the next process */
	uint32_t client_types[4], server_types[4];

	uint64_t accepted_ms, active_ms;
	uint64_t copied_ms; /* when the current sealed copy came */
	uint32_t moves;
	uint32_t discarded;      /* LINGERING: so many bytes of its client's */
	int fd;                  /* while it is compact */
	uint16_t epoch;          /* of the current or, RESTING, of the last ownership */
	int16_t handshake_agent; /* NO_AGENT before the first */
	int16_t owner;           /* the last one, for the log */
	int16_t affinity_agent;  /* whose AGENT_CONNECTIONS it counts in */
	int16_t handshaking_at;  /* whose AGENT_HANDSHAKES it counts in */
	int16_t move_target;
	uint8_t state;           /* enum connection_state */
	uint8_t tail, tail_told; /* enum client_tail, tail_told */
	uint8_t server_side;     /* enum server_side */
	uint8_t reading;         /* enum client_reading */
	uint8_t attempts;        /* to find an agent, since one last owned it */
	uint8_t restarts;        /* of the handshake, because its agent was lost */
	uint8_t cause;           /* Cssl__Cause of the adoption under way */
	uint8_t backend;         /* Cssl__BackendHalf of it */
	uint8_t hello;           /* enum hello_offer */
	uint8_t source;          /* enum source_counted */
	uint8_t end_reason;
	uint8_t slot_side; /* enum slot_side */
};

/* The kernel does not count: nothing of this connection goes on after a death of this process. */
#define BYTES_UNKNOWN UINT64_MAX

/* A connection that finds no agent that would take it after so many attempts ends. */
#define ATTEMPTS_MAX 4u

/* connection.c */
/* Not counted anywhere yet; connection_join() puts it on its worker's list. NULL: out of memory. */
struct connection *connection_create(struct connection_home *home, struct front *front);
/* One that is on no list (any more). */
void connection_discard(struct connection *c);
void connection_join(struct connection *c);
void connection_to(struct connection *c, enum connection_state to);
/* In the gauge of this state, where it has one: @by 1 more, or -1. */
void connection_count_state(struct connection *c, enum connection_state state, int by);
/* Has its handshake begun and not ended? */
int connection_shakes_hands(const struct connection *c);
/* What its state waits for, at most how long. */
void connection_arm_deadline(struct connection *c);
const struct conf_limits *connection_limits(const struct connection *c);
uint64_t connection_now_ms(const struct connection *c);
void connection_set_deadline(struct connection *c, uint64_t in_ms);
/* Count it in one agent's share instead of another's. */
void connection_assign(struct connection *c, int agent);
void connection_handshake_at(struct connection *c, int agent);
/* The client's address is certain. */
void connection_known(struct connection *c);
/* The client's handle is closed. */
void connection_free(struct connection *c);
uint64_t connection_window(const struct connection *c);
/* The traits of the service of its listener and ALPN protocol. */
const struct service_traits *connection_service(const struct connection *c);

/* connection_compact.c */
/* Not open yet. 0 or CSSL_E_NO_MEMORY. */
int connection_add_busy(struct connection *c);
/* Before the connection is freed: what is never opened, or closed. */
void connection_free_busy(struct connection *c);
/* RESTING, OWNED: when nothing is left over at the end of this turn, it becomes compact. RESTING also once that is so
 * later. */
void connection_may_compact(struct connection *c);
/* It has a busy part from now on, at least until the end of the turn. 0; negative, for want of memory: it has to be
 * reset. */
int connection_expand(struct connection *c);
/* The same, and it was reset then. */
int connection_expand_or_end(struct connection *c);
/* Its kept queue, or what that would be while it is compact. */
struct kept connection_kept(const struct connection *c);
/* CLOSING, without a stream: its descriptor goes now, it itself a little later. */
void connection_close_compact(struct connection *c);
void connection_reset_compact(struct connection *c);

/* 1 when nothing is left over that only a busy part could hold. */
int connection_leaves_nothing_over(const struct connection *c);

/* connection_saved.c */
/* Something comes that changes it: what its slot says is void. */
static inline void connection_touch(struct connection *c)
{
	if (c->slot)
		table_slot_void(c->slot);
}
static inline int connection_is_saved(const struct connection *c)
{
	return c->slot && atomic_load_explicit(&c->slot->state, memory_order_relaxed) == SLOT_SAVED;
}
/* Behind all that may have made it one that leaves nothing over: then it is saved. */
void connection_save(struct connection *c);
/* Records of its client came, and its slot was SAVED before: the slot says that, too. */
void connection_save_kept(struct connection *c);
/* It is freed. */
void connection_forget_slot(struct connection *c);

/* connection_takeover.c */
/* Would it go on if its owner was lost? For one that is compact, or could be. 1 or 0. */
int connection_survives_a_loss(const struct connection *c);
/* RESTING, restored: it had an owner, which is lost. It may end. */
void connection_owner_lost_with_process(struct connection *c);

/* connection_later.c */
void connection_on_later(struct deadline *d); /* busy_part.later */
/* The handshake is over: what its agent said at its end may wait for the answer. */
void connection_hold_tickets(struct connection *c);
/* The client's FIN came. */
void connection_hold_fin(struct connection *c);

/* connection.c: what its worker counts of its listener */
struct listener_counters *connection_counts(const struct connection *c);

/* connection_preamble.c */
/* Its client is known, and begins in clear. */
void connection_preamble_begin(struct connection *c);
/* It is over; nothing happens where there is none. Awake. */
void connection_preamble_drop(struct connection *c);
/* Let its agent end it between two replies. */
void connection_preamble_finish(struct connection *c, enum end_reason reason);
void connection_preamble_lost(struct connection *c, int agent);
void connection_preamble_refused(struct connection *c);
/* Until its deadline, and what happens then. */
uint64_t connection_preamble_left_ms(const struct connection *c);
void connection_preamble_on_deadline(struct connection *c);
/* Since when the handshake may take its time: STARTTLS, or accept. Awake. */
uint64_t connection_preamble_hello_ms(const struct connection *c);

/* connection_clear.c */
/* PREAMBLE, RELAYED: bytes of the client; returns how many were passed on. */
size_t connection_clear_take(struct connection *c, uint8_t *data, size_t len);
/* There is room for more of them, or the client's end is to be told. */
void connection_clear_pump(struct connection *c);
/* A frame of the current stream. 0, or negative: a breach of the link protocol. */
int connection_clear_frame(struct connection *c, const struct frame *f);
void connection_clear_fin(struct connection *c);
/* Its first bytes are no TLS: 1 where it has said STARTTLS before, and was reset for it. */
int connection_clear_goes_on(struct connection *c, enum first_bytes what);
/* After so many bytes that the client took, its agent is told. */
uint64_t connection_acknowledge_step(const struct connection *c);

/* connection_records.c */
enum records_of { RECORDS_OF_CLIENT, RECORDS_OF_SERVER };
void connection_count_records(struct connection *c, enum records_of whose, const struct tls_record_run *run);

/* connection_end.c */
/* 1 when ending it now cuts nothing off: everything that was asked is answered. */
int connection_is_answered(const struct connection *c);
/* Before its handshake is over: end it in the clear by these words of RAgent, where its client has seen nothing of a
 * server. Later they would contradict an agent that has keys: a reset, as without any words. */
void connection_end_saying(struct connection *c, enum end_reason reason, const void *words, size_t len);
/* By a fatal alert, internal_error. */
void connection_refuse(struct connection *c, enum end_reason reason);
/* While draining: end it if that is so. */
void connection_drain_if_idle(struct connection *c);
/* CLOSING: let go of the client's descriptor. */
void connection_close_now(struct connection *c);
/* Its records, copies and download. */
void connection_drop_kept(struct connection *c);
/* LINGERING: something of what the client has to take or to say has changed. */
void connection_linger(struct connection *c);
/* LINGERING: the client sent @len bytes, which nobody needs. */
void connection_discards(struct connection *c, size_t len);

/* connection_client.c */
extern const struct stream_ops connection_client_ops;
/* The stream was opened: read what comes. */
void connection_begin_reading(struct connection *c);
/* Send what the current stream has not got: records, then the tail. */
void connection_send_records(struct connection *c);
void connection_on_waiter(struct link_waiter *w);
/* Of what is consumed, keep for replay what may and can be replayed. */
void connection_trim_replay(struct connection *c);
/* The client has no record under way any more that would count. */
void connection_forget_partial(struct connection *c);
/* The client may send again if there is room. */
void connection_resume_reading(struct connection *c);
/* ACCEPTED: how far the commits and the client are. */
void connection_acknowledge(struct connection *c);
/* That, when enough of it is new. */
void connection_acknowledge_if_due(struct connection *c);

/* connection_holding.c */
/* What is kept for it may be more or less now. */
void connection_weigh(struct connection *c);
/* Above the budget: take back from those that keep most. May end any connection. */
void connection_relieve(struct connection_home *home);

/* connection_agent.c */
/* END of the current stream. 0 or negative. */
int connection_in_end(struct connection *c, const struct frame *f);

/* connection_move.c */
/* A stream on @l becomes the current one; it has got nothing yet. 0 or -1. */
int connection_begin_stream(struct connection *c, struct link *l);
/* Begin the handshake at an agent that was not just lost or did not just refuse (@except, or NO_AGENT); while there is
 * none, wait for one. */
void connection_send_open(struct connection *c, int except);
/* Begin it in a moment instead; until then it waits. */
void connection_open_later(struct connection *c);
/* WAITING: try that again; @left_ms of the time for handshakes are left. */
void connection_open_again(struct connection *c, uint64_t left_ms);
/* The handshake begins again with the client's first record. */
void connection_begin_anew(struct connection *c);
/* The link on which it should go on: to @wanted, where that is no choice any more to another, but not to @except. NULL:
 * none. */
struct link *connection_find_adopter(struct connection *c, int wanted, int except);
/* The next ownership begins on @l, or the connection ends. */
void connection_adopt_on(struct connection *c, struct link *l);
struct agents *connection_agents(const struct connection *c);
/* HANDED_OFF: current is frozen; find the next owner. */
void connection_hand_over(struct connection *c);
void connection_open_refused(struct connection *c);
void connection_adopt_refused(struct connection *c, Cssl__LinkRefused__Reason reason);
void connection_adopted(struct connection *c);

/* connection_owner.c */
/* From now on nobody has it, or its owner is asked to let it go. */
void connection_owner_goes(struct connection *c);
/* The same, unless that was so before. */
void connection_owner_is_missed(struct connection *c);
/* The agent of the handshake kept it. */
void connection_owned_from_start(struct connection *c);
/* Its owner was lost, and nobody needs to have it for now. */
void connection_left_by_a_loss(struct connection *c);
/* @agent has it, for c->cause; NO_AGENT: it was let go to rest. How long that took. */
uint64_t connection_owned_by(struct connection *c, int agent);
void connection_release_current(struct connection *c);
/* The stream is gone with its link. */
void connection_lose_place(struct connection *c, struct place *p);
/* With a DETACH, or without. */
void connection_release_frozen(struct connection *c);
void connection_forget_frozen(struct connection *c);

/* connection_order.c */
void connection_move_refused(struct connection *c, const char *why);
/* MOVING: its owner has said nothing in time, and keeps it. */
void connection_move_overdue(struct connection *c);
/* HANDED_OFF came for a rest: no agent has it now. */
void connection_handed_to_rest(struct connection *c);
/* The ordered move is over, whatever its outcome. */
void connection_report_move(struct connection *c, const struct move_result *r);

/* connection_handover.c */
/* What it keeps, and its places on links, without a word to the agents. */
void connection_forget_state(struct connection *c);

/* connection_takeover.c */
/* RESTING: it needs an owner now; tries again for a while when there is none. */
void connection_wake(struct connection *c);
/* RESTING: try that in a moment, or end when it was tried for too long. */
void connection_wake_later(struct connection *c);
/* Likewise, when it is its turn among those of lost owners. */
void connection_wake_in_turn(struct connection *c);
/* Records or a violation that the next owner has to hear of, something that the client waits for, or a service that
 * does not rest: 1 or 0. */
int connection_needs_owner(const struct connection *c);
Cssl__ResponseState connection_response_state(const struct connection *c);
/* The client of a lost owner waited; the next record for it came. */
void connection_pause_ends(struct connection *c);

#endif
