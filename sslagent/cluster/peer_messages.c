/* peer_messages.c: messages of other agents over their links, with one table of handlers. This file or the called
 * function checks every field: no peer is trusted.
 */
#include <openssl/crypto.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/counters.h"
#include "sslagent/cluster/passed_backends.h"
#include "sslagent/cluster/peer.h"

static int on_sending_key(struct peer *p, const Cssl__PeerMessage *m)
{
	const Cssl__SendingKey *key = m->sending_key;
	struct broadcast_receiver *receiver = p->cluster->receiver;
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

static int on_key_confirmed(struct peer *p, const Cssl__PeerMessage *m)
{
	sending_keys_confirmed(p->cluster->sending, p->index, m->key_confirmed);
	return 0;
}

static int on_ticket_keys(struct peer *p, const Cssl__PeerMessage *m)
{
	int64_t now_ms = cluster_now_ms();

	for (size_t i = 0; i < m->ticket_keys->n_key; i++) {
		const Cssl__TicketKeys__TicketKey *message = m->ticket_keys->key[i];
		int64_t age_ms = message->age_ms < INT64_MAX / 2 ? (int64_t)message->age_ms : INT64_MAX / 2;
		struct cluster_ticket_key key = { .made_ms = now_ms - age_ms };

		if (message->name.len != sizeof key.name || message->key.len != sizeof key.secret)
			return CSSL_E_RANGE;
		memcpy(key.name, message->name.data, sizeof key.name);
		memcpy(key.secret, message->key.data, sizeof key.secret);
		ticket_keys_add(p->cluster->tickets, &key, now_ms);
		OPENSSL_cleanse(&key, sizeof key);
	}
	return 0;
}

static void send_object(void *peer, const struct session *session)
{
	size_t len;
	const uint8_t *encoded = session_encoded(session, &len);

	peer_send_object(peer, &session->shelved, encoded, len, false);
}

static int on_pull(struct peer *p, const Cssl__PeerMessage *m)
{
	Cssl__PeerMessage absent = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_ABSENT,
		.absent = m->pull };

	if (m->pull.len != SESSION_ID_LEN)
		return CSSL_E_RANGE;
	count(COUNT_PULLS_ANSWERED);
	if (store_peek(p->cluster->store, m->pull.data, cluster_now_ms(), send_object, p) != 0)
		peer_send(p, &absent);
	return 0;
}

static int on_object(struct peer *p, const Cssl__PeerMessage *m)
{
	const struct peer_clock clock = broadcast_receiver_view(p->cluster->receiver, p->index).clock;
	const Cssl__PeerObject *o = m->object;
	int64_t now_ms = cluster_now_ms();

	if (o->unasked)
		snapshot_goes_on(p, now_ms);
	else
		p->announced -= p->announced > 0;
	if (clock.state != PEER_CLOCK_KNOWN)
		return 0; /* its age is unknown; this agent will ask for it again */
	cluster_import(p->cluster, p->index, &o->ssl_obj, peer_clock_local(&clock, o->made_ms, now_ms),
		peer_clock_local(&clock, o->family_made_ms, now_ms), now_ms);
	return 0;
}

static int on_absent(struct peer *p, const Cssl__PeerMessage *m)
{
	if (m->absent.len != SESSION_ID_LEN)
		return CSSL_E_RANGE;
	p->announced -= p->announced > 0;
	pulls_absent(p->cluster, p->index, m->absent.data);
	return 0;
}

static int on_revoke(struct peer *p, const Cssl__PeerMessage *m)
{
	Cssl__PeerRevoked revoked = { MESSAGE(peer_revoked), .token = m->revoke->token };
	Cssl__PeerMessage answer = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_REVOKED,
		.revoked = &revoked };
	uint8_t family[FAMILY_ID_LEN];
	int64_t now_ms = cluster_now_ms();
	uint64_t sessions;

	if (!m->revoke->what)
		return CSSL_E_RANGE;
	revoke_what what = *m->revoke->what;
	if (revocation_widen(p->cluster, &what, family, now_ms))
		revoked.family_id = what.family_id;
	int r = revocation_apply(p->cluster, &what, now_ms, &sessions);
	if (!r)
		peer_send(p, &answer);
	return r;
}

