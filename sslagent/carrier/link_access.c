/* link_access.c: the socket's group. Its mode is there from the beginning: until it has its group, only this process's
 * user and group can connect. */
#include "sslagent/carrier/link_access.h"

#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/listener.h"
#include "net/log.h"
#include "proto/error.h"

#define GROUP_UNKNOWN ((gid_t)-1)

/* The group of the user that all RAgents become. GROUP_UNKNOWN: there are several, or the user does not exist here. */
static gid_t ragents_group(const struct conf *c)
{
	gid_t group = GROUP_UNKNOWN;

	for (size_t i = 0; i < c->ragent_count; i++) {
		const char *name = c->ragents[i].user ? c->ragents[i].user : CONF_RAGENT_USER_DEFAULT;
		const struct passwd *user = getpwnam(name);
		if (!user || (i > 0 && user->pw_gid != group))
			return GROUP_UNKNOWN;
		group = user->pw_gid;
	}
	return group;
}

/* GROUP_UNKNOWN: the socket cannot be given to them. */
static gid_t group_to_give(const struct conf *c)
{
	const gid_t group = ragents_group(c);

	return geteuid() == 0 || group == getegid() || group_member(group) ? group : GROUP_UNKNOWN;
}

void link_access_warn(const struct conf *c, const struct conf_agent *self)
{
	if (self->link.ss_family == AF_UNIX && !self->link_group && group_to_give(c) == GROUP_UNKNOWN)
		log_event(LOG_WARNING, NULL, "link socket only for this process's user and group",
			"path=%s effect=\"a RAgent of another user cannot connect\" remedy=\"name a group in "
			"link_group, of RAgent's user and of the agent's\"",
			((const struct sockaddr_un *)&self->link)->sun_path);
}

int link_access_grant(const struct conf *c, const struct conf_agent *self)
{
	const char *path = ((const struct sockaddr_un *)&self->link)->sun_path;
	const struct group *named = self->link_group ? getgrnam(self->link_group) : NULL;
	const gid_t group = named ? named->gr_gid : group_to_give(c);

	if (self->link.ss_family != AF_UNIX)
		return 0;
	link_access_warn(c, self);
	const int r = group == GROUP_UNKNOWN ? 0 : listener_give_file(path, (uid_t)-1, group);
	if (r < 0)
		log_event(LOG_ERROR, NULL, "link socket cannot be given to its group", "path=%s group=%s cause=%s",
			path, self->link_group ? self->link_group : "RAgent's", strerror(-r));
	return r < 0 ? CSSL_E_CONFIG : 0;
}
