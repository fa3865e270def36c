/* link_access.c: the socket's group. Its mode is there from the beginning: until it has its group, only this process's
 * user and group can connect. */
#include "sslagent/carrier/link_access.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

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

/* Another user may own the folder: only a socket with no second name is given away, whatever stands at @path. */
static int give(const char *path, gid_t group)
{
	struct stat st;
	const int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	const int is_ours = fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_nlink == 1;
	int r = fd < 0 ? -errno : is_ours ? 0 : -ENOTSOCK;

	if (r == 0 && fchownat(fd, "", (uid_t)-1, group, AT_EMPTY_PATH) < 0)
		r = -errno;
	if (fd >= 0)
		close(fd);
	return r;
}

static int give_to_named(const char *path, const char *name)
{
	const struct group *group = getgrnam(name);
	const int r = group ? give(path, group->gr_gid) : CSSL_E_NOT_FOUND;

	if (r < 0)
		log_event(LOG_ERROR, NULL, "link socket cannot be given to its group", "path=%s group=%s cause=%s",
			path, name, group ? strerror(-r) : "no such group");
	return r < 0 ? CSSL_E_CONFIG : 0;
}

int link_access_grant(const struct conf *c, const struct conf_agent *self)
{
	const char *path = ((const struct sockaddr_un *)&self->link)->sun_path;

	if (self->link.ss_family != AF_UNIX)
		return 0;
	if (self->link_group)
		return give_to_named(path, self->link_group);
	const gid_t group = ragents_group(c);
	if (group == GROUP_UNKNOWN || give(path, group) < 0)
		log_event(LOG_WARNING, NULL, "link socket only for this process's user and group",
			"path=%s effect=\"a RAgent of another user cannot connect\" remedy=\"name a group in "
			"link_group, "
			"of RAgent's user and of the agent's\"",
			path);
	return 0;
}
