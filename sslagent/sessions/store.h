/* store.h: the sessions this agent can resume: its own and all it heard of. Bounded in bytes; shards with a lock each.
 *
 * Segmented LRU: sessions never resumed here go first, those that were resumed have most of the room and fall back when
 * there are too many of them. A source (client address, IPv6 /64) has at most its share. All times are this process's
 * monotonic milliseconds. Tombstones are asked under the shard's lock, so that a revocation that marks first and sweeps
 * then leaves nothing behind.
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
	int64_t made_ms; /* when its ages were true */
	int64_t family_made_ms;
	enum stored_by by;
};

#define STORE_KNOWN 1

/* 0: stored; STORE_KNOWN: it was there, nothing changed; negative, counted: CSSL_E_EXPIRED, CSSL_E_MISMATCH (revoked),
 * CSSL_E_FULL, CSSL_E_TOO_LONG, CSSL_E_NO_MEMORY. */
int store_put(struct store *s, const struct store_offer *offer, int64_t now_ms);

/* For a resumption: decoded into @out (destroy it), ages and remaining times as of now. *family_made_ms as stored.
 * 0 or CSSL_E_NOT_FOUND. */
int store_find(struct store *s, const uint8_t id[static SESSION_ID_LEN], int64_t now_ms, struct sess_obj *out,
	int64_t *family_made_ms);

/* What is stored, as it is stored; memory is the callee's for the call. */
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

/* As a filter sees it. */
struct session_seen stored_seen(const struct stored *s, int64_t now_ms);

/* For another agent: @fn is called under the lock with the session, at most once. 0 or CSSL_E_NOT_FOUND. */
int store_peek(struct store *s, const uint8_t id[static SESSION_ID_LEN], int64_t now_ms,
	void (*fn)(void *ctx, const struct stored *session), void *ctx);

/* All sessions in steps of whole hash buckets, for snapshots and inspection. Each call goes on at *@cursor (0 at first)
 * until
 * @fn has said STORE_PAUSE and the bucket is done. What comes or goes between the steps may be met or not.
 * 1: there is more; 0: that was all. */
enum store_walk { STORE_GO_ON, STORE_PAUSE };
int store_walk(struct store *s, uint64_t *cursor, int64_t now_ms,
	enum store_walk (*fn)(void *ctx, const struct stored *session), void *ctx);

/* The cursor at which a walk meets this session, or would: the same in all stores of one size. */
uint64_t store_position(const struct store *s, const uint8_t id[static SESSION_ID_LEN]);

/* Remove what the tombstones hit; @id: only this one (NULL: look at all). How many. */
uint64_t store_sweep(struct store *s, const uint8_t *id);

/* Other agents hold it now: drop it unless it was made here. 1: it was dropped; 0. */
int store_displace(struct store *s, const uint8_t id[static SESSION_ID_LEN]);

/* Drop some of what is over; call it often. */
void store_expire(struct store *s, int64_t now_ms);

/* @bytes may be NULL. */
uint64_t store_count(struct store *s, uint64_t *bytes);

#endif
