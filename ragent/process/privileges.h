/* privileges.h: RAgent dispatches, it must not be able to read what only agents may know. Started as root it becomes
 * another user once sockets are bound and link.key is read, and proves that agents.key is out of its reach.
 */
#ifndef CSSL_RAGENT_PRIVILEGES_H
#define CSSL_RAGENT_PRIVILEGES_H

#include <stddef.h>

#include "conf/conf.h"

/* As many descriptors as the hard limit allows. Failures are logged, no more. */
void privileges_set_limits(void);

enum privileges {
	PRIVILEGES_DROPPED, /* it was root, and is no more */
	PRIVILEGES_ORDINARY /* it never was */
};

/* As root: become @user (NULL: the default), for good, and stay untraced (net/untraced.h). As an ordinary user:
 * nothing. 0 with *out, or CSSL_E_CONFIG or CSSL_E_SYSTEM with @error. */
int privileges_drop(const char *user, enum privileges *out, char *error, size_t error_cap);

/* Can this process read @agents_key? After PRIVILEGES_DROPPED that is an error (CSSL_E_CONFIG with @error); an ordinary
 * user is only warned, in the log. */
int privileges_check_key(const char *agents_key, enum privileges p, char *error, size_t error_cap);

#endif
