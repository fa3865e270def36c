/* cluster_links.c: what goes over links, and what becomes of links. The keys that agents have in common are given here:
 * the sending key of each, and those of tickets. Each is made anew in time. Of all else that comes, each message and
 * each event goes to its part. That part checks every field: no peer is trusted.
 */
#include <openssl/crypto.h>
#include <string.h>

#include "net/report/log.h"
#include "proto/error.h"
#include "proto/scratch.h"
#include "sslagent/cluster/broadcast/broadcast_sender.h"
#include "sslagent/cluster/broadcast/sending_keys.h"
#include "sslagent/cluster/cluster_root.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/ticket_keys.h"

#define COUNTER_WORN      (DATAGRAM_COUNTER_MAX / 2)
#define KEY_MAKER_STEP_MS 2000 /* time between agents that could make the next ticket key */
#define LOOK_EVERY_MS     100

/* Keys given */

/* The current key only to a peer that has none yet. */
enum keys_to_send { KEYS_ALL, KEYS_NEXT };

static void keys_send_sending_keys(struct cluster *c, struct peer *p, enum keys_to_send which)
{
	struct sending_key keys[2];
	unsigned count = sending_keys_list(c->sending, keys);

	for (unsigned i = which == KEYS_ALL ? 0 : 1; i < count; i++) {
		Cssl__SendingKey key = { MESSAGE(sending_key), .key_id = keys[i].id, .aead = keys[i].aead,
			.key = bytes_of(keys[i].secret, sizeof keys[i].secret), .boot_id = c->identity.boot_id,
			.workers = c->self->workers, .current = i == 0 };
		Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_SENDING_KEY,
			.sending_key = &key };

		peer_send(p, &m);
	}
	OPENSSL_cleanse(keys, sizeof keys);
}

static void keys_send_ticket_keys(struct cluster *c, struct peer *p)
{
	struct cluster_ticket_key keys[TICKET_KEYS_MAX];
	Cssl__TicketKeys__TicketKey messages[TICKET_KEYS_MAX], *pointers[TICKET_KEYS_MAX];
	Cssl__TicketKeys message = { MESSAGE(ticket_keys), .key = pointers };
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_TICKET_KEYS,
		.ticket_keys = &message };
	int64_t now_ms = cluster_now_ms();

	message.n_key = ticket_keys_list(c->tickets, keys);
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

/* Keys taken */

static int keys_take_sending_key(struct cluster *c, struct peer *p, const Cssl__SendingKey *key)
{
	struct broadcast_receiver *receiver = c->receiver;
	struct given_key given = { .id = key->key_id, .use = key->current ? KEY_IN_USE : KEY_NEXT };
	Cssl__PeerMessage answer = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_KEY_CONFIRMED,
		.key_confirmed = key->key_id };
	int r;

	if (key->key.len != sizeof given.secret ||
		key->boot_id != broadcast_receiver_view(receiver, p->index).boot_id ||
		(key->aead != AEAD_AES_256_GCM && key->aead != AEAD_CHACHA20_POLY1305))
		return CSSL_E_RANGE;
	given.aead = key->aead;
	memcpy(given.secret, key->key.data, sizeof given.secret);
	r = broadcast_receiver_add_key(receiver, p->index, &given, cluster_now_ms());
	OPENSSL_cleanse(&given, sizeof given);
	if (r)
		return r;
	peer_send(p, &answer);
	return 0;
}

static int keys_take_ticket_keys(struct cluster *c, const Cssl__TicketKeys *keys)
{
	int64_t now_ms = cluster_now_ms();

	for (size_t i = 0; i < keys->n_key; i++) {
		const Cssl__TicketKeys__TicketKey *message = keys->key[i];
		int64_t age_ms = message->age_ms < INT64_MAX / 2 ? (int64_t)message->age_ms : INT64_MAX / 2;
		struct cluster_ticket_key key = { .made_ms = now_ms - age_ms };

		if (message->name.len != sizeof key.name || message->key.len != sizeof key.secret)
			return CSSL_E_RANGE;
		memcpy(key.name, message->name.data, sizeof key.name);
		memcpy(key.secret, message->key.data, sizeof key.secret);
		ticket_keys_add(c->tickets, &key, now_ms);
		OPENSSL_cleanse(&key, sizeof key);
	}
	return 0;
}

static void keys_confirmed(struct cluster *c, struct peer *p, uint64_t id)
{
	struct sending_key keys[2];
	unsigned count = sending_keys_list(c->sending, keys);

	for (unsigned i = 0; i < count; i++)
		if (keys[i].id == id && keys[i].generation > p->key_held)
			p->key_held = keys[i].generation;
	OPENSSL_cleanse(keys, sizeof keys);
}

static int keys_on_message(struct cluster *c, struct peer *p, const Cssl__PeerMessage *m)
{
	switch (m->what_case) {
	case CSSL__PEER_MESSAGE__WHAT_SENDING_KEY: return keys_take_sending_key(c, p, m->sending_key);
	case CSSL__PEER_MESSAGE__WHAT_KEY_CONFIRMED: keys_confirmed(c, p, m->key_confirmed); return 0;
	case CSSL__PEER_MESSAGE__WHAT_TICKET_KEYS: return keys_take_ticket_keys(c, m->ticket_keys);
	default: return 0;
	}
}

/* Keys renewed */

