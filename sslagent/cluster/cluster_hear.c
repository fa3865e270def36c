/* cluster_hear.c: the sockets of the broadcast, and what this agent hears there. Each worker has a socket at the
 * agent's address. What it hears there it does itself where tables for all threads take it (sessions, live parts,
 * epochs), because it is awake anyway while clients keep the cluster busy. What concerns peers and pulls it tells the
 * main thread.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "net/loop/udp.h"
#include "net/socket/address.h"
#include "proto/error.h"
#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "sslagent/cluster/broadcast/broadcast_sender.h"
#include "sslagent/cluster/cluster_root.h"
#include "sslagent/sessions/live_table.h"

#define REPEATS_MAX 256u /* that wait for a thread */
#define SOON_MS     50   /* later than that, the tick of an idle agent is early enough */

enum tick_wish { TICK_UNASKED, TICK_ASKED };

/* A proof names the counters and numbers of all threads. It leaves under the key that they are for, because keys roll
 * on this thread only. */
static void hear_prove(struct cluster *c, unsigned sender, const uint8_t *challenge)
{
	struct broadcast_sender *mine = cluster_main_thread(c)->sender;
	const uint32_t generation = broadcast_sender_renew_key(mine);
	unsigned threads = c->self->workers + 1;
	uint64_t counters[SENDER_THREADS_MAX], highest[SENDER_THREADS_MAX];
	Cssl__Proof proof = { MESSAGE(proof), .challenge = bytes_of(challenge, CHALLENGE_LEN), .n_counter = threads,
		.counter = counters, .n_highest = threads, .highest = highest };
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .made_ms = cluster_now_ms(),
		.what_case = CSSL__BROADCAST_MESSAGE__WHAT_PROOF, .proof = &proof };

	for (unsigned i = 0; i < threads; i++) {
		struct broadcast_mark mark = broadcast_sender_mark(c->threads[i].sender, (int)sender, generation);

		counters[i] = mark.next_counter;
		highest[i] = mark.highest;
	}
	broadcast_sender_say(mine, (int)sender, &m);
}

static void hear_forgotten(struct cluster *c, unsigned sender, const uint8_t *about)
{
	joining_fetch(&c->joining, c->peers.at[sender], NULL);
}

static void on_say(void *ctx, unsigned sender, Cssl__BroadcastMessage *m)
{
	broadcast_sender_say(cluster_main_thread(ctx)->sender, (int)sender, m);
}

static void on_probe(void *ctx, unsigned sender, const uint8_t *challenge)
{
	cluster_thread_tell_main(ctx, hear_prove, sender, challenge, CHALLENGE_LEN);
}

static void on_forgotten(void *ctx, unsigned sender)
{
	cluster_thread_tell_main(ctx, hear_forgotten, sender, NULL, 0);
}

struct gap {
	uint64_t first, last;
	unsigned worker;
};

static void hear_repeat(struct cluster *c, unsigned to, const uint8_t *about)
{
	struct gap g;

	memcpy(&g, about, sizeof g);
	atomic_fetch_sub(&c->threads[g.worker].repeats, 1);
	broadcast_sender_repeat(c->threads[g.worker].sender, (int)to, g.first, g.last, cluster_now_ms());
}

/* A peer asks again at each of its ticks, so a thread that is in a long turn gets only so many. */
static void hear_gap(struct cluster *c, unsigned sender, const Cssl__Gap *m)
{
	const struct gap g = { m->first, m->last, m->worker };

	if (m->worker > c->self->workers)
		return;
	struct cluster_thread *t = &c->threads[m->worker];
	if (atomic_fetch_add(&t->repeats, 1) >= REPEATS_MAX ||
		cluster_thread_tell(t, hear_repeat, sender, &g, sizeof g) != 0)
		atomic_fetch_sub(&t->repeats, 1);
}

/* What other agents tell of connections: on any thread, as it is heard */

static struct connection_id heard_id(const ProtobufCBinaryData *id)
{
	struct connection_id connection;

