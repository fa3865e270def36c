/* peer.c: the life of one peer: its attempts, its link, its pings, and whether it is alive. */
#include "sslagent/cluster/peers/peers.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <uv.h>

#include "net/report/error_text.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "sslagent/cluster/broadcast/broadcast_receiver.h"
#include "sslagent/cluster/broadcast/sending_keys.h"
#include "sslagent/counters.h"

#define RETRY_SLOWEST_MS  250 /* a starting agent waits alone_after_ms for lower names */
#define PING_EVERY_MS     200
#define HEARTBEATS_MISSED 5
#define HEARD_WITHIN_MS   1000
#define UNHEARD_MS        5000

#define TO(state) (1u << (state))

static const unsigned may_move_to[PEER_STATE_COUNT] = {
	[PEER_AWAY] = TO(PEER_CONNECTING) | TO(PEER_UP),
	[PEER_CONNECTING] = TO(PEER_UP) | TO(PEER_AWAY),
	[PEER_UP] = TO(PEER_AWAY),
};

static void peer_move(struct peer *p, enum peer_state to)
{
	assert(may_move_to[p->state] & TO(to));
	p->state = (uint8_t)to;
}

static const struct peer_link_ops link_ops;

void peers_handle_closed(void *peers)
{
	struct peers *all = peers;

	assert(all->handles > 0);
	if (--all->handles == 0 && all->life == PEERS_CLOSING)
		all->of.ops->on_closed(all->of.ctx);
}

int peer_send(struct peer *p, const Cssl__PeerMessage *m)
{
	int r = p->state == PEER_UP ? peer_link_send(p->link, m, PEER_NO_FD) : CSSL_E_STATE;

	if (r == CSSL_E_FULL || r == CSSL_E_NO_MEMORY)
		peer_link_end(p->link, r);
	return r;
}

int peer_send_object(struct peer *p, const struct shelved *o, const uint8_t *encoded, size_t len, bool unasked)
{
	Cssl__PeerObject object = { MESSAGE(peer_object), .ssl_obj = bytes_of(encoded, len), .made_ms = o->made_ms,
		.family_made_ms = o->family_made_ms, .unasked = unasked };
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_OBJECT,
		.object = &object };

	return peer_send(p, &m);
}

static void peer_ping(struct peer *p, int64_t now_ms)
{
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_PING };

	p->ping_at_ms = now_ms + PING_EVERY_MS;
	if (p->ping_sent_ms != 0)
		return; /* one ping at a time, so that its answer tells when it was sent */
	m.ping = ++p->ping_token;
	if (peer_send(p, &m) == 0)
		p->ping_sent_ms = now_ms;
}

static int peer_on_ping(struct peer *p, const Cssl__PeerMessage *m)
{
	Cssl__PeerPong pong = { MESSAGE(peer_pong), .token = m->ping, .clock_ms = cluster_now_ms() };
	Cssl__PeerMessage answer = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_PONG, .pong = &pong };

	peer_send(p, &answer);
	return 0;
}

static int peer_on_pong(struct peer *p, const Cssl__PeerMessage *m)
{
	if (p->ping_sent_ms == 0 || m->pong->token != p->ping_token)
		return CSSL_E_STATE;
	broadcast_receiver_clock_answered(
		p->all->of.receiver, p->index, p->ping_sent_ms, m->pong->clock_ms, cluster_now_ms());
	p->ping_sent_ms = 0;
	return 0;
}

static int peer_on_message(struct peer *p, const Cssl__PeerMessage *m)
{
	int r = 0;

	if (m->what_case == CSSL__PEER_MESSAGE__WHAT_PING)
		r = peer_on_ping(p, m);
	else if (m->what_case == CSSL__PEER_MESSAGE__WHAT_PONG)
		r = peer_on_pong(p, m);
	else if (m->what_case == CSSL__PEER_MESSAGE__WHAT_READY)
		p->readiness = m->ready ? PEER_READY : PEER_NOT_READY;
	return r ? r : p->all->of.ops->on_message(p->all->of.ctx, p, m);
}

/* The lower name connects, so that two agents never make two links. */
static bool peer_connects(const struct peer *p)
{
	return strcmp(p->all->of.self->name, p->conf->name) < 0;
}

static void peer_retry_later(struct peer *p, int64_t now_ms, int error)
{
	if (peer_way_failed(&p->way, error)) {
		p->retry_at_ms = now_ms;
		return;
	}
	p->retry_at_ms = now_ms + p->retry_every_ms;
	p->retry_every_ms = p->retry_every_ms * 2 < RETRY_SLOWEST_MS ? p->retry_every_ms * 2 : RETRY_SLOWEST_MS;
}

