/* cluster_connections.c: what agents tell each other of connections: live parts, and who owned which in what epoch. It
 * protects against a RAgent that lies (law 11); an honest one does not need it. Every function runs on any thread.
 */
#include <openssl/crypto.h>
#include <string.h>

#include "net/points/mutant.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "proto/scratch.h"
#include "sslagent/cluster/broadcast/broadcast_sender.h"
#include "sslagent/cluster/cluster_root.h"
#include "sslagent/sessions/live_table.h"

#define CLOCK_SLACK_MS 1000 /* another agent's clock may be ahead by this much, not heard yet */

/* A worker that sealed on under keys which another agent has, too, gets to know. */
struct superseded {
	struct connection_id id;
	unsigned owner;
};
_Static_assert(sizeof(struct superseded) <= NEWS_ABOUT_MAX, "fits the news");

static void superseded_tell(struct cluster *c, unsigned of, const uint8_t *about)
{
	struct superseded s;

	memcpy(&s, about, sizeof s);
	const struct cluster_thread *t = &c->threads[s.owner - 1];
	if (t->superseded)
		t->superseded(t->superseded_ctx, &s.id, (uint16_t)of);
}

void cluster_supersede(void *cluster, unsigned owner, const struct connection_id *id, uint16_t of)
{
	struct cluster *c = cluster;
	const struct superseded s = { *id, owner };

	if (owner != SEEN_NO_OWNER &&
		cluster_thread_tell(&c->threads[owner - 1], superseded_tell, of, &s, sizeof s) != 0)
		log_event(LOG_ERROR, id, "superseded owner not told", "cause=\"out of memory\" epoch=%u", of);
}

/* How far the owner has certainly sealed. Only a frozen owner has stopped at its sequence. Records of other owners
 * under new keys may never have left them. */
static struct seen_mark live_mark(const struct live_part *l)
{
	struct seen_mark mark = { .epoch = l->epoch };

	if (l->exported == EXPORT_AT_FREEZE) {
		mark.write_generation = l->write_generation;
		mark.write_sequence = l->write_sequence;
	}
	return mark;
}

void cluster_import_live(struct cluster *c, const struct offer *o, int64_t now_ms)
{
	const struct live_part *l = o->obj->live;
	struct seen_mark mark = live_mark(l);

	cluster_supersede(c, connections_seen_hear(c->seen, &l->connection, &mark, SEEN_HEARSAY, SEEN_NO_DOUBT, now_ms),
		&l->connection, mark.epoch);
	live_table_put(c->live, c->seen, o, now_ms);
}

/* Tell all agents that the connection exists, without its live part. */
static void live_tell_presence(struct cluster *c, struct worker *w, const struct live_part *l)
{
	struct seen_mark mark = live_mark(l);

	if (l->exported == EXPORT_AT_FREEZE)
		cluster_tell_stopped(c, w, &l->connection, &mark, SEEN_RESTS);
	else
		cluster_tell_adopted(c, w, &l->connection, &mark, 0, SEEN_NO_DOUBT);
}

int cluster_share_live(struct cluster *c, struct worker *w, const struct sess_obj *obj)
{
	struct cluster_thread *t = cluster_thread_of(c, w);
	const int64_t now_ms = cluster_now_ms();
	uint8_t encoded[SESS_OBJ_LEN_MAX];

	if (!obj->live || obj->session)
		return CSSL_E_RANGE;
	if (!t)
		return 0;
	if (c->conf->broadcast.live != CONF_LIVE_BROADCAST) {
		live_tell_presence(c, w, obj->live);
		return 0;
	}
	struct seen_mark mark = live_mark(obj->live);
	connections_seen_note(c->seen, &obj->live->connection, &mark, now_ms);
	const ptrdiff_t len = sess_obj_encode(obj, encoded, sizeof encoded);
	if (len < 0)
		return (int)len;
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .made_ms = now_ms,
		.family_made_ms = now_ms - (int64_t)obj->facts.family_age_s * 1000,
		.what_case = CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ, .ssl_obj = bytes_of(encoded, (size_t)len) };
	int r = broadcast_sender_number(t->sender, BROADCAST_ALL, &m);
	OPENSSL_cleanse(encoded, (size_t)len);
	return r;
}

