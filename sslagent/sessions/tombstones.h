/* tombstones.h: what was revoked. A tombstone stands for as long as a session it hits could live, so that nothing
 * revoked comes back by a late datagram, a snapshot, a pull, a ticket or a child.
 *
 * A revocation by id or family hits for good; one by server name, client address or of everything hits what belongs to
 * a family whose full handshake was before it. One by a filter hits, of such families, each session that passes the
 * filter; ages count at the time of the revocation. All times are this process's monotonic milliseconds.
 *
 * Bounded: when there are too many, they become one that hits everything made so far, which costs full handshakes and
 * nothing else. Thread-safe; while nothing is revoked a look-up costs one load.
 */
#ifndef CSSL_SSLAGENT_TOMBSTONES_H
#define CSSL_SSLAGENT_TOMBSTONES_H

#include "sslagent/sessions/session_filter.h"

#define TOMBSTONES_MAX    65536u
#define FILTER_STONES_MAX 64u /* each session that is offered or stored is held against every one */

struct tombstones;

enum revoke_by {
	REVOKE_SESSION,
	REVOKE_FAMILY,
	REVOKE_SERVER_NAME,
	REVOKE_CLIENT_ADDRESS,
	REVOKE_ALL,
	REVOKE_MATCHING /* each session by itself, by what a filter says; not by its id */
};
struct revoke_what {
	enum revoke_by by;
	uint8_t bytes[32]; /* id, family or address */
	size_t len;
	const char *server_name;
	const struct session_filter *filter;
};

/* @lifetime_ms: the longest any session of the cluster lives, from its family's full handshake. */
struct tombstones *tombstones_create(int64_t lifetime_ms, unsigned max);
void tombstones_destroy(struct tombstones *t);

#define TOMBSTONE_KNOWN 1

/* @revoked_ms: when; not after @now_ms. 0; TOMBSTONE_KNOWN: nothing new; CSSL_E_RANGE: @what is malformed. Never fails
 * for want of memory or room: then everything is revoked. */
int tombstones_add(struct tombstones *t, const struct revoke_what *what, int64_t revoked_ms, int64_t now_ms);

/* Of whom it is asked. Fields that are not known: NULL. */
struct revocable {
	const uint8_t *session_id; /* SESSION_ID_LEN */
	const uint8_t *family_id;
	const char *server_name;
	const struct client_address *client;
	int64_t family_made_ms, made_ms; /* made_ms AGE_UNKNOWN: passes no filter that names an age */
	uint16_t protocol_version, cipher_suite;
	const uint8_t *client_certificate; /* its hash */
};
/* 1: revoked; 0. */
int tombstones_hit(struct tombstones *t, const struct revocable *who);

void tombstones_expire(struct tombstones *t, int64_t now_ms);
size_t tombstones_count(struct tombstones *t);

/* Each tombstone that stands, under the lock: @fn must not call back. Its memory is @fn's for the call. */
struct tombstone {
	struct revoke_what what;
	int64_t revoked_ms;
};
void tombstones_each(struct tombstones *t, void (*fn)(void *ctx, const struct tombstone *stone), void *ctx);

#endif
