/* joining.c: which peer to take a snapshot from, what comes of it, and when this agent is ready. Each part of a
 * snapshot is imported at once. Numbers that the snapshot had all of need no question any more.
 */
#include "sslagent/cluster/joining/joining.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/process/daemon.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "proto/scratch.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/connections_seen.h"
#include "sslagent/sessions/store.h"
#include "sslagent/sessions/tombstones.h"

#define SILENT_MS        10000 /* a snapshot that is silent for so long has failed */
#define REPAIR_WITHIN_MS 2000  /* then ready, even with numbers missing */

#define TO(state) (1u << (state))

static const unsigned may_move_to[JOINING_STATE_COUNT] = {
	[JOINING_ALONE] = TO(JOINING_TAKING),
	[JOINING_TAKING] = TO(JOINING_REPAIRING) | TO(JOINING_ALONE),
	[JOINING_REPAIRING] = TO(JOINING_JOINED),
	[JOINING_JOINED] = 0,
};

static void joining_move(struct joining *j, enum joining_state to, int64_t now_ms)
{
	assert(may_move_to[j->state] & TO(to));
	j->state = (uint8_t)to;
	j->since_ms = now_ms;
}

int joining_init(struct joining *j, const struct joining_conf *conf, int64_t now_ms)
{
	const struct peers *peers = conf->peers;
	struct resettling *r = &j->resettling;

	*j = (struct joining){ .of = *conf, .state = JOINING_ALONE, .since_ms = now_ms, .started_ms = now_ms };
	broadcast_receiver_repair(peers->of.receiver, REPAIR_HELD);
	j->with = calloc(peers->count, sizeof *j->with);
	if (!j->with || !peers->placement)
		return j->with ? 0 : CSSL_E_NO_MEMORY;
	r->before = placement_create(peers->count);
	r->after = placement_create(peers->count);
	if (!r->before || !r->after)
		return CSSL_E_NO_MEMORY;
	placement_copy(r->before, peers->placement); /* the store is settled for the members of now */
	return 0;
}

void joining_free(struct joining *j)
{
	for (unsigned i = 0; j->with && i < j->of.peers->count; i++)
		free(j->with[i].giver.heard);
	free(j->with);
	placement_destroy(j->resettling.after);
	placement_destroy(j->resettling.before);
}

static void joining_say_status(const struct joining *j, struct peer *p)
{
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_READY,
		.ready = j->is_ready };

	peer_send(p, &m);
}

void joining_peer_up(struct joining *j, struct peer *p)
{
	joining_say_status(j, p);
	snapshot_give_tombstones(j, p);
}

static void joining_become_ready(struct joining *j, const char *how, int64_t now_ms)
{
	struct peers *peers = j->of.peers;
	uint64_t sessions = shelf_count(store_shelf(j->of.store), NULL);

	if (j->is_ready)
		return;
	j->of.ops->on_ready(j->of.ctx);
	j->is_ready = true;
	log_event(LOG_INFO, NULL, "ready", "how=%s sessions=%" PRIu64 " ms=%" PRId64, how, sessions,
		now_ms - j->started_ms);
	service_notify_ready(getpid());
	for (struct peer *p = peers_next(peers, NULL); p; p = peers_next(peers, p))
		joining_say_status(j, p);
}

/* Snapshots taken */

/* Its link is open and its clock is known, so that its times can be used. */
static bool joining_can_take_from(const struct joining *j, const struct peer *p)
{
	return p->state == PEER_UP &&
	       broadcast_receiver_view(j->of.peers->of.receiver, p->index).clock.state == PEER_CLOCK_KNOWN;
}

