/* link_opening.h: begins a link: connect to the agent, make the opening (proto/opening.h) as initiator, check that it
 * is the wanted agent and worker, and hand the descriptor and the keys to the link. Embedded in its link.
 */
#ifndef CSSL_RAGENT_LINK_OPENING_H
#define CSSL_RAGENT_LINK_OPENING_H

#include "conf/conf.h"
#include "net/stream.h"
#include "net/timer.h"
#include "proto/opening.h"

struct link_opening;

struct link_opened {
	int fd;     /* owned by the callee */
	int memory; /* the memory for its bytes, owned by the callee; -1: they use the socket */
	int pidfd;  /* from the agent, for its own process; owned by the callee; -1: it sent none */
	const struct link_keys *keys;
	const struct link_hello *peer;
	const uint8_t *early; /* bytes that came after the opening */
	size_t early_len;
};

struct link_opening_ops {
	/* @opened is valid in the call only, except its descriptors. */
	void (*on_opened)(struct link_opening *o, const struct link_opened *opened);
	void (*on_failed)(struct link_opening *o, int error);
	/* After link_opening_close(), once. */
	void (*on_closed)(struct link_opening *o);
};

struct link_opening {
	struct stream stream;
	struct worker *worker;
	const struct link_opening_ops *ops;
	const struct conf_agent *agent;
	const struct key_ring *ring;
	struct link_hello mine;
	struct opening *opening; /* NULL: not connected yet */
	struct deadline deadline;
	int memory; /* made for the agent; -1: none */
	int pidfd;  /* from the agent; -1: none */
};

/* Begin; give up after @limit_ms. Pointers outlive it. 0: on_opened or on_failed will come, once, unless closed before.
 * Negative: nothing was opened, no callback comes. */
int link_opening_begin(struct link_opening *o, struct worker *w, const struct link_opening_ops *ops,
	const struct conf_agent *agent, const struct key_ring *ring, const struct link_hello *mine, uint64_t limit_ms);
void link_opening_close(struct link_opening *o);

#endif
