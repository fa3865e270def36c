/* connection.h: one client connection at this agent, from OPEN or SSL_ID (or an accept of the direct listener) to its
 * end, its move or its rest. It ties together the carrier (records), the handshake (OpenSSL), the live part (record
 * layer), the service (message boundaries) and the backend.
 *
 *                       OPEN                          SSL_ID
 *                        |                               |
 *                   HANDSHAKING <--> PARKED          ADOPTING
 *                    |       |                           |
 *           hand off |       | keep                      |
 *                    v       v                           |
 *                 FROZEN   OWNER <-----------------------+
 *
 *          +---- PASSING <---+         with an open backend conversation, which goes along or cannot
 *          v                 v
 *       FROZEN <---------- OWNER <--> RECOVERING         after a takeover, finds out first what the lost owner may have
 *          ^                 ^                           done, and until it knows gives nothing to the backend
 *          +---- SETTLING <--+         answers what was asked and takes nothing new, until a checkpoint or its deadline
 *
 *       OWNER, RECOVERING, PASSING, SETTLING --> ENDING      last records and close_notify on their way
 *
 * Every state but ENDED may go to ENDED. A FROZEN connection can seal nothing; DETACH ends it;
 * SSL_ID under a higher epoch makes a new connection of what it holds.
 */
#pragma once

#include "net/socket/endpoints.h"
#include "sslagent/connection/connection_home.h"
#include "sslagent/connection/interlude.h"
#include "sslagent/connection/kept_facts.h"
#include "sslagent/connection/unopened.h"
#include "sslagent/tls/live.h"

struct handshake;
struct tls_listener;
struct backend;

/* In an order in which those that react alike are neighbours (events/connection_reactions.c). */
#define CONNECTION_STATES(X)                                                                                           \
	X(ADOPTING)                                                                                                    \
	X(HANDSHAKING)                                                                                                 \
	X(PARKED)                                                                                                      \
	X(FROZEN)                                                                                                      \
	X(RECOVERING)                                                                                                  \
	X(PASSING)                                                                                                     \
	X(OWNER)                                                                                                       \
	X(SETTLING)                                                                                                    \
	X(ENDING)                                                                                                      \
	X(ENDED)

enum connection_state {
#define X(name) CONNECTION_##name,
	CONNECTION_STATES(X)
#undef X
		CONNECTION_STATE_COUNT
};

/* How soon the carrier is told of progress. */
enum consumed_report {
	REPORT_NOTHING,
	REPORT_WITH_NEXT_DATA, /* goes with the next records, or alone after a while */
	REPORT_NOW,
};

/* The last bytes that an owner sends. */
enum last_words {
	LAST_CLOSE_NOTIFY, /* alone */
	LAST_FAREWELL,     /* the service's words for an end in order, if it has any, and close_notify */
	LAST_HEAD_LATE,    /* the service's words for a request whose head did not end, and close_notify */
	LAST_BACKEND_LOST, /* the service's words for a backend out of reach, and close_notify */
	LAST_TRACK_LOST,   /* the service's words for a client that broke the protocol, and close_notify */
	LAST_INTERNAL_ERROR
};

/* How much of a response since the checkpoint the client got, as the carrier reported. */
enum delivered { DELIVERED_NOTHING, DELIVERED_SOME };

/* The state of one direction of the data. */
enum half {
	HALF_OPEN,
	HALF_CLOSING, /* the backend has ended, but the client cannot be told yet */
	HALF_CLOSED,
};

/* This follows the client's last record, and has to wait until that record is opened. */
enum tail { TAIL_NONE, TAIL_FIN, TAIL_VIOLATION };

/* A point in the client's records, and the number of bytes that the backend had been given there. When these are
 * written, the records up to that point are consumed. */
struct consumed_mark {
	uint64_t to_backend;
	uint64_t record_bytes;
	struct frame_consumed position;
};

/* Do the peers know the keys of our last KeyUpdate? NEVER: there was none. */
enum keys_told { KEYS_TOLD_NEVER, KEYS_TOLD, KEYS_UNTOLD };

/* Has the backend connection answered a request, this client's or another's? Then it may have been about to end when it
 * got the next one. */
enum backend_age { BACKEND_NEW, BACKEND_KEPT };

/* May the next record be opened? WAITS: a KeyUpdate came too early (flow/consumed.h). */
enum client_pace { CLIENT_GOES_ON, CLIENT_WAITS };

/* ENDING: of words.c only. */
struct words {
	uint8_t last;   /* enum last_words, sealed as soon as that is allowed */
	uint8_t reason; /* of the end: goes with the last record */
};

/* Of consumed.c; others read it, and words.c and from_client.c let a client go on. */
struct consumed {
	struct consumed_mark awaited; /* the next mark that @written will reach */
	struct consumed_mark newest;  /* the point up to which records are opened */
	struct consumed_mark reached;
	uint64_t reported_bytes; /* record bytes that the carrier knows as consumed */
	uint8_t report;          /* enum consumed_report */
	uint8_t pace;            /* enum client_pace */
	uint8_t pace_told;       /* enum client_pace, as the carrier knows it */
};

