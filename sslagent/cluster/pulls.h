/* pulls.h: ask for a session that a handshake here waits for, and answer the questions of others. It is a part of its
 * own because a pull ends in bounded time whatever the others say. The origin is asked, over its link at once, and by
 * datagram every PULL_EVERY_MS where it has no link or does not answer. Where agents hold parts (conf replicas), the
 * first holder is asked; when it lacks the session or does not answer, all holders and the origin are asked. A pull is
 * over when the session comes (from any agent), when no asked agent has it, or when the park time is up. Main thread;
 * pulls_start() and pulls_cancel() on the worker that waits, pulls_found() and pulls_heard() on any thread.
 */
#pragma once

#include "net/memory/table.h"
#include "proto/broadcast.pb-c.h"
#include "proto/peer.pb-c.h"
#include "sslagent/tls/session_source.h"

struct cluster;

#define PULL_EVERY_MS 10
#define PULLS_END     INT64_MAX /* the time when every pull is over */

struct peer;
struct session_pull;

/* Embedded; all zero at first. Its owner clears the table when none waits. Others read waiting. */
struct pulls {
	_Atomic unsigned waiting; /* changed by the main thread */
	struct table table;
};

/* On worker @w. As session_source.pull and pull_cancel; @origin is of the id. */
struct session_pull *pulls_start(struct cluster *c, struct worker *w, const uint8_t id[static SESSION_ID_LEN],
	uint16_t origin, void (*done)(void *ctx, enum session_answer answer), void *ctx);
void pulls_cancel(struct session_source *s, struct session_pull *p);

/* The session is in the store now. */
void pulls_found(struct cluster *c, const uint8_t id[static SESSION_ID_LEN]);
/* PULL, ABSENT or TOO_LARGE of agent @from, by datagram. */
void pulls_heard(struct cluster *c, unsigned from, const Cssl__BroadcastMessage *m);
/* Takes PULL and ABSENT, over the link. 0 or negative. */
int pulls_on_message(struct cluster *c, struct peer *p, const Cssl__PeerMessage *m);

/* With PULLS_END the cluster closes: end every one now. */
void pulls_tick(struct cluster *c, int64_t now_ms);
