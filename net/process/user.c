/* user.c: changes the groups first, then the user; after that nothing can be changed any more. */
#include "net/process/user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/report/log.h"
#include "proto/error.h"

/* The mark PR_SET_DUMPABLE (prctl(2)), and a limit of core files beside it. */
int untraced_begin(void)
{
	const struct rlimit no_core = { 0, 0 };

#ifdef CSSL_TEST_POINTS
	if (getenv("CSSL_TRACEABLE"))
		return 0;
#endif
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || setrlimit(RLIMIT_CORE, &no_core) != 0)
		return CSSL_E_SYSTEM;
	return 0;
}

/* Behind setresuid(), which took the effective ones and, without PR_SET_KEEPCAPS, all others. */
static int keep_net_admin(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { 0 };
	sets[0].permitted = sets[0].effective = 1u << CAP_NET_ADMIN;
	return (int)syscall(SYS_capset, &head, sets);
}

static int set_groups(const struct passwd *p, enum user_keeps keeps)
{
	return keeps == USER_KEEPS_NOTHING ? setgroups(0, NULL) : initgroups(p->pw_name, p->pw_gid);
}

int user_become(const char *name, enum user_keeps keeps, char *error, size_t error_cap)
{
	const bool is_admin = keeps == USER_KEEPS_NET_ADMIN;
	const struct passwd *p = getpwnam(name);
	if (!p || p->pw_uid == 0) {
		snprintf(error, error_cap, "user %s: %s", name, p ? "is root" : "not known");
		return CSSL_E_CONFIG;
	}
	log_give(p->pw_uid, p->pw_gid);
	/* Groups first: an ordinary user may not change them. Capabilities last: setresuid(2) drops all that are in
	 * effect. */
	if ((is_admin && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0) || set_groups(p, keeps) < 0 ||
		setresgid(p->pw_gid, p->pw_gid, p->pw_gid) < 0 || setresuid(p->pw_uid, p->pw_uid, p->pw_uid) < 0 ||
		(is_admin && keep_net_admin() < 0)) {
		snprintf(error, error_cap, "cannot become user %s: %s", name, strerror(errno));
		return CSSL_E_SYSTEM;
	}
	if (untraced_begin() < 0) {
		snprintf(error, error_cap, "other processes of user %s could read this one's memory: %s", name,
			strerror(errno));
		return CSSL_E_SYSTEM;
	}
	return 0;
}

void user_warn_of(const char *path, int mode, const char *effect)
{
	if (path && faccessat(AT_FDCWD, path, mode, AT_EACCESS) < 0 && errno != ENOENT)
		log_event(LOG_WARNING, NULL, "file cannot be opened again", "path=%s cause=%s effect=%s", path,
			strerror(errno), effect);
}
