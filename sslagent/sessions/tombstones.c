/* tombstones.c: one hash table over (kind, key), a short list of filters, and the last revocation of everything. */
#include "sslagent/sessions/tombstones.h"

#include <ctype.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "net/memory/table.h"
#include "proto/error.h"
#include "proto/scratch.h"
#include "proto/sess_obj.h"
#include "sslagent/counters.h"

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
	struct table_link link;
	int64_t revoked_ms;
	uint8_t by, len;
	uint8_t bytes[]; /* terminated */
};

/* A revocation of all sessions that pass a filter. */
struct filter_stone {
	Cssl__SessionFilter *what;
	int64_t revoked_ms;
};

struct tombstones {
	pthread_rwlock_t lock;
	_Atomic size_t count; /* stones, and one if everything was revoked */
	unsigned max;
	int64_t lifetime_ms;
	int64_t all_revoked_ms; /* last revocation of everything, or NEVER */
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
	struct table stones;
	struct filter_stone filters[FILTER_STONES_MAX];
	unsigned filter_count;
};

/* Upper and lower case are equal in DNS names (RFC 4343). */
static int key_set(struct key *k, enum revoke_by by, const void *bytes, size_t len)
{
	if (!bytes || len == 0 || len > KEY_BYTES)
		return CSSL_E_RANGE;
	k->by = (uint8_t)by;
	k->len = (uint8_t)len;
	memcpy(k->bytes, bytes, len);
	for (size_t i = 0; by == REVOKE_SERVER_NAME && i < len; i++)
		k->bytes[i] = (uint8_t)tolower(k->bytes[i]);
	return 0;
}

static int stone_key_of(struct key *k, const revoke_what *what)
{
	const ProtobufCBinaryData *bytes = &what->session_id; /* and the other ids and addresses: it is a union */
	bool fits = false;

	switch ((enum revoke_by)what->which_case) {
	case REVOKE_SESSION: fits = bytes->len == SESSION_ID_LEN; break;
	case REVOKE_FAMILY: fits = bytes->len == FAMILY_ID_LEN; break;
	case REVOKE_CLIENT_ADDRESS: fits = bytes->len == 4 || bytes->len == 16; break;
	case REVOKE_SERVER_NAME:
		return key_set(
			k, REVOKE_SERVER_NAME, what->server_name, what->server_name ? strlen(what->server_name) : 0);
	case REVOKE_ALL:
	case REVOKE_MATCHING: break;
	}
	return fits ? key_set(k, (enum revoke_by)what->which_case, bytes->data, bytes->len) : CSSL_E_RANGE;
}

static uint64_t stone_hash_of(const struct tombstones *t, const struct key *k)
{
	uint8_t hash[crypto_shorthash_BYTES];
	uint64_t value;

	crypto_shorthash(hash, (const uint8_t *)k, offsetof(struct key, bytes) + k->len, t->hash_key);
	memcpy(&value, hash, sizeof value);
	return value;
}

