/* tombstones.c: one hash table over (kind, key), a short list of filters, and the last revocation of everything. */
#include "sslagent/sessions/tombstones.h"

#include <assert.h>
#include <ctype.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/counters.h"

#define BUCKETS     4096u
#define NEVER       INT64_MIN
#define KEY_BYTES   NAME_MAX_LEN
#define SAME_AGE_MS 2000

/* The object of a revocation in normal form: equal objects have equal bytes. */
struct key {
	uint8_t by; /* enum revoke_by */
	uint8_t len;
	uint8_t bytes[KEY_BYTES];
};

struct stone {
	struct stone *next;
	int64_t revoked_ms;
	uint8_t by, len;
	uint8_t bytes[];
};

/* A revocation of all sessions that pass a filter. */
struct filter_stone {
	struct filter_stone *next;
	int64_t revoked_ms;
	struct session_filter_kept what;
};

struct tombstones {
	pthread_rwlock_t lock;
	_Atomic size_t count; /* stones, and one if everything was revoked */
	unsigned max;
	int64_t lifetime_ms;
	int64_t all_revoked_ms; /* last revocation of everything, or NEVER */
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
	struct stone *buckets[BUCKETS];
	struct filter_stone *filters;
	unsigned filter_count;
};

static int key_set(struct key *k, enum revoke_by by, const void *bytes, size_t len)
{
	if (len == 0 || len > KEY_BYTES)
		return CSSL_E_RANGE;
	k->by = (uint8_t)by;
	k->len = (uint8_t)len;
	memcpy(k->bytes, bytes, len);
	return 0;
}

/* Upper and lower case are equal in DNS names (RFC 4343). */
static int key_set_name(struct key *k, const char *name)
{
	int r = name ? key_set(k, REVOKE_SERVER_NAME, name, strlen(name)) : CSSL_E_RANGE;

	for (size_t i = 0; !r && i < k->len; i++)
		k->bytes[i] = (uint8_t)tolower(k->bytes[i]);
	return r;
}

static int key_of(struct key *k, const struct revoke_what *what)
{
	switch (what->by) {
	case REVOKE_SESSION:
		return what->len == SESSION_ID_LEN ? key_set(k, what->by, what->bytes, what->len) : CSSL_E_RANGE;
	case REVOKE_FAMILY:
		return what->len == FAMILY_ID_LEN ? key_set(k, what->by, what->bytes, what->len) : CSSL_E_RANGE;
	case REVOKE_SERVER_NAME: return key_set_name(k, what->server_name);
	case REVOKE_CLIENT_ADDRESS:
		return what->len == 4 || what->len == 16 ? key_set(k, what->by, what->bytes, what->len) : CSSL_E_RANGE;
	case REVOKE_ALL: *k = (struct key){ .by = REVOKE_ALL }; return 0;
	case REVOKE_MATCHING: break;
	}
	return CSSL_E_RANGE;
}

/* Make the key under which a revocation of kind @by hits @who. 0, or negative: no such revocation can hit it. */
static int key_for(struct key *k, enum revoke_by by, const struct revocable *who)
{
	switch (by) {
	case REVOKE_SESSION: return who->session_id ? key_set(k, by, who->session_id, SESSION_ID_LEN) : CSSL_E_RANGE;
	case REVOKE_FAMILY: return who->family_id ? key_set(k, by, who->family_id, FAMILY_ID_LEN) : CSSL_E_RANGE;
	case REVOKE_SERVER_NAME: return key_set_name(k, who->server_name);
	case REVOKE_CLIENT_ADDRESS:
		return who->client ? key_set(k, by, who->client->bytes, who->client->len) : CSSL_E_RANGE;
	case REVOKE_ALL: *k = (struct key){ .by = REVOKE_ALL }; return 0;
	case REVOKE_MATCHING: break;
	}
	return CSSL_E_RANGE;
}

/* An id belongs to one session or family for ever. A name or an address can have new sessions after the revocation. */
static int in_time(enum revoke_by by, int64_t revoked_ms, const struct revocable *who)
{
	return by == REVOKE_SESSION || by == REVOKE_FAMILY || who->family_made_ms <= revoked_ms;
}

static int key_equal(const struct key *a, uint8_t by, const uint8_t *bytes, uint8_t len)
{
	return a->by == by && a->len == len && memcmp(a->bytes, bytes, len) == 0;
}

struct tombstones *tombstones_create(int64_t lifetime_ms, unsigned max)
{
	struct tombstones *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	if (pthread_rwlock_init(&t->lock, NULL) != 0) {
		free(t);
		return NULL;
	}
	t->lifetime_ms = lifetime_ms;
	t->max = max;
	t->all_revoked_ms = NEVER;
	crypto_shorthash_keygen(t->hash_key);
	return t;
}

