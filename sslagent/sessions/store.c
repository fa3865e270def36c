/* store.c: the sessions of a shelf: which may come, a bound on the bytes of a source, and which are evicted last. */
#include "sslagent/sessions/store.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "proto/error.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/object_memory.h"
#include "sslagent/sessions/tombstones.h"

#define RESUMED_PERCENT 80u /* resumed sessions keep at most this part of the bytes */

#define NEVER_RESUMED SHELF_FIRST
#define RESUMED       SHELF_SECOND

/* One client address, or IPv6 /64, and its sessions. */
struct source {
	struct table_link link;
	TAILQ_HEAD(, session) sessions; /* the oldest first */
	uint64_t bytes;
	struct client_address address;
};

struct store {
	struct tombstones *tombstones;
	struct shelf *shelf;
	int64_t lifetime_ms;
	unsigned percent;                            /* of a shard's bytes, for one source; 100: no limit */
	uint8_t hash_key[crypto_shorthash_KEYBYTES]; /* for addresses: clients choose them */
};

const uint8_t *session_encoded(const struct session *s, size_t *len)
{
	const uint8_t *encoded = s->bytes + s->name_len + 1 + s->certificate_len;

	*len = s->shelved.len - (size_t)(encoded - (const uint8_t *)s);
	return encoded;
}

struct session_seen session_seen(const struct session *s)
{
	return (struct session_seen){ .id = s->id,
		.family_id = s->family_id,
		.server_name = (const char *)s->bytes,
		.client = &s->client,
		.protocol_version = s->protocol_version,
		.cipher_suite = s->cipher_suite,
		.made_ms = s->shelved.made_ms,
		.family_made_ms = s->shelved.family_made_ms,
		.client_certificate = s->certificate_len ? s->bytes + s->name_len + 1 : NULL };
}

/* --- sources --- */

/* A client with one IPv6 address has 2^64 of them, so count by /64. Who has a /48 may fill the store from several: then
 * the oldest sessions give way, and their clients make a full handshake (doc/trust.md). A second list of each session
 * for that would cost more than it saves. */
static struct client_address source_address(const struct client_address *client)
{
	struct client_address address = *client;

	if (address.len == 16)
		memset(address.bytes + 8, 0, 8);
	return address;
}

static uint64_t source_hash(const struct store *s, const struct client_address *address)
{
	uint8_t hash[crypto_shorthash_BYTES];
	uint64_t value;

	crypto_shorthash(hash, address->bytes, address->len, s->hash_key);
	memcpy(&value, hash, sizeof value);
	return value;
}

static struct source *source_find(const struct shelf_shard *shard, uint64_t hash, const struct client_address *address)
{
	for (struct table_link *l = table_first(&shard->groups, hash); l; l = table_next(l)) {
		struct source *source = container_of(l, struct source, link);

		if (source->address.len == address->len &&
			memcmp(source->address.bytes, address->bytes, address->len) == 0)
			return source;
	}
	return NULL;
}

static struct source *source_get(const struct store *s, struct shelf_shard *shard, const struct client_address *client)
{
	const struct client_address address = source_address(client);
	const uint64_t hash = source_hash(s, &address);
	struct source *source = source_find(shard, hash, &address);

	if (source)
		return source;
	source = calloc(1, sizeof *source);
	if (!source || table_add(&shard->groups, &source->link, hash) != 0) {
		free(source);
		return NULL;
	}
	source->address = address;
	TAILQ_INIT(&source->sessions);
	return source;
}

static void on_remove(struct shelf_shard *shard, struct shelved *o)
{
	struct session *session = (struct session *)o;
	struct source *source = session->source;

	if (!source)
		return;
	source->bytes -= object_memory_cost(o->len);
	TAILQ_REMOVE(&source->sessions, session, in_source);
	if (!TAILQ_EMPTY(&source->sessions))
		return;
	table_remove(&shard->groups, &source->link);
	free(source);
}

