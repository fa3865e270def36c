/* held_client.h: a client of the hostile RAgent: its connection, what it said, and what agents said of it. It is served
 * as a RAgent serves it, until its user does something else with what the agents gave.
 */
#pragma once

#include "net/socket/endpoints.h"
#include "net/stream/stream.h"
#include "ragent/connection/ownership/position.h"
#include "tests/lib/hostile/agent_link.h"

#define COPY_MAX     4096u
#define RECORDS_MAX  512u
#define RECORD_BYTES (256u * 1024u)

enum held_state { HELD_HANDSHAKING, HELD_OWNED, HELD_FROZEN, HELD_GIVEN, HELD_OVER };

struct held_client {
	struct hearer hearer;
	struct stream stream;
	struct held_client *next;
	unsigned number;
	uint8_t id[16];
	uint32_t epoch;
	enum held_state state;
	const char *listener;
	struct agent_link *link;
	uint32_t at; /* its stream there */
	struct endpoints endpoints;
	struct position position;
	uint64_t drained;
	uint8_t copy[COPY_MAX];
	size_t copy_len;
	/* All bytes of the client; record n begins at starts[n]. */
	uint8_t said[RECORD_BYTES];
	size_t said_len, starts[RECORDS_MAX + 1];
	unsigned records, sent; /* whole ones; of them, given to the owner */
};

/* @fd is owned. It is given to @link, to be handed off where @hand_off, else kept; as connection @id, or one of a
 * random id if @id is NULL. */
struct held_client *held_client_create(struct worker *w, int fd, const char *listener, struct agent_link *link,
	int hand_off, unsigned number, const uint8_t *id);
/* Give to @stream of @link what the client said from record @first on. The number of records. */
unsigned held_client_replay(const struct held_client *c, struct agent_link *link, uint32_t stream, uint64_t first);
/* Another agent is asked to adopt it. If its owner ends before the answer comes, that is no end of it. */
void held_client_is_given(struct held_client *c);
/* From now on @stream of @link, adopted under @epoch, is its owner. */
void held_client_goes_on(struct held_client *c, struct agent_link *link, uint32_t stream, uint32_t epoch);
