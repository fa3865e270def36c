/* cluster_hear.c: the broadcast as this agent hears it. Each worker has a socket at the agent's address. What it hears
 * there it does itself where tables for all threads take it (sessions, live parts, epochs), because it is awake anyway
 * while clients keep the cluster busy. What concerns peers and pulls it tells the main thread.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/address.h"
#include "net/log.h"
#include "proto/error.h"
#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "sslagent/counters.h"
#include "sslagent/cluster/peer.h"

#define REPEATS_MAX 256u /* that wait for a thread */

/* For another thread */

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

int cluster_tell(struct cluster_thread *t, news_fn fn, unsigned from, const void *about, size_t about_len)
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

void cluster_tell_main(struct cluster *c, news_fn fn, unsigned from, const uint8_t *about, size_t about_len)
{
	if (cluster_tell(cluster_main_thread(c), fn, from, about, about_len) != 0)
		log_event(LOG_ERROR, NULL, "news of a peer lost", "peer=%s cause=\"out of memory\"",
			c->conf->agents[from].name);
}

static void prove(struct cluster *c, unsigned sender, const uint8_t *challenge)
{
	cluster_thread_prove(cluster_main_thread(c), (int)sender, challenge);
}

static void take_its_own(struct cluster *c, unsigned sender, const uint8_t *about)
{
	struct peer *p = c->peers[sender];

	if (p->state != PEER_UP) /* its link will bring its sessions */
		p->own_due = PEER_OWN_DUE;
	else
		snapshot_want(p, TAKING_OWN);
}

/* Messages */

static void say(void *ctx, unsigned sender, Cssl__BroadcastMessage *m)
{
	cluster_thread_say(cluster_main_thread(ctx), (int)sender, m);
}

static void on_probe(void *ctx, unsigned sender, const uint8_t *challenge)
{
	cluster_tell_main(ctx, prove, sender, challenge, CHALLENGE_LEN);
}

static void on_forgotten(void *ctx, unsigned sender)
{
	cluster_tell_main(ctx, take_its_own, sender, NULL, 0);
}

static struct connection_id connection_of(const ProtobufCBinaryData *id)
{
	struct connection_id connection;

	memcpy(connection.bytes, id->data, sizeof connection.bytes);
	return connection;
}

/* A worker that sealed on under keys which another agent has, too, gets to know. */
struct superseded {
	struct connection_id id;
	unsigned owner;
};
_Static_assert(sizeof(struct superseded) <= NEWS_ABOUT_MAX, "fits the news");

static void tell_owner(struct cluster *c, unsigned of, const uint8_t *about)
{
	struct superseded s;

	memcpy(&s, about, sizeof s);
	const struct cluster_thread *t = &c->threads[s.owner - 1];
	if (t->superseded)
		t->superseded(t->superseded_ctx, &s.id, (uint16_t)of);
}

void cluster_supersede(struct cluster *c, unsigned owner, const struct connection_id *id, uint16_t of)
{
	const struct superseded s = { *id, owner };

	if (owner != SEEN_NO_OWNER && cluster_tell(&c->threads[owner - 1], tell_owner, of, &s, sizeof s) != 0)
		log_event(LOG_ERROR, id, "superseded owner not told", "cause=\"out of memory\" epoch=%u", of);
}

static void on_adopted(struct cluster *c, unsigned sender, const Cssl__Adopted *m, int64_t now_ms)
{
	struct connection_id id = connection_of(&m->connection_id);
	const struct seen_mark at = { (uint16_t)m->epoch, m->write_generation, m->write_sequence };
	const enum seen_doubt doubt = m->in_doubt ? SEEN_DOUBT_AT_MARK : SEEN_NO_DOUBT;
	const struct live_adopted adopted = { &id, at.epoch, m->read_generation, m->write_generation,
		(agent_index)sender };

	cluster_supersede(c, connections_seen_hear(c->seen, &id, &at, SEEN_OWN_WORD, doubt, now_ms), &id, at.epoch);
	live_table_adopted(c->live, &adopted);
}

static void on_gone(struct cluster *c, const Cssl__Gone *m, int64_t now_ms)
{
	struct connection_id id = connection_of(&m->connection_id);
	const struct seen_mark at = { (uint16_t)m->epoch, m->write_generation, m->write_sequence };

	cluster_supersede(
		c, connections_seen_hear(c->seen, &id, &at, SEEN_HEARSAY, SEEN_NO_DOUBT, now_ms), &id, at.epoch);
	connections_seen_stop(c->seen, &id, &at, m->goes_on ? SEEN_RESTS : SEEN_ENDED, now_ms);
	live_table_drop(c->live, &id);
}

/* The shared clock of the cluster is the highest one: take the sender's clock when it is ahead. */
static void on_heartbeat(struct cluster *c, const Cssl__Heartbeat *h)
{
	int64_t ahead_ms = h->shared_clock_ms - cluster_now_ms();

	if (ahead_ms > atomic_load(&c->shared_clock_ahead_ms))
		atomic_store(&c->shared_clock_ahead_ms, ahead_ms);
}

