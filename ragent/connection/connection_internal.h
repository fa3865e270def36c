/* connection_internal.h: shared by the connection's own files only: connection.c (life), connection_states.c (states
 * and their time limits), connection_client.c (the client's side), connection_input.c (what a client sent),
 * connection_compact.c (less memory for a silent connection), connection_agent.c (frames from agents),
 * connection_move.c (open, adopt), connection_order.c (ordered moves and rests), connection_takeover.c,
 * connection_end.c,
 * connection_saved.c (for the next process), connection_restoring.c, connection_restored.c and connection_reattach.c
 * (from the process before).
 */
#ifndef CSSL_RAGENT_CONNECTION_INTERNAL_H
#define CSSL_RAGENT_CONNECTION_INTERNAL_H

#include "net/address.h"
#include "net/fault.h"
#include "net/stream.h"
#include "net/timer.h"
#include "proto/first_bytes.h"
#include "proto/tls_record.h"
#include "ragent/connection/connection.h"
#include "ragent/connection/ownership/copies.h"
#include "net/endpoints.h"
#include "ragent/connection/ownership/exposure.h"
#include "ragent/connection/bytes/kept.h"
#include "ragent/connection/ownership/position.h"
#include "ragent/connection/connection_home.h"
#include "smtp/reply_write.h"

/* A stream on a link; link NULL: none. */
struct place {
	struct link *link;
	uint32_t stream;
};

/* The values that the handshake of a connection agreed on. The block is made when the handshake ends, and is as large
 * as its names need. */
struct agreed {
	uint16_t protocol_version, cipher_suite;
	uint8_t resumed;
	uint8_t session_id_len;
	uint8_t session_id[SESSION_ID_LEN];
	uint8_t family_id[FAMILY_ID_LEN];
	struct ja4 ja4;
	char names[]; /* the ALPN protocol, which frames ask for, and the server's name, each with a NUL */
};

static inline const char *agreed_alpn(const struct agreed *a)
{
	return a->names;
}
static inline const char *agreed_server_name(const struct agreed *a)
{
	return a->names + strlen(a->names) + 1;
}

/* The replies that the client has got. RAgent itself may send one between two replies, but never inside one. */
enum preamble_said { PREAMBLE_NOTHING, PREAMBLE_WHOLE_REPLIES, PREAMBLE_PART_OF_REPLY };

/* Lives until the handshake after it is over. The client's bytes that the agent has not reported by TAKEN are kept. */
struct preamble {
	struct handshake_place place; /* in the limit of its worker */
	uint64_t wait_began_ms;       /* since when it waits for an agent; 0: it does not wait */
	uint64_t hello_ms;            /* when STARTTLS was answered and the time for the handshake began; 0: not yet */
	uint8_t said;                 /* enum preamble_said */
	uint8_t finishing;            /* enum preamble_finishing: whether the agent was told to end it */
	uint8_t told;                 /* FINISHING: enum end_reason that it was told last */
};
enum preamble_finishing { PREAMBLE_GOES_ON, PREAMBLE_FINISHING };

/* What follows after the client's last record? */
enum client_tail { TAIL_NONE, TAIL_FIN, TAIL_VIOLATION };
/* Does the agent of the current stream know? Each new stream has to be told again. */
enum tail_told { TAIL_UNTOLD, TAIL_TOLD };
/* Does the client get more records? */
enum server_side {
	SERVER_OPEN,
	SERVER_FIN,
	SERVER_CLOSE_NOTIFY, /* and FIN */
	SERVER_SAID_LAST     /* close_notify or a fatal alert; FIN will follow */
};
/* OVERDUE: the owner was told to freeze the connection, and did not in time. If it does so later, no order waits for
 * that. */
enum move_answer { MOVE_ANSWER_NOT_DUE, MOVE_ANSWER_OVERDUE };
/* LATER: usually the owner ends the connection before it has to be told (connection_client.c). */
enum fin_telling { FIN_AT_ONCE, FIN_LATER };
enum client_reading { CLIENT_READING, CLIENT_PAUSED };
/* WAITS: its owner opens no record for a while, so nothing of the client is read. UNHEARD: it need not wait any more,
 * and nothing of it was read since. */
enum client_pace { CLIENT_GOES_ON, CLIENT_WAITS, CLIENT_UNHEARD };
enum source_counted { SOURCE_NOT_COUNTED, SOURCE_COUNTED };

