/* revocations.c: a short list of revocations under way, each with the answers of all agents. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "proto/scratch.h"
#include "sslagent/cluster/cluster_root.h"
#include "sslagent/sessions/store.h"
#include "sslagent/sessions/tombstones.h"

#define UNDER_WAY_MAX 256u /* more are sent, but nobody waits for their answers */

enum answer { NOT_ASKED, ASKED, CONFIRMED, UNCONFIRMED };

struct revocation {
	struct thread_task task;
	struct revocation *next;
	struct cluster *cluster;
	revoke_what what, *ordered; /* without copies of its values; owned */
	uint8_t family[FAMILY_ID_LEN];
	void (*done)(void *ctx, struct revoke_result *r);
	void *ctx;
	struct revoke_result *result;
	uint64_t token;
	int64_t settled_ms, until_ms;
	unsigned agent_count;
	uint8_t answers[]; /* enum answer, by agent */
};

static int revocation_apply(struct cluster *c, const revoke_what *what, int64_t now_ms, uint64_t *sessions)
{
	int result = tombstones_add(c->tombstones, what, now_ms, now_ms);

	*sessions = 0;
	if (result >= 0)
		*sessions =
			store_sweep(c->store, what->which_case == (int)REVOKE_SESSION ? what->session_id.data : NULL);
	return result < 0 ? result : 0;
}

/* Report and free it. */
static void revocation_finish(struct revocation *r)
{
	const struct conf_agent *agents = r->cluster->conf->agents;
	struct revoke_result *out = r->result;

	out->confirmed = out->names;
	out->unconfirmed = out->names + r->agent_count;
	for (unsigned agent = 0; agent < r->agent_count; agent++) {
		if (r->answers[agent] == CONFIRMED)
			out->confirmed[out->confirmed_count++] = agents[agent].name;
		else if (r->answers[agent] != NOT_ASKED)
			out->unconfirmed[out->unconfirmed_count++] = agents[agent].name;
	}
	log_event(LOG_INFO, NULL, "sessions revoked", "sessions=%" PRIu64 " confirmed=%zu unconfirmed=%zu",
		out->sessions, out->confirmed_count, out->unconfirmed_count);
	r->done(r->ctx, out);
	protobuf_c_message_free_unpacked(&r->ordered->base, NULL);
	free(r);
}

static void revocation_tell_peers(struct revocation *r)
{
	Cssl__PeerRevoke revoke = { MESSAGE(peer_revoke), .token = r->token, .what = &r->what };
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_REVOKE,
		.revoke = &revoke };
	struct cluster *c = r->cluster;

	for (unsigned agent = 0; agent < r->agent_count; agent++) {
		struct peer *p = c->peers.at[agent];

		if (!p)
			r->answers[agent] = CONFIRMED; /* this one */
		else if (peer_send(p, &m) == 0)
			r->answers[agent] = ASKED;
		else if (peers_alive(&c->peers, agent))
			r->answers[agent] = UNCONFIRMED;
	}
}

/* Agents may take a session for older than it is, by their doubt of its maker's clock. */
static int64_t revocation_settling_ms(const struct cluster *c)
{
	int64_t doubt_ms = 0;

	for (unsigned agent = 0; agent < c->peers.count; agent++) {
		const struct peer_clock clock = broadcast_receiver_view(c->receiver, agent).clock;

		if (peers_alive(&c->peers, agent) && clock.doubt_ms > doubt_ms)
			doubt_ms = clock.doubt_ms;
	}
	return REVOCATION_SETTLE_MS + 2 * doubt_ms;
}

static void revocation_take_family(void *family, const struct session *session)
{
	memcpy(family, session->family_id, FAMILY_ID_LEN);
}

static revoke_what revocation_of_family(const uint8_t *family)
{
	return (revoke_what){ MESSAGE(link_request__revoke), .which_case = (int)REVOKE_FAMILY,
		.family_id = bytes_of(family, FAMILY_ID_LEN) };
}

/* The revocation of a session must cover all sessions with which the client could go on: a resumption in TLS 1.3 makes
 * new sessions from it. 1: the session is here, and @what became its family, whose id is in @family. */
static bool revocation_widen(struct cluster *c, revoke_what *what, uint8_t family[static FAMILY_ID_LEN], int64_t now_ms)
{
	if (what->which_case != (int)REVOKE_SESSION || what->session_id.len != SESSION_ID_LEN ||
		store_peek(c->store, what->session_id.data, now_ms, revocation_take_family, family) != 0)
		return false;
	*what = revocation_of_family(family);
	return true;
}