static void taker_ask(struct joining *j, struct peer *p, enum taking what)
{
	struct snapshot_taker *taker = &j->with[p->index].taker;

	if (what == TAKING_ALL && !j->seen_from)
		j->seen_from = p; /* one memory of all connections is enough; of its own, only the peer knows */
	Cssl__SnapshotRequest request = { MESSAGE(snapshot_request),
		.connections = what == TAKING_OWN || j->seen_from == p,
		.scope = what == TAKING_ALL ? CSSL__SNAPSHOT_REQUEST__SCOPE__ALL : CSSL__SNAPSHOT_REQUEST__SCOPE__OWN };
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_SNAPSHOT_REQUEST,
		.snapshot_request = &request };

	*taker = (struct snapshot_taker){ .state = (uint8_t)what };
	taker->begun_ms = taker->heard_ms = cluster_now_ms();
	if (peer_send(p, &m) != 0)
		taker->state = TAKING_NOTHING;
}

/* At once, or when the one under way ends. */
static void taker_want(struct joining *j, struct peer *p, enum taking what)
{
	struct snapshot_taker *taker = &j->with[p->index].taker;

	if (taker->state == TAKING_NOTHING)
		taker_ask(j, p, what);
	else if (taker->due != TAKING_ALL)
		taker->due = (uint8_t)what;
}

void joining_fetch(struct joining *j, struct peer *p, const uint8_t *id)
{
	struct joining_peer *with = &j->with[p->index];
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_PULL,
		.pull = bytes_of(id, SESSION_ID_LEN) };

	if (id && store_peek(j->of.store, id, cluster_now_ms(), NULL, NULL) == 0)
		return;
	if (p->state != PEER_UP || (id && peer_send(p, &m) != 0)) {
		with->own_due = PEER_OWN_DUE; /* its link will bring its sessions */
	} else if (id) {
		count(COUNT_PULLS_ASKED);
		with->announced++;
	} else {
		taker_want(j, p, TAKING_OWN);
	}
}

static int64_t taker_moment(uint64_t age_ms, int64_t now_ms)
{
	return now_ms - (age_ms < INT32_MAX ? (int64_t)age_ms : INT32_MAX);
}

/* Sweep the store once for all new tombstones. */
static int taker_take_stones(struct joining *j, const Cssl__SnapshotPart *part, int64_t now_ms)
{
	unsigned fresh = 0;

	for (size_t i = 0; i < part->n_tombstone; i++) {
		const Cssl__Tombstone *stone = part->tombstone[i];
		int result = CSSL_E_RANGE;

		if (stone->what)
			result = tombstones_add(
				j->of.tombstones, stone->what, taker_moment(stone->age_ms, now_ms), now_ms);
		if (result < 0)
			return result;
		fresh += result == 0;
	}
	if (fresh > 0)
		store_sweep(j->of.store, NULL);
	return 0;
}

/* Epochs, marks and doubts that others remember count as if this agent had heard them: without them it might claim an
 * epoch or a sequence again (laws 2, 3 and 5). */
static int taker_take_seen(struct joining *j, const Cssl__SnapshotPart *part, int64_t now_ms)
{
	for (size_t i = 0; i < part->n_connection_seen; i++) {
		const Cssl__ConnectionSeen *m = part->connection_seen[i];
		struct seen_connection seen = { .at = { (uint16_t)m->epoch, m->write_generation, m->write_sequence },
			.heard_ms = taker_moment(m->age_ms, now_ms),
			.doubt = (enum seen_doubt)m->doubt,
			.stop = m->over ? SEEN_ENDED : SEEN_RESTS };

		if (m->connection_id.len != CONNECTION_ID_LEN || m->epoch > UINT16_MAX ||
			m->doubt > CSSL__CONNECTION_SEEN__DOUBT__BEFORE_MARK)
			return CSSL_E_RANGE;
		memcpy(seen.id.bytes, m->connection_id.data, CONNECTION_ID_LEN);
		j->of.ops->supersede(
			j->of.ctx, connections_seen_take(j->of.seen, &seen, now_ms), &seen.id, seen.at.epoch);
	}
	if (part->seen_since) {
		const struct seen_since since = { taker_moment(part->seen_since->age_ms, now_ms),
			part->seen_since->forgot ? SEEN_FORGOT : SEEN_NOTHING_BEFORE };
		connections_seen_since_take(j->of.seen, &since);
	}
	return 0;
}

