/* shelf.c: shards by the first bits of an id's rank, buckets by the next, so that walks meet objects nearly in the
 * order of their ids. Each call takes one shard's lock; walks take the locks one after the other. */
#include "sslagent/sessions/shelf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/sessions/object_memory.h"

#define SHARD_BITS_MAX  4u
#define BUCKET_BITS_MIN 4u
#define SHARD_MIN       (256u * 1024u) /* a shard has at least so many bytes */
#define TYPICAL_COST    640u           /* bytes of an object, for the size of the table */
#define EXPIRE_BUCKETS  2048u          /* looked at per call */
#define WALKS_AHEAD     32u            /* buckets */

struct shelf {
	const struct shelf_kind *kind;
	size_t shard_count, bucket_count; /* buckets of each shard */
	unsigned rank_shift;              /* of an id's rank, to shard and bucket */
	size_t expire_at;                 /* position at which expiry goes on */
	struct shelf_shard shards[];
};

static int shard_init(struct shelf_shard *shard, uint64_t limit, size_t bucket_count)
{
	*shard = (struct shelf_shard){ .limit = limit };
	TAILQ_INIT(&shard->queues[SHELF_FIRST]);
	TAILQ_INIT(&shard->queues[SHELF_SECOND]);
	pthread_mutex_init(&shard->lock, NULL);
	shard->memory = object_memory_create();
	shard->buckets = calloc(bucket_count, sizeof(struct shelved *));
	return shard->memory && shard->buckets ? 0 : CSSL_E_NO_MEMORY;
}

struct shelf *shelf_create(const struct shelf_kind *kind, uint64_t bytes)
{
	unsigned shard_bits = 0, bucket_bits = BUCKET_BITS_MIN;

	while (shard_bits < SHARD_BITS_MAX && bytes >> (shard_bits + 1) >= SHARD_MIN)
		shard_bits++;
	while (UINT64_C(1) << bucket_bits < (bytes >> shard_bits) / TYPICAL_COST)
		bucket_bits++;
	struct shelf *s =
		aligned_alloc(_Alignof(struct shelf_shard), sizeof *s + (sizeof(struct shelf_shard) << shard_bits));
	if (!s)
		return NULL;
	*s = (struct shelf){
		.kind = kind, .bucket_count = (size_t)1 << bucket_bits, .rank_shift = 64 - shard_bits - bucket_bits
	};
	int r = 0;
	while (!r && s->shard_count < (size_t)1 << shard_bits)
		r = shard_init(&s->shards[s->shard_count++], bytes >> shard_bits, s->bucket_count);
	if (!r)
		return s;
	shelf_destroy(s);
	return NULL;
}

void shelf_destroy(struct shelf *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->shard_count; i++) {
		struct shelf_shard *shard = &s->shards[i];

		for (unsigned queue = 0; queue < SHELF_QUEUES; queue++)
			while (!TAILQ_EMPTY(&shard->queues[queue]))
				shelf_remove(s, shard, TAILQ_FIRST(&shard->queues[queue]));
		table_clear(&shard->groups);
		free(shard->buckets);
		object_memory_destroy(shard->memory);
		pthread_mutex_destroy(&shard->lock);
	}
	free(s);
}

static uint8_t *shelf_id_of(const struct shelf *s, const struct shelved *o)
{
	return (uint8_t *)o + s->kind->id_at;
}

uint64_t shelf_position(const struct shelf *s, const uint8_t *id)
{
	return s->kind->rank(id) >> s->rank_shift;
}

struct shelf_shard *shelf_lock(struct shelf *s, const uint8_t *id)
{
	struct shelf_shard *shard = &s->shards[shelf_position(s, id) / s->bucket_count];

	pthread_mutex_lock(&shard->lock);
	return shard;
}

void shelf_unlock(struct shelf_shard *shard)
{
	pthread_mutex_unlock(&shard->lock);
}

static struct shelved **shelf_bucket_of(const struct shelf *s, const struct shelf_shard *shard, const uint8_t *id)
{
	return &shard->buckets[shelf_position(s, id) % s->bucket_count];
}

