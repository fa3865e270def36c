/* scheduling.h: how the kernel gives CPUs to this process. */
#ifndef CSSL_NET_SCHEDULING_H
#define CSSL_NET_SCHEDULING_H

/* From here on this thread, and every thread that it starts, lets whoever has a CPU go on until he pauses or his time
 * is up, instead of interrupting him for each thing that comes (SCHED_BATCH). A policy that somebody chose for this
 * process stays. */
void scheduling_take_turns(void);

#endif
