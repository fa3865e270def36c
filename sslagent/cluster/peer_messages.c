/* peer_messages.c: messages of other agents over their links, with one table of handlers. This file or the called
 * function checks every field: no peer is trusted.
 */
#include <openssl/crypto.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/counters.h"
#include "sslagent/cluster/passed_backends.h"
#include "sslagent/cluster/peer.h"
#include "sslagent/cluster/pulls.h"
#include "sslagent/cluster/revocations.h"

static int on_sending_key(struct peer *p, const Cssl__PeerMessage *m)
{
	const Cssl__SendingKey *key = m->sending_key;
	struct broadcast_receiver *receiver = p->cluster->receiver;
	struct given_key given = { .id = key->key_id, .use = key->current ? KEY_IN_USE : KEY_NEXT };
	Cssl__PeerMessage answer = CSSL__PEER_MESSAGE__INIT;
	Cssl__KeyConfirmed confirmed = CSSL__KEY_CONFIRMED__INIT;
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
	confirmed.key_id = key->key_id;
	answer.what_case = CSSL__PEER_MESSAGE__WHAT_KEY_CONFIRMED;
	answer.key_confirmed = &confirmed;
	peer_send(p, &answer);
	return 0;
}

static int on_key_confirmed(struct peer *p, const Cssl__PeerMessage *m)
{
	sending_keys_confirmed(p->cluster->sending, p->index, m->key_confirmed->key_id);
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

static int on_snapshot_request(struct peer *p, const Cssl__PeerMessage *m)
{
	int all = m->snapshot_request->scope == CSSL__SNAPSHOT_REQUEST__SCOPE__ALL;

	snapshot_give(p, all ? CSSL__SNAPSHOT_REQUEST__SCOPE__ALL : CSSL__SNAPSHOT_REQUEST__SCOPE__OWN,
		m->snapshot_request->connections ? GIVES_SEEN : GIVES_SEEN_NOT);
	return 0;
}

static int on_snapshot_part(struct peer *p, const Cssl__PeerMessage *m)
{
	return snapshot_take_part(p, m->snapshot_part);
}

static void send_object(void *ctx, const struct stored *session)
{
	Cssl__PeerMessage m = CSSL__PEER_MESSAGE__INIT;
	Cssl__PeerObject object = CSSL__PEER_OBJECT__INIT;

	object.ssl_obj = (ProtobufCBinaryData){ session->len, (uint8_t *)session->encoded };
	object.made_ms = session->made_ms;
	object.family_made_ms = session->family_made_ms;
	m.what_case = CSSL__PEER_MESSAGE__WHAT_OBJECT;
	m.object = &object;
	peer_send(ctx, &m);
}

static int on_pull(struct peer *p, const Cssl__PeerMessage *m)
{
	Cssl__PeerMessage answer = CSSL__PEER_MESSAGE__INIT;
	Cssl__PeerAbsent absent = CSSL__PEER_ABSENT__INIT;

	if (m->pull->session_id.len != SESSION_ID_LEN)
		return CSSL_E_RANGE;
	count(COUNT_PULLS_ANSWERED);
	if (store_peek(p->cluster->store, m->pull->session_id.data, cluster_now_ms(), send_object, p) == 0)
		return 0;
	absent.session_id = m->pull->session_id;
	answer.what_case = CSSL__PEER_MESSAGE__WHAT_ABSENT;
	answer.absent = &absent;
	peer_send(p, &answer);
	return 0;
}

static int on_object(struct peer *p, const Cssl__PeerMessage *m)
{
	const struct peer_clock clock = broadcast_receiver_clock(p->cluster->receiver, p->index);
	int64_t now_ms = cluster_now_ms();

	p->announced -= p->announced > 0;
	if (clock.state != PEER_CLOCK_KNOWN)
		return 0; /* its age is unknown; this agent will ask for it again */
	cluster_import(
		p->cluster, &(struct heard_object){
				    .encoded = m->object->ssl_obj.data,
				    .len = m->object->ssl_obj.len,
				    .made_ms = peer_clock_local(&clock, m->object->made_ms, now_ms),
				    .family_made_ms = peer_clock_local(&clock, m->object->family_made_ms, now_ms),
				    .now_ms = now_ms,
				    .from = p->index,
			    });
	return 0;
}

static int on_absent(struct peer *p, const Cssl__PeerMessage *m)
{
	if (m->absent->session_id.len != SESSION_ID_LEN)
		return CSSL_E_RANGE;
	p->announced -= p->announced > 0;
	pulls_absent(p->cluster, p->index, m->absent->session_id.data);
	return 0;
}

static int on_revoke(struct peer *p, const Cssl__PeerMessage *m)
{
	Cssl__PeerMessage answer = CSSL__PEER_MESSAGE__INIT;
	Cssl__PeerRevoked revoked = CSSL__PEER_REVOKED__INIT;
	int64_t now_ms = cluster_now_ms();
	struct revoke_what what;
	int r = revoke_what_from(m->revoke, &what);

	if (r)
		return r;
	revocation_widen(p->cluster, &what, now_ms);
	r = revocation_apply(p->cluster, &what, now_ms, &revoked.sessions);
	if (r)
		return r;
	revoked.token = m->revoke->token;
	if (m->revoke->which_case == CSSL__PEER_REVOKE__WHICH_SESSION_ID && what.by == REVOKE_FAMILY)
		revoked.family_id = (ProtobufCBinaryData){ FAMILY_ID_LEN, what.bytes };
	answer.what_case = CSSL__PEER_MESSAGE__WHAT_REVOKED;
	answer.revoked = &revoked;
	peer_send(p, &answer);
	return 0;
}

static int on_revoke_matching(struct peer *p, const Cssl__PeerMessage *m)
{
	Cssl__PeerMessage answer = CSSL__PEER_MESSAGE__INIT;
	Cssl__PeerRevoked revoked = CSSL__PEER_REVOKED__INIT;
	struct session_filter filter;
	struct revoke_what what = { .by = REVOKE_MATCHING, .filter = &filter };
	int r = m->revoke_matching->filter ? session_filter_read(m->revoke_matching->filter, &filter) : CSSL_E_RANGE;

	if (!r)
		r = revocation_apply(p->cluster, &what, cluster_now_ms(), &revoked.sessions);
	if (r)
		return r;
	revoked.token = m->revoke_matching->token;
	answer.what_case = CSSL__PEER_MESSAGE__WHAT_REVOKED;
	answer.revoked = &revoked;
	peer_send(p, &answer);
	return 0;
}

static int on_revoked(struct peer *p, const Cssl__PeerMessage *m)
{
	const ProtobufCBinaryData *family = &m->revoked->family_id;

	if (family->len != 0 && family->len != FAMILY_ID_LEN)
		return CSSL_E_RANGE;
	revocations_confirmed(p->cluster, p, m->revoked->token, family->len > 0 ? family->data : NULL);
	return 0;
}

static int on_passed_backend(struct peer *p, const Cssl__PeerMessage *m)
{
	return passed_backends_receive(p->cluster, p, m->passed_backend);
}

static int on_passed_backend_taken(struct peer *p, const Cssl__PeerMessage *m)
{
	return passed_backends_answered(p->cluster, p, m->passed_backend_taken);
}

static int on_passed_backend_withdrawn(struct peer *p, const Cssl__PeerMessage *m)
{
	return passed_backends_withdrawn(p->cluster, m->passed_backend_withdrawn);
}

static int on_ping(struct peer *p, const Cssl__PeerMessage *m)
{
	Cssl__PeerMessage answer = CSSL__PEER_MESSAGE__INIT;
	Cssl__PeerPong pong = CSSL__PEER_PONG__INIT;

	pong.token = m->ping->token;
	pong.clock_ms = cluster_now_ms();
	answer.what_case = CSSL__PEER_MESSAGE__WHAT_PONG;
	answer.pong = &pong;
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

static int on_status(struct peer *p, const Cssl__PeerMessage *m)
{
	p->readiness = m->status->ready ? PEER_READY : PEER_NOT_READY;
	return 0;
}

static int (*const handlers[])(struct peer *p, const Cssl__PeerMessage *m) = {
	[CSSL__PEER_MESSAGE__WHAT_SENDING_KEY] = on_sending_key,
	[CSSL__PEER_MESSAGE__WHAT_KEY_CONFIRMED] = on_key_confirmed,
	[CSSL__PEER_MESSAGE__WHAT_TICKET_KEYS] = on_ticket_keys,
	[CSSL__PEER_MESSAGE__WHAT_SNAPSHOT_REQUEST] = on_snapshot_request,
	[CSSL__PEER_MESSAGE__WHAT_SNAPSHOT_PART] = on_snapshot_part,
	[CSSL__PEER_MESSAGE__WHAT_PULL] = on_pull,
	[CSSL__PEER_MESSAGE__WHAT_OBJECT] = on_object,
	[CSSL__PEER_MESSAGE__WHAT_ABSENT] = on_absent,
	[CSSL__PEER_MESSAGE__WHAT_REVOKE] = on_revoke,
	[CSSL__PEER_MESSAGE__WHAT_REVOKED] = on_revoked,
	[CSSL__PEER_MESSAGE__WHAT_REVOKE_MATCHING] = on_revoke_matching,
	[CSSL__PEER_MESSAGE__WHAT_PASSED_BACKEND] = on_passed_backend,
	[CSSL__PEER_MESSAGE__WHAT_PASSED_BACKEND_TAKEN] = on_passed_backend_taken,
	[CSSL__PEER_MESSAGE__WHAT_PING] = on_ping,
	[CSSL__PEER_MESSAGE__WHAT_PONG] = on_pong,
	[CSSL__PEER_MESSAGE__WHAT_STATUS] = on_status,
	[CSSL__PEER_MESSAGE__WHAT_PASSED_BACKEND_WITHDRAWN] = on_passed_backend_withdrawn,
};

int peer_on_message(struct peer *p, const Cssl__PeerMessage *m)
{
	size_t what = (size_t)m->what_case;

	if (what == 0 || what >= sizeof handlers / sizeof handlers[0] || !handlers[what])
		return 0; /* of a later release */
	return handlers[what](p, m);
}
