/* live_table.c: shards by the connection's random id, a hash table and a queue by age in each. */
#include "sslagent/sessions/live_table.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/connections_seen.h"
#include "sslagent/sessions/object_memory.h"

#define SHARDS_MAX     16u
#define SHARD_MIN      (256u * 1024u)
#define TYPICAL_COST   640u
#define EXPIRE_BUCKETS 1024u

struct held {
	struct held *next;          /* bucket */
	struct held *newer, *older; /* the shard's queue */
	struct connection_id id;
	int64_t made_ms, family_made_ms, expires_ms;
	int64_t exported_ms; /* time in the live part */
	uint32_t read_generation, write_generation;
	uint32_t len;
	uint16_t epoch;
	agent_index owner;
	uint8_t encoded[];
};

struct shard {
	pthread_mutex_t lock;
	struct object_memory *memory;
	struct held **buckets;
	struct held *oldest, *newest;
	size_t bucket_count, count;
	uint64_t limit, used;
} __attribute__((aligned(64)));

struct live_table {
	struct connections_seen *seen;
	size_t shard_count;
	size_t expire_shard, expire_bucket;
	struct shard shards[];
};

static int shard_init(struct shard *s, uint64_t limit)
{
	*s = (struct shard){ .limit = limit, .bucket_count = 16 };
	while (s->bucket_count < limit / TYPICAL_COST)
		s->bucket_count *= 2;
	pthread_mutex_init(&s->lock, NULL);
	s->memory = object_memory_create();
	s->buckets = calloc(s->bucket_count, sizeof(struct held *));
	return s->memory && s->buckets ? 0 : CSSL_E_NO_MEMORY;
}

struct live_table *live_table_create(uint64_t bytes, struct connections_seen *seen)
{
	struct live_table *t;
	size_t shard_count = 1;

	while (shard_count < SHARDS_MAX && bytes / (shard_count * 2) >= SHARD_MIN)
		shard_count *= 2;
	t = aligned_alloc(_Alignof(struct shard), sizeof *t + shard_count * sizeof(struct shard));
	if (!t)
		return NULL;
	*t = (struct live_table){ .seen = seen };
	while (t->shard_count < shard_count)
		if (shard_init(&t->shards[t->shard_count++], bytes / shard_count) != 0)
			goto failed;
	return t;
failed:
	live_table_destroy(t);
	return NULL;
}

static size_t held_cost(const struct held *h)
{
	return object_memory_cost(sizeof *h + h->len);
}

static struct held **link_of(struct shard *s, const struct connection_id *id)
{
	struct held **link;
	uint64_t hash;

	memcpy(&hash, id->bytes + 8, sizeof hash);
	link = &s->buckets[hash & (s->bucket_count - 1)];
	while (*link && memcmp(&(*link)->id, id, sizeof *id) != 0)
		link = &(*link)->next;
	return link;
}

static void remove_at(struct shard *s, struct held **link)
{
	struct held *h = *link;

	*link = h->next;
	*(h->older ? &h->older->newer : &s->oldest) = h->newer;
	*(h->newer ? &h->newer->older : &s->newest) = h->older;
	s->used -= held_cost(h);
	s->count--;
	object_free(s->memory, h, sizeof *h + h->len);
}

static void add(struct shard *s, struct held *h)
{
	struct held **link = link_of(s, &h->id);

	assert(!*link);
	*link = h;
	h->older = s->newest;
	*(s->newest ? &s->newest->newer : &s->oldest) = h;
	s->newest = h;
	s->used += held_cost(h);
	s->count++;
}

void live_table_destroy(struct live_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->shard_count; i++) {
		struct shard *s = &t->shards[i];

		while (s->oldest)
			remove_at(s, link_of(s, &s->oldest->id));
		free(s->buckets);
		object_memory_destroy(s->memory);
		pthread_mutex_destroy(&s->lock);
	}
	free(t);
}

static struct shard *lock_shard(struct live_table *t, const struct connection_id *id)
{
	struct shard *s = &t->shards[id->bytes[0] & (t->shard_count - 1)];

	pthread_mutex_lock(&s->lock);
	return s;
}

