/* connection_body.h: struct connection, and the structs and enums of its parts that stand in it. Each part has a header
 * of its own: only that part changes its members, but all of them may read them. Only files of this folder and revival/
 * see these structs; for others there is connection.h. revival/ fills in all members of a connection that is not yet
 * under way.
 *
 * An idle connection costs a struct connection, and nothing else: what only a busy one needs is in its busy part.
 */
#pragma once

#include "net/limits/handshake_limit.h"
#include "net/socket/address.h"
#include "net/socket/endpoints.h"
#include "net/stream/stream.h"
#include "proto/tls_record.h"
#include "ragent/connection/bytes/kept.h"
#include "ragent/connection/connection.h"
#include "ragent/connection/connection_home.h"
#include "ragent/connection/ownership/agreed.h"
#include "ragent/connection/ownership/copies.h"
#include "ragent/connection/ownership/exposure.h"
#include "ragent/connection/ownership/position.h"

/* --- connection_stream.h: the current stream --- */

/* A stream on a link; link NULL: none. */
struct place {
	struct link *link;
	uint32_t stream;
};

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

/* How a stream of a link that is over goes on as the current one. */
struct again {
	uint64_t next;    /* number of the next frame that came already; 0: none comes again */
	uint64_t byte;    /* DATA bytes of the stream before it */
	uint64_t written; /* of these bytes, the client got so many */
};

/* --- connection_client.h: the client --- */

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
/* LATER: usually the owner ends the connection before it has to be told. */
enum fin_telling { FIN_AT_ONCE, FIN_LATER };
enum client_reading { CLIENT_READING, CLIENT_PAUSED };
/* WAITS: its owner opens no record for a while, so nothing of the client is read. UNHEARD: it need not wait any more,
 * and nothing of it was read since. */
enum client_pace { CLIENT_GOES_ON, CLIENT_WAITS, CLIENT_UNHEARD };
enum source_counted { SOURCE_NOT_COUNTED, SOURCE_COUNTED };

/* --- connection_owner.h: the next owner --- */

/* OVERDUE: the owner was told to freeze the connection, and did not in time. If it does so later, no order waits for
 * that. */
enum move_answer { MOVE_ANSWER_NOT_DUE, MOVE_ANSWER_OVERDUE };
/* AGAIN: the first SSL_ID of this epoch got no answer, and may have been lost. */
enum adopter_asked { ADOPTER_ASKED_ONCE, ADOPTER_ASKED_AGAIN };

/* --- the whole --- */

struct preamble; /* connection_preamble.h */

/* Memory that only a busy connection needs: its client's stream, input that is still in use, the data of a move. A
 * silent connection without any of these is compact (connection_life.h): it has no busy part, only its
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
	struct note note;          /* of its owner (ownership/copies.h) */
	struct preamble *preamble; /* service smtp, until the handshake is over; NULL: none */
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
 * (connection_saved.h). */
struct connection_now {
	struct place current; /* the only one whose frames count */
	struct stream_account account;
	struct position position;
	struct copies copies;
	struct agreed *agreed; /* NULL: the handshake has not ended */

	uint64_t queued; /* DATA bytes given to the client's output; slot.bytes_written: taken from it */
	uint64_t client_bytes;
	uint32_t client_types[4], server_types[4];

	uint64_t accepted_ms, active_ms; /* active: a byte came from either side, whatever the client has taken */
	uint64_t copied_ms;              /* when the current sealed copy came */
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

/* --- facts of its home and its listener --- */

/* The client's address and port, for log lines. Returns @text. */
const char *connection_client_text(const struct connection *c, char text[static ADDRESS_TEXT_MAX]);
/* The traits of the service of its listener and ALPN protocol. */
const struct service_traits *connection_service(const struct connection *c);

static inline const struct conf_limits *connection_limits(const struct connection *c)
{
	return &c->home->shared->self->limits;
}
/* The limit of the cluster: agents use the same. */
static inline uint64_t connection_window(const struct connection *c)
{
	return c->home->shared->conf->limits.window_len;
}
static inline struct agents *connection_agents(const struct connection *c)
{
	return c->home->shared->agents;
}
static inline struct listener_counters *connection_counts(const struct connection *c)
{
	return &c->home->of_listeners[c->front->index];
}
static inline uint64_t connection_now_ms(const struct connection *c)
{
	return worker_now_ms(c->home->worker);
}
static inline void connection_set_deadline(struct connection *c, uint64_t in_ms)
{
	deadline_set(c->home->worker, &c->deadline, in_ms);
}

/* --- what its slot says of it, for the process after a death: every change begins and ends with these --- */

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
static inline void connection_save_if_changed(struct connection *c)
{
	if (!connection_is_saved(c))
		connection_save(c);
}
/* An agent will hear of the change: from here on, how it was before is not true any more. All bytes that count as read
 * are used. */
void connection_save_before_telling(struct connection *c);

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

/* --- questions that several parts ask --- */

/* Is it in one of these states? */
#define IN(name) (1u << CONNECTION_##name)
static inline bool connection_is_in(const struct connection *c, unsigned states)
{
	return (states >> c->now.state) & 1;
}

/* Its state; of one that is REATTACHING, the state in which it goes on. */
static inline enum connection_state connection_phase(const struct connection *c)
{
	return c->now.state == CONNECTION_REATTACHING ? c->busy->resumes : c->now.state;
}
static inline bool connection_is_over(const struct connection *c)
{
	return c->now.state == CONNECTION_LINGERING || c->now.state == CONNECTION_CLOSING;
}
/* Its owner has more bytes, which the client has not got: the process before had taken them. */
static inline bool connection_lacks_bytes(const struct connection *c)
{
	return c->now.queued != c->now.account.base + c->now.account.received;
}
/* Ending it now cuts nothing off, because all requests are answered. */
static inline bool connection_is_answered(const struct connection *c)
{
	return c->now.position.stage == POSITION_LIVE && c->now.position.response == POSITION_AT_CHECKPOINT &&
	       (!c->busy || kept_len(&c->busy->kept) == 0);
}
/* Its agent may get bytes of the client. Which ones it has is known only when it has answered REATTACH. */
static inline bool connection_takes_bytes(const struct connection *c)
{
	return c->now.current.link && link_open(c->now.current.link) && c->now.state != CONNECTION_REATTACHING;
}
/* Its client is not read, because its owner lets it wait. */
static inline bool connection_client_waits(const struct connection *c)
{
	return c->busy && c->busy->pace == CLIENT_WAITS;
}
/* The same, or it was not heard since: what it said may be in its kernel. */
static inline bool connection_is_unheard(const struct connection *c)
{
	return c->busy && c->busy->pace != CLIENT_GOES_ON;
}
/* Its client speaks with an agent in clear, so it cannot move. */
static inline bool connection_speaks_clear(const struct connection *c)
{
	return c->now.state == CONNECTION_PREAMBLE || c->now.state == CONNECTION_RELAYED;
}
/* The agent that has its stream; NO_AGENT: no agent has. */
static inline int connection_place(const struct connection *c)
{
	return c->now.current.link ? link_agent(c->now.current.link) : NO_AGENT;
}
