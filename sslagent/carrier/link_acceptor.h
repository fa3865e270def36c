/* link_acceptor.h: takes connections from RAgents on the agent's link address, answers their openings, and hands
 * each open link to the worker that it asks for. It runs on the main loop, so that a slow or hostile opening costs
 * the workers nothing. Any process that can connect may keep openings open. So silent ones end after
 * OPENING_SILENT_MS, and earlier if newer ones need their place (newcomers.h): a RAgent always gets through.
 *
 * To a UNIX socket only the agent's own user and one group may connect, so that no other user of the host can keep
 * openings open: `link_group` of the cluster file, else the group of the user that RAgents become.
 */
#pragma once

#include "conf/conf.h"
#include "sslagent/carrier/carrier_home.h"

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

/* Without `link_group`, the group of RAgent's user may not be known or settable (RAgents have several groups, or this
 * process is not in the group). Then only the user and the group of this process may connect. Log a warning if so. */
void link_acceptor_warn(const struct conf *c, const struct conf_agent *self);