struct shelved *shelf_find(const struct shelf *s, const struct shelf_shard *shard, const uint8_t *id)
{
	struct shelved *o = *shelf_bucket_of(s, shard, id);

	while (o && memcmp(shelf_id_of(s, o), id, s->kind->id_len) != 0)
		o = o->next;
	return o;
}

struct shelved *shelf_find_alive(struct shelf *s, struct shelf_shard *shard, const uint8_t *id, int64_t now_ms)
{
	struct shelved *o = shelf_find(s, shard, id);

	if (!o || o->expires_ms > now_ms)
		return o;
	shelf_remove(s, shard, o);
	count(s->kind->expired);
	return NULL;
}

size_t shelf_cost(const struct shelf *s, size_t len)
{
	return object_memory_cost(s->kind->object_len + len);
}

static void shelf_enter_queue(struct shelf_shard *shard, struct shelved *o, enum shelf_queue_of queue)
{
	o->queue = (uint8_t)queue;
	shard->used[queue] += object_memory_cost(o->len);
	TAILQ_INSERT_TAIL(&shard->queues[queue], o, in_queue);
}

static void shelf_leave_queue(struct shelf_shard *shard, struct shelved *o)
{
	shard->used[o->queue] -= object_memory_cost(o->len);
	TAILQ_REMOVE(&shard->queues[o->queue], o, in_queue);
}

void shelf_move(struct shelf_shard *shard, struct shelved *o, enum shelf_queue_of to)
{
	shelf_leave_queue(shard, o);
	shelf_enter_queue(shard, o, to);
}

void shelf_remove(struct shelf *s, struct shelf_shard *shard, struct shelved *o)
{
	struct shelved **link = shelf_bucket_of(s, shard, shelf_id_of(s, o));

	while (*link != o)
		link = &(*link)->next;
	*link = o->next;
	shelf_leave_queue(shard, o);
	shard->count--;
	if (s->kind->on_remove)
		s->kind->on_remove(shard, o);
	object_free(shard->memory, o, o->len);
}

static void shelf_evict(struct shelf *s, struct shelf_shard *shard)
{
	struct shelved *oldest = TAILQ_FIRST(&shard->queues[SHELF_FIRST]);

	if (!oldest)
		oldest = TAILQ_FIRST(&shard->queues[SHELF_SECOND]);
	assert(oldest);
	shelf_remove(s, shard, oldest);
	count(s->kind->evicted);
}

int shelf_add(struct shelf *s, struct shelf_shard *shard, const uint8_t *id, const struct offer *offer, size_t len,
	struct shelved **out)
{
	const size_t cost = shelf_cost(s, len);
	struct shelved *o, **bucket = shelf_bucket_of(s, shard, id);

	if (cost > shard->limit)
		return CSSL_E_FULL;
	while (shard->used[SHELF_FIRST] + shard->used[SHELF_SECOND] + cost > shard->limit)
		shelf_evict(s, shard);
	*out = o = object_alloc(shard->memory, s->kind->object_len + len);
	if (!o)
		return CSSL_E_NO_MEMORY;
	o->len = (uint32_t)(s->kind->object_len + len);
	o->made_ms = offer->made_ms;
	o->family_made_ms = offer->family_made_ms;
	o->by = (uint8_t)offer->by;
	o->from = offer->from;
	memcpy(shelf_id_of(s, o), id, s->kind->id_len);
	o->next = *bucket;
	*bucket = o;
	shelf_enter_queue(shard, o, SHELF_FIRST);
	shard->count++;
	return 0;
}

static uint32_t shelf_seconds(int64_t ms)
{
	return ms / 1000 < UINT32_MAX ? (uint32_t)(ms / 1000) : UINT32_MAX;
}

int shelved_decode(const struct shelved *o, const uint8_t *encoded, size_t len, int64_t now_ms, struct sess_obj *out)
{
	int r = sess_obj_decode(encoded, len, out);

	if (r)
		return r;
	out->facts.family_age_s = shelf_seconds(now_ms - o->family_made_ms);
	*(out->live ? &out->live->remaining_s : &out->session_remaining_s) =
		shelf_seconds(o->expires_ms - now_ms + 999);
	return 0;
}

