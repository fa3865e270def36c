/* privileges.h: RAgent must not be able to read secrets that only agents may know. If it is started as root, it
 * becomes another user once sockets are bound and link.key is read, and checks that it cannot read agents.key.
 */
#pragma once

#include <stddef.h>

#include "conf/conf.h"

enum privileges {
	PRIVILEGES_DROPPED, /* it was root and no longer is */
	PRIVILEGES_ORDINARY /* it never was root */
};

/* As root: become @user (NULL: the default) for good, and stay untraced (net/process/user.h). As an ordinary user: do
 * nothing. 0 with *out, or CSSL_E_CONFIG or CSSL_E_SYSTEM with @error. */
int privileges_drop(const char *user, enum privileges *out, char *error, size_t error_cap);

/* Can this process read a key that is for agents alone? After PRIVILEGES_DROPPED that is an error (CSSL_E_CONFIG with
 * @error). For an ordinary user it is only a warning in the log. */
int privileges_check_key(const char *path, enum privileges p, char *error, size_t error_cap);

/* Both for a RAgent of the cluster file, at a start and at --check; as root, for private keys of certificates, too. And
 * warn of files that a reload could not open again. */
int privileges_settle(const struct conf *c, const struct conf_ragent *self, char *error, size_t error_cap);