static struct peer_link *peer_connect_to(struct peer *p, const struct sockaddr_storage *to)
{
	struct peer_link_conf conf = p->all->of.link;
	conf.ops = &link_ops;
	conf.ctx = p;
	struct peer_link *l = peer_link_connect(&conf, (const struct sockaddr *)to, p->conf->name);

	if (l)
		p->all->handles++;
	return l;
}

static void peer_connect(struct peer *p, int64_t now_ms)
{
	struct sockaddr_storage to;

	peer_way_address(&p->way, p->all->of.self, p->conf, &to);
	p->link = peer_connect_to(p, &to);
	if (p->link)
		peer_move(p, PEER_CONNECTING);
	else
		peer_retry_later(p, now_ms, 0);
}

/* A link by TCP does not stay where the UNIX socket is a way after all. It goes while nothing is on its way, and what
 * the other side sends meanwhile comes again, as after each loss. */
static void peer_look_for_shorter(struct peer *p, int64_t now_ms)
{
	struct sockaddr_storage to;

	if (p->shorter || now_ms < p->retry_at_ms || !peer_connects(p) || peer_link_passes_fds(p->link) ||
		!peer_is_settled(p) || !p->all->of.ops->is_quiet(p->all->of.ctx, p))
		return;
	p->retry_at_ms = now_ms + p->retry_every_ms;
	p->retry_every_ms *= 2; /* another cluster's agent may listen there for good */
	p->way.kind = PEER_BY_UNIX;
	peer_way_address(&p->way, p->all->of.self, p->conf, &to);
	if (to.ss_family == AF_UNIX)
		p->shorter = peer_connect_to(p, &to);
}

/* Heard by datagram, without a link. Up to HEARTBEATS_MISSED heartbeats may be lost. */
static bool peer_is_heard(const struct peer *p, int64_t now_ms)
{
	int64_t heard_ms = broadcast_receiver_view(p->all->of.receiver, p->index).heard_ms;
	int64_t patience_ms = (int64_t)p->all->of.conf->broadcast.heartbeat_ms * HEARTBEATS_MISSED;

	if (patience_ms < HEARD_WITHIN_MS)
		patience_ms = HEARD_WITHIN_MS;
	return heard_ms != INT64_MIN && now_ms - heard_ms < patience_ms;
}

static void peer_update_flags(struct peer *p)
{
	struct peer_flags *flags = &p->all->flags[p->index];
	int64_t now_ms = cluster_now_ms();
	uint8_t alive = p->state == PEER_UP || peer_is_heard(p, now_ms);

	atomic_store(&flags->alive, alive);
	atomic_store(&flags->listens, alive && p->key_held >= sending_keys_generation(p->all->of.sending));
	atomic_store(&flags->passes, p->state == PEER_UP && peer_link_passes_fds(p->link));
	if (alive)
		p->lost_ms = 0;
	else if (p->lost_ms == 0)
		p->lost_ms = now_ms;
}

/* Their way is another one than that of the link. */
static void peer_look_for_datagrams(struct peer *p, int64_t now_ms)
{
	if (p->state != PEER_UP || peer_is_heard(p, now_ms))
		p->heard_ms = now_ms;
	const bool is_unheard = now_ms - p->heard_ms >= UNHEARD_MS;
	if (is_unheard && !p->is_unheard)
		log_event(LOG_WARNING, NULL, "no datagrams of a peer",
			"peer=%s remedy=\"let UDP pass between the `peer` addresses, as TCP does\"", p->conf->name);
	if (p->is_unheard && !is_unheard)
		log_event(LOG_INFO, NULL, "datagrams of a peer again", "peer=%s", p->conf->name);
	p->is_unheard = is_unheard;
}

static void peer_up(struct peer *p)
{
	const struct link_hello *hello = peer_link_peer(p->link);
	struct receiver_view before = broadcast_receiver_view(p->all->of.receiver, p->index);
	int64_t now_ms = cluster_now_ms();

	peer_move(p, PEER_UP);
	if (hello->workers >= SENDER_THREADS_MAX ||
		broadcast_receiver_meet(p->all->of.receiver, p->index, hello->boot_id, hello->workers) != 0) {
		peer_link_end(p->link, CSSL_E_RANGE);
		return;
	}
	if (before.boot_id != hello->boot_id)
		p->key_held = 0; /* it lost its memory */
	p->retry_every_ms = PEER_RETRY_FIRST_MS;
	p->readiness = PEER_NOT_READY;
	p->ping_sent_ms = 0;
	peer_way_proved(&p->way);
	count(COUNT_PEER_LINKS_OPENED);
	log_event(LOG_INFO, NULL, "peer up", "peer=%s by=%s boot=%016" PRIx64, p->conf->name,
		peer_link_passes_fds(p->link) ? "unix" : "tcp", hello->boot_id);
	peer_ping(p, now_ms);
	p->all->of.ops->on_up(p->all->of.ctx, p);
	peer_update_flags(p);
}