/* The current stream, for the next process: which agent has it, and on which link. */
struct stream_name {
	uint64_t boot_id; /* of the process that began the link */
	uint32_t id;
	int16_t agent;
	uint16_t agent_worker;
};

/* DATA bytes of the current stream. Bytes of earlier owners that the client has not received count as its own. So
 * one window limits all that waits for the client, however often the connection moves. */
struct stream_account {
	uint64_t base;         /* drained before this stream began */
	uint64_t received;     /* on this stream, and before it but not yet drained */
	uint64_t told;         /* drained, as the last ACCEPTED reported */
	uint64_t frames;       /* that came on this stream */
	uint64_t frames_saved; /* so many of these the next process needs no more, except their bytes */
	uint64_t frames_told;  /* frames, when the last ACCEPTED went */
	struct stream_name stream;
};

/* AGAIN: the first SSL_ID of this epoch got no answer, and may have been lost (connection_reattach.c). */
enum adopter_asked { ADOPTER_ASKED_ONCE, ADOPTER_ASKED_AGAIN };

/* How a stream of a link that is over goes on as the current one (connection_reattach.c). */
struct again {
	uint64_t next;    /* number of the next frame that came already; 0: none comes again */
	uint64_t byte;    /* DATA bytes of the stream before it */
	uint64_t written; /* of these bytes, the client got so many */
};

/* Memory that only a busy connection needs: its client's stream, input that is still in use, the data of a move. A
 * silent connection without any of these is compact (connection_compact.c): it has no busy part, only its
 * descriptor. */
struct busy_part {
	struct stream client;
	struct connection *connection; /* NULL: it is compact or gone; then this is freed with its handle */
	struct connection_home *home;
	struct turn_end compact_due;
	struct deadline later; /* when messages that may wait are sent */

	struct place frozen; /* ADOPTING: the stream of the last owner, until the successor has adopted */
	struct link_waiter waiter;
	struct kept kept;
	struct partial partial;       /* of the client's next record */
	uint32_t unused;              /* bytes of the client that wait in its stream */
	struct holding holding;       /* its share of its worker's budget */
	struct handshake_place place; /* from its hello to the end of its handshake */
	struct exposure exposure;
	struct sealed_blob *download;        /* the note of its owner; NULL: none */
	struct sealed_blob *download_former; /* before the last change; the next process may still need it */
	struct preamble *preamble;           /* service smtp, until the handshake is over; NULL: none */
	struct again again;
	struct move_order *order;
	struct tls_record_header bad; /* TAIL_VIOLATION */
	uint64_t move_began_ns;       /* since when it has no owner, or one that was told to freeze it; 0: neither */
	uint32_t move_limit_ms;       /* MOVING: so long the owner may take to freeze it or to refuse */
	uint32_t orders;              /* to move or to rest, that were said on the current stream */
	uint8_t move_answer;          /* enum move_answer */
	uint8_t resumes;              /* REATTACHING: enum connection_state in which it goes on */
	uint8_t asked;                /* ADOPTING: enum adopter_asked */
	uint8_t fin;                  /* enum fin_telling */
	uint8_t pace;                 /* enum client_pace */
	uint64_t wait_began_ms;       /* since when it waits for an agent to begin the handshake; 0: it does not wait */
	uint64_t pause_began_ms;      /* since when the client waits because an owner was lost; 0: it does not wait */
	uint64_t log_again_ms;        /* there is no memory for its log before this time; 0: there is */
	uint64_t discard_began_ms;    /* LINGERING: since when its client still sends; 0: it does not */
	uint64_t asked_ms;            /* the owner was asked to end the silence since then; 0: no silence */
	uint64_t owed_end;            /* no agent holds the bytes for the client before this number any more */
};

/* What changes of a connection with its records, its owners and its states. An image of it goes to the next process
 * (trail.h). */
struct connection_now {
	struct place current; /* the only one whose frames count */
	struct stream_account account;
	struct position position;
	struct copies copies;
	struct agreed *agreed; /* NULL: the handshake has not ended */

	uint64_t queued; /* DATA bytes given to the client's output; slot.bytes_written: taken from it */
	uint64_t client_bytes;
	uint32_t client_types[4], server_types[4];