static void drop_all(struct tombstones *t)
{
	for (size_t bucket = 0; bucket < BUCKETS; bucket++) {
		struct stone *next, *at = t->buckets[bucket];

		for (; at; at = next) {
			next = at->next;
			free(at);
		}
		t->buckets[bucket] = NULL;
	}
	for (struct filter_stone *next, *at = t->filters; at; at = next) {
		next = at->next;
		free(at);
	}
	t->filters = NULL;
	t->filter_count = 0;
	atomic_store(&t->count, t->all_revoked_ms != NEVER);
}

void tombstones_destroy(struct tombstones *t)
{
	if (!t)
		return;
	drop_all(t);
	pthread_rwlock_destroy(&t->lock);
	free(t);
}

static struct stone **bucket_of(struct tombstones *t, const struct key *k)
{
	uint8_t hash[crypto_shorthash_BYTES];
	uint64_t index;

	crypto_shorthash(hash, (const uint8_t *)k, offsetof(struct key, bytes) + k->len, t->hash_key);
	memcpy(&index, hash, sizeof index);
	return &t->buckets[index % BUCKETS];
}

static struct stone *find(struct tombstones *t, const struct key *k)
{
	struct stone *at = *bucket_of(t, k);

	while (at && !key_equal(k, at->by, at->bytes, at->len))
		at = at->next;
	return at;
}

static int revoke_all(struct tombstones *t, int64_t revoked_ms)
{
	if (revoked_ms <= t->all_revoked_ms)
		return TOMBSTONE_KNOWN;
	if (t->all_revoked_ms == NEVER)
		atomic_fetch_add(&t->count, 1);
	t->all_revoked_ms = revoked_ms;
	return 0;
}

/* Too many tombstones, or no memory for one more: forget them all and revoke every session made so far. */
static void collapse(struct tombstones *t, int64_t now_ms)
{
	count(COUNT_TOMBSTONES_COLLAPSED);
	revoke_all(t, now_ms);
	drop_all(t);
}

static struct stone *stone_create(const struct key *k)
{
	struct stone *stone = calloc(1, sizeof *stone + k->len);

	if (!stone)
		return NULL;
	stone->by = k->by;
	stone->len = k->len;
	memcpy(stone->bytes, k->bytes, k->len);
	return stone;
}

static int add(struct tombstones *t, const struct key *k, int64_t revoked_ms, int64_t now_ms)
{
	struct stone *stone = find(t, k), **bucket = bucket_of(t, k);

	if (stone && revoked_ms <= stone->revoked_ms)
		return TOMBSTONE_KNOWN;
	if (stone) {
		stone->revoked_ms = revoked_ms;
		return 0;
	}
	if (atomic_load(&t->count) < t->max)
		stone = stone_create(k);
	if (!stone) {
		collapse(t, now_ms);
		return 0;
	}
	stone->revoked_ms = revoked_ms;
	stone->next = *bucket;
	*bucket = stone;
	atomic_fetch_add(&t->count, 1);
	return 0;
}

/* Find the same or an equal revocation. An age in a filter counts from the time of its revocation. Peers know this time
 * to some milliseconds. */
static struct filter_stone *find_filter(struct tombstones *t, const struct session_filter *f, int64_t revoked_ms)
{
	int has_age = f->min_age_s > 0 || f->max_age_s > 0;
	struct filter_stone *at = t->filters;

	while (at && (!session_filter_equal(&at->what.filter, f) ||
			     (has_age && llabs(at->revoked_ms - revoked_ms) > SAME_AGE_MS)))
		at = at->next;
	return at;
}

static int add_filter(struct tombstones *t, const struct session_filter *f, int64_t revoked_ms, int64_t now_ms)
{
	struct filter_stone *stone = find_filter(t, f, revoked_ms);

	if (stone && revoked_ms <= stone->revoked_ms)
		return TOMBSTONE_KNOWN;
	if (stone) {
		stone->revoked_ms = revoked_ms;
		return 0;
	}
	stone = t->filter_count < FILTER_STONES_MAX ? calloc(1, sizeof *stone) : NULL;
	if (!stone) {
		collapse(t, now_ms);
		return 0;
	}
	session_filter_keep(&stone->what, f);
	stone->revoked_ms = revoked_ms;
	stone->next = t->filters;
	t->filters = stone;
	t->filter_count++;
	atomic_fetch_add(&t->count, 1);
	return 0;
}

static int add_matching(struct tombstones *t, const struct revoke_what *what, int64_t revoked_ms, int64_t now_ms)
{
	struct session_filter_kept kept;

	if (!what->filter || what->filter->session_id || session_filter_keep(&kept, what->filter) != 0)
		return CSSL_E_RANGE;
	pthread_rwlock_wrlock(&t->lock);
	int result = add_filter(t, &kept.filter, revoked_ms, now_ms);
	pthread_rwlock_unlock(&t->lock);
	return result;
}

int tombstones_add(struct tombstones *t, const struct revoke_what *what, int64_t revoked_ms, int64_t now_ms)
{
	struct key k;
	int result = what->by == REVOKE_MATCHING ? add_matching(t, what, revoked_ms, now_ms) : key_of(&k, what);

	if (what->by == REVOKE_MATCHING)
		return result;
	if (result)
		return result;
	pthread_rwlock_wrlock(&t->lock);
	if (k.by == REVOKE_ALL)
		result = revoke_all(t, revoked_ms);
	else
		result = add(t, &k, revoked_ms, now_ms);
	pthread_rwlock_unlock(&t->lock);
	return result;
}

