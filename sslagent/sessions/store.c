/* store.c: shards by the first bits of the id's rank, buckets by the next, so that walks meet sessions nearly in the
 * order of their ids. Each call takes one shard's lock; walks take the locks one after the other. */
#include "sslagent/sessions/store.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <stdlib.h>

#include "proto/error.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/store_shard.h"

#define SHARD_BITS_MAX 4u
#define SHARD_MIN      (256u * 1024u) /* a shard has at least so many bytes */
#define EXPIRE_BUCKETS 2048u          /* looked at per call */
#define WALKS_AHEAD    32u            /* buckets */

struct store {
	struct tombstones *tombstones;
	int64_t lifetime_ms;
	size_t shard_count;
	size_t expire_shard, expire_bucket; /* where expiry goes on */
	struct shard shards[];
};

struct store *store_create(const struct store_limits *limits, struct tombstones *tombstones)
{
	unsigned percent = limits->per_source_percent;
	unsigned shard_bits = 0;
	struct store *s;
	uint64_t each;

	while (shard_bits < SHARD_BITS_MAX && limits->bytes >> (shard_bits + 1) >= SHARD_MIN)
		shard_bits++;
	const size_t shard_count = (size_t)1 << shard_bits;
	s = aligned_alloc(_Alignof(struct shard), sizeof *s + shard_count * sizeof(struct shard));
	if (!s)
		return NULL;
	*s = (struct store){ .tombstones = tombstones, .lifetime_ms = limits->lifetime_ms };
	each = limits->bytes / shard_count;
	while (s->shard_count < shard_count) {
		struct shard *shard = &s->shards[s->shard_count++];

		*shard = (struct shard){ 0 };
		if (shard_init(shard, shard_bits, each,
			    percent > 0 && percent < 100 ? each / 100 * percent : UINT64_MAX) != 0)
			goto failed;
	}
	return s;
failed:
	store_destroy(s);
	return NULL;
}

void store_destroy(struct store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->shard_count; i++)
		shard_destroy(&s->shards[i]);
	free(s);
}

uint64_t store_position(const struct store *s, const uint8_t id[static SESSION_ID_LEN])
{
	return session_id_rank(id) >> s->shards[0].rank_shift;
}

static struct shard *shard_lock(struct store *s, const uint8_t *id)
{
	struct shard *shard = &s->shards[store_position(s, id) / s->shards[0].bucket_count];

	pthread_mutex_lock(&shard->lock);
	return shard;
}

static void shard_unlock(struct shard *shard)
{
	pthread_mutex_unlock(&shard->lock);
}

static int64_t expiry(const struct store *s, const struct store_offer *offer)
{
	int64_t session_ms = offer->made_ms + (int64_t)offer->obj->session_remaining_s * 1000;
	int64_t family_ms = offer->family_made_ms + s->lifetime_ms;

	return session_ms < family_ms ? session_ms : family_ms;
}

static int put_locked(struct store *s, struct shard *shard, const struct store_offer *offer, int64_t now_ms)
{
	const struct session_facts *facts = &offer->obj->facts;
	uint8_t hash[CERTIFICATE_HASH_LEN];
	struct revocable who = { .session_id = facts->session_id,
		.family_id = facts->family_id,
		.server_name = facts->server_name,
		.client = &facts->client,
		.family_made_ms = offer->family_made_ms,
		.made_ms = offer->made_ms,
		.protocol_version = facts->protocol_version,
		.cipher_suite = facts->cipher_suite };
	int64_t expires_ms = expiry(s, offer);

	if (expires_ms <= now_ms)
		return CSSL_E_EXPIRED;
	if (offer->obj->certificate) {
		certificate_hash(offer->obj->certificate, offer->obj->certificate_len, hash);
		who.client_certificate = hash;
	}
	if (tombstones_hit(s->tombstones, &who))
		return CSSL_E_MISMATCH;
	if (shard_find(shard, facts->session_id))
		return STORE_KNOWN;
	return shard_add(shard, offer, expires_ms);
}

static void count_put(int result)
{
	if (result == 0)
		count(COUNT_SESSIONS_STORED);
	else if (result == STORE_KNOWN)
		count(COUNT_SESSIONS_KNOWN);
	else if (result == CSSL_E_MISMATCH)
		count(COUNT_SESSIONS_REFUSED_REVOKED);
	else
		count(COUNT_SESSIONS_REFUSED);
}