	uint64_t accepted_ms, active_ms;
	uint64_t copied_ms; /* when the current sealed copy came */
	uint32_t moves;
	uint32_t discarded;      /* LINGERING: bytes of its client that were discarded */
	uint16_t epoch;          /* of the current or, RESTING, of the last ownership */
	int16_t handshake_agent; /* NO_AGENT before the first */
	int16_t owner;           /* the last one, for the log */
	int16_t affinity_agent;  /* it counts in AGENT_CONNECTIONS of this agent */
	int16_t handshaking_at;  /* it counts in AGENT_HANDSHAKES of this agent */
	int16_t move_target;
	uint8_t state;           /* enum connection_state */
	uint8_t tail, tail_told; /* enum client_tail, tail_told */
	uint8_t server_side;     /* enum server_side */
	uint8_t reading;         /* enum client_reading */
	uint8_t attempts;        /* to find an agent, since the last ownership */
	uint8_t restarts;        /* of the handshake, because its agent was lost */
	uint8_t cause;           /* Cssl__Cause of the current adoption */
	uint8_t backend;         /* Cssl__BackendHalf of the current adoption */
	uint8_t hello;           /* enum hello_offer */
	uint8_t source;          /* enum source_counted */
	uint8_t end_reason;
};

/* In memory that outlives this process (ragent/keeper/slot_table.h), as are its sealed copy and its names. Members
 * outside of @now are fixed, or belong to one process. */
struct connection {
	struct table_slot slot; /* has its descriptor while it is compact, and counts its bytes */
	struct connection_home *home;
	struct front *front;
	struct connection *next, **prev; /* the worker's list */
	struct busy_part *busy;          /* NULL: it is compact */
	struct deadline deadline;        /* its purpose depends on the state */
	struct connection_id id;
	struct endpoints endpoints;

	struct connection_now now;
};

_Static_assert(offsetof(struct connection, slot) == 0, "the next process finds it as a slot");

/* After so many attempts to find an agent that takes it, a connection ends. */
#define ATTEMPTS_MAX 4u

/* connection.c */
/* Not counted anywhere yet; connection_join() puts it on its worker's list. NULL: out of memory. */
struct connection *connection_create(struct connection_home *home, struct front *front);
/* @c must be on no list. */
void connection_discard(struct connection *c);
void connection_join(struct connection *c);
const struct conf_limits *connection_limits(const struct connection *c);
uint64_t connection_now_ms(const struct connection *c);
/* The client's address and port, for log lines. Returns @text. */
const char *connection_client_text(const struct connection *c, char text[static ADDRESS_TEXT_MAX]);
/* The client's address is certain now. */
void connection_known(struct connection *c);
/* Takes the facts about the client from a balancer's header. 0 or CSSL_E_NO_MEMORY. */
int connection_take_header(struct connection *c, const struct proxy_header *h);
/* The client's handle is closed. */
void connection_free(struct connection *c);
uint64_t connection_window(const struct connection *c);
/* All members are zero except the names, which are copied and may contain no zeros. 0, CSSL_E_TOO_LONG (above
 * NAME_MAX_LEN), CSSL_E_NO_MEMORY. */
int agreed_create(struct blocks *from, const char *server_name, size_t server_name_len, const char *alpn,
	size_t alpn_len, struct agreed **out);
/* @from as it was made; NULL is legal for @a. */
void agreed_destroy(struct blocks *from, struct agreed *a);
/* The traits of the service of its listener and ALPN protocol. */
const struct service_traits *connection_service(const struct connection *c);

/* connection_states.c */
void connection_to(struct connection *c, enum connection_state to);
/* Add @by (1 or -1) to the gauge of this state, if there is one. */
void connection_count_state(struct connection *c, enum connection_state state, int by);
/* Has its handshake begun and not ended? */
bool connection_shakes_hands(const struct connection *c);
/* Its state; of one that is REATTACHING, the state in which it goes on. */
enum connection_state connection_phase(const struct connection *c);
/* Set the longest time that it may wait in its state. */
void connection_arm_deadline(struct connection *c);
void connection_set_deadline(struct connection *c, uint64_t in_ms);
void connection_deadline_is_over(struct deadline *d);
/* Count it for @agent, and no longer for the agent before. */
void connection_assign(struct connection *c, int agent);
void connection_handshake_at(struct connection *c, int agent);

