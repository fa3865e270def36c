/* untraced.h: no other process of its own user reads this process's memory. The kernel writes no core file of it, not
 * even into a pipe (core(5)), refuses ptrace(2) and process_vm_readv(2) to all but root, and gives /proc/PID/mem,
 * environ, maps and fd to root. The process itself still reads all of its own /proc/self. */
#ifndef CSSL_NET_UNTRACED_H
#define CSSL_NET_UNTRACED_H

/* First thing in a process, and again after each change of its user: that resets the mark to what
 * /proc/sys/fs/suid_dumpable says. 0 or CSSL_E_SYSTEM. A test build leaves the process as it is when CSSL_TRACEABLE is
 * in its environment, for debuggers and core files. */
int untraced_begin(void);

#endif
