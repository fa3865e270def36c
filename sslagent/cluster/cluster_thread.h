/* cluster_thread.h: one thread of this agent as a member of the cluster. It has its own sender, sockets and numbers for
 * datagrams, and takes tasks from other threads. Workers are 0..workers-1, the main thread is `workers`.
 *
 * Any thread may call hand and nudge; only the thread itself may call the rest.
 */
#ifndef CSSL_SSLAGENT_CLUSTER_THREAD_H
#define CSSL_SSLAGENT_CLUSTER_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "net/timer.h"
#include "net/udp.h"
#include "net/worker.h"
#include "sslagent/cluster/broadcast/broadcast_sender.h"
#include "sslagent/cluster/cluster.h"

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

/* On the thread. join: send by @udp from now on. leave: send no more and drop waiting tasks. @udp and @receiving (or
 * NULL) stay the caller's. */
void cluster_thread_join(struct cluster_thread *t, struct worker *w, struct udp *udp, struct udp *receiving);
void cluster_thread_leave(struct cluster_thread *t);

void cluster_thread_hand(struct cluster_thread *t, struct thread_task *task);
/* Wake the thread again if tasks wait. The main thread's timer calls it, for tasks whose wake-up failed for lack of
 * memory. */
void cluster_thread_nudge(struct cluster_thread *t);

/* As broadcast_sender_repeat(), broadcast_sender_number() and broadcast_sender_say(). A made_ms of 0 becomes now. */
void cluster_thread_repeat(struct cluster_thread *t, int to, uint64_t first, uint64_t last);
int cluster_thread_number(struct cluster_thread *t, int to, Cssl__BroadcastMessage *m);
int cluster_thread_say(struct cluster_thread *t, int to, Cssl__BroadcastMessage *m);
/* Answer a probe of agent @to, for all threads of this process. The main thread. */
void cluster_thread_prove(struct cluster_thread *t, int to, const uint8_t *challenge);

#endif
