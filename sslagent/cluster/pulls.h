/* pulls.h: sessions that a handshake here waits for, asked of their origin: over its link at once, and by datagram
 * every PULL_EVERY_MS where there is no link or it says nothing. Where agents hold parts (conf replicas), of the first
 * holder; and when that has it not or says nothing, of all holders and the origin. Over when the session comes (from
 * anywhere), nobody who was asked has it, or the park time is up. Main thread; pulls_start() on the worker that waits.
 */
#ifndef CSSL_SSLAGENT_PULLS_H
#define CSSL_SSLAGENT_PULLS_H

#include "sslagent/cluster/cluster.h"

#define PULL_EVERY_MS 10

struct pulls;
struct session_pull;

struct pulls *pulls_create(void);
void pulls_destroy(struct pulls *p);

/* On worker @w. As session_source.pull and pull_cancel. */
struct session_pull *pulls_start(struct cluster *c, struct worker *w, const uint8_t id[static SESSION_ID_LEN],
	void (*done)(void *ctx, enum session_answer answer), void *ctx);
void pulls_cancel(struct session_pull *p);

/* It is in the store now; agent @from has it not; it is too large for a datagram, but @from has it (asked for over its
 * link now, or with all its sessions when the link is back). */
void pulls_found(struct cluster *c, const uint8_t id[static SESSION_ID_LEN]);
void pulls_absent(struct cluster *c, const uint8_t id[static SESSION_ID_LEN], unsigned from);
void pulls_over_link(struct cluster *c, const uint8_t id[static SESSION_ID_LEN], unsigned from);

void pulls_tick(struct cluster *c, int64_t now_ms);
int pulls_wait(const struct cluster *c); /* for any: they want ticks; 1 or 0 */
/* The cluster closes: every one is over now. */
void pulls_finish(struct cluster *c);

#endif
