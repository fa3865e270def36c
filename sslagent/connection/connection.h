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
#ifndef CSSL_SSLAGENT_CONNECTION_H
#define CSSL_SSLAGENT_CONNECTION_H

#include "net/endpoints.h"
#include "net/timer.h"
#include "sslagent/connection/connection_home.h"
#include "sslagent/connection/carrier.h"
#include "sslagent/tls/handshake.h"
#include "sslagent/tls/live.h"
#include "sslagent/service/service.h"

struct backend;
struct connection_pass;
struct connection_settling;
struct connection_recovery;

#define CONNECTION_STATES(X)                                                                                           \
	X(HANDSHAKING)                                                                                                 \
	X(PARKED)                                                                                                      \
	X(ADOPTING)                                                                                                    \
	X(FROZEN)                                                                                                      \
	X(OWNER)                                                                                                       \
	X(RECOVERING)                                                                                                  \
	X(PASSING)                                                                                                     \
	X(SETTLING)                                                                                                    \
	X(ENDING)                                                                                                      \
	X(ENDED)

enum connection_state {
#define X(name) CONNECTION_##name,
	CONNECTION_STATES(X)
#undef X
		CONNECTION_STATE_COUNT
};

/* Progress that the carrier was not told yet. */
enum consumed_report {
	REPORT_NOTHING,
	REPORT_WITH_NEXT_DATA, /* rides with the next records, or goes alone after a while */
	REPORT_NOW,
};

/* What an owner says at the very end. */
enum last_words {
	LAST_CLOSE_NOTIFY, /* alone */
	LAST_FAREWELL,     /* the service's words for an end in order, if it has some there, and close_notify */
	LAST_HEAD_LATE,    /* the service's words for a request whose head did not end, and close_notify */
	LAST_BACKEND_LOST, /* the service's words for a backend out of reach, and close_notify */
	LAST_TRACK_LOST,   /* the service's words for a client that broke the protocol, and close_notify */
	LAST_INTERNAL_ERROR
};

/* Of a response since the checkpoint, as the carrier was told. */
enum delivered { DELIVERED_NOTHING, DELIVERED_SOME };

/* Where a client's data stands, for one direction. */
enum half {
	HALF_OPEN,
	HALF_CLOSING, /* the backend's end was seen, but the client could not be told yet */
	HALF_CLOSED,
};

/* What follows the client's last record; it has to wait until that is opened. */
enum tail { TAIL_NONE, TAIL_FIN, TAIL_VIOLATION };

/* Up to here the client's records were opened when so many bytes had been given to the backend: consumed once these
 * were written. */
struct consumed_mark {
	uint64_t to_backend;
	uint64_t record_bytes;
	struct frame_consumed position;
};

/* Most sessions' facts fit into so many bytes. */
#define CONNECTION_FACTS_BLOCK 144u

/* Not opaque: its own files (connection*.c) share it. Nobody else looks inside. */
struct connection {
	struct connection_home *home;
	struct carrier *carrier;
	const struct tls_listener *listener;
	struct tls_contexts *contexts; /* referenced */
	struct connection *next_by_id; /* of its home's table */
	struct connection_id id;
	uint8_t state;        /* enum connection_state */
	uint8_t from_client;  /* enum half */
	uint8_t from_backend; /* enum half */
	uint8_t disposition;  /* Cssl__LinkOpen__Disposition */
	uint8_t report;       /* enum consumed_report */
	uint8_t tail;         /* enum tail */
	uint8_t delivered;    /* enum delivered */
	uint8_t end_reason;   /* ENDING: said with the last record */
	uint8_t last_words;   /* ENDING: enum last_words, sealed as soon as sealing is allowed */
	uint16_t epoch;
	uint32_t facts_len;
	uint32_t head_number;           /* of the request whose head is under way */
	uint32_t owner_since_ms;        /* on its worker's clock, which wraps here */
	uint64_t head_until_ms;         /* so long it may be; 0: none is */
	uint8_t token[ADOPT_TOKEN_LEN]; /* of the last sealed copy that RAgent was given */