static void peer_log_refused(struct peer *p, int error)
{
	int64_t now_ms = cluster_now_ms();

	count(COUNT_PEER_LINKS_REFUSED);
	if (now_ms - p->refused_logged_ms < PEER_REFUSED_EVERY_MS)
		return;
	p->refused_logged_ms = now_ms;
	log_event(LOG_WARNING, NULL, "peer refused", "peer=%s address=%s cause=%s", p->conf->name, p->link->address,
		error ? error_text(error) : "it ended the opening; another agents.key?");
}

/* The link is lost, refused, or did not reach the peer. */
static void peer_down(struct peer *p, int error)
{
	int64_t now_ms = cluster_now_ms();

	if (p->state == PEER_UP) {
		count(COUNT_PEER_LINKS_LOST);
		if (p->all->life != PEERS_CLOSING)
			log_event(LOG_WARNING, NULL, "peer lost", "peer=%s cause=%s", p->conf->name,
				error ? error_text(error) : "closed");
		p->retry_at_ms = now_ms;
	} else if (p->link->ended_in == PEER_LINK_OPENING) {
		peer_log_refused(p, error);
	}
	if (p->state != PEER_UP)
		peer_retry_later(p, now_ms, error);
	peer_move(p, PEER_AWAY);
	p->all->of.ops->on_down(p->all->of.ctx, p);
	peer_update_flags(p);
}

static void on_open(struct peer_link *l)
{
	struct peer *p = l->ctx;

	if (strcmp(peer_link_peer(l)->name, p->conf->name) != 0)
		peer_link_end(l, CSSL_E_MISMATCH);
	else if (l == p->shorter)
		peer_take_link(p, l);
	else if (peer_way_is_longer(&p->way, p->all->of.self, p->conf))
		peer_link_end(l, UV_EAGAIN);
	else
		peer_up(p);
}

static int on_message(struct peer_link *l, const Cssl__PeerMessage *m)
{
	struct peer *p = l->ctx;

	return p->state == PEER_UP ? peer_on_message(p, m) : CSSL_E_STATE;
}

static void on_drained(struct peer_link *l)
{
	struct peer *p = l->ctx;

	p->all->of.ops->on_room(p->all->of.ctx, p);
}

static void on_end(struct peer_link *l, int error)
{
	struct peer *p = l->ctx;

	if (l == p->shorter) {
		peer_way_failed(&p->way, error);
		p->shorter = NULL;
	} else {
		peer_down(p, error);
		p->link = NULL;
	}
	peer_link_close(l);
}

static void on_closed(struct peer_link *l)
{
	peers_handle_closed(((struct peer *)l->ctx)->all);
}

static const struct peer_link_ops link_ops = {
	.on_open = on_open,
	.on_message = on_message,
	.on_drained = on_drained,
	.on_end = on_end,
	.on_closed = on_closed,
};

void peer_close(struct peer *p)
{
	struct peer_link *l = p->link;

	peer_link_close(p->shorter);
	p->shorter = NULL;
	if (!l)
		return;
	peer_down(p, 0);
	p->link = NULL;
	peer_link_close(l);
}

void peer_take_link(struct peer *p, struct peer_link *l)
{
	if (p->shorter == l)
		p->shorter = NULL;
	peer_close(p); /* a new connection means that the other side lost the old link, or has found a shorter way */
	p->link = l;
	l->ctx = p;
	l->ops = &link_ops;
	peer_up(p);
}

static void peer_tick_link(struct peer *p, int64_t now_ms)
{
	if (now_ms - (int64_t)p->link->heard_ms > PEER_LOST_MS) {
		peer_link_end(p->link, UV_ETIMEDOUT);
		return;
	}
	if (now_ms >= p->ping_at_ms)
		peer_ping(p, now_ms);
	p->all->of.ops->on_room(p->all->of.ctx, p);
	peer_look_for_shorter(p, now_ms);
}

bool peer_tick(struct peer *p, int64_t now_ms)
{
	int64_t keep_ms = (int64_t)p->all->of.conf->broadcast.live_keep_s * 1000;

	if (p->state == PEER_AWAY && !p->shorter && peer_connects(p) && now_ms >= p->retry_at_ms)
		peer_connect(p, now_ms);
	else if (p->state == PEER_UP)
		peer_tick_link(p, now_ms);
	peer_update_flags(p);
	peer_look_for_datagrams(p, now_ms);
	if (p->lost_ms == 0 || p->lost_ms == LOST_FOR_GOOD || now_ms - p->lost_ms <= keep_ms)
		return false;
	p->lost_ms = LOST_FOR_GOOD;
	return true;
}
