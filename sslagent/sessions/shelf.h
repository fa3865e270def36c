/* shelf.h: encoded objects by a random id, bounded in bytes: shards with a lock each, a hash table and two queues by
 * age in each. The sessions that this agent can resume (store.h) and the live parts of other agents (live_table.h)
 * stand on one each. Thread-safe where no shard is named; a named shard is locked by the caller.
 */
#pragma once

#include <pthread.h>
#include <sys/queue.h>

#include "net/memory/table.h"
#include "proto/sess_obj.h"
#include "sslagent/counters.h"

/* An agent's index in the cluster file. */
typedef uint16_t agent_index;

/* An object for a shelf. Times are this process's monotonic milliseconds. */
enum stored_by { STORED_HEARD, STORED_OWN };
struct offer {
	const struct sess_obj *obj;
	const uint8_t *encoded; /* the same */
	size_t len;
	int64_t made_ms; /* the time at which its ages were right */
	int64_t family_made_ms;
	enum stored_by by;
	agent_index from;
};

/* The beginning of each object. The fields that a walk reads stand together. */
enum shelf_queue_of { SHELF_FIRST, SHELF_SECOND, SHELF_QUEUES }; /* objects of the second queue are evicted last */
struct shelved {
	struct shelved *next; /* bucket */
	TAILQ_ENTRY(shelved) in_queue;
	int64_t made_ms, family_made_ms, expires_ms;
	uint32_t len;  /* of the whole object */
	uint8_t queue; /* enum shelf_queue_of */
	uint8_t by;    /* enum stored_by */
	agent_index from;
};
TAILQ_HEAD(shelf_queue, shelved);

struct shelf_shard {
	pthread_mutex_t lock;
	struct object_memory *memory;
	struct shelved **buckets;                /* in the order of ranks */
	struct shelf_queue queues[SHELF_QUEUES]; /* the oldest first */
	uint64_t used[SHELF_QUEUES];             /* bytes */
	uint64_t limit, count;
	struct table groups; /* the owner's */
} __attribute__((aligned(64)));

struct shelf_kind {
	size_t object_len; /* of the struct that begins with a struct shelved, without the bytes behind it */
	size_t id_at, id_len;
	uint64_t (*rank)(const uint8_t *id);                             /* its order in the shelf; random */
	void (*on_remove)(struct shelf_shard *shard, struct shelved *o); /* may be NULL */
	enum agent_counter expired, evicted;
};

struct shelf;
struct shelf *shelf_create(const struct shelf_kind *kind, uint64_t bytes); /* NULL: out of memory */
void shelf_destroy(struct shelf *s);

struct shelf_shard *shelf_lock(struct shelf *s, const uint8_t *id);
void shelf_unlock(struct shelf_shard *shard);
struct shelved *shelf_find(const struct shelf *s, const struct shelf_shard *shard, const uint8_t *id);
/* The same, if it has not expired; else it is removed. */
struct shelved *shelf_find_alive(struct shelf *s, struct shelf_shard *shard, const uint8_t *id, int64_t now_ms);
/* Add an object with @len bytes behind its struct, as the newest of the first queue, and evict others if needed. Its id
 * and the values of @offer are set, all else is zero. 0, CSSL_E_FULL (larger than the shard), CSSL_E_NO_MEMORY. */
int shelf_add(struct shelf *s, struct shelf_shard *shard, const uint8_t *id, const struct offer *offer, size_t len,
	struct shelved **out);
void shelf_remove(struct shelf *s, struct shelf_shard *shard, struct shelved *o);
/* Make it the newest of that queue. */
void shelf_move(struct shelf_shard *shard, struct shelved *o, enum shelf_queue_of to);
/* The bytes that an object with @len bytes behind its struct would take. */
size_t shelf_cost(const struct shelf *s, size_t len);

/* Decode into @out (the caller destroys it), with its ages and remaining times at @now_ms. 0 or negative. */
int shelved_decode(const struct shelved *o, const uint8_t *encoded, size_t len, int64_t now_ms, struct sess_obj *out);

/* All objects in steps of whole hash buckets. Each call goes on at *@cursor (0 at first) until @fn has said WALK_PAUSE
 * and the bucket is done. A walk may miss objects that come or go between its steps. 1: there is more; 0: that was all.
 * @fn may use the object during the call only. */
enum walk { WALK_ON, WALK_PAUSE };
typedef enum walk (*shelf_walk_fn)(void *ctx, const struct shelved *o);
bool shelf_walk(struct shelf *s, uint64_t *cursor, int64_t now_ms, shelf_walk_fn fn, void *ctx);
/* The cursor at which a walk meets that id, even if it is not there. It is the same in all shelves of one size. */
uint64_t shelf_position(const struct shelf *s, const uint8_t *id);

/* Remove the objects for which @is_over is not 0; of @id (NULL: all) only. Returns how many were removed. */
uint64_t shelf_sweep(
	struct shelf *s, const uint8_t *id, bool (*is_over)(const void *ctx, const struct shelved *o), const void *ctx);
/* Drop some of what is over; call it often. */
void shelf_expire(struct shelf *s, int64_t now_ms);
/* @bytes may be NULL. */
uint64_t shelf_count(struct shelf *s, uint64_t *bytes);
