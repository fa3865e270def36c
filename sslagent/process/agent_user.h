/* agent_user.h: an agent that root starts becomes its `user` once sockets are open and everything that only root may
 * read is read.
 */
#ifndef CSSL_SSLAGENT_AGENT_USER_H
#define CSSL_SSLAGENT_AGENT_USER_H

#include "conf/conf.h"

/* As root: become the `user` of the agent, if there is one, for good, and check that this user can read what a reload
 * reads. 0, or CSSL_E_CONFIG or CSSL_E_SYSTEM with @error. */
int agent_become_user(const struct conf *conf, const struct conf_agent *self, char *error, size_t error_cap);

/* The same, and give it the peer socket; warn of an agent that stays root. 0; negative: failed (printed). */
int agent_give_up_root(const struct conf *conf, const struct conf_agent *self);

#endif