/* connection_compact.c */
/* The stream in it is not open yet. 0 or CSSL_E_NO_MEMORY. */
int connection_add_busy(struct connection *c);
/* Before the connection is freed, if its stream was never opened or is closed. */
void connection_free_busy(struct connection *c);
/* RESTING, OWNED: it becomes compact if nothing is left over at the end of this turn; when RESTING, also later. */
void connection_may_compact(struct connection *c);
/* It has a busy part from now on, at least until the end of the turn. 0; negative: out of memory, and the caller has
 * to reset it. */
int connection_expand(struct connection *c);
/* The same, but on failure it is reset. */
int connection_expand_or_end(struct connection *c);
/* Its kept queue; for a compact one, an empty queue with its record numbers. */
struct kept connection_kept(const struct connection *c);
/* CLOSING, without a stream: closes its descriptor now. The connection itself is freed a little later. */
void connection_close_compact(struct connection *c, enum connection_end_how how);

/* 1: it has no data that needs a busy part. */
bool connection_leaves_nothing_over(const struct connection *c);

/* connection_saved.c */
/* What its slot says is not true any more. */
static inline void connection_void(struct connection *c)
{
	table_slot_to(&c->slot, SLOT_VOID);
}
/* A change of the connection begins: its slot says how it was before. That of a compact one says nothing, because it
 * changes itself. */
static inline void connection_touch(struct connection *c)
{
	table_slot_to(&c->slot, table_slot_has_trail(table_slot_state(&c->slot)) ? SLOT_CHANGING : SLOT_VOID);
}
/* Does its slot say how it is now? */
static inline bool connection_is_saved(const struct connection *c)
{
	return table_slot_state(&c->slot) == SLOT_SAVED || table_slot_state(&c->slot) == SLOT_FOLLOWED;
}
/* Call it after changes: its slot says how it is now, if another process could continue that. */
void connection_save(struct connection *c);
/* The same if its slot does not say that yet. */
void connection_save_if_changed(struct connection *c);
/* An agent will hear of the change: from here on, how it was before is not true any more. All bytes that count as read
 * are used. */
void connection_save_before_telling(struct connection *c);
/* The same while its client's bytes are read; these @len bytes are not used yet. */
void connection_save_amid_input(struct connection *c, const uint8_t *rest, size_t len);
/* Its client sent these bytes, the first of which are those that were not used last time. Call it before anything is
 * done with them. Those that are only discarded need no log. */
void connection_log_input(struct connection *c, const uint8_t *data, size_t len);
/* Its memory is freed, or it needs no trail. */
void connection_forget_trail(struct connection *c);
/* Bytes of its client in its log. */
size_t connection_log_len(const struct connection *c);
/* To save memory: for a second it has no log, so it would end if this process died. */
void connection_give_up_log(struct connection *c);

/* If this process crashes before the work ends, the next one does not restore this connection: its agent would send the
 * same frame again, or its time would be over again. */
static inline void connection_work_begins(struct connection *c)
{
	atomic_store_explicit(c->home->working, (uint8_t *)c + WORK_NOT_ON_BYTES, memory_order_relaxed);
}
/* The same while it works on bytes of the client, whose source then becomes a suspect. */
static inline void connection_work_on_bytes_begins(struct connection *c)
{
	atomic_store_explicit(c->home->working, c, memory_order_relaxed);
}
static inline void connection_work_ends(struct connection_home *home)
{
	atomic_store_explicit(home->working, NULL, memory_order_relaxed);
}

/* The note of its owner is this one now. 0, CSSL_E_TOO_LONG, CSSL_E_NO_MEMORY (nothing changed). */
int connection_set_note(struct connection *c, const uint8_t *data, size_t len);
void connection_drop_note(struct connection *c);

/* The agent of all that is queued for the client forgets it: the next owner begins, or there is none any more. */
void connection_owe_queued(struct connection *c);
/* Has its client not got all that no agent holds? */
static inline bool connection_owes(const struct connection *c)
{
	return c->busy && c->busy->owed_end > c->slot.bytes_written;
}

/* connection_takeover.c */
/* @agent, its owner or adopter, is lost. This may end it. */
void connection_owner_lost(struct connection *c, int agent, enum peer_fate fate);

