/* dispatcher.h: one RAgent worker with fake agents and real client sockets, all on the test's own loop. */
#pragma once

#include "proto/tls_record.h"
#include "ragent/connection/connection_body.h"
#include "ragent/worker/ragent_worker.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/ragent/fake_agent.h"

#define AGENTS 3

/* What a test wants different; NULL: the default. Each is YAML, `\n`-terminated lines. */
struct dispatcher_wish {
	const char *limits;              /* under limits: */
	const char *health;              /* under health: */
	const char *moves;               /* under moves: */
	const char *listener;            /* of listener sf, over the defaults */
	enum link_protection protection; /* 0: trusted */
	enum link_bytes bytes;           /* of links, as far as agents can */
	enum { AGENTS_SAY_NOTHING, AGENTS_NAME_THEMSELVES } processes;
	enum { LINK_STREAMS_END, LINK_STREAMS_OUTLIVE } streams; /* OUTLIVE: RAgent has notes as if it had a keeper */
	enum {
		MEMORY_ENDS,
		MEMORY_OUTLIVES
	} memory;        /* OUTLIVES, with such streams: it has a table, too (next_life.h) */
	unsigned agents; /* 0: AGENTS */
};

extern struct dispatcher {
	struct conf *conf;
	struct key_ring ring;
	struct ragent_shared shared;
	struct ragent_worker *rw;
	struct fake_agent *agents[AGENTS];
	void (*before_stop)(void); /* NULL: nothing */
} d;

/* Start, and turn until every agent is up. */
void dispatcher_start(const struct dispatcher_wish *wish);
/* Stop: connections are reset at once. Asserts that everything closed. */
void dispatcher_stop(void);
int dispatcher_suite_run(const char *name, const TTest *const *facts, size_t count);

/* How many of the agents would get something new. */
size_t agents_up(void);

/* A client of listener "sf" (or another). Non-blocking. */
int client_connect(const char *listener);
/* As if the process at the other end of the first link to @agent were a child, which only waits; until it is killed. */
pid_t agent_becomes_child(int agent);
void child_dies(pid_t child);

/* A whole record of @body bytes of @fill; returns its length. */
#define RECORD_OF(body) (TLS_RECORD_HEADER_LEN + (body))
size_t record_make(uint8_t *out, uint8_t type, uint16_t body, uint8_t fill);
void client_send_record(int fd, uint8_t type, uint16_t body, uint8_t fill);
/* Both wait. */
void client_expect(int fd, const void *bytes, size_t len);
void client_expect_fin(int fd);
void client_expect_reset(int fd);
/* A fatal alert in the clear and FIN: of who has seen nothing of a server. */
void client_expect_refusal(int fd);

/* The only connection. */
struct connection *connection_only(void);
/* The one that came last. */
struct connection *connection_newest(void);

/* A frame of @type at whichever agent; waits. *agent: its index. */
struct fake_frame *frame_anywhere(enum frame_type type, int *agent);
/* At that agent; waits. */
struct fake_frame *frame_at(int agent, enum frame_type type);
/* None of that type comes to any agent, as far as a few turns can tell. */
void no_frame(enum frame_type type);

/* A connection from its hello to its first owner. */
struct live_connection {
	int fd;    /* the client's */
	int agent; /* current owner */
	uint32_t stream;
	int handshake_agent;
	uint64_t client_records, server_records, write_sequence;
	uint16_t version; /* 0: TLS 1.3 */
};

/* A hello came, the agent answered with one record of 100 bytes, the client said a second record; the agent says KEPT,
 * or HANDED_OFF and another adopts. @checkpoint: as the agent says. */
void connection_keep(struct live_connection *l, const char *listener, int at_checkpoint);
void connection_hand_off(struct live_connection *l);
/* The steps of it. */
void hello_send(struct live_connection *l, const char *listener, Cssl__LinkOpen__Disposition *asked);
void handshake_finish(struct live_connection *l); /* up to KEPT or HANDED_OFF */
void server_send(struct live_connection *l, uint8_t type, uint16_t body, uint8_t fill, uint8_t flags);
void live_say(struct live_connection *l, enum frame_type type, int at_checkpoint, Cssl__BackendHalf backend,
	const char *copy);
/* The SSL_ID that comes to @agent (-1: whichever); @l then stands for the new ownership, not adopted yet. */
Cssl__LinkSslId *ssl_id_take(struct live_connection *l, int agent);
void adopted_say(struct live_connection *l, uint32_t epoch);
/* FINISH comes to its agent, which says goodbye and ends it. The reason. */
enum end_reason goodbye_say(struct live_connection *l);