/* Not opaque, because its own parts share it. Other code reads @state only. */
struct connection {
	struct connection_home *home;
	struct carrier *carrier;
	const struct tls_listener *listener;
	struct tls_contexts *contexts; /* referenced */
	struct table_link by_id;       /* in the table of its home */
	struct connection_id id;
	uint8_t state;        /* enum connection_state */
	uint8_t from_client;  /* enum half */
	uint8_t from_backend; /* enum half */
	uint8_t disposition;  /* Cssl__LinkOpen__Disposition */
	uint8_t tail;         /* enum tail */
	uint8_t delivered;    /* enum delivered */
	struct words words;
	uint8_t keys_told;   /* enum keys_told */
	uint8_t backend_age; /* enum backend_age */
	uint16_t epoch;
	uint32_t head_number;           /* number of the request whose head is incomplete */
	uint32_t keys_told_ms;          /* likewise: when peers heard of a KeyUpdate of ours */
	uint32_t owner_since_ms;        /* on its worker's clock, which wraps here */
	uint64_t head_until_ms;         /* the time limit of that head; 0: there is none */
	uint8_t token[ADOPT_TOKEN_LEN]; /* of the last sealed copy that RAgent got */

	struct handshake *handshake; /* HANDSHAKING, PARKED */
	struct session_pull *pull;   /* PARKED */
	struct live *live;           /* OWNER, RECOVERING, PASSING, SETTLING, ENDING, FROZEN by a move */
	struct live_part *frozen;    /* FROZEN by a hand-off: a secret slab */
	struct kept_facts facts;
	struct service service;
	const char *backend_name; /* as in the cluster file; chosen by ALPN */
	struct backend *backend;  /* of the open conversation; NULL: there is none */
	struct deadline deadline; /* handshake, idle, backend */
	struct endpoints endpoints;
	struct holding holding; /* its share of its worker's budget */

	/* from the client */
	struct unopened input;
	struct frame_violation bad; /* TAIL_VIOLATION */
	uint32_t skip;              /* so many plaintext bytes of the next data record are at the backend already */
	uint32_t handshake_ns;      /* time that the handshake took */
	uint64_t client_records;    /* opened, or used by the handshake */
	uint64_t record_bytes;      /* bytes of these */
	uint64_t to_backend;        /* bytes given to the backend so far, or kept in @head for it */
	uint64_t written;           /* bytes of these that its socket has taken */
	struct consumed consumed;

	/* to the client */
	uint64_t sent, drained; /* bytes of records */
	uint64_t server_records;
	struct interlude *interlude; /* RECOVERING, PASSING, SETTLING */
	struct kept_bytes *head;     /* OWNER, RECOVERING: an incomplete head, and no backend yet */
	struct kept_bytes *asked;    /* bytes since the checkpoint, which may be asked again; NULL: not */
};

/* OPEN. @carrier calls the connection until it has ended. Valid endpoints are copied. NULL: @why is
 * END_LIMIT_HANDSHAKES, or END_INTERNAL when out of memory. */
struct connection *connection_open(struct connection_home *home, struct carrier *carrier,
	const struct tls_listener *listener, const struct connection_id *id, Cssl__LinkOpen__Disposition disposition,
	const Cssl__Endpoints *endpoints, enum end_reason *why);

/* SSL_ID. Adopts or refuses (calls the carrier's adopted or refused). NULL: refused. */
struct connection *connection_adopt(struct connection_home *home, struct carrier *carrier, const Cssl__LinkSslId *id);

/* It waited in the line of handshake_share, and this turn has time for its handshake. */
void connection_take_turn(void *connection);

/* Whole client records. This changes them in place. */
void connection_records(struct connection *c, const struct tls_record *records, size_t count);
/* Can it be that the client took so many bytes in all? false: more than were sent, or less than it said before. */
bool connection_may_have_drained(const struct connection *c, uint64_t bytes);
/* The client took records: @drained bytes in all. The commits reached @write_generation. */
void connection_accepted(struct connection *c, const struct frame_accepted *accepted);
/* The client's bare FIN. */
void connection_fin(struct connection *c);
/* The client broke the record layer: send the alert and end. */
void connection_violation(struct connection *c, const struct frame_violation *v);
/* MOVE: freeze and hand off to another agent, or to rest. If that is impossible, the carrier's REFUSED is called and
 * nothing changes. If the backend half cannot follow and there is time, wait until all requests are answered. */
void connection_move(struct connection *c, const Cssl__LinkMove *move);
/* The client or the carrier is gone, or the successor has adopted (DETACH): forget all. The carrier is not called
 * again. */
void connection_forget(struct connection *c, enum end_reason reason);

/* For cluster_join_worker(), @ctx is the home: another agent seals under the keys of this connection, too, because
 * RAgent gave it to both. Ends it without another record. */
void connection_superseded(void *ctx, const struct connection_id *id, uint16_t of);

/* End it now, whatever its state: with close_notify at a checkpoint, else with the alert. A frozen one is not ended
 * here, because another agent may own it. END_IDLE_TIMEOUT: unless it awaits a verdict. END_BACKEND_TIMEOUT: also
 * without its last words, if the client has not taken them since END_IDLE_TIMEOUT. */
void connection_give_up(struct connection *c, enum end_reason reason);

/* Bytes of records that wait to be opened. Above a window the carrier stops reading. */
static inline size_t connection_waiting(const struct connection *c)
{
	return unopened_len(&c->input);
}

/* There was a request, and all requests are answered. */
bool connection_is_idle(const struct connection *c);

static inline bool connection_is_handshaking(const struct connection *c)
{
	return c->state == CONNECTION_HANDSHAKING || c->state == CONNECTION_PARKED;
}

/* Why its handshake failed; "": it did not, or is over. */
const char *connection_cause(const struct connection *c);

/* For the line in an access log. */
struct connection_account {
	const struct connection_id *id;
	const char *cause;                   /* as connection_cause() has it */
	struct session_facts facts;          /* of a handshake that is not over, only server name and JA4 */
	uint64_t client_bytes, server_bytes; /* of TLS records */
};
void connection_account(const struct connection *c, struct connection_account *out);
const char *connection_state_name(enum connection_state state);
