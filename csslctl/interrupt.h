/* interrupt.h: Ctrl-C while a command waits: the command tells what goes on in the cluster, and ends. */
#ifndef CSSL_CSSLCTL_INTERRUPT_H
#define CSSL_CSSLCTL_INTERRUPT_H

/* From now on SIGINT and SIGTERM are noted and do not end the process. They interrupt system calls that wait. */
void interrupt_watch(void);
int interrupted(void);

#endif
