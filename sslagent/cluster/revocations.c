/* revocations.c: a short list of revocations under way, each with the answers of all agents. */
#include "sslagent/cluster/revocations.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/log.h"
#include "proto/error.h"
#include "sslagent/cluster/cluster_internal.h"
#include "sslagent/cluster/peer.h"

#define UNDER_WAY_MAX 256u /* more are sent, but nobody waits for their answers */

enum answer { NOT_ASKED, ASKED, CONFIRMED, UNCONFIRMED };

struct revocation {
	struct thread_task task;
	struct revocation *next;
	struct cluster *cluster;
	struct revoke_what what;
	char server_name[NAME_MAX_LEN + 1];
	struct session_filter_kept filter;
	void (*done)(void *ctx, const struct revoke_result *r);
	void *ctx;
	uint64_t token;
	uint64_t sessions;
	int64_t settled_ms, until_ms;
	unsigned agent_count;
	uint8_t answers[]; /* enum answer, by agent */
};

struct revocations {
	struct revocation *under_way;
	unsigned count;
	uint64_t token;
};

struct revocations *revocations_create(void)
{
	return calloc(1, sizeof(struct revocations));
}

void revocations_destroy(struct revocations *r)
{
	free(r);
}

int revoke_what_from(const Cssl__PeerRevoke *m, struct revoke_what *out)
{
	const ProtobufCBinaryData *bytes = NULL;

	*out = (struct revoke_what){ 0 };
	switch (m->which_case) {
	case CSSL__PEER_REVOKE__WHICH_SESSION_ID:
		out->by = REVOKE_SESSION;
		bytes = &m->session_id;
		break;
	case CSSL__PEER_REVOKE__WHICH_FAMILY_ID:
		out->by = REVOKE_FAMILY;
		bytes = &m->family_id;
		break;
	case CSSL__PEER_REVOKE__WHICH_CLIENT_ADDRESS:
		out->by = REVOKE_CLIENT_ADDRESS;
		bytes = &m->client_address;
		break;
	case CSSL__PEER_REVOKE__WHICH_SERVER_NAME:
		out->by = REVOKE_SERVER_NAME;
		out->server_name = m->server_name;
		return 0;
	case CSSL__PEER_REVOKE__WHICH_ALL: out->by = REVOKE_ALL; return 0;
	default: return CSSL_E_RANGE;
	}
	if (bytes->len > sizeof out->bytes)
		return CSSL_E_RANGE;
	if (bytes->len > 0)
		memcpy(out->bytes, bytes->data, bytes->len);
	out->len = bytes->len;
	return 0;
}

void revoke_message(const struct revoke_what *what, Cssl__PeerRevoke *out)
{
	ProtobufCBinaryData bytes = { what->len, (uint8_t *)what->bytes };

	cssl__peer_revoke__init(out);
	switch (what->by) {
	case REVOKE_SESSION:
		out->which_case = CSSL__PEER_REVOKE__WHICH_SESSION_ID;
		out->session_id = bytes;
		break;
	case REVOKE_FAMILY:
		out->which_case = CSSL__PEER_REVOKE__WHICH_FAMILY_ID;
		out->family_id = bytes;
		break;
	case REVOKE_CLIENT_ADDRESS:
		out->which_case = CSSL__PEER_REVOKE__WHICH_CLIENT_ADDRESS;
		out->client_address = bytes;
		break;
	case REVOKE_SERVER_NAME:
		out->which_case = CSSL__PEER_REVOKE__WHICH_SERVER_NAME;
		out->server_name = (char *)what->server_name;
		break;
	case REVOKE_ALL:
		out->which_case = CSSL__PEER_REVOKE__WHICH_ALL;
		out->all = 1;
		break;
	case REVOKE_MATCHING: break; /* has a message of its own */
	}
}

int revocation_apply(struct cluster *c, const struct revoke_what *what, int64_t now_ms, uint64_t *sessions)
{
	int result = tombstones_add(c->tombstones, what, now_ms, now_ms);

	*sessions = 0;
	if (result >= 0)
		*sessions = store_sweep(c->store, what->by == REVOKE_SESSION ? what->bytes : NULL);
	return result < 0 ? result : 0;
}

