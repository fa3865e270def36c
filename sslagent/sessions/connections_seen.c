/* connections_seen.c: shards by the connection's random id. Each has its places in one array that grows as needed, a
 * hash table over them, and two queues by age: one of connections that are over, one of the others. A place is named by
 * its number; 0 is no place.
 */
#include "sslagent/sessions/connections_seen.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "conf/memory.h"
#include "net/points/fault.h"
#include "net/points/mutant.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "sslagent/counters.h"

#define SHARDS       64u
#define FIRST_PLACES 16u
#define LOG_EVERY_MS 10000

enum place_state { PLACE_FREE, PLACE_ALIVE, PLACE_AT_REST, PLACE_OVER };
enum queue { QUEUE_GOES_ON, QUEUE_OVER, QUEUES };

struct place {
	struct connection_id id;
	struct seen_mark at;
	int64_t heard_ms;
	uint32_t next;         /* bucket, or free */
	uint32_t newer, older; /* its queue */
	uint8_t state;         /* enum place_state */
	uint8_t doubt;         /* enum seen_doubt */
	uint16_t owner;        /* as in seen_claim; its epoch is the highest one */
};

struct shard {
	pthread_mutex_t lock;
	struct place *places; /* [0] is none */
	uint32_t *buckets;
	uint32_t cap, limit; /* places, without [0]; buckets are a power of two, at least as many */
	uint32_t bucket_mask;
	uint32_t used, free;
	uint32_t oldest[QUEUES], newest[QUEUES];
	struct seen_since since;
} __attribute__((aligned(64)));

struct connections_seen {
	uint32_t keep_ms;
	_Atomic int64_t logged_ms;
	struct shard shards[SHARDS];
};

_Static_assert(sizeof(struct place) + 2 * sizeof(uint32_t) == MEMORY_OF_SEEN_CONNECTION, "what --check says of one");

size_t connections_seen_places(uint64_t bytes)
{
	return (size_t)(bytes / MEMORY_OF_SEEN_CONNECTION); /* fewer than two buckets for each */
}

/* --- places --- */

static uint32_t *seen_bucket_of(const struct shard *s, const struct connection_id *id)
{
	uint64_t hash;

	memcpy(&hash, id->bytes + 8, sizeof hash);
	return &s->buckets[hash & s->bucket_mask];
}

/* To @cap places. 0 or CSSL_E_NO_MEMORY: nothing changed. */
static int seen_grow(struct shard *s, uint32_t cap)
{
	uint32_t bucket_count = 1;

	while (bucket_count < cap)
		bucket_count *= 2;
	uint32_t *buckets = calloc(bucket_count, sizeof *buckets);
	struct place *places = buckets ? realloc(s->places, (cap + 1u) * sizeof *places) : NULL;
	if (!places) {
		free(buckets);
		return CSSL_E_NO_MEMORY;
	}
	memset(&places[s->cap + 1], 0, (cap - s->cap) * sizeof *places);
	places[0] = (struct place){ 0 };
	free(s->buckets);
	s->places = places;
	s->buckets = buckets;
	s->bucket_mask = bucket_count - 1;
	for (uint32_t i = 1; i <= s->cap; i++) { /* a table grows only when no place is free */
		uint32_t *bucket = seen_bucket_of(s, &places[i].id);
		places[i].next = *bucket;
		*bucket = i;
	}
	for (uint32_t i = cap; i > s->cap; i--) {
		places[i].next = s->free;
		s->free = i;
	}
	s->cap = cap;
	return 0;
}

static struct place *seen_find(const struct shard *s, const struct connection_id *id)
{
	uint32_t i = *seen_bucket_of(s, id);

	while (i && memcmp(&s->places[i].id, id, sizeof *id) != 0)
		i = s->places[i].next;
	return i ? &s->places[i] : NULL;
}

static enum queue seen_queue_of(const struct place *p)
{
	return p->state == PLACE_OVER ? QUEUE_OVER : QUEUE_GOES_ON;
}

static void seen_leave_queue(struct shard *s, struct place *p)
{
	enum queue q = seen_queue_of(p);

	*(p->older ? &s->places[p->older].newer : &s->oldest[q]) = p->newer;
	*(p->newer ? &s->places[p->newer].older : &s->newest[q]) = p->older;
}