static void taker_take_heard(struct joining *j, const Cssl__SnapshotPart *part)
{
	const struct conf *conf = j->of.peers->of.conf;

	for (size_t i = 0; i < part->n_heard; i++) {
		const Cssl__Heard *heard = part->heard[i];
		const struct conf_agent *agent = conf_agent_find(conf, heard->agent);

		for (size_t worker = 0; agent && worker < heard->n_complete; worker++)
			broadcast_receiver_complete(j->of.peers->of.receiver, (unsigned)(agent - conf->agents),
				heard->boot_id, (unsigned)worker, heard->complete[worker]);
	}
}

static void taker_taken(struct joining *j, struct peer *p, int64_t now_ms)
{
	struct joining_peer *with = &j->with[p->index];
	struct snapshot_taker *taker = &with->taker;
	enum taking was = taker->state, due = taker->due;

	count(COUNT_SNAPSHOTS_TAKEN);
	log_event(LOG_INFO, NULL, "snapshot taken", "peer=%s what=%s objects=%" PRIu64 " ms=%" PRId64, p->conf->name,
		was == TAKING_ALL ? "all" : "own", taker->taken, now_ms - taker->begun_ms);
	taker->state = TAKING_NOTHING;
	if (was == TAKING_ALL)
		with->source = SOURCE_TAKEN;
	if (due != TAKING_NOTHING)
		taker_ask(j, p, due);
}

static int taker_take_part(struct joining *j, struct peer *p, const Cssl__SnapshotPart *part)
{
	struct snapshot_taker *taker = &j->with[p->index].taker;
	int64_t now_ms = cluster_now_ms();
	enum taking scope = part->scope == CSSL__SNAPSHOT_REQUEST__SCOPE__ALL ? TAKING_ALL : TAKING_OWN;
	int r = taker_take_stones(j, part, now_ms);

	if (r || taker->state != scope)
		return r; /* tombstones come unasked, the rest does not */
	taker->heard_ms = now_ms;
	taker_take_heard(j, part);
	r = taker_take_seen(j, part, now_ms);
	if (!r && part->last)
		taker_taken(j, p, now_ms);
	return r;
}

/* An object that this agent asked for, or one of a snapshot. */
static void joining_take_object(struct joining *j, struct peer *p, const Cssl__PeerObject *o)
{
	const struct peer_clock clock = broadcast_receiver_view(j->of.peers->of.receiver, p->index).clock;
	struct joining_peer *with = &j->with[p->index];
	struct heard_times times = { .now_ms = cluster_now_ms() };

	if (o->unasked) {
		with->taker.heard_ms = times.now_ms;
		with->taker.taken++;
	} else {
		with->announced -= with->announced > 0;
	}
	if (clock.state != PEER_CLOCK_KNOWN)
		return; /* its age is unknown; this agent will ask for it again */
	times.made_ms = peer_clock_local(&clock, o->made_ms, times.now_ms);
	times.family_made_ms = peer_clock_local(&clock, o->family_made_ms, times.now_ms);
	j->of.ops->import(j->of.ctx, p->index, &o->ssl_obj, &times);
}

int joining_on_message(struct joining *j, struct peer *p, const Cssl__PeerMessage *m)
{
	struct joining_peer *with = &j->with[p->index];

	switch (m->what_case) {
	case CSSL__PEER_MESSAGE__WHAT_SNAPSHOT_REQUEST: snapshot_give(j, p, m->snapshot_request); return 0;
	case CSSL__PEER_MESSAGE__WHAT_SNAPSHOT_PART: return taker_take_part(j, p, m->snapshot_part);
	case CSSL__PEER_MESSAGE__WHAT_OBJECT: joining_take_object(j, p, m->object); return 0;
	case CSSL__PEER_MESSAGE__WHAT_ABSENT: with->announced -= with->announced > 0; return 0;
	case CSSL__PEER_MESSAGE__WHAT_PONG:
		if (with->own_due == PEER_OWN_DUE) {
			with->own_due = PEER_OWN_HERE;
			taker_want(j, p, TAKING_OWN);
		}
		return 0;
	default: return 0;
	}
}