static void revocation_run(struct thread_task *task)
{
	struct revocation *r = container_of(task, struct revocation, task);
	struct revocations *all = &r->cluster->revocations;
	int64_t now_ms = cluster_now_ms();

	revocation_widen(r->cluster, &r->what, r->family, now_ms);
	if (revocation_apply(r->cluster, &r->what, now_ms, &r->result->sessions) != 0) {
		revocation_finish(r); /* malformed: nothing was revoked anywhere */
		return;
	}
	r->token = ++all->token;
	r->settled_ms = now_ms + revocation_settling_ms(r->cluster);
	r->until_ms = now_ms + REVOCATION_PATIENCE_MS;
	revocation_tell_peers(r);
	if (all->count == UNDER_WAY_MAX) {
		revocation_finish(r);
		return;
	}
	r->next = all->under_way;
	all->under_way = r;
	all->count++;
	cluster_thread_tick_within(r->cluster, PEERS_EVERY_MS);
}

static void revocation_drop(struct thread_task *task)
{
	revocation_finish(container_of(task, struct revocation, task));
}

static revoke_what *revocation_copy(const revoke_what *what)
{
	uint8_t *packed = malloc(protobuf_c_message_get_packed_size(&what->base) + 1);
	ProtobufCMessage *copy = NULL;

	if (packed)
		copy = protobuf_c_message_unpack(
			what->base.descriptor, NULL, protobuf_c_message_pack(&what->base, packed), packed);
	free(packed);
	return (revoke_what *)copy;
}

void cluster_revoke(
	struct cluster *c, const revoke_what *what, void (*done)(void *ctx, struct revoke_result *r), void *ctx)
{
	struct revocation *r = calloc(1, sizeof *r + c->peers.count);
	struct revoke_result *result = calloc(1, sizeof *result + 2 * c->peers.count * sizeof result->names[0]);
	revoke_what *ordered = revocation_copy(what);

	if (!r || !result || !ordered) {
		free(r);
		free(result);
		if (ordered)
			protobuf_c_message_free_unpacked(&ordered->base, NULL);
		done(ctx, NULL);
		return;
	}
	r->result = result;
	r->ordered = ordered;
	r->task = (struct thread_task){ .run = revocation_run, .drop = revocation_drop };
	r->cluster = c;
	r->agent_count = c->peers.count;
	r->what = *r->ordered;
	r->done = done;
	r->ctx = ctx;
	cluster_thread_hand(cluster_main_thread(c), &r->task);
}

/* Finish the revocations that wait no more. */
void revocations_tick(struct cluster *c, int64_t now_ms)
{
	struct revocations *all = &c->revocations;
	struct revocation **link = &all->under_way;

	while (*link) {
		struct revocation *r = *link;
		bool waits = memchr(r->answers, ASKED, r->agent_count) != NULL;

		if ((waits && now_ms < r->until_ms) || now_ms < r->settled_ms) {
			link = &r->next;
			continue;
		}
		*link = r->next;
		all->count--;
		revocation_finish(r);
	}
}

static void revocation_go_on_with_family(struct revocation *r, const uint8_t *family)
{
	int64_t now_ms = cluster_now_ms();
	uint64_t sessions = 0;

	memcpy(r->family, family, FAMILY_ID_LEN);
	r->what = revocation_of_family(r->family);
	revocation_apply(r->cluster, &r->what, now_ms, &sessions);
	r->result->sessions += sessions;
	r->token = ++r->cluster->revocations.token;
	r->until_ms = now_ms + REVOCATION_PATIENCE_MS;
	revocation_tell_peers(r);
}

static int revocations_obey(struct cluster *c, struct peer *p, const Cssl__PeerMessage *m)
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
	if (revocation_widen(c, &what, family, now_ms))
		revoked.family_id = what.family_id;
	int r = revocation_apply(c, &what, now_ms, &sessions);
	if (!r)
		peer_send(p, &answer);
	return r;
}

/* The other agent may know the family of the session. If this agent did not, it now revokes the family, at all agents
 * again. */
static int revocations_take_answer(struct cluster *c, struct peer *p, const Cssl__PeerRevoked *m)
{
	if (m->family_id.len != 0 && m->family_id.len != FAMILY_ID_LEN)
		return CSSL_E_RANGE;
	for (struct revocation *r = c->revocations.under_way; r; r = r->next) {
		if (r->token != m->token || r->answers[p->index] != ASKED)
			continue;
		r->answers[p->index] = CONFIRMED;
		if (m->family_id.len > 0 && r->what.which_case == (int)REVOKE_SESSION)
			revocation_go_on_with_family(r, m->family_id.data);
	}
	revocations_tick(c, cluster_now_ms());
	return 0;
}

int revocations_on_message(struct cluster *c, struct peer *p, const Cssl__PeerMessage *m)
{
	if (m->what_case == CSSL__PEER_MESSAGE__WHAT_REVOKE)
		return revocations_obey(c, p, m);
	return m->what_case == CSSL__PEER_MESSAGE__WHAT_REVOKED ? revocations_take_answer(c, p, m->revoked) : 0;
}

void revocations_peer_lost(struct cluster *c, struct peer *peer)
{
	for (struct revocation *r = c->revocations.under_way; r; r = r->next)
		if (r->answers[peer->index] == ASKED)
			r->answers[peer->index] = UNCONFIRMED;
}