	memcpy(connection.bytes, id->data, sizeof connection.bytes);
	return connection;
}

/* The sender owns it now, by its own word. A worker of this agent that claimed it under these keys must not seal for it
 * any more (law 2), and a live part of before can no longer be adopted (law 5). */
static void heard_adopted(struct cluster *c, unsigned sender, const Cssl__Adopted *m, int64_t now_ms)
{
	struct connection_id id = heard_id(&m->connection_id);
	const struct seen_mark at = { (uint16_t)m->epoch, m->write_generation, m->write_sequence };
	const enum seen_doubt doubt = m->in_doubt ? SEEN_DOUBT_AT_MARK : SEEN_NO_DOUBT;
	const struct live_adopted adopted = { &id, at.epoch, m->read_generation, m->write_generation,
		(agent_index)sender };

	cluster_supersede(c, connections_seen_hear(c->seen, &id, &at, SEEN_OWN_WORD, doubt, now_ms), &id, at.epoch);
	live_table_adopted(c->live, &adopted);
}

static void heard_gone(struct cluster *c, const Cssl__Gone *m, int64_t now_ms)
{
	struct connection_id id = heard_id(&m->connection_id);
	const struct seen_mark at = { (uint16_t)m->epoch, m->write_generation, m->write_sequence };

	cluster_supersede(
		c, connections_seen_hear(c->seen, &id, &at, SEEN_HEARSAY, SEEN_NO_DOUBT, now_ms), &id, at.epoch);
	connections_seen_stop(c->seen, &id, &at, m->goes_on ? SEEN_RESTS : SEEN_ENDED, now_ms);
	live_table_drop(c->live, &id);
}

/* The shared clock of the cluster is the highest one: take the sender's clock when it is ahead. */
static void heard_heartbeat(struct cluster *c, const Cssl__Heartbeat *h)
{
	int64_t ahead_ms = h->shared_clock_ms - cluster_now_ms();

	if (ahead_ms > atomic_load(&c->shared_clock_ahead_ms))
		atomic_store(&c->shared_clock_ahead_ms, ahead_ms);
}

static void on_message(void *ctx, unsigned sender, const Cssl__BroadcastMessage *m, const struct heard_times *times)
{
	struct cluster *c = ctx;

	switch (m->what_case) {
	case CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ: cluster_import(c, (agent_index)sender, &m->ssl_obj, times); break;
	case CSSL__BROADCAST_MESSAGE__WHAT_ADOPTED: heard_adopted(c, sender, m->adopted, times->now_ms); break;
	case CSSL__BROADCAST_MESSAGE__WHAT_GONE: heard_gone(c, m->gone, times->now_ms); break;
	case CSSL__BROADCAST_MESSAGE__WHAT_HEARTBEAT: heard_heartbeat(c, m->heartbeat); break;
	case CSSL__BROADCAST_MESSAGE__WHAT_PULL:
	case CSSL__BROADCAST_MESSAGE__WHAT_ABSENT:
	case CSSL__BROADCAST_MESSAGE__WHAT_TOO_LARGE: pulls_heard(c, sender, m); break;
	case CSSL__BROADCAST_MESSAGE__WHAT_GAP: hear_gap(c, sender, m->gap); break;
	default: break; /* of a later release */
	}
}

const struct broadcast_receiver_ops cluster_hear_ops = {
	.say = on_say,
	.on_probe = on_probe,
	.on_message = on_message,
	.on_forgotten = on_forgotten,
};

/* Sockets */

static void on_tick_wish(struct cluster *c, unsigned from, const uint8_t *about)
{
	c->tick_wish = TICK_UNASKED;
	cluster_thread_tick_within(c, BROADCAST_TICK_MS);
}

/* The receiver may have work soon. Any thread. */
static void hear_wish_tick(struct cluster *c)
{
	if (c->tick_ms == BROADCAST_TICK_MS || broadcast_receiver_due_ms(c->receiver) >= cluster_now_ms() + SOON_MS)
		return;
	if (atomic_exchange(&c->tick_wish, TICK_ASKED) == TICK_UNASKED &&
		cluster_thread_tell(cluster_main_thread(c), on_tick_wish, c->peers.self, NULL, 0) != 0)
		c->tick_wish = TICK_UNASKED;
}

