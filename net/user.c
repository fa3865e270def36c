/* user.c: changes the groups first, then the user; after that nothing can be changed any more. */
#include "net/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "net/log.h"
#include "net/untraced.h"
#include "proto/error.h"

int user_become(const char *name, char *error, size_t error_cap)
{
	const struct passwd *p = getpwnam(name);
	if (!p || p->pw_uid == 0) {
		snprintf(error, error_cap, "user %s: %s", name, p ? "is root" : "not known");
		return CSSL_E_CONFIG;
	}
	if (log_give(p->pw_uid, p->pw_gid) < 0)
		log_event(LOG_WARNING, NULL, "log file still belongs to root",
			"user=%s cause=%s effect=\"SIGHUP cannot open it again\"", name, strerror(errno));
	if (setgroups(0, NULL) < 0 || setresgid(p->pw_gid, p->pw_gid, p->pw_gid) < 0 ||
		setresuid(p->pw_uid, p->pw_uid, p->pw_uid) < 0) {
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
