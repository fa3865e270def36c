/* revocations.h: a revocation is done here, then told over every link, and over when each live peer has confirmed it or
 * REVOCATION_PATIENCE_MS have passed; but not before a session made from then on is newer than it in everybody's eyes.
 * A peer without a link gets the tombstone when its link comes back. Main thread; cluster_revoke() may be called from
 * any. */
#ifndef CSSL_SSLAGENT_REVOCATIONS_H
#define CSSL_SSLAGENT_REVOCATIONS_H

#include "proto/peer.pb-c.h"
#include "sslagent/cluster/cluster.h"

#define REVOCATION_PATIENCE_MS 1000
#define REVOCATION_SETTLE_MS   5

struct peer;
struct revocations;

struct revocations *revocations_create(void);
void revocations_destroy(struct revocations *r);

/* Apply here: how many sessions it removed. 0 or negative. */
int revocation_apply(struct cluster *c, const struct revoke_what *what, int64_t now_ms, uint64_t *sessions);

/* Who revokes a session means all that a client could go on with: a resumption in TLS 1.3 has made others of it. Where
 * the session is here @what becomes its family. */
void revocation_widen(struct cluster *c, struct revoke_what *what, int64_t now_ms);

/* @family: of FAMILY_ID_LEN bytes; NULL: the agent does not know the session. Who asked and did not know it either now
 * revokes the family, at all agents again. */
void revocations_confirmed(struct cluster *c, struct peer *from, uint64_t token, const uint8_t *family);
void revocations_peer_lost(struct cluster *c, struct peer *peer);
void revocations_tick(struct cluster *c, int64_t now_ms);
/* The cluster closes: every one is over now. */
void revocations_finish(struct cluster *c);

/* Between a revocation, but for one by a filter, and its message; names point into the other. 0 or CSSL_E_RANGE. */
int revoke_what_from(const Cssl__PeerRevoke *m, struct revoke_what *out);
void revoke_message(const struct revoke_what *what, Cssl__PeerRevoke *out);

#endif