static struct stone *stone_find(const struct tombstones *t, const struct key *k)
{
	for (struct table_link *l = table_first(&t->stones, stone_hash_of(t, k)); l; l = table_next(l)) {
		struct stone *stone = container_of(l, struct stone, link);

		if (stone->by == k->by && stone->len == k->len && memcmp(stone->bytes, k->bytes, k->len) == 0)
			return stone;
	}
	return NULL;
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

static void stones_recount(struct tombstones *t)
{
	atomic_store(&t->count, t->stones.count + t->filter_count + (t->all_revoked_ms != NEVER));
}

/* All that were made at @last_ms or before. */
static void stones_drop(struct tombstones *t, int64_t last_ms)
{
	for (struct table_link *next, *at = table_walk(&t->stones, NULL); at; at = next) {
		struct stone *stone = container_of(at, struct stone, link);

		next = table_walk(&t->stones, at);
		if (stone->revoked_ms > last_ms)
			continue;
		table_remove(&t->stones, at);
		free(stone);
	}
	for (unsigned i = t->filter_count; i-- > 0;) {
		if (t->filters[i].revoked_ms > last_ms)
			continue;
		cssl__session_filter__free_unpacked(t->filters[i].what, NULL);
		t->filters[i] = t->filters[--t->filter_count];
	}
}

void tombstones_destroy(struct tombstones *t)
{
	if (!t)
		return;
	stones_drop(t, INT64_MAX);
	table_clear(&t->stones);
	pthread_rwlock_destroy(&t->lock);
	free(t);
}

/* Too many tombstones, or no memory for one more: forget them all and revoke every session made so far. */
static int stones_collapse(struct tombstones *t, int64_t now_ms)
{
	count(COUNT_TOMBSTONES_COLLAPSED);
	if (now_ms > t->all_revoked_ms)
		t->all_revoked_ms = now_ms;
	stones_drop(t, INT64_MAX);
	return 0;
}

static int revoke_again(int64_t *known_ms, int64_t revoked_ms)
{
	if (revoked_ms <= *known_ms)
		return TOMBSTONE_KNOWN;
	*known_ms = revoked_ms;
	return 0;
}

static int stones_add(struct tombstones *t, const struct key *k, int64_t revoked_ms, int64_t now_ms)
{
	struct stone *stone = stone_find(t, k);

	if (stone)
		return revoke_again(&stone->revoked_ms, revoked_ms);
	if (atomic_load(&t->count) < t->max)
		stone = calloc(1, sizeof *stone + k->len + 1);
	if (!stone || table_add(&t->stones, &stone->link, stone_hash_of(t, k)) != 0) {
		free(stone);
		return stones_collapse(t, now_ms);
	}
	stone->by = k->by;
	stone->len = k->len;
	memcpy(stone->bytes, k->bytes, k->len);
	stone->revoked_ms = revoked_ms;
	return 0;
}

/* An age in a filter counts from the time of its revocation. Peers know this time to some milliseconds. @f is taken
 * over. */
static int add_filter(struct tombstones *t, Cssl__SessionFilter *f, int64_t revoked_ms, int64_t now_ms)
{
	const bool has_age = f && (f->min_age_s > 0 || f->max_age_s > 0);

	for (unsigned i = 0; f && i < t->filter_count; i++) {
		struct filter_stone *at = &t->filters[i];

		if (!session_filter_equal(at->what, f) || (has_age && llabs(at->revoked_ms - revoked_ms) > SAME_AGE_MS))
			continue;
		cssl__session_filter__free_unpacked(f, NULL);
		return revoke_again(&at->revoked_ms, revoked_ms);
	}
	if (!f || t->filter_count == FILTER_STONES_MAX) {
		cssl__session_filter__free_unpacked(f, NULL);
		return stones_collapse(t, now_ms);
	}
	t->filters[t->filter_count++] = (struct filter_stone){ f, revoked_ms };
	return 0;
}

int tombstones_check(const revoke_what *what)
{
	const Cssl__SessionFilter *f = what->matching;
	struct key k;

	if (what->which_case == (int)REVOKE_ALL)
		return 0;
	if (what->which_case != (int)REVOKE_MATCHING)
		return stone_key_of(&k, what);
	/* what this release does not know would fail no session */
	if (!f || f->session_id.len > 0 || f->base.n_unknown_fields > 0 ||
		cssl__session_filter__get_packed_size(f) == 0)
		return CSSL_E_RANGE;
	return session_filter_check(f);
}

int tombstones_add(struct tombstones *t, const revoke_what *what, int64_t revoked_ms, int64_t now_ms)
{
	struct key k;
	int r = tombstones_check(what);

	if (r)
		return r;
	pthread_rwlock_wrlock(&t->lock);
	if (what->which_case == (int)REVOKE_MATCHING)
		r = add_filter(t, session_filter_copy(what->matching), revoked_ms, now_ms);
	else if (what->which_case == (int)REVOKE_ALL)
		r = revoke_again(&t->all_revoked_ms, revoked_ms);
	else if (stone_key_of(&k, what) == 0)
		r = stones_add(t, &k, revoked_ms, now_ms);
	stones_recount(t);
	pthread_rwlock_unlock(&t->lock);
	return r;
}

/* An id belongs to one session or family for ever. A name or an address can have new sessions after the revocation. */
static bool hit_by(const struct tombstones *t, enum revoke_by by, const void *bytes, size_t len, int64_t family_made_ms)
{
	const struct stone *stone;
	struct key k;

	if (key_set(&k, by, bytes, len) != 0)
		return false;
	stone = stone_find(t, &k);
	return stone && (by == REVOKE_SESSION || by == REVOKE_FAMILY || family_made_ms <= stone->revoked_ms);
}

static bool hit_by_filter(const struct tombstones *t, const struct session_seen *who)
{
	for (unsigned i = 0; i < t->filter_count; i++)
		if (who->family_made_ms <= t->filters[i].revoked_ms &&
			session_filter_passes(t->filters[i].what, who, t->filters[i].revoked_ms))
			return true;
	return false;
}

bool tombstones_hit(struct tombstones *t, const struct session_seen *who)
{
	const int64_t made_ms = who->family_made_ms;
	const char *name = who->server_name;
	bool hit;

	/* no handshake pays for a lock while nothing is revoked */
	if (atomic_load_explicit(&t->count, memory_order_acquire) == 0)
		return false;
	pthread_rwlock_rdlock(&t->lock);
	hit = made_ms <= t->all_revoked_ms || hit_by(t, REVOKE_SESSION, who->id, SESSION_ID_LEN, made_ms) ||
	      hit_by(t, REVOKE_FAMILY, who->family_id, FAMILY_ID_LEN, made_ms) ||
	      hit_by(t, REVOKE_SERVER_NAME, name, name ? strlen(name) : 0, made_ms) ||
	      (who->client && hit_by(t, REVOKE_CLIENT_ADDRESS, who->client->bytes, who->client->len, made_ms)) ||
	      hit_by_filter(t, who);
	pthread_rwlock_unlock(&t->lock);
	return hit;
}

void tombstones_expire(struct tombstones *t, int64_t now_ms)
{
	if (atomic_load(&t->count) == 0)
		return;
	pthread_rwlock_wrlock(&t->lock);
	stones_drop(t, now_ms - t->lifetime_ms);
	if (t->all_revoked_ms <= now_ms - t->lifetime_ms)
		t->all_revoked_ms = NEVER;
	stones_recount(t);
	pthread_rwlock_unlock(&t->lock);
}

size_t tombstones_count(struct tombstones *t)
{
	return atomic_load(&t->count);
}

static revoke_what what_of(const struct stone *stone)
{
	revoke_what what = { MESSAGE(link_request__revoke), .which_case = (int)stone->by };

	if (stone->by == REVOKE_SERVER_NAME)
		what.server_name = (char *)stone->bytes;
	else
		what.session_id = bytes_of(stone->bytes, stone->len);
	return what;
}

void tombstones_each(
	struct tombstones *t, void (*fn)(void *ctx, const revoke_what *what, int64_t revoked_ms), void *ctx)
{
	revoke_what what = { MESSAGE(link_request__revoke) };

	pthread_rwlock_rdlock(&t->lock);
	for (struct table_link *l = table_walk(&t->stones, NULL); l; l = table_walk(&t->stones, l)) {
		const struct stone *stone = container_of(l, struct stone, link);

		what = what_of(stone);
		fn(ctx, &what, stone->revoked_ms);
	}
	what.which_case = (int)REVOKE_MATCHING;
	for (unsigned i = 0; i < t->filter_count; i++) {
		what.matching = t->filters[i].what;
		fn(ctx, &what, t->filters[i].revoked_ms);
	}
	if (t->all_revoked_ms != NEVER)
		fn(ctx, &(revoke_what){ MESSAGE(link_request__revoke), .which_case = (int)REVOKE_ALL, .all = 1 },
			t->all_revoked_ms);
	fn(ctx, NULL, 0);
	pthread_rwlock_unlock(&t->lock);
}
