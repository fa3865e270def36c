/* link_acceptor.h: takes connections from RAgents on the agent's link address, answers their openings, and hands
 * each open link to the worker that it asks for. It runs on the main loop, so that a slow or hostile opening costs
 * the workers nothing. Any process that can connect may keep openings open. So silent ones end after
 * OPENING_SILENT_MS, and earlier if newer ones need their place (newcomers.h): a RAgent always gets through. For a
 * UNIX socket, link_access.h decides which processes can connect.
 */
#ifndef CSSL_SSLAGENT_LINK_ACCEPTOR_H
#define CSSL_SSLAGENT_LINK_ACCEPTOR_H

#include "conf/conf.h"
#include "proto/opening.h"
#include "sslagent/carrier/link.h"

struct link_acceptor;

#define OPENINGS_MAX       256u  /* at a time */
#define OPENING_SILENT_MS  250u  /* for the first message; later, an opening that stalls so long may give way */
#define OPENING_TIMEOUT_MS 3000u /* from the first message to the last */

/* The functions of the process that it uses. All have to outlive it. */
struct link_acceptor_home {
	struct worker *main;
	const struct conf *conf;
	const struct conf_agent *self;
	const struct key_ring *link_key;
	/* Fill in this agent's part of an opening. */
	void (*fill_hello)(const void *process, struct link_hello *out);
	/* Give an open link to the worker that its opening asked for. */
	void (*give)(void *process, struct link_arrival *arrival);
	void *process;
};

/* @home is copied. NULL: the address cannot be bound (logged). */
struct link_acceptor *link_acceptor_create(const struct link_acceptor_home *home);
/* Closes listener and openings. @on_closed is called once, later, and may destroy it. */
void link_acceptor_close(struct link_acceptor *a, void (*on_closed)(void *ctx), void *ctx);
void link_acceptor_destroy(struct link_acceptor *a);

#endif
