/* tombstones.h: the memory of revocations. A tombstone stays as long as a session that it hits could live. So no
 * revoked session comes back by a late datagram, a snapshot, a pull, a ticket or a child.
 *
 * A revocation by id or family hits for ever. A revocation by server name, by client address or of everything hits each
 * session of a family whose full handshake was before the revocation. A revocation by a filter hits those sessions of
 * such families that pass the filter; ages count at the time of the revocation. All times are this process's monotonic
 * milliseconds.
 *
 * Bounded: when there are too many, one tombstone replaces them and hits every session made so far. That only costs
 * full handshakes. Thread-safe; while nothing is revoked a look-up costs one load.
 */
#pragma once

#include "sslagent/sessions/session_filter.h"

#define TOMBSTONES_MAX    65536u
#define FILTER_STONES_MAX 64u /* each offered or stored session is checked against all of them */

struct tombstones;

/* What is revoked, in the form in which RAgent orders it. */
typedef Cssl__LinkRequest__Revoke revoke_what;
enum revoke_by {
	REVOKE_SESSION = CSSL__LINK_REQUEST__REVOKE__WHICH_SESSION_ID,
	REVOKE_FAMILY = CSSL__LINK_REQUEST__REVOKE__WHICH_FAMILY_ID,
	REVOKE_SERVER_NAME = CSSL__LINK_REQUEST__REVOKE__WHICH_SERVER_NAME,
	REVOKE_CLIENT_ADDRESS = CSSL__LINK_REQUEST__REVOKE__WHICH_CLIENT_ADDRESS,
	REVOKE_ALL = CSSL__LINK_REQUEST__REVOKE__WHICH_ALL,
	REVOKE_MATCHING = CSSL__LINK_REQUEST__REVOKE__WHICH_MATCHING, /* the filter has no session id */
};

/* @lifetime_ms: the longest life of any session of the cluster, from its family's full handshake on. */
struct tombstones *tombstones_create(int64_t lifetime_ms, unsigned max);
void tombstones_destroy(struct tombstones *t);

int tombstones_check(const revoke_what *what); /* 0, or CSSL_E_RANGE: @what is malformed */

#define TOMBSTONE_KNOWN 1

/* @revoked_ms: the time of the revocation, not after @now_ms. 0; TOMBSTONE_KNOWN: it was known; CSSL_E_RANGE: @what is
 * malformed (tombstones_check()). It never fails for lack of memory or room: then it revokes everything. */
int tombstones_add(struct tombstones *t, const revoke_what *what, int64_t revoked_ms, int64_t now_ms);

/* Is it revoked? A session made at AGE_UNKNOWN passes no filter that names an age. */
bool tombstones_hit(struct tombstones *t, const struct session_seen *who);

void tombstones_expire(struct tombstones *t, int64_t now_ms);
size_t tombstones_count(struct tombstones *t);

/* Calls @fn for each tombstone, and once with NULL at the end, under the lock: @fn must not call back. What it got is
 * valid until the end. */
void tombstones_each(
	struct tombstones *t, void (*fn)(void *ctx, const revoke_what *what, int64_t revoked_ms), void *ctx);
