/* store_shard.c: a bound on all bytes, a bound on the bytes of a source, and the order of eviction. */
#include "sslagent/sessions/store_shard.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "net/container_of.h"
#include "proto/error.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/session_filter.h"

#define TYPICAL_COST    640u /* bytes of a session with its entry, for the size of the table */
#define RESUMED_PERCENT 80u  /* resumed sessions keep at most this part of the bytes */

static void list_init(struct list_node *head)
{
	head->newer = head->older = head;
}

static int list_empty(const struct list_node *head)
{
	return head->older == head;
}

/* The head's older neighbour is the newest, its newer neighbour the oldest. */
static void list_add_newest(struct list_node *head, struct list_node *n)
{
	n->newer = head;
	n->older = head->older;
	n->older->newer = n;
	head->older = n;
}

static void list_remove(struct list_node *n)
{
	n->newer->older = n->older;
	n->older->newer = n->newer;
}

static struct list_node *list_oldest(struct list_node *head)
{
	return head->newer;
}

const char *session_server_name(const struct session *session)
{
	return (const char *)session->bytes;
}

const uint8_t *session_encoded(const struct session *session)
{
	return session->bytes + session->name_len + 1 + session->certificate_len;
}

const uint8_t *session_client_certificate(const struct session *session)
{
	return session->certificate_len ? session->bytes + session->name_len + 1 : NULL;
}

static size_t session_len(const struct session *session)
{
	return sizeof *session + session->name_len + 1 + session->certificate_len + session->encoded_len;
}

static size_t certificate_len(const struct store_offer *offer)
{
	return offer->obj->certificate ? CERTIFICATE_HASH_LEN : 0;
}

static size_t len_of_offer(const struct store_offer *offer)
{
	return sizeof(struct session) + strlen(offer->obj->facts.server_name) + 1 + certificate_len(offer) + offer->len;
}

static size_t session_cost(const struct session *session)
{
	return object_memory_cost(session_len(session));
}

int shard_init(struct shard *s, unsigned shard_bits, uint64_t limit, uint64_t source_limit)
{
	s->limit = limit;
	s->source_limit = source_limit;
	s->bucket_count = 16;
	s->rank_shift = 64 - 4 - shard_bits;
	while (s->bucket_count < limit / TYPICAL_COST) {
		s->bucket_count *= 2;
		s->rank_shift--;
	}
	for (unsigned segment = 0; segment < SEGMENTS; segment++)
		list_init(&s->segments[segment]);
	pthread_mutex_init(&s->lock, NULL);
	crypto_shorthash_keygen(s->hash_key);
	s->memory = object_memory_create();
	s->buckets = calloc(s->bucket_count, sizeof(struct session *));
	s->sources = calloc(s->bucket_count, sizeof(struct source *));
	return s->memory && s->buckets && s->sources ? 0 : CSSL_E_NO_MEMORY;
}

void shard_destroy(struct shard *s)
{
	if (s->bucket_count == 0)
		return;
	for (size_t bucket = 0; s->buckets && bucket < s->bucket_count; bucket++)
		while (s->buckets[bucket])
			shard_remove(s, s->buckets[bucket]);
	free(s->buckets);
	free(s->sources);
	object_memory_destroy(s->memory);
	pthread_mutex_destroy(&s->lock);
}

size_t shard_bucket_index(const struct shard *s, const uint8_t id[static SESSION_ID_LEN])
{
	return session_id_rank(id) >> s->rank_shift & (s->bucket_count - 1);
}

struct session **shard_bucket(struct shard *s, const uint8_t id[static SESSION_ID_LEN])
{
	return &s->buckets[shard_bucket_index(s, id)];
}

struct session *shard_find(struct shard *s, const uint8_t id[static SESSION_ID_LEN])
{
	struct session *at = *shard_bucket(s, id);

	while (at && memcmp(at->id, id, SESSION_ID_LEN) != 0)
		at = at->next;
	return at;
}

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

static struct source **source_link(struct shard *s, const struct client_address *address)
{
	uint8_t hash[crypto_shorthash_BYTES];
	struct source **link;
	uint64_t index;

	crypto_shorthash(hash, address->bytes, address->len, s->hash_key);
	memcpy(&index, hash, sizeof index);
	link = &s->sources[index & (s->bucket_count - 1)];
	while (*link && ((*link)->address.len != address->len ||
				memcmp((*link)->address.bytes, address->bytes, address->len) != 0))
		link = &(*link)->next;
	return link;
}

static struct source *source_get(struct shard *s, const struct client_address *client)
{
	struct client_address address = source_address(client);
	struct source **link = source_link(s, &address);

	if (*link)
		return *link;
	*link = calloc(1, sizeof **link);
	if (!*link)
		return NULL;
	(*link)->address = address;
	list_init(&(*link)->sessions);
	return *link;
}

static void source_drop_if_empty(struct shard *s, struct source *source)
{
	struct source **link;

	if (!list_empty(&source->sessions))
		return;
	link = source_link(s, &source->address);
	assert(*link == source);
	*link = source->next;
	free(source);
}

