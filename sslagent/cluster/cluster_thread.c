/* cluster_thread.c: datagrams leave at the end of the loop turn, so that the messages of one turn share them. */
#include "sslagent/cluster/cluster_thread.h"

#include <unistd.h>

#include "proto/error.h"
#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "sslagent/cluster/cluster_internal.h"
#include "sslagent/counters.h"

#define RING_MIN 64u

static void on_emit(void *ctx, enum datagram_of what, int to, const uint8_t *datagram, size_t len)
{
	struct cluster_thread *t = ctx;
	struct cluster *c = t->cluster;
	unsigned sent = 0;

	if (to != BROADCAST_ALL) {
		if (what == DATAGRAM_OF_OBJECTS && !peer_listens(c, (unsigned)to))
			return; /* it asks when it lives again */
		udp_send(t->udp, datagram, len, (const struct sockaddr *)&c->conf->agents[to].peer);
		count(COUNT_DATAGRAMS_SENT);
		count_by(COUNT_DATAGRAM_BYTES_SENT, len);
		return;
	}
	for (unsigned i = 0; i < c->agent_count; i++) {
		if (!peer_listens(c, i))
			continue;
		udp_send(t->udp, datagram, len, (const struct sockaddr *)&c->conf->agents[i].peer);
		sent++;
	}
	count_by(COUNT_DATAGRAMS_SENT, sent);
	count_by(COUNT_DATAGRAM_BYTES_SENT, sent * len);
}

static uint64_t dropped(const struct cluster_thread *t)
{
	return udp_dropped(t->udp) + (t->receiving ? udp_dropped(t->receiving) : 0);
}

static void on_flush(struct turn_end *flush)
{
	struct cluster_thread *t = container_of(flush, struct cluster_thread, flush);

	broadcast_sender_flush(t->sender);
	count_gauge(COUNT_DATAGRAMS_DROPPED, dropped(t)); /* until the turn before */
}

/* Each agent's stream carries only a part of the objects, so a shorter ring for each lasts about as long. */
static unsigned ring_len(const struct cluster *c)
{
	uint64_t ring = c->conf->broadcast.ring;

	if (c->placement)
		ring = ring * (c->conf->broadcast.replicas + 1) / c->agent_count;
	return ring > RING_MIN ? (unsigned)ring : RING_MIN;
}

int cluster_thread_init(struct cluster_thread *t, struct cluster *c, unsigned index)
{
	struct broadcast_sender_conf conf = {
		.worker = (uint16_t)index,
		.boot_id = c->boot_id,
		.ring = ring_len(c),
		.streams = c->placement ? c->agent_count : 0,
		.self = c->self_index,
		.keys = c->sending,
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
static void do_tasks(struct thread_tasks *tasks, const struct worker *w)
{
	for (struct thread_task *task; (task = STAILQ_FIRST(tasks)) != NULL;) {
		STAILQ_REMOVE_HEAD(tasks, next);
		(w ? task->run : task->drop)(task);
	}
}

void cluster_thread_leave(struct cluster_thread *t)
{
	struct thread_tasks tasks = STAILQ_HEAD_INITIALIZER(tasks);

	pthread_mutex_lock(&t->lock);
	t->worker = NULL;
	STAILQ_CONCAT(&tasks, &t->tasks);
	pthread_mutex_unlock(&t->lock);
	turn_end_cancel(&t->flush);
	if (t->udp)
		broadcast_sender_flush(t->sender);
	t->udp = t->receiving = NULL;
	do_tasks(&tasks, NULL);
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
	do_tasks(&tasks, w);
}

/* Under the lock. */
static void wake(struct cluster_thread *t)
{
	if (t->wake == THREAD_ASLEEP && t->worker && worker_post(t->worker, on_woken, t) == 0)
		t->wake = THREAD_WOKEN;
}

void cluster_thread_hand(struct cluster_thread *t, struct thread_task *task)
{
	pthread_mutex_lock(&t->lock);
	if (t->worker) {
		STAILQ_INSERT_TAIL(&t->tasks, task, next);
		wake(t);
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
		wake(t);
	pthread_mutex_unlock(&t->lock);
}

static void make_ready(struct cluster_thread *t, Cssl__BroadcastMessage *m)
{
	if (m->made_ms == 0)
		m->made_ms = cluster_now_ms();
	worker_at_turn_end(t->worker, &t->flush);
}

void cluster_thread_repeat(struct cluster_thread *t, int to, uint64_t first, uint64_t last)
{
	broadcast_sender_repeat(t->sender, to, first, last, cluster_now_ms());
	worker_at_turn_end(t->worker, &t->flush);
}

int cluster_thread_number(struct cluster_thread *t, int to, Cssl__BroadcastMessage *m)
{
	make_ready(t, m);
	return broadcast_sender_number(t->sender, to, m);
}

int cluster_thread_say(struct cluster_thread *t, int to, Cssl__BroadcastMessage *m)
{
	make_ready(t, m);
	return broadcast_sender_say(t->sender, to, m);
}

void cluster_thread_prove(struct cluster_thread *t, int to, const uint8_t *challenge)
{
	unsigned threads = t->cluster->self->workers + 1;
	uint64_t counters[SENDER_THREADS_MAX], highest[SENDER_THREADS_MAX];
	Cssl__Proof proof = { MESSAGE(proof), .challenge = bytes_of(challenge, CHALLENGE_LEN), .n_counter = threads,
		.counter = counters, .n_highest = threads, .highest = highest };
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .what_case = CSSL__BROADCAST_MESSAGE__WHAT_PROOF,
		.proof = &proof };

	make_ready(t, &m);
	const uint32_t generation =
		broadcast_sender_renew_key(t->sender); /* the proof leaves under it: keys roll here */
	for (unsigned i = 0; i < threads; i++) {
		struct broadcast_mark mark = broadcast_sender_mark(t->cluster->threads[i].sender, to, generation);

		counters[i] = mark.next_counter;
		highest[i] = mark.highest;
	}
	broadcast_sender_say(t->sender, to, &m);
}