/* Make @p the newest of its queue: this agent heard of it at @heard_ms. */
static void seen_enter_queue(struct shard *s, struct place *p, enum place_state state, int64_t heard_ms)
{
	uint32_t number = (uint32_t)(p - s->places);

	p->state = (uint8_t)state;
	p->heard_ms = heard_ms;
	enum queue q = seen_queue_of(p);
	p->newer = 0;
	p->older = s->newest[q];
	*(p->older ? &s->places[p->older].newer : &s->oldest[q]) = number;
	s->newest[q] = number;
}

/* --- forgetting --- */

static void seen_warn(struct connections_seen *all, const struct shard *s, int64_t now_ms)
{
	int64_t logged_ms = atomic_load_explicit(&all->logged_ms, memory_order_relaxed);

	count(COUNT_CONNECTIONS_FORGOTTEN_EARLY);
	if (now_ms - logged_ms < LOG_EVERY_MS || !atomic_compare_exchange_strong(&all->logged_ms, &logged_ms, now_ms))
		return;
	log_event(LOG_WARNING, NULL, "connections forgotten early",
		"places=%u keep_s=%u effect=\"some takeovers may be refused\"", s->limit * SHARDS, all->keep_ms / 1000);
}

/* Forget a place. From now on any connection of its time or before may be a forgotten one. */
static void seen_forget(struct shard *s, uint32_t number)
{
	struct place *p = &s->places[number];
	uint32_t *link = seen_bucket_of(s, &p->id);

	while (*link != number)
		link = &s->places[*link].next;
	*link = p->next;
	seen_leave_queue(s, p);
	if (p->heard_ms >= s->since.ms)
		s->since = (struct seen_since){ p->heard_ms, SEEN_FORGOT };
	*p = (struct place){ .next = s->free };
	s->free = number;
	s->used--;
}

/* Make sure that a place is free. 0, or CSSL_E_NO_MEMORY. */
static int seen_make_room(struct connections_seen *all, struct shard *s, int64_t now_ms)
{
	uint32_t over = s->oldest[QUEUE_OVER];

	if (over && now_ms - s->places[over].heard_ms >= all->keep_ms) {
		seen_forget(s, over);
		return 0;
	}
	if (s->free)
		return 0;
	if (s->cap < s->limit) {
		uint32_t cap = s->cap ? s->cap * 2 : FIRST_PLACES;
		if (seen_grow(s, cap < s->limit ? cap : s->limit) == 0)
			return 0;
	}
	if (s->used == 0)
		return CSSL_E_NO_MEMORY;
	seen_warn(all, s, now_ms);
	/* nobody adopts what is over, so to forget it costs no connection its next owner */
	seen_forget(s, over ? over : s->oldest[QUEUE_GOES_ON]);
	return 0;
}

/* NULL: out of memory. */
static struct place *find_or_take(
	struct connections_seen *all, struct shard *s, const struct connection_id *id, int64_t now_ms)
{
	struct place *p = s->cap ? seen_find(s, id) : NULL;

	if (p) {
		seen_leave_queue(s, p);
		seen_enter_queue(s, p, p->state, now_ms);
		return p;
	}
	if (seen_make_room(all, s, now_ms) < 0)
		return NULL;
	uint32_t number = s->free, *bucket = seen_bucket_of(s, id);
	p = &s->places[number];
	s->free = p->next;
	*p = (struct place){ .id = *id, .next = *bucket };
	*bucket = number;
	s->used++;
	seen_enter_queue(s, p, PLACE_ALIVE, now_ms);
	return p;
}

/* --- life --- */

struct connections_seen *connections_seen_create(size_t places, uint32_t keep_ms, int64_t now_ms)
{
	struct connections_seen *all = aligned_alloc(_Alignof(struct shard), sizeof *all);
	size_t per_shard = places / SHARDS;

	if (!all)
		return NULL;
	memset(all, 0, sizeof *all);
	all->keep_ms = keep_ms;
	all->logged_ms = now_ms - LOG_EVERY_MS;
	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &all->shards[i];
		pthread_mutex_init(&s->lock, NULL);
		s->limit = per_shard < 1 ? 1 : per_shard > INT32_MAX ? INT32_MAX : (uint32_t)per_shard;
		s->since = (struct seen_since){ now_ms, SEEN_NOTHING_BEFORE };
	}
	return all;
}

