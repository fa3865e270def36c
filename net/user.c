/* user.c: changes the groups first, then the user; after that nothing can be changed any more. */
#include "net/user.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/log.h"
#include "net/untraced.h"
#include "proto/error.h"

enum kept { KEPT_NOTHING, KEPT_NET_ADMIN };

/* Behind setresuid(), which took the effective ones and, without PR_SET_KEEPCAPS, all others. */
static int keep_net_admin(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { 0 };
	sets[0].permitted = sets[0].effective = 1u << CAP_NET_ADMIN;
	return (int)syscall(SYS_capset, &head, sets);
}

static int become(const char *name, enum kept kept, char *error, size_t error_cap)
{
	const struct passwd *p = getpwnam(name);
	if (!p || p->pw_uid == 0) {
		snprintf(error, error_cap, "user %s: %s", name, p ? "is root" : "not known");
		return CSSL_E_CONFIG;
	}
	if (log_give(p->pw_uid, p->pw_gid) < 0)
		log_event(LOG_WARNING, NULL, "log file still belongs to root",
			"user=%s effect=\"SIGHUP cannot open it again\" remedy=\"give the file to that user\"", name);
	if ((kept == KEPT_NET_ADMIN && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0) || setgroups(0, NULL) < 0 ||
		setresgid(p->pw_gid, p->pw_gid, p->pw_gid) < 0 || setresuid(p->pw_uid, p->pw_uid, p->pw_uid) < 0 ||
		(kept == KEPT_NET_ADMIN && keep_net_admin() < 0)) {
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

int user_become(const char *name, char *error, size_t error_cap)
{
	return become(name, KEPT_NOTHING, error, error_cap);
}

int user_become_net_admin(const char *name, char *error, size_t error_cap)
{
	return become(name, KEPT_NET_ADMIN, error, error_cap);
}
