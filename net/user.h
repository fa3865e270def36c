/* user.h: root becomes an ordinary user, once and for good. */
#ifndef CSSL_NET_USER_H
#define CSSL_NET_USER_H

#include <stddef.h>

/* Become the user @name with its group and no others; log files are given to it, and the process stays untraced
 * (net/untraced.h). Only for root. 0, or CSSL_E_CONFIG or CSSL_E_SYSTEM with @error. */
int user_become(const char *name, char *error, size_t error_cap);

/* The same, but CAP_NET_ADMIN stays, and no other capability. */
int user_become_net_admin(const char *name, char *error, size_t error_cap);

#endif