void connections_seen_destroy(struct connections_seen *all)
{
	if (!all)
		return;
	for (unsigned i = 0; i < SHARDS; i++) {
		free(all->shards[i].places);
		free(all->shards[i].buckets);
		pthread_mutex_destroy(&all->shards[i].lock);
	}
	free(all);
}

static struct shard *lock_shard(struct connections_seen *all, const struct connection_id *id)
{
	struct shard *s = &all->shards[id->bytes[0] % SHARDS];

	pthread_mutex_lock(&s->lock);
	return s;
}

/* --- checks that refuse an ownership --- */

static bool is_before(const struct seen_mark *a, const struct seen_mark *b)
{
	if (a->write_generation != b->write_generation)
		return a->write_generation < b->write_generation;
	return a->write_sequence < b->write_sequence;
}

static bool was_sealed_further(const struct place *p, const struct seen_claim *claim)
{
	return claim->start != CLAIM_FRESH && is_before(&claim->at, &p->at);
}

/* A KeyUpdate in doubt may have the nonce of a record that the last owner sealed. Behind it the generation ends, so an
 * honest RAgent names the same position if this KeyUpdate is lost, too. At another one the KeyUpdate would have the
 * nonce of another record. */
static bool was_in_doubt_elsewhere(const struct place *p, const struct seen_claim *claim)
{
	if (p->doubt == SEEN_NO_DOUBT || claim->start != CLAIM_IN_DOUBT ||
		claim->at.write_generation != p->at.write_generation)
		return false;
	return p->doubt == SEEN_DOUBT_BEFORE_MARK || claim->at.write_sequence != p->at.write_sequence;
}

static bool had_later_owner(const struct place *p, const struct seen_claim *claim)
{
	return claim->start == CLAIM_CONTINUES && claim->part_epoch < p->at.epoch;
}

/* This agent knows nothing from before its start, or before the start of the first agent that told it. A live part from
 * that time may be right. For keep_ms it is accepted, but no owner may continue from it. */
static bool may_be_forgotten(
	const struct connections_seen *all, const struct shard *s, const struct seen_claim *claim, int64_t now_ms)
{
	if (claim->start == CLAIM_BEGINS || claim->made_ms > s->since.ms || mutant("forgetting-ignored"))
		return false;
	return s->since.before == SEEN_FORGOT || claim->start == CLAIM_CONTINUES ||
	       now_ms - s->since.ms >= all->keep_ms;
}

static int seen_deny(enum agent_counter why, int error)
{
	count(why);
	return error;
}

static int seen_judge(const struct connections_seen *all, const struct shard *s, const struct place *p,
	const struct seen_claim *claim, int64_t now_ms)
{
	if (!p)
		return may_be_forgotten(all, s, claim, now_ms) ? seen_deny(COUNT_ADOPTS_FORGOTTEN, CSSL_E_EXPIRED) : 0;
	/* law 2: whatever RAgent says, an epoch has one owner */
	if (claim->at.epoch <= p->at.epoch && !mutant("epoch-unchecked"))
		return seen_deny(COUNT_EPOCHS_REFUSED, CSSL_E_REPLAY);
	if (p->owner != SEEN_NO_OWNER)
		return seen_deny(COUNT_ADOPTS_OWNED_HERE, CSSL_E_BUSY);
	if (had_later_owner(p, claim) && !mutant("later-owner-ignored"))
		return seen_deny(COUNT_ADOPTS_STALE, CSSL_E_REPLAY);
	/* law 3: RAgent is not trusted against what is known here */
	if (was_sealed_further(p, claim) && !mutant("sequence-unchecked"))
		return seen_deny(COUNT_SEQUENCES_REFUSED, CSSL_E_UNSAFE);
	/* law 5: only at one position of a generation a KeyUpdate may repeat a nonce */
	if (was_in_doubt_elsewhere(p, claim) && !mutant("doubt-unchecked"))
		return seen_deny(COUNT_SEQUENCES_REFUSED, CSSL_E_UNSAFE);
	return 0;
}

/* --- verbs --- */

/* NULL: it is not in the table. */
static struct place *seen_look_up(struct shard *s, const struct connection_id *id)
{
	struct place *p = s->cap ? seen_find(s, id) : NULL;

	if (!p || fault_at("connection.remembered", NULL, NULL) != FAULT_FAIL)
		return p;
	seen_forget(s, (uint32_t)(p - s->places));
	return NULL;
}

