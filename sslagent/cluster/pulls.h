/* pulls.h: ask for a session that a handshake here waits for. The origin is asked, over its link at once, and by
 * datagram every PULL_EVERY_MS where it has no link or does not answer. Where agents hold parts (conf replicas), the
 * first holder is asked; when it lacks the session or does not answer, all holders and the origin are asked. A pull is
 * over when the session comes (from any agent), when no asked agent has it, or when the park time is up. Main thread;
 * pulls_start() on the worker that waits, pulls_found() on any thread.
 */
#ifndef CSSL_SSLAGENT_PULLS_H
#define CSSL_SSLAGENT_PULLS_H

#include "net/table.h"
#include "sslagent/cluster/cluster.h"

#define PULL_EVERY_MS 10

struct session_pull;

/* Embedded; all zero at first. */
struct pulls {
	_Atomic unsigned waiting; /* changed by the main thread */
	struct table table;
};
void pulls_free(struct pulls *p);

/* On worker @w. As session_source.pull and pull_cancel. */
struct session_pull *pulls_start(struct cluster *c, struct worker *w, const uint8_t id[static SESSION_ID_LEN],
	void (*done)(void *ctx, enum session_answer answer), void *ctx);
void pulls_cancel(struct session_pull *p);

/* found: the session is in the store now. absent: agent @from does not have it. over_link: @from has it, but it does
 * not fit a datagram; ask over the link now, or take all sessions of @from when the link is back. */
void pulls_found(struct cluster *c, const uint8_t id[static SESSION_ID_LEN]);
void pulls_absent(struct cluster *c, unsigned from, const uint8_t id[static SESSION_ID_LEN]);
void pulls_over_link(struct cluster *c, unsigned from, const uint8_t id[static SESSION_ID_LEN]);

void pulls_tick(struct cluster *c, int64_t now_ms);
bool pulls_wait(const struct cluster *c); /* 1 when any pull waits and needs ticks, else 0 */
/* The cluster closes: end every one now. */
void pulls_finish(struct cluster *c);

#endif