	struct handshake *handshake; /* HANDSHAKING, PARKED */
	struct session_pull *pull;   /* PARKED */
	struct live *live;           /* OWNER, RECOVERING, PASSING, SETTLING, ENDING, FROZEN by a move */
	struct live_part *frozen;    /* FROZEN by a hand-off: secrets arena */
	uint8_t *facts;              /* encoded SESS_OBJ without live and resumption part */
	struct service service;
	const char *backend_name; /* of the cluster file; by ALPN */
	struct backend *backend;  /* the open conversation; NULL: none */
	struct deadline deadline; /* handshake, idle, backend */
	struct endpoints endpoints;
	struct holding holding; /* of its worker's budget */

	/* from the client */
	uint8_t *input; /* whole records that wait to be opened (connection_holding.c) */
	uint32_t input_len, input_cap, input_records;
	struct frame_violation bad;    /* TAIL_VIOLATION */
	uint32_t skip;                 /* plaintext bytes of the next data record that the backend already has */
	uint32_t handshake_ns;         /* spent in the handshake */
	uint64_t client_records;       /* opened, or consumed by the handshake */
	uint64_t record_bytes;         /* of them */
	uint64_t to_backend;           /* bytes given to the backend so far */
	uint64_t written;              /* of them taken by its socket */
	struct consumed_mark awaited;  /* the next mark to be reached by @written */
	struct consumed_mark newest;   /* where opening stands now */
	struct consumed_mark consumed; /* reached */
	uint64_t reported_bytes;       /* record bytes told to the carrier as consumed */

	/* to the client */
	uint64_t sent, drained; /* bytes of records */
	uint64_t server_records;
	struct connection_pass *pass;         /* PASSING */
	struct connection_settling *settling; /* SETTLING */
	struct connection_recovery *recovery; /* RECOVERING */
};

/* OPEN. @carrier calls the connection until it has ended; sane endpoints are copied. NULL: out of memory. */
struct connection *connection_open(struct connection_home *home, struct carrier *carrier,
	const struct tls_listener *listener, const struct connection_id *id, Cssl__LinkOpen__Disposition disposition,
	const Cssl__Endpoints *endpoints);

/* SSL_ID. Adopts or refuses (carrier's adopted or refused); NULL when refused. */
struct connection *connection_adopt(struct connection_home *home, struct carrier *carrier, const Cssl__LinkSslId *id);

/* The turn has time for its handshake, which waited in the line of handshake_share. */
void connection_go_on(void *connection);

/* Whole client records; changed in place. */
void connection_records(struct connection *c, const struct tls_record *records, size_t count);
/* The client took records: @drained bytes in all; the commits reached @write_generation. */
void connection_accepted(struct connection *c, const struct frame_accepted *accepted);
/* The client's bare FIN. */
void connection_fin(struct connection *c);
/* The client broke the record layer: say the alert and end. */
void connection_violation(struct connection *c, const struct frame_violation *v);
/* MOVE: freeze and hand off towards another agent, or to rest; or the carrier hears REFUSED and nothing changed. Where
 * the backend half cannot follow and there is time, that is when everything asked is answered. */
void connection_move(struct connection *c, const Cssl__LinkMove *move);
/* The client or the carrier is gone, or the successor has adopted (DETACH): forget all; the carrier is not called
 * again. */
void connection_forget(struct connection *c, enum end_reason reason);

/* It is to end now, whatever it does: with close_notify at a checkpoint, else with the alert. A frozen one is another's
 * to end. */
void connection_give_up(struct connection *c, enum end_reason reason);

/* Bytes of records that wait to be opened: above a window the carrier stops reading. */
size_t connection_waiting(const struct connection *c);
/* It answered all that it was asked, and was asked something. */
int connection_is_idle(const struct connection *c);
int connection_is_handshaking(const struct connection *c);
const char *connection_state_name(enum connection_state state);
int connection_may_go(enum connection_state from, enum connection_state to); /* 1 or 0: as drawn above */

#endif
