/* user.h: root becomes an ordinary user, once and for good. */
#ifndef CSSL_NET_USER_H
#define CSSL_NET_USER_H

#include <stddef.h>

/* NOTHING: the user's own group only. GROUPS: all groups of the user. NET_ADMIN: these, and the capability of that
 * name. */
enum user_keeps { USER_KEEPS_NOTHING, USER_KEEPS_GROUPS, USER_KEEPS_NET_ADMIN };
/* Become the user @name; log files are given to it, and the process stays untraced (net/untraced.h). Only for root. 0,
 * or CSSL_E_CONFIG or CSSL_E_SYSTEM with @error. */
int user_become(const char *name, enum user_keeps keeps, char *error, size_t error_cap);

/* Behind it: log a warning if the file @path (NULL: none) is there, and this user cannot open it again. @mode: R_OK or
 * W_OK. @effect: a sentence. */
void user_warn_of(const char *path, int mode, const char *effect);
#define USER_SAME_LOG "SIGHUP cannot open it again, and lines go on in the old file"

#endif
