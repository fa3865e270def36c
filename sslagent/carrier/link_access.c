/* link_access.c: the socket's group and mode. The mode is set last: until then only this user can connect. */
#include "sslagent/carrier/link_access.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/log.h"
#include "proto/error.h"

#define MODE_GROUP    0660u
#define MODE_ALL      0666u
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

static int set_mode(const char *path, mode_t mode)
{
	if (chmod(path, mode) == 0)
		return 0;
	log_event(LOG_ERROR, NULL, "link socket cannot be opened to RAgents",
		"path=%s cause=%s effect=\"RAgents cannot connect\"", path, strerror(errno));
	return CSSL_E_SYSTEM;
}

static int grant_named(const char *path, const char *name)
{
	const struct group *group = getgrnam(name);

	if (group && chown(path, (uid_t)-1, group->gr_gid) == 0)
		return set_mode(path, MODE_GROUP);
	log_event(LOG_ERROR, NULL, "link socket cannot be given to its group", "path=%s group=%s cause=%s", path, name,
		group ? strerror(errno) : "no such group");
	return CSSL_E_CONFIG;
}

int link_access_grant(const struct conf *c, const struct conf_agent *self)
{
	const char *path = ((const struct sockaddr_un *)&self->link)->sun_path;

	if (self->link.ss_family != AF_UNIX)
		return 0;
	if (self->link_group)
		return grant_named(path, self->link_group);
	const gid_t group = ragents_group(c);
	if (group != GROUP_UNKNOWN && chown(path, (uid_t)-1, group) == 0)
		return set_mode(path, MODE_GROUP);
	log_event(LOG_WARNING, NULL, "link socket open to every user",
		"path=%s remedy=\"name a group in link_group, of RAgent's user and of the agent's\"", path);
	return set_mode(path, MODE_ALL);
}