/* connection_reattach.c */
/* Its current stream was lost with @l. 1: it waits until the link is up again. 0: its owner is lost. */
bool connection_waits_for_owner(struct connection *c, const struct link *l);
/* If it is REATTACHING and the link to its owner is up: ask for it. */
void connection_reattach_if_up(struct connection *c);
/* REATTACHING: it has waited for its owner for long. While connections of the process before are left, agents keep
 * their streams, and it waits on. Otherwise this may end it. */
void connection_reattach_overdue(struct connection *c);
/* All that are REATTACHING wait from now on: agents have kept their streams until now. */
void connection_reattach_anew(struct connection_home *home);
/* A handler of frames; its frame has no message. */
int connection_in_reattached(struct connection *c, const struct frame *f, const void *message);
/* REATTACHING: its owner does not have it any more, or does not answer. This may end it. */
void connection_reattach_refused(struct connection *c);
void connection_reattach_failed(struct connection *c);
/* A frame of its owner. 1: it had come before; the client gets those of its bytes that were lost. */
bool connection_had_frame(struct connection *c, const struct frame *f);
/* DATA of @len bytes: so many of the first ones the client has already. */
size_t connection_had_bytes(struct connection *c, size_t len);

/* connection_client.c: messages that may wait */
void connection_on_later(struct deadline *d); /* busy_part.later */
/* The handshake is over: the agent's last records of it may wait for the answer, but not if the service is mail. */
void connection_hold_tickets(struct connection *c);

/* connection.c: the counters of its listener */
struct listener_counters *connection_counts(const struct connection *c);

/* connection_preamble.c */
/* PREAMBLE: begin it at an agent, because it has none or lost it. @except has just refused it, or is NO_AGENT. */
void connection_preamble_open(struct connection *c, int except);
/* End it by a reply of RAgent between two replies of the agent; if that is impossible, by a reset. */
void connection_preamble_end(struct connection *c, enum end_reason reason, enum smtp_own words);
/* STARTTLS was answered, and the answer may go to the client: TLS begins. */
void connection_preamble_over(struct connection *c);
/* RELAYED: mail has begun, so it is no preamble any more. */
void connection_preamble_relayed(struct connection *c);
/* Its client is known, and begins in clear. */
void connection_preamble_begin(struct connection *c);
/* Ends the preamble, if there is one. It must have a busy part. */
void connection_preamble_drop(struct connection *c);
/* Ask its agent to end it between two replies. */
void connection_preamble_finish(struct connection *c, enum end_reason reason);
void connection_preamble_lost(struct connection *c, int agent);
void connection_preamble_refused(struct connection *c);
/* 1: its client speaks in clear, or did so until the link to the agent broke. Else 0. */
bool connection_is_in_clear(const struct connection *c);
/* Of the process before: give it a place in the limit. 0 or CSSL_E_NO_MEMORY. */
int connection_preamble_count(struct connection *c);
/* Its agent has it still: PREAMBLE, RELAYED. */
void connection_preamble_goes_on(struct connection *c);
/* Its agent does not go on with it, or not to the end. This may end it. */
void connection_preamble_not_reattached(struct connection *c);
/* Time until its deadline, and the action then. */
uint64_t connection_preamble_left_ms(const struct connection *c);
void connection_preamble_on_deadline(struct connection *c);

/* connection_clear.c */
/* PREAMBLE, RELAYED: passes bytes of the client on. Returns how many. */
size_t connection_clear_take(struct connection *c, uint8_t *data, size_t len);
/* There is room for more bytes, or the client's end has to be passed on. */
void connection_clear_pump(struct connection *c);
/* A frame of the current stream. 0, or negative: a breach of the link protocol. */
int connection_clear_frame(struct connection *c, const struct frame *f);
void connection_clear_fin(struct connection *c);
/* Its first bytes are not TLS. 1: it had sent STARTTLS before, and was reset for that. */
bool connection_clear_goes_on(struct connection *c, enum first_bytes what);
/* HELLO, of another process: the client sent something before it can have heard the answer to STARTTLS. 1: it was reset
 * for that. */
bool connection_clear_hello_is_injected(struct connection *c);

/* connection_input.c: counts */
enum records_of { RECORDS_OF_CLIENT, RECORDS_OF_SERVER };
void connection_count_records(struct connection *c, enum records_of whose, const struct tls_record_run *run);

