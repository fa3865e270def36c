/* agent.h: an SSLAgent process: the main loop (new links, the cluster membership, signals) and its workers (links,
 * connections). It owns everything; there is one in a process.
 */
#pragma once

#include "conf/conf.h"

struct agent;

/* Read keys, make TLS contexts, bind sockets, start workers. Takes over @conf. NULL: failed, and a message was
 * printed. */
struct agent *agent_create(struct conf *conf, const struct conf_agent *self);
/* Serve until SIGTERM or SIGINT, then until no connection is left or the time is over. A second signal ends it at
 * once. 0 when everything stopped cleanly. */
int agent_run(struct agent *a);
void agent_destroy(struct agent *a);

/* As root: become the `user` of the agent, if there is one, for good, and check that this user can read what a reload
 * reads. 0, or CSSL_E_CONFIG or CSSL_E_SYSTEM with @error. */
int agent_become_user(const struct conf *conf, const struct conf_agent *self, char *error, size_t error_cap);