static void keys_roll(struct cluster *c, int64_t now_ms)
{
	if (sending_keys_roll(c->sending, now_ms) != 0)
		return; /* the next key is on its way */
	for (struct peer *p = peers_next(&c->peers, NULL); p; p = peers_next(&c->peers, p))
		keys_send_sending_keys(c, p, KEYS_NEXT);
}

static void keys_make_ticket_key(struct cluster *c, int64_t now_ms)
{
	ticket_keys_make(c->tickets, now_ms);
	for (struct peer *p = peers_next(&c->peers, NULL); p; p = peers_next(&c->peers, p))
		keys_send_ticket_keys(c, p);
}

void cluster_rotate(struct cluster *c)
{
	int64_t now_ms = cluster_now_ms();

	keys_roll(c, now_ms);
	if (c->ticket_use == TICKETS_USED)
		keys_make_ticket_key(c, now_ms);
}

static bool keys_are_worn(const struct cluster *c)
{
	uint32_t generation = sending_keys_generation(c->sending);

	for (unsigned i = 0; i <= c->self->workers; i++)
		if (broadcast_sender_mark(c->threads[i].sender, 0, generation).next_counter > COUNTER_WORN)
			return true;
	return false;
}

/* The first agent by name makes the key, the second if it does not, and so on. */
static int64_t keys_maker_turn_ms(const struct cluster *c)
{
	int64_t turn_ms = 0;

	for (struct peer *p = peers_next(&c->peers, NULL); p; p = peers_next(&c->peers, p))
		if (peers_alive(&c->peers, p->index) && strcmp(p->conf->name, c->self->name) < 0)
			turn_ms += KEY_MAKER_STEP_MS;
	return turn_ms;
}

static void keys_keep_fresh(struct cluster *c, int64_t now_ms)
{
	int64_t life_ms = (int64_t)c->conf->broadcast.key_lifetime_s * 1000;
	int64_t ticket_age_ms = ticket_keys_newest_age_ms(c->tickets, now_ms);

	if (now_ms - c->sending_since_ms > life_ms || keys_are_worn(c))
		keys_roll(c, now_ms);
	ticket_keys_expire(c->tickets, now_ms);
	if (c->ticket_use == TICKETS_UNUSED || !c->joining.is_ready)
		return;
	if (ticket_age_ms > life_ms + keys_maker_turn_ms(c))
		keys_make_ticket_key(c, now_ms);
}

void cluster_keys_tick(struct cluster *c, int64_t now_ms)
{
	const bool is_held = peers_hold_key(&c->peers, sending_keys_generation(c->sending) + 1);

	if (sending_keys_step(c->sending, is_held, now_ms)) {
		c->sending_since_ms = now_ms;
		count(COUNT_SENDING_KEYS_ROLLED);
		log_event(LOG_INFO, NULL, "sending key rolled", "generation=%u", sending_keys_generation(c->sending));
	}
	if (now_ms < c->keys_at_ms)
		return;
	c->keys_at_ms = now_ms + LOOK_EVERY_MS;
	keys_keep_fresh(c, now_ms);
}

/* Events of links */

/* Each part takes what is its own. The answer ABSENT is for pulls, and for the question for a large object. */
static int on_message(void *ctx, struct peer *p, const Cssl__PeerMessage *m)
{
	struct cluster *c = ctx;
	int r = keys_on_message(c, p, m);

	if (!r)
		r = pulls_on_message(c, p, m);
	if (!r)
		r = joining_on_message(&c->joining, p, m);
	if (!r)
		r = revocations_on_message(c, p, m);
	return r ? r : passed_backends_on_message(c, p, m);
}

static void on_up(void *ctx, struct peer *p)
{
	struct cluster *c = ctx;

	keys_send_sending_keys(c, p, KEYS_ALL);
	keys_send_ticket_keys(c, p);
	joining_peer_up(&c->joining, p);
}

static void on_room(void *ctx, struct peer *p)
{
	struct cluster *c = ctx;

	joining_has_room(&c->joining, p);
}

static void on_down(void *ctx, struct peer *p)
{
	struct cluster *c = ctx;

	joining_peer_lost(&c->joining, p);
	revocations_peer_lost(c, p);
	passed_backends_peer_lost(c, p);
}

static bool is_quiet(void *ctx, const struct peer *p)
{
	const struct cluster *c = ctx;

	return joining_is_quiet(&c->joining, p->index) && !c->revocations.under_way;
}

const struct peers_ops cluster_peers_ops = {
	.on_up = on_up,
	.on_message = on_message,
	.on_room = on_room,
	.on_down = on_down,
	.is_quiet = is_quiet,
	.on_closed = cluster_handle_closed,
};

static uint64_t numbered(void *ctx, unsigned worker, unsigned to)
{
	const struct cluster *c = ctx;

	return broadcast_sender_mark(c->threads[worker].sender, (int)to, 0).highest;
}

/* An agent that is ready has a ticket key: the cluster's, or the first. */
static void on_ready(void *ctx)
{
	struct cluster *c = ctx;
	int64_t now_ms = cluster_now_ms();

	if (c->ticket_use == TICKETS_USED && ticket_keys_newest_age_ms(c->tickets, now_ms) == INT64_MAX)
		keys_make_ticket_key(c, now_ms);
	atomic_store(&c->state, CLUSTER_READY);
}

const struct joining_ops cluster_joining_ops = {
	.import = cluster_import,
	.supersede = cluster_supersede,
	.numbered = numbered,
	.on_ready = on_ready,
};