void shard_remove(struct shard *s, struct session *session)
{
	struct session **link = shard_bucket(s, session->id);
	size_t cost = session_cost(session);

	while (*link != session)
		link = &(*link)->next;
	*link = session->next;
	list_remove(&session->in_segment);
	list_remove(&session->in_source);
	session->source->bytes -= cost;
	source_drop_if_empty(s, session->source);
	s->used -= cost;
	s->count--;
	if (session->segment == RESUMED)
		s->resumed_bytes -= cost;
	object_free(s->memory, session, session_len(session));
}

static void evict_oldest(struct shard *s)
{
	enum segment from = list_empty(&s->segments[NEVER_RESUMED]) ? RESUMED : NEVER_RESUMED;

	assert(!list_empty(&s->segments[from]));
	shard_remove(s, container_of(list_oldest(&s->segments[from]), struct session, in_segment));
	count(COUNT_SESSIONS_EVICTED);
}

static void evict_of_source(struct shard *s, struct source *source)
{
	shard_remove(s, container_of(list_oldest(&source->sessions), struct session, in_source));
	count(COUNT_SESSIONS_EVICTED);
	count(COUNT_SESSIONS_EVICTED_SOURCE);
}

static void make_room(struct shard *s, const struct client_address *client, size_t cost)
{
	struct client_address address = source_address(client);
	struct source *source = *source_link(s, &address);

	while (source && source->bytes + cost > s->source_limit) {
		int last = list_oldest(&source->sessions)->newer == &source->sessions;

		evict_of_source(s, source);
		if (last) /* this also removed the source */
			break;
	}
	while (s->used + cost > s->limit)
		evict_oldest(s);
}

static struct session *session_create(struct shard *s, const struct store_offer *offer, int64_t expires_ms)
{
	const struct session_facts *facts = &offer->obj->facts;
	size_t name_len = strlen(facts->server_name);
	struct session *session = object_alloc(s->memory, len_of_offer(offer));

	if (!session)
		return NULL;
	session->made_ms = offer->made_ms;
	session->family_made_ms = offer->family_made_ms;
	session->expires_ms = expires_ms;
	session->encoded_len = (uint32_t)offer->len;
	session->hits = 0;
	session->name_len = (uint16_t)name_len;
	session->protocol_version = facts->protocol_version;
	session->cipher_suite = facts->cipher_suite;
	session->segment = NEVER_RESUMED;
	session->by = (uint8_t)offer->by;
	session->client = facts->client;
	memcpy(session->id, facts->session_id, SESSION_ID_LEN);
	memcpy(session->family_id, facts->family_id, FAMILY_ID_LEN);
	memcpy(session->bytes, facts->server_name, name_len + 1);
	session->certificate_len = (uint8_t)certificate_len(offer);
	if (offer->obj->certificate)
		certificate_hash(offer->obj->certificate, offer->obj->certificate_len, session->bytes + name_len + 1);
	memcpy(session->bytes + name_len + 1 + session->certificate_len, offer->encoded, offer->len);
	return session;
}

int shard_add(struct shard *s, const struct store_offer *offer, int64_t expires_ms)
{
	const struct session_facts *facts = &offer->obj->facts;
	size_t cost = object_memory_cost(len_of_offer(offer));
	struct session *session, **bucket = shard_bucket(s, facts->session_id);

	if (cost > s->limit || cost > s->source_limit)
		return CSSL_E_FULL;
	make_room(s, &facts->client, cost);
	session = session_create(s, offer, expires_ms);
	if (!session)
		return CSSL_E_NO_MEMORY;
	session->source = source_get(s, &facts->client);
	if (!session->source) {
		object_free(s->memory, session, session_len(session));
		return CSSL_E_NO_MEMORY;
	}
	session->next = *bucket;
	*bucket = session;
	list_add_newest(&s->segments[NEVER_RESUMED], &session->in_segment);
	list_add_newest(&session->source->sessions, &session->in_source);
	session->source->bytes += cost;
	s->used += cost;
	s->count++;
	return 0;
}

static void move_to(struct shard *s, struct session *session, enum segment to)
{
	size_t cost = session_cost(session);

	if (session->segment == RESUMED)
		s->resumed_bytes -= cost;
	if (to == RESUMED)
		s->resumed_bytes += cost;
	session->segment = (uint8_t)to;
	list_remove(&session->in_segment);
	list_add_newest(&s->segments[to], &session->in_segment);
}

void shard_promote(struct shard *s, struct session *session)
{
	session->hits++;
	move_to(s, session, RESUMED);
	list_remove(&session->in_source);
	list_add_newest(&session->source->sessions, &session->in_source);
	while (s->resumed_bytes > s->limit / 100 * RESUMED_PERCENT) {
		struct list_node *oldest = list_oldest(&s->segments[RESUMED]);

		move_to(s, container_of(oldest, struct session, in_segment), NEVER_RESUMED);
	}
}