/* Make room for @cost bytes of that client. 0 or CSSL_E_FULL. */
static int source_make_room(
	const struct store *s, struct shelf_shard *shard, const struct client_address *client, size_t cost)
{
	const struct client_address address = source_address(client);
	const uint64_t limit = shard->limit / 100 * s->percent, hash = source_hash(s, &address);
	const struct source *source;

	if (s->percent == 100)
		return 0;
	if (cost > limit)
		return CSSL_E_FULL;
	while ((source = source_find(shard, hash, &address)) != NULL && source->bytes + cost > limit) {
		shelf_remove(s->shelf, shard, &TAILQ_FIRST(&source->sessions)->shelved);
		count(COUNT_SESSIONS_EVICTED);
		count(COUNT_SESSIONS_EVICTED_SOURCE);
	}
	return 0;
}

/* --- sessions --- */

static const struct shelf_kind sessions_kind = {
	.object_len = offsetof(struct session, bytes),
	.id_at = offsetof(struct session, id),
	.id_len = SESSION_ID_LEN,
	.rank = session_id_rank,
	.on_remove = on_remove,
	.expired = COUNT_SESSIONS_EXPIRED,
	.evicted = COUNT_SESSIONS_EVICTED,
};

struct store *store_create(const struct store_limits *limits, struct tombstones *tombstones)
{
	const unsigned percent = limits->per_source_percent;
	struct store *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->tombstones = tombstones;
	s->lifetime_ms = limits->lifetime_ms;
	s->percent = percent > 0 && percent < 100 ? percent : 100;
	crypto_shorthash_keygen(s->hash_key);
	s->shelf = shelf_create(&sessions_kind, limits->bytes);
	if (s->shelf)
		return s;
	free(s);
	return NULL;
}

void store_destroy(struct store *s)
{
	if (s)
		shelf_destroy(s->shelf);
	free(s);
}

struct shelf *store_shelf(const struct store *s)
{
	return s->shelf;
}

static int64_t store_expiry(const struct store *s, const struct offer *offer)
{
	int64_t session_ms = offer->made_ms + (int64_t)offer->obj->session_remaining_s * 1000;
	int64_t family_ms = offer->family_made_ms + s->lifetime_ms;

	return session_ms < family_ms ? session_ms : family_ms;
}

static int store_add(struct store *s, struct shelf_shard *shard, const struct offer *offer, const uint8_t *certificate)
{
	const struct session_facts *facts = &offer->obj->facts;
	const size_t name_len = strlen(facts->server_name), certificate_len = certificate ? CERTIFICATE_HASH_LEN : 0;
	const size_t len = name_len + 1 + certificate_len + offer->len;
	struct shelved *o;
	int r = source_make_room(s, shard, &facts->client, shelf_cost(s->shelf, len));

	if (!r)
		r = shelf_add(s->shelf, shard, facts->session_id, offer, len, &o);
	if (r)
		return r;
	struct session *session = (struct session *)o;
	session->source = source_get(s, shard, &facts->client);
	if (!session->source) {
		shelf_remove(s->shelf, shard, o);
		return CSSL_E_NO_MEMORY;
	}
	TAILQ_INSERT_TAIL(&session->source->sessions, session, in_source);
	session->source->bytes += object_memory_cost(o->len);
	o->expires_ms = store_expiry(s, offer);
	session->name_len = (uint16_t)name_len;
	session->protocol_version = facts->protocol_version;
	session->cipher_suite = facts->cipher_suite;
	session->certificate_len = (uint8_t)certificate_len;
	session->client = facts->client;
	memcpy(session->family_id, facts->family_id, FAMILY_ID_LEN);
	memcpy(session->bytes, facts->server_name, name_len + 1);
	if (certificate)
		memcpy(session->bytes + name_len + 1, certificate, certificate_len);
	memcpy(session->bytes + name_len + 1 + certificate_len, offer->encoded, offer->len);
	return 0;
}