/* Objects lie anywhere in memory, so a walk prefetches the next ones, and does not wait for each. */
static enum walk walk_bucket(
	const struct shelf *s, struct shelf_shard *shard, size_t bucket, int64_t now_ms, shelf_walk_fn fn, void *ctx)
{
	const size_t ahead = bucket + WALKS_AHEAD < s->bucket_count ? bucket + WALKS_AHEAD : bucket;
	enum walk walk = WALK_ON;

	if (shard->buckets[ahead]) {
		__builtin_prefetch(shelf_id_of(s, shard->buckets[ahead]));
		__builtin_prefetch((uint8_t *)shard->buckets[ahead] + s->kind->object_len);
	}
	for (const struct shelved *o = shard->buckets[bucket]; o; o = o->next)
		if (o->expires_ms > now_ms && fn(ctx, o) == WALK_PAUSE)
			walk = WALK_PAUSE;
	return walk;
}

bool shelf_walk(struct shelf *s, uint64_t *cursor, int64_t now_ms, shelf_walk_fn fn, void *ctx)
{
	const uint64_t end = s->bucket_count * s->shard_count;
	enum walk walk = WALK_ON;

	while (walk == WALK_ON && *cursor < end) {
		struct shelf_shard *shard = &s->shards[*cursor / s->bucket_count];

		pthread_mutex_lock(&shard->lock);
		do
			walk = walk_bucket(s, shard, *cursor % s->bucket_count, now_ms, fn, ctx);
		while (++*cursor % s->bucket_count != 0 && walk == WALK_ON);
		shelf_unlock(shard);
	}
	return *cursor < end;
}

/* @count buckets of one shard from position @at on. */
static uint64_t shelf_sweep_buckets(struct shelf *s, size_t at, size_t count,
	bool (*is_over)(const void *ctx, const struct shelved *o), const void *ctx)
{
	struct shelf_shard *shard = &s->shards[at / s->bucket_count];
	uint64_t removed = 0;

	pthread_mutex_lock(&shard->lock);
	for (size_t bucket = at % s->bucket_count; count-- > 0; bucket++)
		for (struct shelved *next, *o = shard->buckets[bucket]; o; o = next) {
			next = o->next;
			if (!is_over(ctx, o))
				continue;
			shelf_remove(s, shard, o);
			removed++;
		}
	shelf_unlock(shard);
	return removed;
}

uint64_t shelf_sweep(
	struct shelf *s, const uint8_t *id, bool (*is_over)(const void *ctx, const struct shelved *o), const void *ctx)
{
	uint64_t removed = 0;

	if (id)
		return shelf_sweep_buckets(s, shelf_position(s, id), 1, is_over, ctx);
	for (size_t i = 0; i < s->shard_count; i++)
		removed += shelf_sweep_buckets(s, i * s->bucket_count, s->bucket_count, is_over, ctx);
	return removed;
}

static bool is_expired(const void *now_ms, const struct shelved *o)
{
	return o->expires_ms <= *(const int64_t *)now_ms;
}

void shelf_expire(struct shelf *s, int64_t now_ms)
{
	const size_t left = s->bucket_count - s->expire_at % s->bucket_count;
	const size_t looked_at = left < EXPIRE_BUCKETS ? left : EXPIRE_BUCKETS;

	count_by(s->kind->expired, shelf_sweep_buckets(s, s->expire_at, looked_at, is_expired, &now_ms));
	s->expire_at = (s->expire_at + looked_at) % (s->bucket_count * s->shard_count);
}

uint64_t shelf_count(struct shelf *s, uint64_t *bytes)
{
	uint64_t objects = 0, used = 0;

	for (size_t i = 0; i < s->shard_count; i++) {
		pthread_mutex_lock(&s->shards[i].lock);
		objects += s->shards[i].count;
		used += s->shards[i].used[SHELF_FIRST] + s->shards[i].used[SHELF_SECOND];
		shelf_unlock(&s->shards[i]);
	}
	if (bytes)
		*bytes = used;
	return objects;
}
