/* cluster_thread.h: one thread of this agent as a member of the cluster. It has its own sender, sockets and numbers for
 * datagrams, and takes tasks and news from other threads. Workers are 0..workers-1, the main thread is `workers`.
 *
 * Any thread may call hand, nudge, tell and tell_main; only the thread itself may call the rest, and use its
 * sender. What it numbers or says leaves at the end of the turn.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "net/loop/worker.h"
#include "sslagent/cluster/cluster.h"

struct broadcast_sender;
struct udp;

/* Something to do on another thread. Embedded. Exactly one of the two is called: run, on that thread; or drop, on any
 * thread, when that thread has left. */
struct thread_task {
	STAILQ_ENTRY(thread_task) next;
	void (*run)(struct thread_task *t);
	void (*drop)(struct thread_task *t);
};
STAILQ_HEAD(thread_tasks, thread_task);

struct cluster_thread {
	struct cluster *cluster;
	struct worker *worker; /* NULL: the thread has not joined, or has left; changes under the lock */
	struct udp *udp;       /* it sends by this one */
	struct udp *receiving; /* and hears the other agents by this one; NULL: the main thread */
	int receiving_fd;      /* for receiving, until the worker joins; else -1 */
	struct broadcast_sender *sender;
	struct turn_end flush;
	_Atomic unsigned repeats; /* so many wait */
	superseded_fn superseded; /* the thread's own */
	void *superseded_ctx;
	pthread_mutex_t lock; /* of what follows */
	struct thread_tasks tasks;
	enum { THREAD_ASLEEP, THREAD_WOKEN } wake;
};

int cluster_thread_init(struct cluster_thread *t, struct cluster *c, unsigned index);
void cluster_thread_destroy(struct cluster_thread *t); /* legal on a zeroed one */

/* On the thread: send by @udp from now on. It owns @udp and @receiving (or NULL) until cluster_leave_worker(), which
 * sends no more, drops waiting tasks, and closes both; the main thread leaves by it, too. */
void cluster_thread_join(struct cluster_thread *t, struct worker *w, struct udp *udp, struct udp *receiving);

void cluster_thread_hand(struct cluster_thread *t, struct thread_task *task);
/* Wake the thread again if tasks wait. The main thread's timer calls it, for tasks whose wake-up failed for lack of
 * memory. */
void cluster_thread_nudge(struct cluster_thread *t);

/* NULL: @w is no worker of this agent, or has not joined. */
struct cluster_thread *cluster_thread_of(struct cluster *c, const struct worker *w);

/* @t calls @fn with agent @from and a copy of what it is @about, such as a session id; not if it has left. 0 or
 * CSSL_E_NO_MEMORY. tell_main: the main thread does; a failure is logged. */
#define NEWS_ABOUT_MAX SESSION_ID_LEN
typedef void (*news_fn)(struct cluster *c, unsigned from, const uint8_t *about);
int cluster_thread_tell(struct cluster_thread *t, news_fn fn, unsigned from, const void *about, size_t about_len);
void cluster_thread_tell_main(struct cluster *c, news_fn fn, unsigned from, const uint8_t *about, size_t about_len);

/* On the main thread: its timer ticks at least so often, until its next tick. */
void cluster_thread_tick_within(struct cluster *c, int64_t ms);