/* Each owner has a higher epoch; each key change of an owner has a higher generation. Under the same keys the time
 * tells the export at the freeze from earlier exports. */
static int is_newer(const struct live_part *l, const struct held *than)
{
	if (l->epoch != than->epoch)
		return l->epoch > than->epoch;
	if (l->read_generation == than->read_generation && l->write_generation == than->write_generation)
		return l->made_ms > than->exported_ms;
	return l->read_generation >= than->read_generation && l->write_generation >= than->write_generation;
}

static int put_locked(struct shard *s, const struct live_offer *offer, int64_t expires_ms)
{
	const struct live_part *l = offer->obj->live;
	struct held **link = link_of(s, &l->connection), *h;
	size_t cost = object_memory_cost(sizeof *h + offer->len);

	if (*link && !is_newer(l, *link))
		return CSSL_E_REPLAY;
	if (cost > s->limit)
		return CSSL_E_FULL;
	h = object_alloc(s->memory, sizeof *h + offer->len);
	if (!h)
		return CSSL_E_NO_MEMORY;
	if (*link)
		remove_at(s, link);
	while (s->used + cost > s->limit) {
		remove_at(s, link_of(s, &s->oldest->id));
		count(COUNT_LIVE_EVICTED);
	}
	h->id = l->connection;
	h->made_ms = offer->made_ms;
	h->family_made_ms = offer->family_made_ms;
	h->expires_ms = expires_ms;
	h->exported_ms = l->made_ms;
	h->read_generation = l->read_generation;
	h->write_generation = l->write_generation;
	h->epoch = l->epoch;
	h->owner = offer->owner;
	h->len = (uint32_t)offer->len;
	memcpy(h->encoded, offer->encoded, offer->len);
	add(s, h);
	return 0;
}

int live_table_put(struct live_table *t, const struct live_offer *offer, int64_t now_ms)
{
	const struct live_part *l = offer->obj->live;
	int64_t expires_ms = offer->made_ms + (int64_t)l->remaining_s * 1000;
	struct shard *s;
	int result;

	/* Look up under the lock: the end of a connection is noted first; then its entry here is dropped. */
	s = lock_shard(t, &l->connection);
	if (expires_ms <= now_ms || connections_seen_stopped(t->seen, &l->connection))
		result = CSSL_E_EXPIRED;
	else
		result = put_locked(s, offer, expires_ms);
	pthread_mutex_unlock(&s->lock);
	count(result ? COUNT_LIVE_REFUSED : COUNT_LIVE_STORED);
	return result;
}

static uint32_t age_s(int64_t made_ms, int64_t now_ms)
{
	int64_t age = (now_ms - made_ms) / 1000;

	return age < UINT32_MAX ? (uint32_t)age : UINT32_MAX;
}

static int decode_aged(const struct held *h, int64_t now_ms, struct sess_obj *out)
{
	int r = sess_obj_decode(h->encoded, h->len, out);

	if (r)
		return r;
	out->facts.family_age_s = age_s(h->family_made_ms, now_ms);
	out->live->remaining_s = (uint32_t)((h->expires_ms - now_ms + 999) / 1000);
	return 0;
}

int live_table_find(struct live_table *t, const struct live_wanted *wanted, int64_t now_ms, struct sess_obj *out)
{
	struct shard *s = lock_shard(t, wanted->id);
	const struct held *h = *link_of(s, wanted->id);
	int r = CSSL_E_NOT_FOUND;

	if (h && h->expires_ms > now_ms && h->epoch < wanted->epoch_below &&
		h->read_generation == wanted->read_generation && h->write_generation == wanted->write_generation)
		r = decode_aged(h, now_ms, out);
	pthread_mutex_unlock(&s->lock);
	return r;
}

void live_table_adopted(struct live_table *t, const struct live_adopted *adopted)
{
	struct shard *s = lock_shard(t, adopted->id);
	struct held **link = link_of(s, adopted->id), *h = *link;

	if (h && h->epoch <= adopted->epoch) {
		h->owner = adopted->owner;
		if (h->read_generation < adopted->read_generation || h->write_generation < adopted->write_generation) {
			remove_at(s, link);
			count(COUNT_LIVE_DROPPED);
		}
	}
	pthread_mutex_unlock(&s->lock);
}