static int on_revoked(struct peer *p, const Cssl__PeerMessage *m)
{
	const ProtobufCBinaryData *family = &m->revoked->family_id;

	if (family->len != 0 && family->len != FAMILY_ID_LEN)
		return CSSL_E_RANGE;
	revocations_confirmed(p->cluster, p, m->revoked->token, family->len > 0 ? family->data : NULL);
	return 0;
}

static int on_ping(struct peer *p, const Cssl__PeerMessage *m)
{
	Cssl__PeerPong pong = { MESSAGE(peer_pong), .token = m->ping, .clock_ms = cluster_now_ms() };
	Cssl__PeerMessage answer = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_PONG, .pong = &pong };

	peer_send(p, &answer);
	return 0;
}

static int on_pong(struct peer *p, const Cssl__PeerMessage *m)
{
	if (p->ping_sent_ms == 0 || m->pong->token != p->ping_token)
		return CSSL_E_STATE;
	broadcast_receiver_clock_answered(
		p->cluster->receiver, p->index, p->ping_sent_ms, m->pong->clock_ms, cluster_now_ms());
	p->ping_sent_ms = 0;
	if (p->own_due == PEER_OWN_DUE) {
		p->own_due = PEER_OWN_HERE;
		snapshot_want(p, TAKING_OWN);
	}
	return 0;
}

static int on_ready(struct peer *p, const Cssl__PeerMessage *m)
{
	p->readiness = m->ready ? PEER_READY : PEER_NOT_READY;
	return 0;
}

static int (*const handlers[])(struct peer *p, const Cssl__PeerMessage *m) = {
	[CSSL__PEER_MESSAGE__WHAT_SENDING_KEY] = on_sending_key,
	[CSSL__PEER_MESSAGE__WHAT_KEY_CONFIRMED] = on_key_confirmed,
	[CSSL__PEER_MESSAGE__WHAT_TICKET_KEYS] = on_ticket_keys,
	[CSSL__PEER_MESSAGE__WHAT_SNAPSHOT_REQUEST] = snapshot_give,
	[CSSL__PEER_MESSAGE__WHAT_SNAPSHOT_PART] = snapshot_take_part,
	[CSSL__PEER_MESSAGE__WHAT_PULL] = on_pull,
	[CSSL__PEER_MESSAGE__WHAT_OBJECT] = on_object,
	[CSSL__PEER_MESSAGE__WHAT_ABSENT] = on_absent,
	[CSSL__PEER_MESSAGE__WHAT_REVOKE] = on_revoke,
	[CSSL__PEER_MESSAGE__WHAT_REVOKED] = on_revoked,
	[CSSL__PEER_MESSAGE__WHAT_PASSED_BACKEND] = passed_backends_receive,
	[CSSL__PEER_MESSAGE__WHAT_PASSED_BACKEND_TAKEN] = passed_backends_answered,
	[CSSL__PEER_MESSAGE__WHAT_PING] = on_ping,
	[CSSL__PEER_MESSAGE__WHAT_PONG] = on_pong,
	[CSSL__PEER_MESSAGE__WHAT_READY] = on_ready,
	[CSSL__PEER_MESSAGE__WHAT_PASSED_BACKEND_WITHDRAWN] = passed_backends_withdrawn,
};

int peer_on_message(struct peer *p, const Cssl__PeerMessage *m)
{
	size_t what = (size_t)m->what_case;

	if (what == 0 || what >= sizeof handlers / sizeof handlers[0] || !handlers[what])
		return 0; /* of a later release */
	return handlers[what](p, m);
}
