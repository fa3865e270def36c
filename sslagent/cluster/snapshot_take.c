/* snapshot_take.c: import each part at once. Numbers that the snapshot had all of need no question any more. */
#include "sslagent/cluster/snapshot.h"

#include <inttypes.h>
#include <string.h>

#include "net/log.h"
#include "proto/error.h"
#include "sslagent/counters.h"
#include "sslagent/cluster/peer.h"

static void ask(struct peer *p, enum taking what)
{
	/* only this peer knows the facts that were missed of its own connections */
	Cssl__SnapshotRequest request = { MESSAGE(snapshot_request),
		.connections = what == TAKING_OWN || joining_takes_seen(p->cluster, p),
		.scope = what == TAKING_ALL ? CSSL__SNAPSHOT_REQUEST__SCOPE__ALL : CSSL__SNAPSHOT_REQUEST__SCOPE__OWN };
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_SNAPSHOT_REQUEST,
		.snapshot_request = &request };

	p->taker = (struct snapshot_taker){ .state = (uint8_t)what };
	p->taker.begun_ms = p->taker.heard_ms = cluster_now_ms();
	if (peer_send(p, &m) != 0)
		p->taker.state = TAKING_NOTHING;
}

void snapshot_want(struct peer *p, enum taking what)
{
	if (p->taker.state == TAKING_NOTHING)
		ask(p, what);
	else if (p->taker.due != TAKING_ALL)
		p->taker.due = (uint8_t)what;
}

static int64_t moment(uint64_t age_ms, int64_t now_ms)
{
	return now_ms - (age_ms < INT32_MAX ? (int64_t)age_ms : INT32_MAX);
}

/* Sweep the store once for all new tombstones. */
static int take_stones(struct cluster *c, const Cssl__SnapshotPart *part, int64_t now_ms)
{
	unsigned fresh = 0;

	for (size_t i = 0; i < part->n_tombstone; i++) {
		const Cssl__Tombstone *stone = part->tombstone[i];
		int result = CSSL_E_RANGE;

		if (stone->what)
			result = tombstones_add(c->tombstones, stone->what, moment(stone->age_ms, now_ms), now_ms);
		if (result < 0)
			return result;
		fresh += result == 0;
	}
	if (fresh > 0)
		store_sweep(c->store, NULL);
	return 0;
}

void snapshot_goes_on(struct peer *p, int64_t now_ms)
{
	p->taker.heard_ms = now_ms;
	p->taker.taken++;
}

static int take_seen(struct cluster *c, const Cssl__SnapshotPart *part, int64_t now_ms)
{
	for (size_t i = 0; i < part->n_connection_seen; i++) {
		const Cssl__ConnectionSeen *m = part->connection_seen[i];
		struct seen_connection seen = { .at = { (uint16_t)m->epoch, m->write_generation, m->write_sequence },
			.heard_ms = moment(m->age_ms, now_ms),
			.doubt = (enum seen_doubt)m->doubt,
			.stop = m->over ? SEEN_ENDED : SEEN_RESTS };

		if (m->connection_id.len != CONNECTION_ID_LEN || m->epoch > UINT16_MAX ||
			m->doubt > CSSL__CONNECTION_SEEN__DOUBT__BEFORE_MARK)
			return CSSL_E_RANGE;
		memcpy(seen.id.bytes, m->connection_id.data, CONNECTION_ID_LEN);
		cluster_supersede(c, connections_seen_take(c->seen, &seen, now_ms), &seen.id, seen.at.epoch);
	}
	if (part->seen_since) {
		const struct seen_since since = { moment(part->seen_since->age_ms, now_ms),
			part->seen_since->forgot ? SEEN_FORGOT : SEEN_NOTHING_BEFORE };
		connections_seen_since_take(c->seen, &since);
	}
	return 0;
}

static void take_heard(struct cluster *c, const Cssl__SnapshotPart *part)
{
	for (size_t i = 0; i < part->n_heard; i++) {
		const Cssl__Heard *heard = part->heard[i];
		int agent = cluster_agent_index(c, heard->agent);

		for (size_t worker = 0; agent >= 0 && worker < heard->n_complete; worker++)
			broadcast_receiver_complete(c->receiver, (unsigned)agent, heard->boot_id, (unsigned)worker,
				heard->complete[worker]);
	}
}

static void taken(struct peer *p, int64_t now_ms)
{
	enum taking was = p->taker.state, due = p->taker.due;

	count(COUNT_SNAPSHOTS_TAKEN);
	log_event(LOG_INFO, NULL, "snapshot taken", "peer=%s what=%s objects=%" PRIu64 " ms=%" PRId64, p->conf->name,
		was == TAKING_ALL ? "all" : "own", p->taker.taken, now_ms - p->taker.begun_ms);
	p->taker.state = TAKING_NOTHING;
	if (was == TAKING_ALL)
		p->source = SOURCE_TAKEN;
	if (due != TAKING_NOTHING && p->taker.state == TAKING_NOTHING)
		ask(p, due);
}

int snapshot_take_part(struct peer *p, const Cssl__PeerMessage *m)
{
	const Cssl__SnapshotPart *part = m->snapshot_part;
	int64_t now_ms = cluster_now_ms();
	enum taking scope = part->scope == CSSL__SNAPSHOT_REQUEST__SCOPE__ALL ? TAKING_ALL : TAKING_OWN;
	int r = take_stones(p->cluster, part, now_ms);

	if (r || p->taker.state != scope)
		return r; /* tombstones come unasked, the rest does not */
	p->taker.heard_ms = now_ms;
	take_heard(p->cluster, part);
	r = take_seen(p->cluster, part, now_ms);
	if (!r && part->last)
		taken(p, now_ms);
	return r;
}

void snapshot_stop(struct peer *p)
{
	snapshot_stop_giving(p);
	p->taker = (struct snapshot_taker){ 0 };
}