/* connection_end.c */
/* 1: ending it now cuts nothing off, because all requests are answered. */
bool connection_is_answered(const struct connection *c);
/* Before the handshake is over: end it by these words of RAgent in clear, if the client has received nothing of a
 * server. Later they would contradict an agent that has keys: then, and without words, by a reset. */
void connection_end_saying(struct connection *c, enum end_reason reason, const void *words, size_t len);
/* By a fatal alert, internal_error. */
void connection_refuse(struct connection *c, enum end_reason reason, enum tls_alert alert);
/* While draining: end it if connection_is_answered(). */
void connection_drain_if_idle(struct connection *c);
/* It was silent for @silent_ms, and that is longer than its idle time-out. */
void connection_end_silence(struct connection *c, uint64_t silent_ms);
/* CLOSING: give up the client's descriptor. */
void connection_close_now(struct connection *c);
/* By a reset, or as the next one says. */
void connection_end_at_once(struct connection *c, enum end_reason reason);
/* A LINGERING one. If the client has not taken all, it is reset, because a FIN would say that it has. */
void connection_end_lingering(struct connection *c);
/* Frees its records, copies and download. */
void connection_drop_kept(struct connection *c);
/* Its client gets FIN behind all bytes, if the server or its end has come and no byte is missing here. Legal twice. */
void connection_shut_if_due(struct connection *c);
/* Its owner has more bytes, which the client has not got: the process before had taken them. */
bool connection_lacks_bytes(const struct connection *c);
/* LINGERING: bytes went to the client or came from it: check whether it may close. */
void connection_linger(struct connection *c);
/* LINGERING: discards @len bytes of the client. */
void connection_discards(struct connection *c, size_t len);

/* connection_client.c */
extern const struct stream_ops connection_client_ops;
/* A point whose rules may name the client's address. Failing, the process crashes; delaying, its worker stands still.
 */
enum fault_action connection_fault_at(const struct connection *c, const char *point);
/* The stream was opened: read what comes. */
void connection_begin_reading(struct connection *c);
/* 1: its agent may get bytes of the client. Which ones it has is known only when it has answered REATTACH. */
bool connection_takes_bytes(const struct connection *c);
/* Then: send the kept bytes that it has not got. 0; -1: not all of them now. */
int connection_send_kept(struct connection *c, uint8_t flags);
/* Send all that the current stream has not got: records, then the end. */
void connection_send_records(struct connection *c);
void connection_on_waiter(struct link_waiter *w);
/* So many bytes of records may still be kept. */
size_t connection_room(const struct connection *c);
/* The client may send again if there is room, and its owner lets it. */
void connection_resume_reading(struct connection *c);
/* More records are kept, and @unused bytes wait behind them: read no more than has room, or nothing. */
void connection_read_less(struct connection *c, size_t unused);
/* @len bytes more for the client are too many. 1: it was ended for that. Only this stream is at fault: the others on
 * the link go on. */
bool connection_exceeds_window(struct connection *c, size_t len);
/* For the client. 0; negative: out of memory, and it was ended. */
int connection_write(struct connection *c, const uint8_t *data, size_t len);
/* The same for the payload of a frame, without bytes that the client has already. */
int connection_pass_on(struct connection *c, const struct frame *f);
/* Its owner lets it wait, or go on: GOES_ON. It must have a busy part. */
void connection_set_pace(struct connection *c, enum client_pace pace);
/* 1 if it waits. Else 0. */
bool connection_client_waits(const struct connection *c);
/* 1 if it waits, or was not heard since: what it said may be in its kernel. Else 0. */
bool connection_is_unheard(const struct connection *c);
/* Send ACCEPTED: the committed records and the bytes that the client has received. */
void connection_acknowledge(struct connection *c);
/* The same, if the owner holds @frames or more that it need not hold. */
void connection_release_held(struct connection *c, unsigned frames);
/* The same, if enough has changed since the last one. */
void connection_acknowledge_if_due(struct connection *c);

/* connection_input.c */
/* Its client sent these bytes; they may be changed in place. Returns how many were used. */
size_t connection_client_said(struct connection *c, uint8_t *data, size_t len);
/* Of the consumed records, keep those that may be replayed beside @more bytes that just came, and forget the others. */
void connection_trim_replay(struct connection *c, size_t more);
/* No incomplete record of the client counts any more. */
void connection_forget_partial(struct connection *c);

