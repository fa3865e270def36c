/* user.h: root becomes an ordinary user, once and for good; and other processes of that user do not read its memory. */
#pragma once

#include <stddef.h>

/* NOTHING: the user's own group only. GROUPS: all groups of the user. NET_ADMIN: these, and the capability of that
 * name. */
enum user_keeps { USER_KEEPS_NOTHING, USER_KEEPS_GROUPS, USER_KEEPS_NET_ADMIN };
/* Become the user @name; log files are given to it, and the process stays untraced. Only for root. 0,
 * or CSSL_E_CONFIG or CSSL_E_SYSTEM with @error. */
int user_become(const char *name, enum user_keeps keeps, char *error, size_t error_cap);

/* Behind it: log a warning if the file @path (NULL: none) is there, and this user cannot open it again. @mode: R_OK or
 * W_OK. @effect: a sentence. */
void user_warn_of(const char *path, int mode, const char *effect);
#define USER_SAME_LOG "SIGHUP cannot open it again, and lines go on in the old file"

/* Keep other processes of the same user from reading this process's memory. The kernel writes no core file, not even
 * into a pipe (core(5)); it refuses ptrace(2) and process_vm_readv(2) to all but root; and only root may read
 * /proc/PID/mem, environ, maps and fd. The process itself can read all of /proc/self.
 *
 * Call it first in a process, and again after each change of the user, because that change resets it (to the value of
 * /proc/sys/fs/suid_dumpable). 0 or CSSL_E_SYSTEM. In test builds it does nothing if CSSL_TRACEABLE is in the
 * environment, for debuggers and core files. */
int untraced_begin(void);
