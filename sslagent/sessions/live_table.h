/* live_table.h: live parts of connections of other agents, from the broadcast: the newest of each connection. A live
 * part leaves when its connection ended or has newer keys, when its owner is lost for too long, at its expiry, or to
 * make room. A missing one does no harm: RAgent holds a sealed copy of each. Thread-safe.
 */
#pragma once

#include "sslagent/sessions/shelf.h"

struct connections_seen;

/* A live part of another agent's connection. */
struct live_object {
	struct shelved shelved; /* first; shelved.from: its owner */
	int64_t exported_ms;    /* time in the live part */
	uint32_t read_generation, write_generation;
	uint16_t epoch;
	struct connection_id id;
	uint8_t encoded[];
};

struct shelf *live_table_create(uint64_t bytes); /* NULL: out of memory; shelf_destroy() */

/* @offer has a live part; @seen knows which connections ended. 0; CSSL_E_REPLAY: not newer than the known one;
 * CSSL_E_EXPIRED; CSSL_E_FULL; CSSL_E_NO_MEMORY. Counted. */
int live_table_put(struct shelf *t, struct connections_seen *seen, const struct offer *offer, int64_t now_ms);

/* Find a live part and decode it into @out (destroy it), with its ages at @now_ms. 0 or CSSL_E_NOT_FOUND. */
struct live_wanted {
	const struct connection_id *id;
	uint16_t epoch_below;
	uint32_t read_generation, write_generation;
};
int live_table_find(struct shelf *t, const struct live_wanted *wanted, int64_t now_ms, struct sess_obj *out);

/* Another agent owns the connection under these generations. */
struct live_adopted {
	const struct connection_id *id;
	uint16_t epoch;
	uint32_t read_generation, write_generation;
	agent_index owner;
};
void live_table_adopted(struct shelf *t, const struct live_adopted *adopted);

/* The connection ended, or this agent owns it now. */
void live_table_drop(struct shelf *t, const struct connection_id *id);
/* Drop all live parts of @owner, which was lost for too long. */
void live_table_drop_owner(struct shelf *t, agent_index owner);

const uint8_t *live_table_encoded(const struct shelved *o, size_t *len);