int cluster_find_live(struct cluster *c, const struct connection_id *id, uint16_t epoch_below, uint32_t read_generation,
	uint32_t write_generation, struct sess_obj *out)
{
	struct live_wanted wanted = { id, epoch_below, read_generation, write_generation };

	return live_table_find(c->live, &wanted, cluster_now_ms(), out);
}

int64_t cluster_shared_clock_ms(const struct cluster *c)
{
	return cluster_now_ms() + atomic_load(&((struct cluster *)c)->shared_clock_ahead_ms);
}

/* A live part from the future is from an earlier life of the cluster, whose clock is lost. */
int64_t cluster_made_ms(const struct cluster *c, const struct live_part *part)
{
	int64_t age_ms = cluster_shared_clock_ms(c) - part->made_ms, now_ms = cluster_now_ms();

	if (part->made_ms == 0 || age_ms < -CLOCK_SLACK_MS)
		return SEEN_MADE_UNKNOWN;
	return now_ms - (age_ms > 0 ? age_ms : 0);
}

int cluster_claim(struct cluster *c, const struct connection_id *id, const struct seen_claim *claim)
{
	return connections_seen_claim(c->seen, id, claim, cluster_now_ms());
}

void cluster_leave(struct cluster *c, const struct connection_id *id, uint16_t epoch)
{
	connections_seen_leave(c->seen, id, epoch);
}

void cluster_note(struct cluster *c, const struct connection_id *id, const struct seen_mark *at)
{
	connections_seen_note(c->seen, id, at, cluster_now_ms());
}

bool cluster_knows(struct cluster *c, const struct connection_id *id, int64_t made_ms)
{
	return connections_seen_knows(c->seen, id, made_ms);
}

void cluster_tell_adopted(struct cluster *c, struct worker *w, const struct connection_id *id,
	const struct seen_mark *at, uint32_t read_generation, enum seen_doubt doubt)
{
	struct cluster_thread *t = cluster_thread_of(c, w);
	Cssl__Adopted adopted = { MESSAGE(adopted), .connection_id = bytes_of(id->bytes, CONNECTION_ID_LEN),
		.epoch = at->epoch, .read_generation = read_generation, .write_generation = at->write_generation,
		.write_sequence = at->write_sequence, .in_doubt = doubt != SEEN_NO_DOUBT && !mutant("doubt-untold") };
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .made_ms = cluster_now_ms(),
		.what_case = CSSL__BROADCAST_MESSAGE__WHAT_ADOPTED, .adopted = &adopted };

	cluster_note(c, id, at);
	if (t)
		broadcast_sender_number(t->sender, BROADCAST_ALL, &m);
}

void cluster_tell_stopped(struct cluster *c, struct worker *w, const struct connection_id *id,
	const struct seen_mark *at, enum seen_stop stop)
{
	struct cluster_thread *t = cluster_thread_of(c, w);
	Cssl__Gone gone = { MESSAGE(gone), .connection_id = bytes_of(id->bytes, CONNECTION_ID_LEN), .epoch = at->epoch,
		.write_generation = at->write_generation, .write_sequence = at->write_sequence,
		.goes_on = stop == SEEN_RESTS };
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .made_ms = cluster_now_ms(),
		.what_case = CSSL__BROADCAST_MESSAGE__WHAT_GONE, .gone = &gone };

	/* Its live part may still be under way from the agent that handed it off. */
	connections_seen_stop(c->seen, id, at, stop, cluster_now_ms());
	live_table_drop(c->live, id);
	if (t)
		broadcast_sender_number(t->sender, BROADCAST_ALL, &m);
}