static void raise_to(struct shard *s, struct place *p, const struct seen_mark *at, int64_t now_ms)
{
	if (is_before(&p->at, at)) {
		p->doubt = p->doubt && p->at.write_generation == at->write_generation ? SEEN_DOUBT_BEFORE_MARK
										      : SEEN_NO_DOUBT;
		p->at.write_generation = at->write_generation;
		p->at.write_sequence = at->write_sequence;
	}
	if (at->epoch <= p->at.epoch)
		return;
	p->at.epoch = at->epoch;
	seen_leave_queue(s, p);
	seen_enter_queue(s, p, PLACE_ALIVE, now_ms);
}

/* The mark of @p is at @at or beyond. */
static void seen_put_doubt(struct place *p, const struct seen_mark *at, enum seen_doubt doubt)
{
	if (doubt == SEEN_NO_DOUBT || at->write_generation != p->at.write_generation)
		return;
	if (doubt == SEEN_DOUBT_BEFORE_MARK || at->write_sequence != p->at.write_sequence)
		p->doubt = SEEN_DOUBT_BEFORE_MARK;
	else if (p->doubt == SEEN_NO_DOUBT)
		p->doubt = SEEN_DOUBT_AT_MARK;
}

static void take_claim(struct shard *s, struct place *p, const struct seen_claim *claim, int64_t now_ms)
{
	raise_to(s, p, &claim->at, now_ms);
	p->owner = claim->owner;
	seen_put_doubt(p, &claim->at, claim->start == CLAIM_IN_DOUBT ? SEEN_DOUBT_AT_MARK : SEEN_NO_DOUBT);
}

int connections_seen_claim(
	struct connections_seen *all, const struct connection_id *id, const struct seen_claim *claim, int64_t now_ms)
{
	struct shard *s = lock_shard(all, id);
	int result = seen_judge(all, s, seen_look_up(s, id), claim, now_ms);

	if (result == 0) {
		struct place *p = find_or_take(all, s, id, now_ms);
		if (p)
			take_claim(s, p, claim, now_ms);
		else
			result = CSSL_E_NO_MEMORY;
	}
	pthread_mutex_unlock(&s->lock);
	return result;
}

bool connections_seen_knows(struct connections_seen *all, const struct connection_id *id, int64_t made_ms)
{
	struct shard *s = lock_shard(all, id);
	bool knows = seen_look_up(s, id) || made_ms > s->since.ms || mutant("forgetting-ignored");

	pthread_mutex_unlock(&s->lock);
	return knows;
}

void connections_seen_note(
	struct connections_seen *all, const struct connection_id *id, const struct seen_mark *at, int64_t now_ms)
{
	struct shard *s = lock_shard(all, id);
	struct place *p = find_or_take(all, s, id, now_ms);

	if (p)
		raise_to(s, p, at, now_ms);
	pthread_mutex_unlock(&s->lock);
}

/* The epoch of an owner of this process is the highest one that is known. */
static unsigned seen_supersede(struct place *p, uint16_t by, enum seen_word word)
{
	unsigned owner = p->owner;

	if (by < p->at.epoch || (by == p->at.epoch && word == SEEN_HEARSAY))
		return SEEN_NO_OWNER;
	/* law 2: there is a later owner, so the one here may seal no more */
	p->owner = SEEN_NO_OWNER;
	return owner;
}

unsigned connections_seen_hear(struct connections_seen *all, const struct connection_id *id, const struct seen_mark *at,
	enum seen_word word, enum seen_doubt told, int64_t now_ms)
{
	struct shard *s = lock_shard(all, id);
	struct place *p = find_or_take(all, s, id, now_ms);
	unsigned owner = p ? seen_supersede(p, at->epoch, word) : SEEN_NO_OWNER;

	if (p) {
		raise_to(s, p, at, now_ms);
		seen_put_doubt(p, at, told);
	}
	pthread_mutex_unlock(&s->lock);
	return owner;
}

void connections_seen_leave(struct connections_seen *all, const struct connection_id *id, uint16_t epoch)
{
	struct shard *s = lock_shard(all, id);
	struct place *p = s->cap ? seen_find(s, id) : NULL;

	if (p && p->at.epoch == epoch)
		p->owner = SEEN_NO_OWNER;
	pthread_mutex_unlock(&s->lock);
}

