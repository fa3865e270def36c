/* cluster_thread.c: datagrams leave at the end of the loop turn, so that the messages of one turn share them. Tasks and
 * news go from thread to thread. */
#include "sslagent/cluster/cluster_thread.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/loop/timer.h"
#include "net/loop/udp.h"
#include "net/memory/container_of.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "sslagent/cluster/broadcast/broadcast_sender.h"
#include "sslagent/cluster/cluster_root.h"
#include "sslagent/counters.h"

#define RING_MIN 64u

static void on_emit(void *ctx, enum datagram_of what, int to, const uint8_t *datagram, size_t len)
{
	struct cluster_thread *t = ctx;
	const struct peers *peers = &t->cluster->peers;
	unsigned first = to == BROADCAST_ALL ? 0 : (unsigned)to, end = to == BROADCAST_ALL ? peers->count : first + 1;
	unsigned sent = 0;

	for (unsigned i = first; i < end; i++) {
		/* Words are for one agent that may not listen yet. An agent asks for objects when it lives again. */
		if ((to == BROADCAST_ALL || what == DATAGRAM_OF_OBJECTS) && !peers_listens(peers, i))
			continue;
		udp_send(t->udp, datagram, len, (const struct sockaddr *)&peers->of.conf->agents[i].peer);
		sent++;
	}
	count_by(COUNT_DATAGRAMS_SENT, sent);
	count_by(COUNT_DATAGRAM_BYTES_SENT, sent * len);
}

static void on_waiting(void *ctx)
{
	struct cluster_thread *t = ctx;

	worker_at_turn_end(t->worker, &t->flush);
}

static uint64_t thread_dropped(const struct cluster_thread *t)
{
	return udp_dropped(t->udp) + (t->receiving ? udp_dropped(t->receiving) : 0);
}

static void on_flush(struct turn_end *flush)
{
	struct cluster_thread *t = container_of(flush, struct cluster_thread, flush);

	broadcast_sender_flush(t->sender);
	count_gauge(COUNT_DATAGRAMS_DROPPED, thread_dropped(t)); /* until the turn before */
}

/* Each agent's stream carries only a part of the objects, so a shorter ring for each lasts about as long. */
static unsigned thread_ring_len(const struct cluster *c)
{
	uint64_t ring = c->conf->broadcast.ring;

	if (c->peers.placement)
		ring = ring * (c->conf->broadcast.replicas + 1) / c->peers.count;
	return ring > RING_MIN ? (unsigned)ring : RING_MIN;
}

int cluster_thread_init(struct cluster_thread *t, struct cluster *c, unsigned index)
{
	const struct broadcast_sender_conf conf = {
		.worker = (uint16_t)index,
		.boot_id = c->identity.boot_id,
		.ring = thread_ring_len(c),
		.streams = c->peers.placement ? c->peers.count : 0,
		.self = c->peers.self,
		.keys = c->sending,
		.on_waiting = on_waiting,
		.emit = on_emit,
		.ctx = t,
	};

	t->cluster = c;
	t->receiving_fd = -1;
	STAILQ_INIT(&t->tasks);
	t->flush.fn = on_flush;
	pthread_mutex_init(&t->lock, NULL);
	t->sender = broadcast_sender_create(&conf);
	return t->sender ? 0 : CSSL_E_NO_MEMORY;
}

void cluster_thread_destroy(struct cluster_thread *t)
{
	if (!t->cluster)
		return;
	if (t->receiving_fd >= 0)
		close(t->receiving_fd); /* no worker has joined */
	broadcast_sender_destroy(t->sender);
	pthread_mutex_destroy(&t->lock);
}

void cluster_thread_join(struct cluster_thread *t, struct worker *w, struct udp *udp, struct udp *receiving)
{
	t->udp = udp;
	t->receiving = receiving;
	pthread_mutex_lock(&t->lock);
	t->worker = w;
	pthread_mutex_unlock(&t->lock);
}

/* They are dropped if the thread has left. */
static void thread_do_tasks(struct thread_tasks *tasks, const struct worker *w)
{
	for (struct thread_task *task; (task = STAILQ_FIRST(tasks)) != NULL;) {
		STAILQ_REMOVE_HEAD(tasks, next);
		(w ? task->run : task->drop)(task);
	}
}

