/* connection.h: one client connection at this agent, from OPEN or SSL_ID (or an accept of the direct listener) to its end, its move or its
 * rest. It ties together the carrier (records), the handshake (OpenSSL), the live part (record layer), the service (message boundaries) and
 * the backend.
 *
 *                       OPEN                          SSL_ID
 *                        |                               |
 *                   HANDSHAKING <--> PARKED              |
 *                    |       |                           |
 *           hand off |       | keep                      |
 *                    v       v                           v
 *                 FROZEN   OWNER <------------------- (adopt)
 *                    ^       |  ^
 *                    |       |  | the backend half cannot follow
 *                    |       v  |
 *                    +---- PASSING      OWNER --> ENDING (last records and close_notify on their way)
 *
 * Every state but ENDED may go to ENDED. A FROZEN connection can seal nothing; DETACH ends it, SSL_ID under a higher epoch wakes it.
 */
#ifndef CSSL_SSLAGENT_CONNECTION_H
#define CSSL_SSLAGENT_CONNECTION_H

#include "net/timer.h"
#include "sslagent/agent_worker.h"
#include "sslagent/carrier.h"
#include "sslagent/handshake.h"
#include "sslagent/live.h"
#include "sslagent/service.h"

struct backend;

#define CONNECTION_STATES(X)                                                                                           \
	X(HANDSHAKING)                                                                                                 \
	X(PARKED)                                                                                                      \
	X(FROZEN)                                                                                                      \
	X(OWNER)                                                                                                       \
	X(PASSING)                                                                                                     \
	X(ENDING)                                                                                                      \
	X(ENDED)

enum connection_state {
#define X(name) CONNECTION_##name,
	CONNECTION_STATES(X)
#undef X
	CONNECTION_STATE_COUNT
};

/* Where a client's data stands, for one direction. */
enum half {
	HALF_OPEN,
	HALF_CLOSING, /* the end was seen but not handed on yet */
	HALF_CLOSED,
};

/* Up to where opened records are in the output towards the backend. */
struct consumed_mark {
	uint64_t bytes; /* of backend output, absolute */
	struct frame_consumed position;
};

/* Not opaque: its own files (connection*.c) share it. Nobody else looks inside. */
struct connection {
	struct agent_worker *home;
	struct carrier *carrier;
	const struct tls_listener *listener;
	struct tls_contexts *contexts; /* referenced */
	struct connection *next_by_id; /* agent_worker's table */
	struct connection_id id;
	uint8_t state;        /* enum connection_state */
	uint8_t from_client;  /* enum half */
	uint8_t from_backend; /* enum half */
	uint8_t disposition;  /* Cssl__LinkOpen__Disposition */
	uint16_t epoch;
	uint16_t facts_len;

	struct handshake *handshake;     /* HANDSHAKING, PARKED */
	struct session_pull *pull;       /* PARKED */
	struct live *live;               /* OWNER, PASSING, ENDING, FROZEN by a move */
	struct live_part *frozen;        /* FROZEN by a hand-off: secrets arena */
	uint8_t *facts;                  /* encoded SESS_OBJ without live and resumption part */
	struct service service;
	struct backend *backend;         /* the open conversation; NULL: none */
	struct deadline deadline;        /* handshake, idle, backend */
	Cssl__Endpoints *endpoints;

	/* from the client */
	uint8_t *input;                  /* whole records that wait to be opened */
	uint32_t input_len, input_cap;
	uint32_t skip;                   /* plaintext bytes of the next data record that the backend already has */
	uint64_t client_records;         /* opened, or consumed by the handshake */
	uint64_t to_backend;             /* bytes given to the backend so far */
	uint64_t written;                /* of them taken by its socket */
	struct consumed_mark *marks;
	uint16_t mark_count, mark_cap;
	uint8_t consumed_due;            /* enum consumed_due */

	/* to the client */
	uint64_t sent, drained;          /* bytes of records */
	uint64_t server_records;
	uint32_t pass_epoch;             /* PASSING: next_epoch of the MOVE */
	char *pass_target;
};

/* OPEN. @carrier calls the connection until it has ended; endpoints are taken over. NULL: out of memory. */
struct connection *connection_open(struct agent_worker *home, struct carrier *carrier, const struct tls_listener *listener,
				   const struct connection_id *id, Cssl__LinkOpen__Disposition disposition,
				   Cssl__Endpoints *endpoints);

/* SSL_ID. Adopts or refuses (carrier's adopted or refused); NULL when refused. Endpoints are taken out of @id. */
struct connection *connection_adopt(struct agent_worker *home, struct carrier *carrier, Cssl__LinkSslId *id);

/* Whole client records; changed in place. */
void connection_records(struct connection *c, uint8_t *data, size_t len);
/* The client took records: @drained bytes in all; the commits reached @write_generation. */
void connection_accepted(struct connection *c, const struct frame_accepted *accepted);
/* The client's bare FIN. */
void connection_fin(struct connection *c);
/* The client broke the record layer: say the alert and end. */
void connection_violation(struct connection *c, const struct frame_violation *v);
/* Freeze and hand off towards another agent. */
void connection_move(struct connection *c, const Cssl__LinkMove *move);
/* The client or the carrier is gone, or the successor has adopted (DETACH): forget all; the carrier is not called again. */
void connection_forget(struct connection *c, enum end_reason reason);

const char *connection_state_name(enum connection_state state);

#endif