static void on_datagram(void *ctx, uint8_t *data, size_t len, const struct sockaddr *from)
{
	struct cluster *c = ctx;

	broadcast_receiver_input(c->receiver, data, len, cluster_now_ms());
	hear_wish_tick(c);
}

void cluster_handle_closed(void *cluster)
{
	struct cluster *c = cluster;

	assert(c->handles > 0);
	if (--c->handles == 0 && c->on_closed)
		c->on_closed(c->closed_ctx);
}

static void on_worker_closed(void *ctx)
{
}

/* Fault tests name peers in their rules. */
static const char *hear_peer_at(void *cluster, const struct sockaddr *address)
{
	const struct cluster *c = cluster;

	for (unsigned i = 0; i < c->peers.count; i++)
		if (memcmp(&c->conf->agents[i].peer, address, address_len(address)) == 0)
			return c->conf->agents[i].name;
	return NULL;
}

static const struct udp_ops worker_udp_ops = {
	.on_datagram = on_datagram, .on_closed = on_worker_closed, .peer_name = hear_peer_at
};

static const struct udp_ops main_udp_ops = { .on_closed = cluster_handle_closed, .peer_name = hear_peer_at };

static int hear_bind(struct cluster *c, char *error, size_t error_cap)
{
	const struct sockaddr *address = (const struct sockaddr *)&c->self->peer;
	char text[ADDRESS_TEXT_MAX];

	for (unsigned i = 0; i < c->self->workers; i++) {
		int fd = udp_bind(address, i == 0 ? SOCKET_FIRST : SOCKET_BESIDE);
		if (fd < 0) {
			snprintf(error, error_cap, "%s: cannot hear other agents: %s", address_format(address, text),
				uv_strerror(fd));
			return CSSL_E_SYSTEM;
		}
		c->threads[i].receiving_fd = fd;
	}
	return 0;
}

/* A thread's own socket to send from. NULL with *uv_error. */
static struct udp *hear_open_sending(struct cluster *c, struct worker *w, const struct udp_ops *ops, int *uv_error)
{
	struct sockaddr_storage from = c->self->peer;

	address_set_port((struct sockaddr *)&from, 0);
	return udp_create(w, (const struct sockaddr *)&from, 0, ops, c, uv_error);
}

int cluster_hear_open(struct cluster *c, char *error, size_t error_cap)
{
	int uv_error = 0;

	if (hear_bind(c, error, error_cap) != 0)
		return CSSL_E_SYSTEM;
	struct udp *udp = hear_open_sending(c, c->main, &main_udp_ops, &uv_error);
	if (!udp) {
		snprintf(error, error_cap, "cannot speak to other agents: %s", uv_strerror(uv_error));
		return CSSL_E_SYSTEM;
	}
	c->handles++;
	cluster_thread_join(cluster_main_thread(c), c->main, udp, NULL);
	return 0;
}

int cluster_join_worker(struct cluster *c, struct worker *w, superseded_fn superseded, void *ctx)
{
	int uv_error = 0;

	if (worker_index(w) >= c->self->workers || c->threads[worker_index(w)].receiving_fd < 0)
		return CSSL_E_STATE;
	struct cluster_thread *t = &c->threads[worker_index(w)];
	struct udp *receiving = udp_create_fd(w, t->receiving_fd, &worker_udp_ops, c, &uv_error);
	t->receiving_fd = -1;
	if (!receiving)
		return uv_error;
	struct udp *udp = hear_open_sending(c, w, &worker_udp_ops, &uv_error);
	if (!udp) {
		udp_close(receiving);
		return uv_error;
	}
	t->superseded = superseded;
	t->superseded_ctx = ctx;
	cluster_thread_join(t, w, udp, receiving);
	return 0;
}