/* connection_compact.c: its bytes */
/* It may keep more or fewer bytes than before: count them again. */
void connection_weigh(struct connection *c);
/* Above the budget: take memory back from the connections that keep most. May end any connection. */
void connection_relieve(struct connection_home *home);

/* connection_agent.c */
/* The same: END of the current stream. 0 or negative. */
int connection_in_end(struct connection *c, const struct frame *f, const void *message);

/* connection_move.c */
/* The current stream; it has one. */
struct stream_name connection_stream_name(const struct connection *c);
/* A new stream on @l becomes the current one. 0 or -1. */
int connection_begin_stream(struct connection *c, struct link *l);
/* Begin the handshake at an agent other than @except (just lost or refused it; or NO_AGENT). If there is none, wait
 * for one. */
void connection_send_open(struct connection *c, int except);
/* Begin it after a short wait. */
void connection_open_later(struct connection *c);
/* WAITING: try again; @left_ms are left of the time for handshakes. */
void connection_open_again(struct connection *c, uint64_t left_ms);
/* The handshake begins again with the client's first record. */
void connection_begin_anew(struct connection *c);
/* The link on which it should continue: to @wanted; if that agent is not available, to another one, but not to
 * @except. NULL: there is none. */
struct link *connection_find_adopter(struct connection *c, int wanted, int except);
/* The next ownership begins on @l, or the connection ends. */
void connection_adopt_on(struct connection *c, struct link *l);
/* The same ownership once more: its agent may not have heard of it. */
void connection_adopt_again(struct connection *c, struct link *l);
struct agents *connection_agents(const struct connection *c);
/* HANDED_OFF: the current owner froze it; find the next one. */
void connection_hand_over(struct connection *c);
void connection_open_refused(struct connection *c, Cssl__LinkRefused__Reason reason);
void connection_adopt_refused(struct connection *c, Cssl__LinkRefused__Reason reason);
void connection_adopted(struct connection *c);

/* connection_order.c: who owns it */
/* From now on no agent owns it, or its owner is told to freeze it. */
void connection_owner_goes(struct connection *c);
/* The same, unless that was so before. */
void connection_owner_is_missed(struct connection *c);
/* The agent of the handshake keeps it. */
void connection_owned_from_start(struct connection *c);
/* Its owner was lost, and it needs no other for now. */
void connection_left_by_a_loss(struct connection *c);
/* @agent owns it, for c->now.cause; NO_AGENT: it rests. Returns how long no agent owned it. */
uint64_t connection_owned_by(struct connection *c, int agent);
void connection_release_current(struct connection *c);
/* The stream is gone with its link. */
void connection_lose_place(struct connection *c, struct place *p);
/* Release it, with a DETACH or without. */
void connection_release_frozen(struct connection *c);
void connection_forget_frozen(struct connection *c);

/* connection_order.c */
/* MOVING: its owner did not answer in time, and keeps it. */
void connection_move_overdue(struct connection *c);
/* MOVING: its owner has the order or not, and keeps it, for the reason @why. */
void connection_owner_keeps(struct connection *c, const char *why);
/* Its owner goes on after that: say the order again if it is not answered. */
void connection_order_again(struct connection *c);
/* REFUSED of order number @order; 0: its owner does not tell. */
void connection_order_refused(struct connection *c, uint32_t order, const char *why);
/* HANDED_OFF came for a rest: no agent owns it now. */
void connection_handed_to_rest(struct connection *c);
/* The ordered move is over, with this outcome. */
void connection_report_move(struct connection *c, const struct move_result *r);

/* connection_handover.c */
/* Forget its memory and its places on links, without a frame to the agents. */
void connection_forget_state(struct connection *c);

/* connection_takeover.c */
/* RESTING: it needs an owner now. If there is none, try again for a while. */
void connection_wake(struct connection *c);
/* RESTING: try again after a short wait, or end if it was tried for too long. */
void connection_wake_later(struct connection *c);
/* The same, when its turn comes among the connections of lost owners. */
void connection_wake_in_turn(struct connection *c);
/* 1: it has records or a violation for the next owner, its client waits for something, or its service does not rest.
 * Else 0. */
bool connection_needs_owner(const struct connection *c);
Cssl__ResponseState connection_response_state(const struct connection *c);
/* The client of a lost owner waited, and now gets its next record. */
void connection_pause_ends(struct connection *c);

#endif
