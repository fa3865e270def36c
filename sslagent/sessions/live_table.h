/* live_table.h: live parts of connections of other agents, from the broadcast: the newest of each connection. A live
 * part leaves when its connection ended or has newer keys, when its owner is lost for too long, at its expiry, or to
 * make room. A missing one does no harm: RAgent holds a sealed copy of each. Thread-safe.
 */
#ifndef CSSL_SSLAGENT_LIVE_TABLE_H
#define CSSL_SSLAGENT_LIVE_TABLE_H

#include "proto/sess_obj.h"

struct connections_seen;
struct live_table;

/* An agent's index in the cluster file. */
typedef uint16_t agent_index;

/* @seen outlives it; it knows which connections ended. */
struct live_table *live_table_create(uint64_t bytes, struct connections_seen *seen);
void live_table_destroy(struct live_table *t);

struct live_offer {
	const struct sess_obj *obj; /* with a live part */
	const uint8_t *encoded;     /* the same */
	size_t len;
	int64_t made_ms, family_made_ms;
	agent_index owner;
};
/* 0; CSSL_E_REPLAY: not newer than the known one; CSSL_E_EXPIRED; CSSL_E_FULL; CSSL_E_NO_MEMORY. Counted. */
int live_table_put(struct live_table *t, const struct live_offer *offer, int64_t now_ms);

/* Find a live part and decode it into @out (destroy it), with its ages at @now_ms. 0 or CSSL_E_NOT_FOUND. */
struct live_wanted {
	const struct connection_id *id;
	uint16_t epoch_below;
	uint32_t read_generation, write_generation;
};
int live_table_find(struct live_table *t, const struct live_wanted *wanted, int64_t now_ms, struct sess_obj *out);

/* Another agent owns the connection under these generations. */
struct live_adopted {
	const struct connection_id *id;
	uint16_t epoch;
	uint32_t read_generation, write_generation;
	agent_index owner;
};
void live_table_adopted(struct live_table *t, const struct live_adopted *adopted);

/* The connection ended, or this agent owns it now. */
void live_table_drop(struct live_table *t, const struct connection_id *id);
/* Drop all live parts of @owner, which was lost for too long. */
void live_table_drop_owner(struct live_table *t, agent_index owner);
/* Some of what is over; call it often. */
void live_table_expire(struct live_table *t, int64_t now_ms);

size_t live_table_count(struct live_table *t);
uint64_t live_table_bytes(struct live_table *t); /* bytes in use */

/* For a snapshot, in steps: as store_walk(). */
struct live_held {
	const uint8_t *encoded;
	size_t len;
	int64_t made_ms, family_made_ms;
};
enum live_walk { LIVE_GO_ON, LIVE_PAUSE };
int live_table_walk(struct live_table *t, uint64_t *cursor, int64_t now_ms,
	enum live_walk (*fn)(void *ctx, const struct live_held *held), void *ctx);

#endif
