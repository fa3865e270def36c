/* peer.c: the link's life. peer_messages.c handles its messages. */
#include "sslagent/cluster/peer.h"

#include <assert.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "net/address.h"
#include "net/error_text.h"
#include "net/log.h"
#include "proto/error.h"
#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "sslagent/counters.h"
#include "sslagent/cluster/passed_backends.h"

#define RETRY_FIRST_MS    50
#define RETRY_SLOWEST_MS  250 /* a starting agent waits alone_after_ms for lower names */
#define PING_EVERY_MS     200
#define LOG_EVERY_MS      10000 /* between log lines of the same refusal */
#define HEARTBEATS_MISSED 5
#define HEARD_WITHIN_MS   1000
#define UNHEARD_MS        5000

#define TO(state) (1u << (state))

static const unsigned may_move_to[PEER_STATE_COUNT] = {
	[PEER_AWAY] = TO(PEER_CONNECTING) | TO(PEER_UP),
	[PEER_CONNECTING] = TO(PEER_UP) | TO(PEER_AWAY),
	[PEER_UP] = TO(PEER_AWAY),
};

static void move(struct peer *p, enum peer_state to)
{
	assert(may_move_to[p->state] & TO(to));
	p->state = (uint8_t)to;
}

static const struct peer_link_ops link_ops;

struct peer *peer_create(struct cluster *c, agent_index index)
{
	struct peer *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->cluster = c;
	p->index = index;
	p->conf = &c->conf->agents[index];
	p->retry_every_ms = RETRY_FIRST_MS;
	p->refused_logged_ms = -LOG_EVERY_MS;
	return p;
}

void peer_destroy(struct peer *p)
{
	if (!p)
		return;
	assert(!p->link && !p->shorter);
	snapshot_stop(p);
	free(p);
}

struct peer *peer_next(const struct cluster *c, const struct peer *p)
{
	for (unsigned i = p ? p->index + 1u : 0; i < c->agent_count; i++)
		if (c->peers[i])
			return c->peers[i];
	return NULL;
}

struct peer_link_conf peer_link_conf_of(struct cluster *c, const struct peer_link_ops *ops, void *ctx)
{
	return (struct peer_link_conf){
		.worker = c->main,
		.ops = ops,
		.ctx = ctx,
		.ring = c->ring,
		.name = c->self->name,
		.boot_id = c->boot_id,
		.workers = c->self->workers,
	};
}

bool peer_is_up(const struct peer *p)
{
	return p->state == PEER_UP &&
	       broadcast_receiver_view(p->cluster->receiver, p->index).clock.state == PEER_CLOCK_KNOWN;
}

int peer_send(struct peer *p, const Cssl__PeerMessage *m)
{
	int r = p->state == PEER_UP ? peer_link_send(p->link, m) : CSSL_E_STATE;

	if (r == CSSL_E_FULL || r == CSSL_E_NO_MEMORY)
		peer_send_failed(p, r);
	return r;
}

void peer_send_failed(struct peer *p, int error)
{
	if (p->link)
		peer_link_end(p->link, error);
}

int peer_send_object(struct peer *p, const struct shelved *o, const uint8_t *encoded, size_t len, bool unasked)
{
	Cssl__PeerObject object = { MESSAGE(peer_object), .ssl_obj = bytes_of(encoded, len), .made_ms = o->made_ms,
		.family_made_ms = o->family_made_ms, .unasked = unasked };
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_OBJECT,
		.object = &object };

	return peer_send(p, &m);
}

static void send_key(struct peer *p, const struct sending_key *key, bool current)
{
	Cssl__SendingKey message = { MESSAGE(sending_key), .key_id = key->id, .aead = key->aead,
		.key = bytes_of(key->secret, sizeof key->secret), .boot_id = p->cluster->boot_id,
		.workers = p->cluster->self->workers, .current = current };
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_SENDING_KEY,
		.sending_key = &message };

	peer_send(p, &m);
}

/* The current key only to a peer that has none yet. */
enum keys_to_send { KEYS_ALL, KEYS_NEXT };

static void send_sending_keys(struct peer *p, enum keys_to_send which)
{
	struct sending_key keys[2];
	unsigned count = sending_keys_list(p->cluster->sending, keys);

	for (unsigned i = which == KEYS_ALL ? 0 : 1; i < count; i++)
		send_key(p, &keys[i], i == 0);
	OPENSSL_cleanse(keys, sizeof keys);
}

void peer_send_next_key(struct peer *p)
{
	send_sending_keys(p, KEYS_NEXT);
}

