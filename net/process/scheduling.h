/* scheduling.h: how the kernel gives CPUs to this process. */
#pragma once

/* Use SCHED_BATCH for this thread and each thread that it starts from now on: they do not interrupt the thread that has
 * the CPU when something comes for them. A policy that was chosen for this process stays. */
void scheduling_take_turns(void);

/* This thread takes turns; for a while it may interrupt one that does long work, and is chosen before it: its work is
 * short, and somebody waits for it. (Linux before 6.12 lets it interrupt, but does not choose it.) Until
 * scheduling_calm(). Nothing happens in a thread that does not take turns. */
void scheduling_hurry(void);
void scheduling_calm(void);
