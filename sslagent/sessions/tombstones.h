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
#ifndef CSSL_SSLAGENT_TOMBSTONES_H
#define CSSL_SSLAGENT_TOMBSTONES_H

#include "sslagent/sessions/session_filter.h"

#define TOMBSTONES_MAX    65536u
#define FILTER_STONES_MAX 64u /* each offered or stored session is checked against all of them */

struct tombstones;

enum revoke_by {
	REVOKE_SESSION,
	REVOKE_FAMILY,
	REVOKE_SERVER_NAME,
	REVOKE_CLIENT_ADDRESS,
	REVOKE_ALL,
	REVOKE_MATCHING /* each session that passes a filter; the filter has no session id */
};
struct revoke_what {
	enum revoke_by by;
	uint8_t bytes[32]; /* id, family or address */
	size_t len;
	const char *server_name;
	const struct session_filter *filter;
};

/* @lifetime_ms: the longest life of any session of the cluster, from its family's full handshake on. */
struct tombstones *tombstones_create(int64_t lifetime_ms, unsigned max);
void tombstones_destroy(struct tombstones *t);

#define TOMBSTONE_KNOWN 1

/* @revoked_ms: the time of the revocation, not after @now_ms. 0; TOMBSTONE_KNOWN: it was known; CSSL_E_RANGE: @what is
 * malformed. It never fails for lack of memory or room: then it revokes everything. */
int tombstones_add(struct tombstones *t, const struct revoke_what *what, int64_t revoked_ms, int64_t now_ms);

/* The session in question. Unknown pointers are NULL. */
struct revocable {
	const uint8_t *session_id; /* SESSION_ID_LEN */
	const uint8_t *family_id;
	const char *server_name;
	const struct client_address *client;
	int64_t family_made_ms, made_ms; /* made_ms AGE_UNKNOWN: passes no filter that names an age */
	uint16_t protocol_version, cipher_suite;
	const uint8_t *client_certificate; /* its hash */
};
/* 1: revoked; 0: not revoked. */
int tombstones_hit(struct tombstones *t, const struct revocable *who);

void tombstones_expire(struct tombstones *t, int64_t now_ms);
size_t tombstones_count(struct tombstones *t);

/* Calls @fn for each tombstone, under the lock: @fn must not call back. @fn may use the tombstone during the call
 * only. */
struct tombstone {
	struct revoke_what what;
	int64_t revoked_ms;
};
void tombstones_each(struct tombstones *t, void (*fn)(void *ctx, const struct tombstone *stone), void *ctx);

#endif