void peer_send_ticket_keys(struct peer *p)
{
	struct cluster_ticket_key keys[TICKET_KEYS_MAX];
	Cssl__TicketKeys__TicketKey messages[TICKET_KEYS_MAX], *pointers[TICKET_KEYS_MAX];
	Cssl__TicketKeys message = { MESSAGE(ticket_keys), .key = pointers };
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_TICKET_KEYS,
		.ticket_keys = &message };
	int64_t now_ms = cluster_now_ms();

	message.n_key = ticket_keys_list(p->cluster->tickets, keys);
	for (size_t i = 0; i < message.n_key; i++) {
		messages[i] = (Cssl__TicketKeys__TicketKey){ MESSAGE(ticket_keys__ticket_key),
			.name = bytes_of(keys[i].name, sizeof keys[i].name),
			.key = bytes_of(keys[i].secret, sizeof keys[i].secret),
			.age_ms = (uint64_t)(now_ms - keys[i].made_ms) };
		pointers[i] = &messages[i];
	}
	if (message.n_key > 0)
		peer_send(p, &m);
	OPENSSL_cleanse(keys, sizeof keys);
}

void peer_send_status(struct peer *p)
{
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_READY,
		.ready = cluster_state(p->cluster) == CLUSTER_READY };

	peer_send(p, &m);
}

static void ping(struct peer *p, int64_t now_ms)
{
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_PING };

	p->ping_at_ms = now_ms + PING_EVERY_MS;
	if (p->ping_sent_ms != 0)
		return; /* one ping at a time, so that its answer tells when it was sent */
	m.ping = ++p->ping_token;
	if (peer_send(p, &m) == 0)
		p->ping_sent_ms = now_ms;
}

/* The lower name connects, so that two agents never make two links. */
static bool connects(const struct peer *p)
{
	return strcmp(p->cluster->self->name, p->conf->name) < 0;
}

static void retry_later(struct peer *p, int64_t now_ms, int error)
{
	if (peer_way_failed(&p->way, error)) {
		p->retry_at_ms = now_ms;
		return;
	}
	p->retry_at_ms = now_ms + p->retry_every_ms;
	p->retry_every_ms = p->retry_every_ms * 2 < RETRY_SLOWEST_MS ? p->retry_every_ms * 2 : RETRY_SLOWEST_MS;
}

static struct peer_link *connect_to(struct peer *p, const struct sockaddr_storage *to)
{
	struct peer_link_conf conf = peer_link_conf_of(p->cluster, &link_ops, p);
	struct peer_link *l = peer_link_connect(&conf, (const struct sockaddr *)to, p->conf->name);

	if (l)
		p->cluster->handles++;
	return l;
}

static void connect_link(struct peer *p, int64_t now_ms)
{
	struct sockaddr_storage to;

	peer_way_address(&p->way, p->cluster->self, p->conf, &to);
	p->link = connect_to(p, &to);
	if (p->link)
		move(p, PEER_CONNECTING);
	else
		retry_later(p, now_ms, 0);
}

/* A link by TCP does not stay where the UNIX socket is a way after all. It goes while nothing is on its way, and what
 * the other side sends meanwhile comes again, as after each loss. */
static void look_for_shorter(struct peer *p, int64_t now_ms)
{
	struct sockaddr_storage to;

	if (p->shorter || now_ms < p->retry_at_ms || !connects(p) || peer_link_passes_fds(p->link) ||
		!peer_is_settled(p) || p->announced > 0 || revocations_wait(&p->cluster->revocations))
		return;
	p->retry_at_ms = now_ms + p->retry_every_ms;
	p->retry_every_ms *= 2; /* another cluster's agent may listen there for good */
	p->way.kind = PEER_BY_UNIX;
	peer_way_address(&p->way, p->cluster->self, p->conf, &to);
	if (to.ss_family == AF_UNIX)
		p->shorter = connect_to(p, &to);
}

/* Heard by datagram, without a link. Up to HEARTBEATS_MISSED heartbeats may be lost. */
static bool is_heard(const struct peer *p, int64_t now_ms)
{
	int64_t heard_ms = broadcast_receiver_view(p->cluster->receiver, p->index).heard_ms;
	int64_t patience_ms = (int64_t)p->cluster->conf->broadcast.heartbeat_ms * HEARTBEATS_MISSED;

	if (patience_ms < HEARD_WITHIN_MS)
		patience_ms = HEARD_WITHIN_MS;
	return heard_ms != INT64_MIN && now_ms - heard_ms < patience_ms;
}

bool peer_is_settled(const struct peer *p)
{
	return p->state == PEER_UP && p->readiness == PEER_READY && peer_listens(p->cluster, p->index) &&
	       p->giver.state == GIVING_NOTHING && p->taker.state == TAKING_NOTHING;
}

