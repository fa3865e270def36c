/* interrupt.h: Ctrl-C while something is awaited: the tool says what goes on without it, and ends. */
#ifndef CSSL_CSSLCTL_INTERRUPT_H
#define CSSL_CSSLCTL_INTERRUPT_H

/* From now on SIGINT and SIGTERM are noted instead of ending the process; system calls that wait are interrupted. */
void interrupt_watch(void);
int interrupted(void);

#endif
