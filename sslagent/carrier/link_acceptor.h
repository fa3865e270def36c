/* link_acceptor.h: takes connections from RAgents on the agent's link address, answers their openings, and hands each
 * open link to the worker it asks for. On the main loop, so that a slow or hostile opening costs the workers nothing.
 * Whoever can connect may hold openings open: those that say nothing end after OPENING_SILENT_MS, and before that they
 * give way to newer ones (newcomers.h), so that a RAgent always gets through. Who can connect to a UNIX socket is said
 * by its group (link_access.h).
 */
#ifndef CSSL_SSLAGENT_LINK_ACCEPTOR_H
#define CSSL_SSLAGENT_LINK_ACCEPTOR_H

#include "conf/conf.h"
#include "proto/opening.h"
#include "sslagent/carrier/link.h"

struct link_acceptor;

#define OPENINGS_MAX       256u  /* at a time */
#define OPENING_SILENT_MS  250u  /* for the first message; then it may give way when it stalls for as long */
#define OPENING_TIMEOUT_MS 3000u /* from the first message to the last */

/* What it needs of the process; all outlive it. */
struct link_acceptor_home {
	struct worker *main;
	const struct conf *conf;
	const struct conf_agent *self;
	const struct key_ring *link_key;
	/* What this agent says of itself in an opening. */
	void (*fill_hello)(const void *process, struct link_hello *out);
	/* An open link, to the worker that its opening asked for. */
	void (*give)(void *process, struct link_arrival *arrival);
	void *process;
};

/* @home is copied. NULL: the address cannot be had (logged). */
struct link_acceptor *link_acceptor_create(const struct link_acceptor_home *home);
/* Closes listener and openings; @on_closed comes once, later, and may destroy. */
void link_acceptor_close(struct link_acceptor *a, void (*on_closed)(void *ctx), void *ctx);
void link_acceptor_destroy(struct link_acceptor *a);

#endif