int store_put(struct store *s, const struct store_offer *offer, int64_t now_ms)
{
	struct shard *shard;
	int result;

	assert(offer->obj->session && offer->obj->facts.session_id_len == SESSION_ID_LEN);
	shard = shard_lock(s, offer->obj->facts.session_id);
	result = put_locked(s, shard, offer, now_ms);
	shard_unlock(shard);
	count_put(result);
	return result;
}

/* NULL: not stored, or expired. */
static struct session *find_alive(struct shard *shard, const uint8_t *id, int64_t now_ms)
{
	struct session *session = shard_find(shard, id);

	if (!session || session->expires_ms > now_ms)
		return session;
	shard_remove(shard, session);
	count(COUNT_SESSIONS_EXPIRED);
	return NULL;
}

static int decode_aged(const struct session *session, int64_t now_ms, struct sess_obj *out)
{
	int r = sess_obj_decode(session_encoded(session), session->encoded_len, out);

	if (r)
		return r;
	out->facts.family_age_s = (uint32_t)((now_ms - session->family_made_ms) / 1000);
	out->session_remaining_s = (uint32_t)((session->expires_ms - now_ms + 999) / 1000);
	return 0;
}

int store_find(struct store *s, const uint8_t id[static SESSION_ID_LEN], int64_t now_ms, struct sess_obj *out,
	int64_t *family_made_ms)
{
	struct shard *shard = shard_lock(s, id);
	struct session *session = find_alive(shard, id, now_ms);
	int r = session ? decode_aged(session, now_ms, out) : CSSL_E_NOT_FOUND;

	if (!r) {
		*family_made_ms = session->family_made_ms;
		shard_promote(shard, session);
	}
	shard_unlock(shard);
	return r;
}

static struct stored describe(const struct session *session)
{
	return (struct stored){
		.id = session->id,
		.encoded = session_encoded(session),
		.len = session->encoded_len,
		.made_ms = session->made_ms,
		.family_made_ms = session->family_made_ms,
		.expires_ms = session->expires_ms,
		.by = session->by,
		.server_name = session_server_name(session),
		.server_name_len = session->name_len,
		.client = &session->client,
		.protocol_version = session->protocol_version,
		.cipher_suite = session->cipher_suite,
		.family_id = session->family_id,
		.client_certificate = session_client_certificate(session),
		.hits = session->hits,
	};
}

struct session_seen stored_seen(const struct stored *s, int64_t now_ms)
{
	return (struct session_seen){ .server_name = s->server_name,
		.client = s->client,
		.protocol_version = s->protocol_version,
		.cipher_suite = s->cipher_suite,
		.age_ms = now_ms - s->made_ms,
		.family_id = s->family_id,
		.client_certificate = s->client_certificate };
}

int store_peek(struct store *s, const uint8_t id[static SESSION_ID_LEN], int64_t now_ms,
	void (*fn)(void *ctx, const struct stored *session), void *ctx)
{
	struct shard *shard = shard_lock(s, id);
	struct session *session = find_alive(shard, id, now_ms);

	if (session) {
		struct stored stored = describe(session);

		fn(ctx, &stored);
	}
	shard_unlock(shard);
	return session ? 0 : CSSL_E_NOT_FOUND;
}

/* Sessions lie anywhere in memory, so a walk prefetches the next ones and does not wait for each. This is a macro
 * because a compiler may drop a function without an effect. */
#define LOOK_AHEAD(first)                                                                                              \
	do {                                                                                                           \
		__builtin_prefetch((first)->id);                                                                       \
		__builtin_prefetch((first)->bytes);                                                                    \
	} while (0)

static enum store_walk walk_bucket(struct shard *shard, size_t bucket, int64_t now_ms,
	enum store_walk (*fn)(void *ctx, const struct stored *session), void *ctx)
{
	const size_t ahead = bucket + WALKS_AHEAD < shard->bucket_count ? bucket + WALKS_AHEAD : bucket;
	enum store_walk walk = STORE_GO_ON;

	if (shard->buckets[ahead])
		LOOK_AHEAD(shard->buckets[ahead]);
	for (const struct session *at = shard->buckets[bucket]; at; at = at->next) {
		struct stored stored = describe(at);

		if (at->expires_ms > now_ms && fn(ctx, &stored) == STORE_PAUSE)
			walk = STORE_PAUSE;
	}
	return walk;
}