static int hit_by(struct tombstones *t, enum revoke_by by, const struct revocable *who)
{
	const struct stone *stone;
	struct key k;

	if (key_for(&k, by, who) != 0)
		return 0;
	stone = find(t, &k);
	return stone && in_time(by, stone->revoked_ms, who);
}

static int hit_by_filter(const struct tombstones *t, const struct revocable *who)
{
	struct session_seen seen = { .server_name = who->server_name,
		.client = who->client,
		.protocol_version = who->protocol_version,
		.cipher_suite = who->cipher_suite,
		.family_id = who->family_id,
		.client_certificate = who->client_certificate };

	for (const struct filter_stone *at = t->filters; at; at = at->next) {
		seen.age_ms = who->made_ms == AGE_UNKNOWN ? AGE_UNKNOWN : at->revoked_ms - who->made_ms;
		if (who->family_made_ms <= at->revoked_ms && session_filter_passes(&at->what.filter, &seen))
			return 1;
	}
	return 0;
}

int tombstones_hit(struct tombstones *t, const struct revocable *who)
{
	int hit;

	if (atomic_load_explicit(&t->count, memory_order_acquire) == 0)
		return 0;
	pthread_rwlock_rdlock(&t->lock);
	hit = who->family_made_ms <= t->all_revoked_ms || hit_by(t, REVOKE_SESSION, who) ||
	      hit_by(t, REVOKE_FAMILY, who) || hit_by(t, REVOKE_SERVER_NAME, who) ||
	      hit_by(t, REVOKE_CLIENT_ADDRESS, who) || hit_by_filter(t, who);
	pthread_rwlock_unlock(&t->lock);
	return hit;
}

static void expire_bucket(struct tombstones *t, struct stone **link, int64_t oldest_ms)
{
	while (*link) {
		struct stone *at = *link;

		if (at->revoked_ms > oldest_ms) {
			link = &at->next;
			continue;
		}
		*link = at->next;
		free(at);
		atomic_fetch_sub(&t->count, 1);
	}
}

static void expire_filters(struct tombstones *t, int64_t oldest_ms)
{
	for (struct filter_stone **link = &t->filters; *link;) {
		struct filter_stone *at = *link;

		if (at->revoked_ms > oldest_ms) {
			link = &at->next;
			continue;
		}
		*link = at->next;
		free(at);
		t->filter_count--;
		atomic_fetch_sub(&t->count, 1);
	}
}

void tombstones_expire(struct tombstones *t, int64_t now_ms)
{
	int64_t oldest_ms = now_ms - t->lifetime_ms;

	if (atomic_load(&t->count) == 0)
		return;
	pthread_rwlock_wrlock(&t->lock);
	for (size_t bucket = 0; bucket < BUCKETS; bucket++)
		expire_bucket(t, &t->buckets[bucket], oldest_ms);
	expire_filters(t, oldest_ms);
	if (t->all_revoked_ms != NEVER && t->all_revoked_ms <= oldest_ms) {
		t->all_revoked_ms = NEVER;
		atomic_fetch_sub(&t->count, 1);
	}
	pthread_rwlock_unlock(&t->lock);
}

size_t tombstones_count(struct tombstones *t)
{
	return atomic_load(&t->count);
}

static void tell(const struct stone *at, void (*fn)(void *ctx, const struct tombstone *stone), void *ctx)
{
	struct tombstone stone = { .what = { .by = at->by }, .revoked_ms = at->revoked_ms };
	char name[KEY_BYTES + 1];

	if (at->by == REVOKE_SERVER_NAME) {
		memcpy(name, at->bytes, at->len);
		name[at->len] = '\0';
		stone.what.server_name = name;
	} else {
		assert(at->len <= sizeof stone.what.bytes);
		memcpy(stone.what.bytes, at->bytes, at->len);
		stone.what.len = at->len;
	}
	fn(ctx, &stone);
}

void tombstones_each(struct tombstones *t, void (*fn)(void *ctx, const struct tombstone *stone), void *ctx)
{
	pthread_rwlock_rdlock(&t->lock);
	for (size_t bucket = 0; bucket < BUCKETS; bucket++)
		for (const struct stone *at = t->buckets[bucket]; at; at = at->next)
			tell(at, fn, ctx);
	for (const struct filter_stone *at = t->filters; at; at = at->next)
		fn(ctx, &(struct tombstone){ { .by = REVOKE_MATCHING, .filter = &at->what.filter }, at->revoked_ms });
	if (t->all_revoked_ms != NEVER)
		fn(ctx, &(struct tombstone){ { .by = REVOKE_ALL }, t->all_revoked_ms });
	pthread_rwlock_unlock(&t->lock);
}
