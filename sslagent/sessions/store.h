/* store.h: the sessions that this agent can resume: its own, and those from other agents. Bounded in bytes; each shard
 * has a lock.
 *
 * Segmented LRU: sessions that were never resumed here are evicted first. Resumed sessions have most of the room; when
 * they are too many, the oldest of them fall back to the others. A source (client address, IPv6 /64) has at most its
 * share. All times are this process's monotonic milliseconds. Tombstones are checked under the shard's lock. So a
 * revocation that first adds its tombstone and then sweeps removes every session.
 */
#ifndef CSSL_SSLAGENT_STORE_H
#define CSSL_SSLAGENT_STORE_H

#include "proto/sess_obj.h"
#include "sslagent/sessions/tombstones.h"

struct store;

struct store_limits {
	uint64_t bytes;
	unsigned per_source_percent; /* 0 or 100: no limit */
	int64_t lifetime_ms;         /* of a family */
};

/* @tombstones outlive it. NULL: out of memory. */
struct store *store_create(const struct store_limits *limits, struct tombstones *tombstones);
void store_destroy(struct store *s);

enum stored_by { STORED_HEARD, STORED_OWN };

struct store_offer {
	const struct sess_obj *obj; /* with a resumption part, without live part */
	const uint8_t *encoded;     /* the same */
	size_t len;
	int64_t made_ms; /* the time at which its ages were right */
	int64_t family_made_ms;
	enum stored_by by;
};

#define STORE_KNOWN 1

/* 0: stored; STORE_KNOWN: it was stored already, nothing changed; negative, counted: CSSL_E_EXPIRED, CSSL_E_MISMATCH
 * (revoked), CSSL_E_FULL, CSSL_E_TOO_LONG, CSSL_E_NO_MEMORY. */
int store_put(struct store *s, const struct store_offer *offer, int64_t now_ms);

/* Find a session for a resumption and decode it into @out (destroy it). Ages and remaining times are those at @now_ms;
 * *family_made_ms is as stored. 0 or CSSL_E_NOT_FOUND. */
int store_find(struct store *s, const uint8_t id[static SESSION_ID_LEN], int64_t now_ms, struct sess_obj *out,
	int64_t *family_made_ms);

/* A stored session. The callee may use its memory during the call only. */
struct stored {
	const uint8_t *id;
	const uint8_t *encoded;
	size_t len;
	int64_t made_ms, family_made_ms, expires_ms;
	enum stored_by by;
	const char *server_name;
	size_t server_name_len;
	const struct client_address *client;
	uint16_t protocol_version, cipher_suite;
	const uint8_t *family_id;
	const uint8_t *client_certificate; /* its hash (session_filter.h); NULL: none was shown */
	uint32_t hits;                     /* found for a resumption */
};

/* The facts of a stored session for a filter. */
struct session_seen stored_seen(const struct stored *s, int64_t now_ms);

/* For another agent: @fn is called under the lock with the session, at most once. 0 or CSSL_E_NOT_FOUND. */
int store_peek(struct store *s, const uint8_t id[static SESSION_ID_LEN], int64_t now_ms,
	void (*fn)(void *ctx, const struct stored *session), void *ctx);

/* All sessions in steps of whole hash buckets, for snapshots and inspection. Each call goes on at *@cursor (0 at first)
 * until @fn has said STORE_PAUSE and the bucket is done. A walk may miss sessions that come or go between its steps. 1:
 * there is more; 0: that was all. */
enum store_walk { STORE_GO_ON, STORE_PAUSE };
int store_walk(struct store *s, uint64_t *cursor, int64_t now_ms,
	enum store_walk (*fn)(void *ctx, const struct stored *session), void *ctx);

/* The cursor at which a walk meets this session, even if it is not stored. It is the same in all stores of one size. */
uint64_t store_position(const struct store *s, const uint8_t id[static SESSION_ID_LEN]);

/* Remove the sessions that the tombstones hit, or look at session @id only (NULL: all). Returns how many were
 * removed. */
uint64_t store_sweep(struct store *s, const uint8_t *id);

/* Other agents hold the session now: drop it unless it was made here. 1: it was dropped; 0: it was not. */
int store_displace(struct store *s, const uint8_t id[static SESSION_ID_LEN]);

/* Drop some of what is over; call it often. */
void store_expire(struct store *s, int64_t now_ms);

/* @bytes may be NULL. */
uint64_t store_count(struct store *s, uint64_t *bytes);

#endif
