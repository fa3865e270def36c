/* untraced.h: keeps other processes of the same user from reading this process's memory. The kernel writes no core
 * file, not even into a pipe (core(5)); it refuses ptrace(2) and process_vm_readv(2) to all but root; and only root may
 * read /proc/PID/mem, environ, maps and fd. The process itself can read all of /proc/self. */
#ifndef CSSL_NET_UNTRACED_H
#define CSSL_NET_UNTRACED_H

/* Call it first in a process, and again after each change of the user, because that change resets it (to the value of
 * /proc/sys/fs/suid_dumpable). 0 or CSSL_E_SYSTEM. In test builds it does nothing if CSSL_TRACEABLE is in the
 * environment, for debuggers and core files. */
int untraced_begin(void);

#endif