static void update_flags(struct peer *p)
{
	struct peer_flags *flags = &p->cluster->flags[p->index];
	int64_t now_ms = cluster_now_ms();
	uint8_t alive = p->state == PEER_UP || is_heard(p, now_ms);

	atomic_store(&flags->alive, alive);
	atomic_store(&flags->listens, alive && sending_keys_held_by(p->cluster->sending, p->index));
	atomic_store(&flags->passes, p->state == PEER_UP && peer_link_passes_fds(p->link));
	if (alive)
		p->lost_ms = 0;
	else if (p->lost_ms == 0)
		p->lost_ms = now_ms;
}

/* Their way is another one than that of the link. */
static void look_for_datagrams(struct peer *p, int64_t now_ms)
{
	if (p->state != PEER_UP || is_heard(p, now_ms))
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
	struct receiver_view before = broadcast_receiver_view(p->cluster->receiver, p->index);
	int64_t now_ms = cluster_now_ms();

	move(p, PEER_UP);
	if (hello->workers >= SENDER_THREADS_MAX ||
		broadcast_receiver_meet(p->cluster->receiver, p->index, hello->boot_id, hello->workers) != 0) {
		peer_link_end(p->link, CSSL_E_RANGE);
		return;
	}
	if (before.boot_id != hello->boot_id)
		sending_keys_forget_peer(p->cluster->sending, p->index);
	p->retry_every_ms = RETRY_FIRST_MS;
	p->readiness = PEER_NOT_READY;
	p->ping_sent_ms = 0;
	peer_way_proved(&p->way);
	count(COUNT_PEER_LINKS_OPENED);
	log_event(LOG_INFO, NULL, "peer up", "peer=%s by=%s boot=%016" PRIx64, p->conf->name,
		peer_link_passes_fds(p->link) ? "unix" : "tcp", hello->boot_id);
	ping(p, now_ms);
	send_sending_keys(p, KEYS_ALL);
	peer_send_ticket_keys(p);
	peer_send_status(p);
	snapshot_give_tombstones(p);
	update_flags(p);
}

static void log_refused(struct peer *p, int error)
{
	int64_t now_ms = cluster_now_ms();

	count(COUNT_PEER_LINKS_REFUSED);
	if (now_ms - p->refused_logged_ms < LOG_EVERY_MS)
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
		if (cluster_state(p->cluster) != CLUSTER_CLOSING)
			log_event(LOG_WARNING, NULL, "peer lost", "peer=%s cause=%s", p->conf->name,
				error ? error_text(error) : "closed");
		p->retry_at_ms = now_ms;
	} else if (p->link->ended_in == PEER_LINK_OPENING) {
		log_refused(p, error);
	}
	if (p->state != PEER_UP)
		retry_later(p, now_ms, error);
	if (p->announced > 0 || p->taker.state == TAKING_OWN || p->taker.due == TAKING_OWN)
		p->own_due = PEER_OWN_DUE;
	p->announced = 0;
	move(p, PEER_AWAY);
	snapshot_stop(p);
	joining_peer_lost(p->cluster, p);
	revocations_peer_lost(p->cluster, p);
	passed_backends_peer_lost(p->cluster, p);
	update_flags(p);
}

static void on_open(struct peer_link *l)
{
	struct peer *p = l->ctx;

	if (strcmp(peer_link_peer(l)->name, p->conf->name) != 0)
		peer_link_end(l, CSSL_E_MISMATCH);
	else if (l == p->shorter)
		peer_take_link(p, l);
	else if (peer_way_is_longer(&p->way, p->cluster->self, p->conf))
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
	snapshot_go_on(l->ctx);
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
	cluster_handle_closed(((struct peer *)l->ctx)->cluster);
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

static void tick_link(struct peer *p, int64_t now_ms)
{
	if (now_ms - (int64_t)p->link->heard_ms > PEER_LOST_MS) {
		peer_link_end(p->link, UV_ETIMEDOUT);
		return;
	}
	if (now_ms >= p->ping_at_ms)
		ping(p, now_ms);
	snapshot_go_on(p);
	look_for_shorter(p, now_ms);
}

void peer_tick(struct peer *p, int64_t now_ms)
{
	int64_t keep_ms = (int64_t)p->cluster->conf->broadcast.live_keep_s * 1000;

	if (p->state == PEER_AWAY && !p->shorter && connects(p) && now_ms >= p->retry_at_ms)
		connect_link(p, now_ms);
	else if (p->state == PEER_UP)
		tick_link(p, now_ms);
	update_flags(p);
	look_for_datagrams(p, now_ms);
	if (p->lost_ms != 0 && p->lost_ms != LOST_FOR_GOOD && now_ms - p->lost_ms > keep_ms) {
		p->lost_ms = LOST_FOR_GOOD;
		live_table_drop_owner(p->cluster->live, p->index);
	}
}