void live_table_drop(struct live_table *t, const struct connection_id *id)
{
	struct shard *s = lock_shard(t, id);
	struct held **link = link_of(s, id);

	if (*link) {
		remove_at(s, link);
		count(COUNT_LIVE_DROPPED);
	}
	pthread_mutex_unlock(&s->lock);
}

static void drop_of_owner(struct shard *s, agent_index owner)
{
	for (struct held *newer, *h = s->oldest; h; h = newer) {
		newer = h->newer;
		if (h->owner != owner)
			continue;
		remove_at(s, link_of(s, &h->id));
		count(COUNT_LIVE_DROPPED);
	}
}

void live_table_drop_owner(struct live_table *t, agent_index owner)
{
	for (size_t i = 0; i < t->shard_count; i++) {
		struct shard *s = &t->shards[i];

		pthread_mutex_lock(&s->lock);
		drop_of_owner(s, owner);
		pthread_mutex_unlock(&s->lock);
	}
}

static void expire_bucket(struct shard *s, struct held **link, int64_t now_ms)
{
	while (*link) {
		if ((*link)->expires_ms > now_ms) {
			link = &(*link)->next;
			continue;
		}
		remove_at(s, link);
		count(COUNT_LIVE_DROPPED);
	}
}

void live_table_expire(struct live_table *t, int64_t now_ms)
{
	struct shard *s = &t->shards[t->expire_shard];
	size_t last = t->expire_bucket + EXPIRE_BUCKETS;

	if (last > s->bucket_count)
		last = s->bucket_count;
	pthread_mutex_lock(&s->lock);
	for (size_t bucket = t->expire_bucket; bucket < last; bucket++)
		expire_bucket(s, &s->buckets[bucket], now_ms);
	pthread_mutex_unlock(&s->lock);
	t->expire_bucket = last % s->bucket_count;
	if (t->expire_bucket == 0)
		t->expire_shard = (t->expire_shard + 1) % t->shard_count;
}

size_t live_table_count(struct live_table *t)
{
	size_t sum = 0;

	for (size_t i = 0; i < t->shard_count; i++) {
		pthread_mutex_lock(&t->shards[i].lock);
		sum += t->shards[i].count;
		pthread_mutex_unlock(&t->shards[i].lock);
	}
	return sum;
}

uint64_t live_table_bytes(struct live_table *t)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < t->shard_count; i++) {
		pthread_mutex_lock(&t->shards[i].lock);
		sum += t->shards[i].used;
		pthread_mutex_unlock(&t->shards[i].lock);
	}
	return sum;
}

static enum live_walk walk_bucket(
	const struct held *h, int64_t now_ms, enum live_walk (*fn)(void *ctx, const struct live_held *held), void *ctx)
{
	enum live_walk walk = LIVE_GO_ON;

	for (; h; h = h->next) {
		struct live_held held = { h->encoded, h->len, h->made_ms, h->family_made_ms };

		if (h->expires_ms > now_ms && fn(ctx, &held) == LIVE_PAUSE)
			walk = LIVE_PAUSE;
	}
	return walk;
}

int live_table_walk(struct live_table *t, uint64_t *cursor, int64_t now_ms,
	enum live_walk (*fn)(void *ctx, const struct live_held *held), void *ctx)
{
	size_t per_shard = t->shards[0].bucket_count;
	enum live_walk walk = LIVE_GO_ON;

	while (walk == LIVE_GO_ON && *cursor < per_shard * t->shard_count) {
		struct shard *s = &t->shards[*cursor / per_shard];
		size_t bucket = *cursor % per_shard;

		pthread_mutex_lock(&s->lock);
		while (walk == LIVE_GO_ON && bucket < per_shard)
			walk = walk_bucket(s->buckets[bucket++], now_ms, fn, ctx);
		pthread_mutex_unlock(&s->lock);
		*cursor = (uint64_t)(s - t->shards) * per_shard + bucket;
	}
	return *cursor < per_shard * t->shard_count;
}