static void collect(
	const struct revocation *r, const char **confirmed, const char **unconfirmed, struct revoke_result *out)
{
	const struct conf_agent *agents = r->cluster->conf->agents;

	for (unsigned agent = 0; agent < r->agent_count; agent++) {
		if (r->answers[agent] == CONFIRMED)
			confirmed[out->confirmed_count++] = agents[agent].name;
		else if (r->answers[agent] != NOT_ASKED)
			unconfirmed[out->unconfirmed_count++] = agents[agent].name;
	}
	out->confirmed = confirmed;
	out->unconfirmed = unconfirmed;
}

/* Report and free it. Without memory for the names the report has no names. */
static void finish(struct revocation *r)
{
	struct revoke_result result = { .sessions = r->sessions };
	const char **names = calloc(2 * r->agent_count, sizeof *names);

	if (names)
		collect(r, names, names + r->agent_count, &result);
	log_event(LOG_INFO, NULL, "sessions revoked", "sessions=%" PRIu64 " confirmed=%zu unconfirmed=%zu", r->sessions,
		result.confirmed_count, result.unconfirmed_count);
	r->done(r->ctx, &result);
	free(names);
	free(r);
}

static int waits(const struct revocation *r)
{
	for (unsigned agent = 0; agent < r->agent_count; agent++)
		if (r->answers[agent] == ASKED)
			return 1;
	return 0;
}

static void tell_peers(struct revocation *r)
{
	Cssl__PeerMessage m = CSSL__PEER_MESSAGE__INIT;
	Cssl__PeerRevoke revoke;
	Cssl__PeerRevokeMatching matching = CSSL__PEER_REVOKE_MATCHING__INIT;
	Cssl__SessionFilter filter;
	struct cluster *c = r->cluster;

	if (r->what.by == REVOKE_MATCHING) {
		session_filter_write(r->what.filter, &filter);
		matching.filter = &filter;
		matching.token = r->token;
		m.what_case = CSSL__PEER_MESSAGE__WHAT_REVOKE_MATCHING;
		m.revoke_matching = &matching;
	} else {
		revoke_message(&r->what, &revoke);
		revoke.token = r->token;
		m.what_case = CSSL__PEER_MESSAGE__WHAT_REVOKE;
		m.revoke = &revoke;
	}
	for (unsigned agent = 0; agent < r->agent_count; agent++) {
		struct peer *p = c->peers[agent];

		if (!p)
			r->answers[agent] = CONFIRMED; /* this one */
		else if (peer_send(p, &m) == 0)
			r->answers[agent] = ASKED;
		else if (atomic_load(&c->flags[agent].alive))
			r->answers[agent] = UNCONFIRMED;
	}
}

/* Agents may take a session for older than it is, by their doubt of its maker's clock. */
static int64_t settling_ms(const struct cluster *c)
{
	int64_t doubt_ms = 0;

	for (unsigned agent = 0; agent < c->agent_count; agent++) {
		const struct peer_clock clock = broadcast_receiver_clock(c->receiver, agent);

		if (atomic_load(&c->flags[agent].alive) && clock.doubt_ms > doubt_ms)
			doubt_ms = clock.doubt_ms;
	}
	return REVOCATION_SETTLE_MS + 2 * doubt_ms;
}

static void become_family(void *ctx, const struct stored *session)
{
	struct revoke_what *what = ctx;
	struct sess_obj obj;

	if (sess_obj_decode(session->encoded, session->len, &obj) != 0)
		return;
	*what = (struct revoke_what){ .by = REVOKE_FAMILY, .len = FAMILY_ID_LEN };
	memcpy(what->bytes, obj.facts.family_id, FAMILY_ID_LEN);
	sess_obj_destroy(&obj);
}

void revocation_widen(struct cluster *c, struct revoke_what *what, int64_t now_ms)
{
	uint8_t id[SESSION_ID_LEN];

	if (what->by != REVOKE_SESSION || what->len != sizeof id)
		return;
	memcpy(id, what->bytes, sizeof id);
	store_peek(c->store, id, now_ms, become_family, what);
}

