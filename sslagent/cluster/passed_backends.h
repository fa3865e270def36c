/* passed_backends.h: backend sockets on their way between agents of one host. A socket that this agent sends waits for
 * the other's confirmation (main thread). A socket that it received waits for the SSL_ID that claims it (any thread).
 * The sender keeps its own descriptor until the confirmation, so after a failure it still has the socket.
 */
#ifndef CSSL_SSLAGENT_PASSED_BACKENDS_H
#define CSSL_SSLAGENT_PASSED_BACKENDS_H

#include "proto/peer.pb-c.h"
#include "sslagent/cluster/cluster.h"

#define PASS_PATIENCE_MS 1000
#define CLAIM_WITHIN_MS  10000

struct passed_backends;
struct peer;

struct passed_backends *passed_backends_create(void);
void passed_backends_destroy(struct passed_backends *b); /* only with no pass under way; drops unclaimed backends */

/* A message came over the link. */
int passed_backends_receive(struct peer *from, const Cssl__PeerMessage *m);
int passed_backends_answered(struct peer *from, const Cssl__PeerMessage *m);
int passed_backends_withdrawn(struct peer *from, const Cssl__PeerMessage *m);
void passed_backends_peer_lost(struct cluster *c, struct peer *peer);

void passed_backends_tick(struct cluster *c, int64_t now_ms);
/* The cluster closes: every pass fails now. */
void passed_backends_finish(struct cluster *c);

#endif
