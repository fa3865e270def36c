/* link_access.h: who may connect to the agent's UNIX link socket: its own user, and one group, so that no other user of
 * the host can hold openings open. The group is `link_group` of the cluster file, else that of the user whom RAgents
 * become.
 */
#ifndef CSSL_SSLAGENT_LINK_ACCESS_H
#define CSSL_SSLAGENT_LINK_ACCESS_H

#include "conf/conf.h"

#define LINK_ACCESS_MODE_FIRST 0600u /* of a socket that listens already and is not granted yet */

/* Let them in; nothing to do for TCP. Where no `link_group` is said and the group of RAgent's user cannot be given
 * (RAgents of several groups, or this process is not in it) everybody may connect, with a warning. 0, or CSSL_E_CONFIG
 * or CSSL_E_SYSTEM: logged. */
int link_access_grant(const struct conf *c, const struct conf_agent *self);

#endif