static int store_put_locked(struct store *s, struct shelf_shard *shard, const struct offer *offer, int64_t now_ms)
{
	const struct session_facts *facts = &offer->obj->facts;
	uint8_t hash[CERTIFICATE_HASH_LEN];
	struct session_seen seen = { .id = facts->session_id,
		.family_id = facts->family_id,
		.server_name = facts->server_name,
		.client = &facts->client,
		.protocol_version = facts->protocol_version,
		.cipher_suite = facts->cipher_suite,
		.made_ms = offer->made_ms,
		.family_made_ms = offer->family_made_ms };

	if (store_expiry(s, offer) <= now_ms)
		return CSSL_E_EXPIRED;
	if (offer->obj->certificate) {
		session_filter_hash(offer->obj->certificate, offer->obj->certificate_len, hash);
		seen.client_certificate = hash;
	}
	if (tombstones_hit(s->tombstones, &seen))
		return CSSL_E_MISMATCH;
	if (shelf_find(s->shelf, shard, facts->session_id))
		return STORE_KNOWN;
	return store_add(s, shard, offer, seen.client_certificate);
}

static enum agent_counter counter_of(int result)
{
	switch (result) {
	case 0: return COUNT_SESSIONS_STORED;
	case STORE_KNOWN: return COUNT_SESSIONS_KNOWN;
	case CSSL_E_MISMATCH: return COUNT_SESSIONS_REFUSED_REVOKED;
	default: return COUNT_SESSIONS_REFUSED;
	}
}

int store_put(struct store *s, const struct offer *offer, int64_t now_ms)
{
	assert(offer->obj->session && offer->obj->facts.session_id_len == SESSION_ID_LEN);
	struct shelf_shard *shard = shelf_lock(s->shelf, offer->obj->facts.session_id);
	int result = store_put_locked(s, shard, offer, now_ms);
	shelf_unlock(shard);
	count(counter_of(result));
	return result;
}

/* It was resumed: evict it last from now on. */
static void store_promote(struct shelf_shard *shard, struct session *session)
{
	session->hits++;
	shelf_move(shard, &session->shelved, RESUMED);
	TAILQ_REMOVE(&session->source->sessions, session, in_source);
	TAILQ_INSERT_TAIL(&session->source->sessions, session, in_source);
	while (shard->used[RESUMED] > shard->limit / 100 * RESUMED_PERCENT)
		shelf_move(shard, TAILQ_FIRST(&shard->queues[RESUMED]), NEVER_RESUMED);
}

int store_find(struct store *s, const uint8_t id[static SESSION_ID_LEN], int64_t now_ms, struct sess_obj *out,
	int64_t *family_made_ms)
{
	struct shelf_shard *shard = shelf_lock(s->shelf, id);
	struct session *session = (struct session *)shelf_find_alive(s->shelf, shard, id, now_ms);
	int r = CSSL_E_NOT_FOUND;

	if (session) {
		size_t len;
		const uint8_t *encoded = session_encoded(session, &len);

		r = shelved_decode(&session->shelved, encoded, len, now_ms, out);
	}
	if (!r) {
		*family_made_ms = session->shelved.family_made_ms;
		store_promote(shard, session);
	}
	shelf_unlock(shard);
	return r;
}

int store_peek(struct store *s, const uint8_t id[static SESSION_ID_LEN], int64_t now_ms,
	void (*fn)(void *ctx, const struct session *session), void *ctx)
{
	struct shelf_shard *shard = shelf_lock(s->shelf, id);
	const struct shelved *o = shelf_find_alive(s->shelf, shard, id, now_ms);

	if (o && fn)
		fn(ctx, session_of(o));
	shelf_unlock(shard);
	return o ? 0 : CSSL_E_NOT_FOUND;
}

static bool store_is_revoked(const void *ctx, const struct shelved *o)
{
	const struct store *s = ctx;
	const struct session_seen seen = session_seen(session_of(o));

	return tombstones_hit(s->tombstones, &seen);
}

uint64_t store_sweep(struct store *s, const uint8_t *id)
{
	uint64_t removed = shelf_sweep(s->shelf, id, store_is_revoked, s);

	count_by(COUNT_SESSIONS_REVOKED, removed);
	return removed;
}

bool store_displace(struct store *s, const uint8_t id[static SESSION_ID_LEN])
{
	struct shelf_shard *shard = shelf_lock(s->shelf, id);
	struct shelved *o = shelf_find(s->shelf, shard, id);
	bool displaced = o && o->by == STORED_HEARD;

	if (displaced)
		shelf_remove(s->shelf, shard, o);
	shelf_unlock(shard);
	return displaced;
}
