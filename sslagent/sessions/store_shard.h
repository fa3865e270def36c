/* store_shard.h: one shard of the store: a hash table of sessions, their order of eviction, their sources. Only store.c
 * uses it, and holds the lock around every call. */
#ifndef CSSL_SSLAGENT_STORE_SHARD_H
#define CSSL_SSLAGENT_STORE_SHARD_H

#include <pthread.h>
#include <sodium.h>

#include "sslagent/sessions/object_memory.h"
#include "sslagent/sessions/store.h"

/* A node of a circular list, whose head is a node too. */
struct list_node {
	struct list_node *newer, *older;
};

/* One client address, or IPv6 /64, and its sessions. */
struct source {
	struct source *next; /* bucket */
	struct list_node sessions;
	uint64_t bytes;
	struct client_address address;
};

enum segment { NEVER_RESUMED, RESUMED, SEGMENTS };

/* The fields that a walk reads stand together. */
struct session {
	struct list_node in_segment, in_source;
	struct source *source;
	struct session *next; /* bucket */
	int64_t made_ms, family_made_ms, expires_ms;
	uint32_t encoded_len, hits;
	uint16_t name_len, protocol_version, cipher_suite;
	uint8_t segment;         /* enum segment */
	uint8_t by;              /* enum stored_by */
	uint8_t certificate_len; /* of its hash; 0: no client certificate */
	struct client_address client;
	uint8_t id[SESSION_ID_LEN], family_id[FAMILY_ID_LEN];
	uint8_t bytes[]; /* server name, terminated; hash of the client certificate; the encoded object */
};

struct shard {
	pthread_mutex_t lock;
	struct object_memory *memory;
	uint64_t limit, source_limit;
	uint64_t used, count, resumed_bytes;
	size_t bucket_count;      /* of sessions and of sources */
	unsigned rank_shift;      /* of an id's rank, to shard and bucket */
	struct session **buckets; /* in the order of ids */
	struct source **sources;
	struct list_node segments[SEGMENTS];
	uint8_t hash_key[crypto_shorthash_KEYBYTES]; /* for addresses: clients choose them */
} __attribute__((aligned(64)));

/* One of 1 << @shard_bits. 0 or CSSL_E_NO_MEMORY; destroy is legal on a zeroed shard. */
int shard_init(struct shard *s, unsigned shard_bits, uint64_t limit, uint64_t source_limit);
void shard_destroy(struct shard *s);

struct session *shard_find(struct shard *s, const uint8_t id[static SESSION_ID_LEN]);
size_t shard_bucket_index(const struct shard *s, const uint8_t id[static SESSION_ID_LEN]);
struct session **shard_bucket(struct shard *s, const uint8_t id[static SESSION_ID_LEN]);

/* Evict others if needed, and add the session. 0, CSSL_E_FULL (larger than the shard or its source's share),
 * CSSL_E_NO_MEMORY. */
int shard_add(struct shard *s, const struct store_offer *offer, int64_t expires_ms);
void shard_remove(struct shard *s, struct session *session);
/* The session was resumed: evict it last from now on. */
void shard_promote(struct shard *s, struct session *session);

const uint8_t *session_encoded(const struct session *session);
const char *session_server_name(const struct session *session);
const uint8_t *session_client_certificate(const struct session *session); /* NULL: none */

#endif
