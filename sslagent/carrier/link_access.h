/* link_access.h: decides which users may connect to the agent's UNIX link socket: its own user, and one group. So no
 * other user of the host can keep openings open. The group is `link_group` of the cluster file, else the group of
 * the user that RAgents become.
 */
#ifndef CSSL_SSLAGENT_LINK_ACCESS_H
#define CSSL_SSLAGENT_LINK_ACCESS_H

#include "conf/conf.h"

#define LINK_ACCESS_MODE 0660u /* of the socket, from its beginning on */

/* Without `link_group`, the group of RAgent's user may not be known or settable (RAgents have several groups, or this
 * process is not in the group). Then only the user and the group of this process may connect. Log a warning if so. */
void link_access_warn(const struct conf *c, const struct conf_agent *self);
/* Give the socket to the group of RAgents, or warn; for TCP there is nothing to do. 0, or CSSL_E_CONFIG: logged. */
int link_access_grant(const struct conf *c, const struct conf_agent *self);

#endif
