/* worker.h: one thread with one libuv loop, its mailbox, its flush list and its shared read buffer. Also the loop of
 * main().
 *
 * Everything in net/ belongs to one worker and is used only from that worker's thread, except worker_post().
 * Only net/ calls uv_close; a worker ends when every handle on its loop is closed, and that is asserted.
 */
#ifndef CSSL_NET_WORKER_H
#define CSSL_NET_WORKER_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define WORKER_READ_BUFFER_LEN (256u * 1024u)

struct worker;

/* Create with loop and mailbox, not yet running. NULL: out of memory or descriptors (logged). */
struct worker *worker_create(unsigned index, const char *name);

/* Run in a new thread: @start runs first in it, with the loop not yet turning; this call waits for it and returns its
 * result. Non-zero ends the worker once what @start opened is closed. CSSL_E_SYSTEM: no thread. Signals are blocked in
 * it. */
int worker_start(struct worker *w, int (*start)(struct worker *w, void *arg), void *arg);

/* Run in the calling thread until worker_stop(). */
int worker_run(struct worker *w);

/* Ask the loop to end once its last handle but the worker's own is closed. The owner closes its objects first.
 * From any thread. */
void worker_stop(struct worker *w);

/* Join the thread (if one runs), assert that every handle closed, free. */
void worker_destroy(struct worker *w);

/* Call @fn(@arg) on the worker's thread, in the order posted. From any thread. 0, or not called: CSSL_E_NO_MEMORY,
 * CSSL_E_STATE (the worker has ended). */
int worker_post(struct worker *w, void (*fn)(struct worker *w, void *arg), void *arg);

uv_loop_t *worker_loop(struct worker *w);
unsigned worker_index(const struct worker *w);
const char *worker_name(const struct worker *w);

/* Monotonic time of this loop turn; the wall clock with the test builds' clock offset added. */
uint64_t worker_now_ms(const struct worker *w);
uint64_t worker_wall_s(void);
int64_t worker_wall_ms(void);
/* Number of the loop turn, from 1; it wraps around. */
uint32_t worker_turn(const struct worker *w);

/* Something within this turn took long: time goes on before its end. */
void worker_refresh_now(struct worker *w);

/* CPU time of this thread in 1/1000, over the last second or, if asked more rarely, since it was last asked. */
unsigned worker_busy_permille(struct worker *w);

/* A thing to do once at the end of this loop turn, before the loop sleeps (flushes are made of this). Embedded; linking
 * a linked one is a no-op; unlink before freeing its holder. */
struct turn_end {
	struct turn_end *next, **prev;
	void (*fn)(struct turn_end *t);
};
void worker_at_turn_end(struct worker *w, struct turn_end *t);
void turn_end_cancel(struct turn_end *t);

#endif
