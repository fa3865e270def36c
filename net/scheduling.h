/* scheduling.h: how the kernel gives CPUs to this process. */
#ifndef CSSL_NET_SCHEDULING_H
#define CSSL_NET_SCHEDULING_H

/* Use SCHED_BATCH for this thread and each thread that it starts from now on: they do not interrupt the thread that has
 * the CPU when something comes for them. A policy that was chosen for this process stays. */
void scheduling_take_turns(void);

#endif