int store_walk(struct store *s, uint64_t *cursor, int64_t now_ms,
	enum store_walk (*fn)(void *ctx, const struct stored *session), void *ctx)
{
	size_t per_shard = s->shards[0].bucket_count;
	enum store_walk walk = STORE_GO_ON;

	while (walk == STORE_GO_ON && *cursor < per_shard * s->shard_count) {
		struct shard *shard = &s->shards[*cursor / per_shard];
		size_t bucket = *cursor % per_shard;

		pthread_mutex_lock(&shard->lock);
		while (walk == STORE_GO_ON && bucket < per_shard)
			walk = walk_bucket(shard, bucket++, now_ms, fn, ctx);
		shard_unlock(shard);
		*cursor = (uint64_t)(shard - s->shards) * per_shard + bucket;
	}
	return *cursor < per_shard * s->shard_count;
}

static int revoked(struct store *s, const struct session *session)
{
	struct revocable who = { .session_id = session->id,
		.family_id = session->family_id,
		.server_name = session_server_name(session),
		.client = &session->client,
		.family_made_ms = session->family_made_ms,
		.made_ms = session->made_ms,
		.protocol_version = session->protocol_version,
		.cipher_suite = session->cipher_suite,
		.client_certificate = session_client_certificate(session) };

	return tombstones_hit(s->tombstones, &who);
}

static uint64_t sweep_bucket(struct store *s, struct shard *shard, size_t bucket)
{
	uint64_t removed = 0;

	for (struct session *next, *at = shard->buckets[bucket]; at; at = next) {
		next = at->next;
		if (!revoked(s, at))
			continue;
		shard_remove(shard, at);
		removed++;
	}
	return removed;
}

static uint64_t sweep_one(struct store *s, const uint8_t *id)
{
	struct shard *shard = shard_lock(s, id);
	uint64_t removed = sweep_bucket(s, shard, shard_bucket_index(shard, id));

	shard_unlock(shard);
	return removed;
}

static uint64_t sweep_all(struct store *s)
{
	uint64_t removed = 0;

	for (size_t i = 0; i < s->shard_count; i++) {
		struct shard *shard = &s->shards[i];

		pthread_mutex_lock(&shard->lock);
		for (size_t bucket = 0; bucket < shard->bucket_count; bucket++)
			removed += sweep_bucket(s, shard, bucket);
		shard_unlock(shard);
	}
	return removed;
}

uint64_t store_sweep(struct store *s, const uint8_t *id)
{
	uint64_t removed = id ? sweep_one(s, id) : sweep_all(s);

	count_by(COUNT_SESSIONS_REVOKED, removed);
	return removed;
}

int store_displace(struct store *s, const uint8_t id[static SESSION_ID_LEN])
{
	struct shard *shard = shard_lock(s, id);
	struct session *session = shard_find(shard, id);
	int displaced = session && session->by == STORED_HEARD;

	if (displaced)
		shard_remove(shard, session);
	shard_unlock(shard);
	return displaced;
}

static void expire_bucket(struct shard *shard, size_t bucket, int64_t now_ms)
{
	for (struct session *next, *at = shard->buckets[bucket]; at; at = next) {
		next = at->next;
		if (at->expires_ms > now_ms)
			continue;
		shard_remove(shard, at);
		count(COUNT_SESSIONS_EXPIRED);
	}
}

void store_expire(struct store *s, int64_t now_ms)
{
	struct shard *shard = &s->shards[s->expire_shard];
	size_t last = s->expire_bucket + EXPIRE_BUCKETS;

	if (last > shard->bucket_count)
		last = shard->bucket_count;
	pthread_mutex_lock(&shard->lock);
	for (size_t bucket = s->expire_bucket; bucket < last; bucket++)
		expire_bucket(shard, bucket, now_ms);
	shard_unlock(shard);
	s->expire_bucket = last % shard->bucket_count;
	if (s->expire_bucket == 0)
		s->expire_shard = (s->expire_shard + 1) % s->shard_count;
}

uint64_t store_count(struct store *s, uint64_t *bytes)
{
	uint64_t sessions = 0, used = 0;

	for (size_t i = 0; i < s->shard_count; i++) {
		struct shard *shard = &s->shards[i];

		pthread_mutex_lock(&shard->lock);
		sessions += shard->count;
		used += shard->used;
		shard_unlock(shard);
	}
	if (bytes)
		*bytes = used;
	return sessions;
}
