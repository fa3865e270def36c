/* store.h: the sessions that this agent can resume: its own, and those from other agents. Bounded in bytes; each shard
 * has a lock.
 *
 * Segmented LRU: sessions that were never resumed here are evicted first. Resumed sessions have most of the room; when
 * they are too many, the oldest of them fall back to the others. A source (client address, IPv6 /64) has at most its
 * share. All times are this process's monotonic milliseconds. Tombstones are checked under the shard's lock. So a
 * revocation that first adds its tombstone and then sweeps removes every session.
 */
#pragma once

#include "sslagent/sessions/session_filter.h"
#include "sslagent/sessions/shelf.h"

struct tombstones;
struct store;

struct store_limits {
	uint64_t bytes;
	unsigned per_source_percent; /* 0 or 100: no limit */
	int64_t lifetime_ms;         /* of a family */
};

/* A stored session. The fields that a walk reads stand together. */
struct session {
	struct shelved shelved; /* first */
	TAILQ_ENTRY(session) in_source;
	struct source *source;
	uint32_t hits; /* found for a resumption */
	uint16_t name_len, protocol_version, cipher_suite;
	uint8_t certificate_len; /* of its hash; 0: no client certificate */
	struct client_address client;
	uint8_t id[SESSION_ID_LEN], family_id[FAMILY_ID_LEN];
	uint8_t bytes[]; /* server name, terminated; hash of the client certificate; the encoded object */
};

/* It holds keys. */
const uint8_t *session_encoded(const struct session *s, size_t *len);
struct session_seen session_seen(const struct session *s);
/* Of a callback of shelf_walk(). */
static inline const struct session *session_of(const struct shelved *o)
{
	return (const struct session *)o;
}

/* @tombstones outlive it. NULL: out of memory. */
struct store *store_create(const struct store_limits *limits, struct tombstones *tombstones);
void store_destroy(struct store *s);
struct shelf *store_shelf(const struct store *s); /* to walk, count and expire */

#define STORE_KNOWN 1

/* @offer has a resumption part, and no live part. 0: stored; STORE_KNOWN: it was stored already, nothing changed;
 * negative, counted: CSSL_E_EXPIRED, CSSL_E_MISMATCH (revoked), CSSL_E_FULL, CSSL_E_TOO_LONG, CSSL_E_NO_MEMORY. */
int store_put(struct store *s, const struct offer *offer, int64_t now_ms);

/* Find a session for a resumption and decode it into @out (destroy it). Ages and remaining times are those at @now_ms;
 * *family_made_ms is as stored. 0 or CSSL_E_NOT_FOUND. */
int store_find(struct store *s, const uint8_t id[static SESSION_ID_LEN], int64_t now_ms, struct sess_obj *out,
	int64_t *family_made_ms);

/* For another agent: @fn is called under the lock with the session, at most once; NULL: it is only looked for. The
 * session is valid in the call only. 0 or CSSL_E_NOT_FOUND. */
int store_peek(struct store *s, const uint8_t id[static SESSION_ID_LEN], int64_t now_ms,
	void (*fn)(void *ctx, const struct session *session), void *ctx);

/* Remove the sessions that the tombstones hit, or look at session @id only (NULL: all). Returns how many were
 * removed. */
uint64_t store_sweep(struct store *s, const uint8_t *id);

/* Other agents hold the session now: drop it unless it was made here. Was it dropped? */
bool store_displace(struct store *s, const uint8_t id[static SESSION_ID_LEN]);
