/* worker.h: one thread with one libuv loop, its mailbox, its flush list and its shared read buffer. Also the loop of
 * main().
 *
 * An object of net/ belongs to one worker, and only that worker's thread uses it, except for worker_post(). Only net/
 * calls uv_close. A worker ends when every handle on its loop is closed, which is asserted.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "net/memory/buffers.h"

#define WORKER_READ_BUFFER_LEN (256u * 1024u)

struct worker;

/* Create a worker that does not run yet. NULL: out of memory or descriptors (logged). */
struct worker *worker_create(unsigned index, const char *name);

/* Run in a new thread, in which signals are blocked. @start runs there first, before the loop turns; this call waits
 * for it and returns its result. If that is not 0, the worker ends when all that @start opened is closed.
 * CSSL_E_SYSTEM: no thread. */
int worker_start(struct worker *w, int (*start)(struct worker *w, void *arg), void *arg);
/* The same in two steps, so that several workers start at the same time. worker_begin() does not wait: 0, or
 * CSSL_E_SYSTEM, and there is nothing to await. worker_await() waits for @start and returns its result. */
int worker_begin(struct worker *w, int (*start)(struct worker *w, void *arg), void *arg);
int worker_await(struct worker *w);

/* Run in the calling thread until worker_stop(). */
int worker_run(struct worker *w);

/* Let the loop end when all handles but the worker's own are closed; the owner closes its objects first. From any
 * thread. */
void worker_stop(struct worker *w);

/* Join the thread (if one runs), assert that every handle closed, free. */
void worker_destroy(struct worker *w);

/* Call @fn(@arg) on the worker's thread, in the order posted. From any thread. 0, or not called: CSSL_E_NO_MEMORY,
 * CSSL_E_STATE (the worker has ended). */
int worker_post(struct worker *w, void (*fn)(struct worker *w, void *arg), void *arg);

/* Before it runs: it reads into this memory of WORKER_READ_BUFFER_LEN bytes, which outlives it. */
void worker_read_into(struct worker *w, uint8_t *buffer);

/* Spare buffers of this worker, for its thread. What was taken is given back before worker_destroy(). */
struct buffers *worker_buffers(struct worker *w);

uv_loop_t *worker_loop(struct worker *w);
unsigned worker_index(const struct worker *w);
const char *worker_name(const struct worker *w);

/* The monotonic time of this loop turn; and the wall clock (in test builds with the fault point's offset). */
uint64_t worker_now_ms(const struct worker *w);
uint64_t worker_wall_s(void);
int64_t worker_wall_ms(void);
/* Number of the loop turn, from 1; it wraps around. */
uint32_t worker_turn(const struct worker *w);

/* Read the clock again, because something in this turn took long. */
void worker_refresh_now(struct worker *w);

/* CPU time of this thread in 1/1000: over the last second, or since the last call if that is longer ago. */
unsigned worker_busy_permille(struct worker *w);

/* A call at the end of this loop turn, before the loop sleeps; flushes use it. Embedded. Adding it twice does nothing.
 * Cancel it before freeing its holder. */
struct turn_end {
	LIST_ENTRY(turn_end) in; /* prev NULL: not set */
	void (*fn)(struct turn_end *t);
};
void worker_at_turn_end(struct worker *w, struct turn_end *t);
void turn_end_cancel(struct turn_end *t);

/* --- for the objects of net/ only --- */

/* Count a handle that was initialised on the loop; uncount it in its close callback. The worker ends when none is left.
 */
void worker_hold(struct worker *w);
void worker_release(struct worker *w);

/* WORKER_READ_BUFFER_LEN bytes, good until the callback that reads into them returns. */
uint8_t *worker_read_buffer(struct worker *w);