void cluster_leave_worker(struct cluster *c, struct worker *w)
{
	struct thread_tasks tasks = STAILQ_HEAD_INITIALIZER(tasks);
	struct cluster_thread *t = cluster_thread_of(c, w);

	if (!t)
		return;
	struct udp *udp = t->udp, *receiving = t->receiving;
	pthread_mutex_lock(&t->lock);
	t->worker = NULL;
	STAILQ_CONCAT(&tasks, &t->tasks);
	pthread_mutex_unlock(&t->lock);
	turn_end_cancel(&t->flush);
	if (udp)
		broadcast_sender_flush(t->sender);
	t->udp = t->receiving = NULL;
	thread_do_tasks(&tasks, NULL);
	udp_close(udp);
	udp_close(receiving);
}

/* The mailbox may run this after the thread has left: then it does nothing. */
static void on_woken(struct worker *w, void *arg)
{
	struct cluster_thread *t = arg;
	struct thread_tasks tasks = STAILQ_HEAD_INITIALIZER(tasks);

	pthread_mutex_lock(&t->lock);
	t->wake = THREAD_ASLEEP;
	STAILQ_CONCAT(&tasks, &t->tasks);
	pthread_mutex_unlock(&t->lock);
	thread_do_tasks(&tasks, w);
}

/* Under the lock. */
static void thread_wake(struct cluster_thread *t)
{
	if (t->wake == THREAD_ASLEEP && t->worker && worker_post(t->worker, on_woken, t) == 0)
		t->wake = THREAD_WOKEN;
}

void cluster_thread_hand(struct cluster_thread *t, struct thread_task *task)
{
	pthread_mutex_lock(&t->lock);
	if (t->worker) {
		STAILQ_INSERT_TAIL(&t->tasks, task, next);
		thread_wake(t);
		task = NULL;
	}
	pthread_mutex_unlock(&t->lock);
	if (task)
		task->drop(task);
}

void cluster_thread_nudge(struct cluster_thread *t)
{
	pthread_mutex_lock(&t->lock);
	if (!STAILQ_EMPTY(&t->tasks))
		thread_wake(t);
	pthread_mutex_unlock(&t->lock);
}

struct cluster_thread *cluster_thread_of(struct cluster *c, const struct worker *w)
{
	struct cluster_thread *t;

	if (w == c->main)
		return cluster_main_thread(c);
	if (!w || worker_index(w) >= c->self->workers)
		return NULL;
	t = &c->threads[worker_index(w)];
	return t->worker == w ? t : NULL; /* only its own thread sets and reads it here */
}

/* News */

struct news {
	struct thread_task task;
	struct cluster *cluster;
	news_fn fn;
	unsigned from;
	uint8_t about[NEWS_ABOUT_MAX];
};

static void news_run(struct thread_task *task)
{
	struct news *n = container_of(task, struct news, task);

	n->fn(n->cluster, n->from, n->about);
	free(n);
}

static void news_drop(struct thread_task *task)
{
	free(container_of(task, struct news, task));
}

int cluster_thread_tell(struct cluster_thread *t, news_fn fn, unsigned from, const void *about, size_t about_len)
{
	struct news *n = malloc(sizeof *n);

	assert(about_len <= NEWS_ABOUT_MAX);
	if (!n)
		return CSSL_E_NO_MEMORY;
	*n = (struct news){
		.task = { .run = news_run, .drop = news_drop }, .cluster = t->cluster, .fn = fn, .from = from
	};
	if (about_len > 0)
		memcpy(n->about, about, about_len);
	cluster_thread_hand(t, &n->task);
	return 0;
}

void cluster_thread_tell_main(struct cluster *c, news_fn fn, unsigned from, const uint8_t *about, size_t about_len)
{
	if (cluster_thread_tell(cluster_main_thread(c), fn, from, about, about_len) != 0)
		log_event(LOG_ERROR, NULL, "news of a peer lost", "peer=%s cause=\"out of memory\"",
			c->conf->agents[from].name);
}

/* The tick of the main thread */

void cluster_thread_tick_within(struct cluster *c, int64_t ms)
{
	if (!c->timer || c->tick_ms <= ms)
		return;
	c->tick_ms = ms;
	timer_set_every(c->timer, (uint64_t)ms);
}