/* States */

static unsigned joining_sources(const struct joining *j, enum joining_source source)
{
	unsigned count = 0;

	for (struct peer *p = peers_next(j->of.peers, NULL); p; p = peers_next(j->of.peers, p))
		count += j->with[p->index].source == source;
	return count;
}

/* Ask ready peers that were not asked yet: one, or all of them where agents hold parts. */
static void joining_ask(struct joining *j)
{
	for (struct peer *p = peers_next(j->of.peers, NULL); p; p = peers_next(j->of.peers, p)) {
		if (!joining_can_take_from(j, p) || p->readiness != PEER_READY ||
			j->with[p->index].source != SOURCE_UNASKED)
			continue;
		if (!j->of.peers->placement && joining_sources(j, SOURCE_ASKED) > 0)
			return;
		j->with[p->index].source = SOURCE_ASKED;
		taker_want(j, p, TAKING_ALL);
	}
}

static void joining_in_alone(struct joining *j, int64_t now_ms)
{
	joining_ask(j);
	if (joining_sources(j, SOURCE_ASKED) > 0) {
		broadcast_receiver_repair(j->of.peers->of.receiver, REPAIR_HELD);
		joining_move(j, JOINING_TAKING, now_ms);
	} else if (now_ms - j->started_ms >= j->of.peers->of.conf->broadcast.alone_after_ms) {
		broadcast_receiver_repair(j->of.peers->of.receiver, REPAIR_ON);
		joining_become_ready(j, "alone", now_ms);
	}
}

static void joining_check_silence(struct joining *j, struct peer *from, int64_t now_ms)
{
	int64_t heard_ms =
		j->with[from->index].taker.state == TAKING_ALL ? j->with[from->index].taker.heard_ms : j->since_ms;

	if (now_ms - heard_ms > SILENT_MS)
		peer_link_end(from->link, UV_ETIMEDOUT); /* its link ends, so it is lost as a source */
}

/* Where agents hold parts, wait for peers that come up a little later than the first. */
static void joining_in_taking(struct joining *j, int64_t now_ms)
{
	unsigned away = 0;

	if (j->of.peers->placement)
		joining_ask(j);
	for (struct peer *p = peers_next(j->of.peers, NULL); p; p = peers_next(j->of.peers, p)) {
		away += !joining_can_take_from(j, p);
		if (j->with[p->index].source == SOURCE_ASKED)
			joining_check_silence(j, p, now_ms);
	}
	if (joining_sources(j, SOURCE_ASKED) > 0)
		return;
	if (j->of.peers->placement && away > 0 &&
		now_ms - j->started_ms < j->of.peers->of.conf->broadcast.alone_after_ms)
		return;
	broadcast_receiver_repair(j->of.peers->of.receiver, REPAIR_ON);
	joining_move(j,
		j->of.peers->placement || joining_sources(j, SOURCE_TAKEN) > 0 ? JOINING_REPAIRING : JOINING_ALONE,
		now_ms);
}

static void joining_in_repairing(struct joining *j, int64_t now_ms)
{
	uint64_t missing = 0;

	for (unsigned agent = 0; agent < j->of.peers->count; agent++)
		missing += broadcast_receiver_view(j->of.peers->of.receiver, agent).missing;
	if (missing > 0 && now_ms - j->since_ms < REPAIR_WITHIN_MS)
		return;
	joining_move(j, JOINING_JOINED, now_ms);
	joining_become_ready(j, "joined", now_ms);
}

void joining_tick(struct joining *j, int64_t now_ms)
{
	switch ((enum joining_state)j->state) {
	case JOINING_ALONE: joining_in_alone(j, now_ms); break;
	case JOINING_TAKING: joining_in_taking(j, now_ms); break;
	case JOINING_REPAIRING: joining_in_repairing(j, now_ms); break;
	case JOINING_JOINED:
		if (j->of.peers->placement)
			joining_ask(j);
		break;
	case JOINING_STATE_COUNT: break;
	}
}