struct answer {
	struct cluster *cluster;
	unsigned to;
};

static void say_object(void *ctx, const struct session *session)
{
	const struct answer *a = ctx;
	struct cluster_thread *t = cluster_main_thread(a->cluster);
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .made_ms = session->shelved.made_ms,
		.family_made_ms = session->shelved.family_made_ms, .what_case = CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ };
	Cssl__BroadcastMessage too_large = { MESSAGE(broadcast_message),
		.what_case = CSSL__BROADCAST_MESSAGE__WHAT_TOO_LARGE,
		.too_large = bytes_of(session->id, SESSION_ID_LEN) };

	m.ssl_obj.data = (uint8_t *)session_encoded(session, &m.ssl_obj.len);
	if (cluster_thread_say(t, (int)a->to, &m) != 0)
		cluster_thread_say(t, (int)a->to, &too_large);
}

static void answer_pull(struct cluster *c, unsigned sender, const uint8_t *id)
{
	Cssl__BroadcastMessage absent = { MESSAGE(broadcast_message), .what_case = CSSL__BROADCAST_MESSAGE__WHAT_ABSENT,
		.absent = bytes_of(id, SESSION_ID_LEN) };
	struct answer a = { c, sender };

	count(COUNT_PULLS_ANSWERED);
	if (store_peek(c->store, id, cluster_now_ms(), say_object, &a) != 0)
		cluster_thread_say(cluster_main_thread(c), (int)sender, &absent);
}

struct gap {
	uint64_t first, last;
	unsigned worker;
};

static void repeat(struct cluster *c, unsigned to, const uint8_t *about)
{
	struct gap g;

	memcpy(&g, about, sizeof g);
	atomic_fetch_sub(&c->threads[g.worker].repeats, 1);
	cluster_thread_repeat(&c->threads[g.worker], (int)to, g.first, g.last);
}

/* A peer asks again at each of its ticks, so a thread that is in a long turn gets only so many. */
static void on_gap(struct cluster *c, unsigned sender, const Cssl__Gap *m)
{
	const struct gap g = { m->first, m->last, m->worker };

	if (m->worker > c->self->workers)
		return;
	struct cluster_thread *t = &c->threads[m->worker];
	if (atomic_fetch_add(&t->repeats, 1) >= REPEATS_MAX || cluster_tell(t, repeat, sender, &g, sizeof g) != 0)
		atomic_fetch_sub(&t->repeats, 1);
}

static void on_message(void *ctx, unsigned sender, const Cssl__BroadcastMessage *m, const struct heard_times *times)
{
	struct cluster *c = ctx;

	switch (m->what_case) {
	case CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ:
		cluster_import(
			c, (agent_index)sender, &m->ssl_obj, times->made_ms, times->family_made_ms, times->now_ms);
		break;
	case CSSL__BROADCAST_MESSAGE__WHAT_ADOPTED: on_adopted(c, sender, m->adopted, times->now_ms); break;
	case CSSL__BROADCAST_MESSAGE__WHAT_GONE: on_gone(c, m->gone, times->now_ms); break;
	case CSSL__BROADCAST_MESSAGE__WHAT_PULL:
		cluster_tell_main(c, answer_pull, sender, m->pull.data, SESSION_ID_LEN);
		break;
	case CSSL__BROADCAST_MESSAGE__WHAT_ABSENT:
		cluster_tell_main(c, pulls_absent, sender, m->absent.data, SESSION_ID_LEN);
		break;
	case CSSL__BROADCAST_MESSAGE__WHAT_TOO_LARGE:
		cluster_tell_main(c, pulls_over_link, sender, m->too_large.data, SESSION_ID_LEN);
		break;
	case CSSL__BROADCAST_MESSAGE__WHAT_GAP: on_gap(c, sender, m->gap); break;
	case CSSL__BROADCAST_MESSAGE__WHAT_HEARTBEAT: on_heartbeat(c, m->heartbeat); break;
	default: break; /* of a later release */
	}
}

const struct broadcast_receiver_ops cluster_hear_ops = {
	.say = say,
	.on_probe = on_probe,
	.on_message = on_message,
	.on_forgotten = on_forgotten,
};

/* Sockets */

static void on_datagram(void *ctx, uint8_t *data, size_t len, const struct sockaddr *from)
{
	struct cluster *c = ctx;

	broadcast_receiver_input(c->receiver, data, len, cluster_now_ms());
	cluster_tick_sooner(c);
}

static void on_closed(void *ctx)
{
}

/* Fault tests name peers in their rules. */
const char *cluster_peer_at(void *cluster, const struct sockaddr *address)
{
	const struct cluster *c = cluster;

	for (unsigned i = 0; i < c->agent_count; i++)
		if (memcmp(&c->conf->agents[i].peer, address, address_len(address)) == 0)
			return c->conf->agents[i].name;
	return NULL;
}

const struct udp_ops cluster_udp_ops = {
	.on_datagram = on_datagram, .on_closed = on_closed, .peer_name = cluster_peer_at
};

int cluster_bind_receiving(struct cluster *c, char *error, size_t error_cap)
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