static void run(struct thread_task *task)
{
	struct revocation *r = container_of(task, struct revocation, task);
	struct revocations *all = r->cluster->revocations;
	int64_t now_ms = cluster_now_ms();

	revocation_widen(r->cluster, &r->what, now_ms);
	if (revocation_apply(r->cluster, &r->what, now_ms, &r->sessions) != 0) {
		finish(r); /* malformed: nothing was revoked anywhere */
		return;
	}
	r->token = ++all->token;
	r->settled_ms = now_ms + settling_ms(r->cluster);
	r->until_ms = now_ms + REVOCATION_PATIENCE_MS;
	tell_peers(r);
	if (all->count == UNDER_WAY_MAX) {
		finish(r);
		return;
	}
	r->next = all->under_way;
	all->under_way = r;
	all->count++;
	cluster_tick_as_needed(r->cluster);
}

static void drop(struct thread_task *task)
{
	finish(container_of(task, struct revocation, task));
}

void cluster_revoke(struct cluster *c, const struct revoke_what *what,
	void (*done)(void *ctx, const struct revoke_result *r), void *ctx)
{
	struct revocation *r = calloc(1, sizeof *r + c->agent_count);

	if (!r) {
		done(ctx, &(struct revoke_result){ 0 });
		return;
	}
	r->task = (struct thread_task){ .run = run, .drop = drop };
	r->cluster = c;
	r->agent_count = c->agent_count;
	r->what = *what;
	if (what->server_name) {
		snprintf(r->server_name, sizeof r->server_name, "%s", what->server_name);
		r->what.server_name = r->server_name;
	}
	if (what->filter && session_filter_keep(&r->filter, what->filter) == 0)
		r->what.filter = &r->filter.filter;
	r->done = done;
	r->ctx = ctx;
	cluster_thread_hand(cluster_main_thread(c), &r->task);
}

/* Finish the revocations that wait no more. */
static void finish_ready(struct revocations *all, int64_t now_ms)
{
	struct revocation **link = &all->under_way;

	while (*link) {
		struct revocation *r = *link;

		if ((waits(r) && now_ms < r->until_ms) || now_ms < r->settled_ms) {
			link = &r->next;
			continue;
		}
		*link = r->next;
		all->count--;
		finish(r);
	}
}

static void go_on_with_family(struct revocation *r, const uint8_t *family)
{
	int64_t now_ms = cluster_now_ms();
	uint64_t sessions = 0;

	r->what = (struct revoke_what){ .by = REVOKE_FAMILY, .len = FAMILY_ID_LEN };
	memcpy(r->what.bytes, family, FAMILY_ID_LEN);
	revocation_apply(r->cluster, &r->what, now_ms, &sessions);
	r->sessions += sessions;
	r->token = ++r->cluster->revocations->token;
	r->until_ms = now_ms + REVOCATION_PATIENCE_MS;
	tell_peers(r);
}

void revocations_confirmed(struct cluster *c, struct peer *from, uint64_t token, const uint8_t *family)
{
	for (struct revocation *r = c->revocations->under_way; r; r = r->next) {
		if (r->token != token || r->answers[from->index] != ASKED)
			continue;
		r->answers[from->index] = CONFIRMED;
		if (family && r->what.by == REVOKE_SESSION)
			go_on_with_family(r, family);
	}
	finish_ready(c->revocations, cluster_now_ms());
}

void revocations_peer_lost(struct cluster *c, struct peer *peer)
{
	for (struct revocation *r = c->revocations->under_way; r; r = r->next)
		if (r->answers[peer->index] == ASKED)
			r->answers[peer->index] = UNCONFIRMED;
}

void revocations_tick(struct cluster *c, int64_t now_ms)
{
	finish_ready(c->revocations, now_ms);
}

int revocations_wait(const struct revocations *all)
{
	return all->under_way != NULL;
}

void revocations_finish(struct cluster *c)
{
	finish_ready(c->revocations, INT64_MAX);
}