static const enum place_state stopped_as[] = { [SEEN_RESTS] = PLACE_AT_REST, [SEEN_ENDED] = PLACE_OVER };

static void stop_at(struct shard *s, struct place *p, const struct seen_mark *at, enum seen_stop stop, int64_t now_ms)
{
	bool is_late = at->epoch && at->epoch < p->at.epoch; /* the word of a former owner */

	raise_to(s, p, at, now_ms);
	if (is_late)
		return;
	p->owner = SEEN_NO_OWNER;
	seen_leave_queue(s, p);
	seen_enter_queue(s, p, stopped_as[stop], now_ms);
}

void connections_seen_stop(struct connections_seen *all, const struct connection_id *id, const struct seen_mark *at,
	enum seen_stop stop, int64_t now_ms)
{
	struct shard *s = lock_shard(all, id);
	struct place *p = find_or_take(all, s, id, now_ms);

	if (p)
		stop_at(s, p, at, stop, now_ms);
	pthread_mutex_unlock(&s->lock);
}

bool connections_seen_stopped(struct connections_seen *all, const struct connection_id *id)
{
	struct shard *s = lock_shard(all, id);
	const struct place *p = s->cap ? seen_find(s, id) : NULL;
	bool stopped = p && p->state != PLACE_ALIVE;

	pthread_mutex_unlock(&s->lock);
	return stopped;
}

size_t connections_seen_count(struct connections_seen *all)
{
	size_t sum = 0;

	for (unsigned i = 0; i < SHARDS; i++) {
		pthread_mutex_lock(&all->shards[i].lock);
		sum += all->shards[i].used;
		pthread_mutex_unlock(&all->shards[i].lock);
	}
	return sum;
}

/* --- snapshots --- */

/* The upper half of a cursor is the number of the shard, the lower half that of the place. Both numbers never change.
 */
#define CURSOR_SHARD_SHIFT 32

static struct seen_connection seen_describe(const struct place *p)
{
	return (struct seen_connection){ .id = p->id,
		.at = p->at,
		.heard_ms = p->heard_ms,
		.doubt = (enum seen_doubt)p->doubt,
		.stop = p->state == PLACE_OVER ? SEEN_ENDED : SEEN_RESTS };
}

size_t connections_seen_list(struct connections_seen *all, uint64_t *cursor, struct seen_connection *out, size_t max)
{
	size_t listed = 0;

	while (listed < max && *cursor >> CURSOR_SHARD_SHIFT < SHARDS) {
		uint64_t shard = *cursor >> CURSOR_SHARD_SHIFT, number = (uint32_t)*cursor;
		struct shard *s = &all->shards[shard];

		pthread_mutex_lock(&s->lock);
		while (listed < max && number < s->cap)
			if (s->places[++number].state != PLACE_FREE)
				out[listed++] = seen_describe(&s->places[number]);
		bool is_done = number >= s->cap;
		pthread_mutex_unlock(&s->lock);
		*cursor = is_done ? (shard + 1) << CURSOR_SHARD_SHIFT : shard << CURSOR_SHARD_SHIFT | number;
	}
	return listed;
}

unsigned connections_seen_take(struct connections_seen *all, const struct seen_connection *seen, int64_t now_ms)
{
	unsigned owner;

	if (seen->stop == SEEN_ENDED && now_ms - seen->heard_ms >= all->keep_ms)
		return SEEN_NO_OWNER;
	owner = connections_seen_hear(all, &seen->id, &seen->at, SEEN_HEARSAY, seen->doubt, now_ms);
	if (seen->stop == SEEN_ENDED)
		connections_seen_stop(all, &seen->id, &seen->at, SEEN_ENDED, now_ms);
	return owner;
}

struct seen_since connections_seen_since(struct connections_seen *all)
{
	struct seen_since since = { INT64_MIN, SEEN_NOTHING_BEFORE };

	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &all->shards[i];
		pthread_mutex_lock(&s->lock);
		if (s->since.ms > since.ms)
			since = s->since;
		pthread_mutex_unlock(&s->lock);
	}
	return since;
}

void connections_seen_since_take(struct connections_seen *all, const struct seen_since *since)
{
	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &all->shards[i];
		pthread_mutex_lock(&s->lock);
		if (s->since.before == SEEN_NOTHING_BEFORE && since->ms < s->since.ms)
			s->since = *since;
		pthread_mutex_unlock(&s->lock);
	}
}
