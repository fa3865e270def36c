/* cluster_sessions.c: sessions: share, import, find. The functions of the session source run on worker threads,
 * cluster_import() on any thread. */
#include <openssl/crypto.h>
#include <sodium.h>
#include <string.h>
#include <time.h>

#include "net/memory/container_of.h"
#include "proto/error.h"
#include "proto/scratch.h"
#include "sslagent/cluster/broadcast/broadcast_sender.h"
#include "sslagent/cluster/cluster_root.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/session_listing.h"
#include "sslagent/sessions/store.h"
#include "sslagent/sessions/ticket_keys.h"
#include "sslagent/sessions/tombstones.h"

#define AGE_TOLD_WITHIN_MS 5 /* between reading the clock for a family's age and asking about it */

static struct cluster *source_cluster(struct session_source *s)
{
	return container_of(s, struct cluster, source);
}

/* As session_id_check(), under any key of the ring. */
static int source_id_check(const struct cluster *c, const uint8_t *id, size_t len, struct session_id_facts *out)
{
	int r = CSSL_E_MISMATCH;

	for (unsigned i = 0; r && i < c->ring->count; i++)
		r = session_id_check(id, len, c->id_check_keys[i], out);
	return r;
}

/* 1 when an agent lives that may have it: a holder, or an agent of its origin's number. */
static bool source_may_be_elsewhere(const struct cluster *c, const uint8_t *id, uint16_t origin)
{
	struct placement_ranks holders = { 0 };

	if (c->peers.placement)
		holders = peers_holders(&c->peers, id, c->conf->broadcast.replicas + 1);
	for (unsigned i = 0; i < holders.count; i++)
		if (peers_alive(&c->peers, holders.agents[i]))
			return true;
	for (struct peer *p = peers_next(&c->peers, NULL); p; p = peers_next(&c->peers, p))
		if (p->origin == origin && peers_alive(&c->peers, p->index))
			return true;
	return false;
}

static enum session_answer source_find(struct session_source *s, const uint8_t *id, size_t id_len, struct sess_obj *out)
{
	struct cluster *c = source_cluster(s);
	int64_t family_made_ms, now_ms = cluster_now_ms();
	int64_t absent_until_ms = 0;
	struct session_seen who = { .id = id, .family_made_ms = INT64_MAX, .made_ms = AGE_UNKNOWN };
	struct session_id_facts facts;

	if (source_id_check(c, id, id_len, &facts) != 0)
		return SESSION_ABSENT;
	if (store_find(c->store, id, now_ms, out, &family_made_ms) == 0) {
		recent_note(c->families, out->facts.family_id, family_made_ms);
		count(COUNT_SESSIONS_FOUND);
		return SESSION_FOUND;
	}
	recent_find(c->negatives, recent_id(id), &absent_until_ms);
	if (source_may_be_elsewhere(c, id, facts.origin) && absent_until_ms <= now_ms &&
		!tombstones_hit(c->tombstones, &who))
		return SESSION_ELSEWHERE;
	count(COUNT_SESSIONS_ABSENT);
	return SESSION_ABSENT;
}

static void source_make_id(struct session_source *s, uint8_t out[static SESSION_ID_LEN])
{
	struct cluster *c = source_cluster(s);
	uint8_t random[22];

	randombytes_buf(random, sizeof random);
	session_id_make(out, c->self_origin, worker_wall_s(), random, c->id_check_keys[0]);
}

/* Number @m for every agent, or for the holders of the session. 0 or CSSL_E_TOO_LONG. */
static int source_tell_holders(struct cluster_thread *t, const uint8_t *id, Cssl__BroadcastMessage *m)
{
	const struct cluster *c = t->cluster;
	struct placement_ranks holders;
	int r = 0;

	if (!c->peers.placement)
		return broadcast_sender_number(t->sender, BROADCAST_ALL, m);
	holders = peers_holders(&c->peers, id, c->conf->broadcast.replicas);
	for (unsigned i = 0; !r && i < holders.count; i++)
		r = broadcast_sender_number(t->sender, holders.agents[i], m);
	return r;
}

static void source_tell_too_large(struct cluster_thread *t, const struct sess_obj *obj)
{
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .made_ms = cluster_now_ms(),
		.what_case = CSSL__BROADCAST_MESSAGE__WHAT_TOO_LARGE,
		.too_large = bytes_of(obj->facts.session_id, SESSION_ID_LEN) };

	source_tell_holders(t, obj->facts.session_id, &m);
	count(COUNT_OBJECTS_TOO_LARGE);
}

/* A SESS_OBJ gives a family's age in seconds. A child made from it would seem up to a second too young, and a child of
 * that child again. So the exact time is remembered between the look-up of a session and the sharing of its child. Age
 * 0: the full handshake was just made. Any other age may be a second too low. */
static int64_t source_family_made(struct cluster *c, const struct session_facts *f, int64_t now_ms)
{
	int64_t made_ms = f->family_age_s > 0 ? now_ms - ((int64_t)f->family_age_s + 1) * 1000 : now_ms;

	recent_find(c->families, f->family_id, &made_ms);
	return made_ms;
}

static int source_share_offer(struct cluster *c, struct cluster_thread *t, const struct offer *o)
{
	const struct session_facts *f = &o->obj->facts;
	int result = store_put(c->store, o, o->made_ms);

	if (result < 0)
		return result;
	recent_note(c->families, f->family_id, o->family_made_ms);
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .made_ms = o->made_ms,
		.family_made_ms = o->family_made_ms, .what_case = CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ,
		.ssl_obj = bytes_of(o->encoded, o->len) };
	if (t && source_tell_holders(t, f->session_id, &m) != 0)
		source_tell_too_large(t, o->obj);
	return 0;
}

static int source_share(struct session_source *s, struct worker *w, const struct sess_obj *obj)
{
	struct cluster *c = source_cluster(s);
	const int64_t now_ms = cluster_now_ms();
	uint8_t encoded[SESS_OBJ_LEN_MAX];
	ptrdiff_t len = CSSL_E_TOO_LONG;

	if (obj->session && !obj->live && obj->session_len <= SESSION_DER_MAX &&
		source_id_check(c, obj->facts.session_id, obj->facts.session_id_len, NULL) == 0)
		len = sess_obj_encode(obj, encoded, sizeof encoded);
	if (len < 0) {
		count(COUNT_SESSIONS_REFUSED);
		return (int)len;
	}
	const struct offer offer = { .obj = obj,
		.encoded = encoded,
		.len = (size_t)len,
		.made_ms = now_ms,
		.family_made_ms = source_family_made(c, &obj->facts, now_ms),
		.by = STORED_OWN };
	int r = source_share_offer(c, cluster_thread_of(c, w), &offer);
	OPENSSL_cleanse(encoded, (size_t)len);
	return r;
}

/* The earliest beginning of a family whose age is given as @age_s. An age counts whole seconds of the wall clock.
 * Counted from the beginning of the current second, the result is the same for every call. When this second has just
 * begun, the age may have been read in the second before. */
static int64_t source_began_at_earliest_ms(uint32_t age_s)
{
	struct timespec wall;
	int64_t into_second_ms;

	clock_gettime(CLOCK_REALTIME, &wall);
	into_second_ms = wall.tv_nsec / 1000000;
	if (into_second_ms < AGE_TOLD_WITHIN_MS)
		into_second_ms += 1000;
	return cluster_now_ms() - into_second_ms - (int64_t)age_s * 1000;
}

static bool source_family_revoked(struct session_source *s, const struct offered_family *family)
{
	struct cluster *c = source_cluster(s);
	struct session_seen who = { .family_id = family->id,
		.server_name = family->server_name,
		.client = family->client,
		.family_made_ms = source_began_at_earliest_ms(family->age_s),
		.made_ms = family->carried == OFFERED_IN_TICKET ? source_began_at_earliest_ms(family->session_age_s)
								: AGE_UNKNOWN,
		.protocol_version = family->protocol_version,
		.cipher_suite = family->cipher_suite,
		.client_certificate = family->client_certificate };

	recent_find(c->families, family->id, &who.family_made_ms); /* a session found in the store has an exact time */
	return family->age_s >= c->conf->store.family_lifetime_s || tombstones_hit(c->tombstones, &who);
}

static int source_ticket_key(
	struct session_source *s, const uint8_t *name, const uint8_t salt[static 16], struct ticket_key *out)
{
	return ticket_keys_derive(source_cluster(s)->tickets, name, salt, cluster_now_ms(), out);
}

static struct session_pull *source_pull(struct session_source *s, struct worker *w,
	const uint8_t id[static SESSION_ID_LEN], void (*done)(void *ctx, enum session_answer answer), void *ctx)
{
	struct cluster *c = source_cluster(s);
	struct session_id_facts facts;

	return source_id_check(c, id, SESSION_ID_LEN, &facts) == 0 ? pulls_start(c, w, id, facts.origin, done, ctx)
								   : NULL;
}

const struct session_source cluster_source = {
	.find = source_find,
	.make_id = source_make_id,
	.share = source_share,
	.family_revoked = source_family_revoked,
	.ticket_key = source_ticket_key,
	.pull = source_pull,
	.pull_cancel = pulls_cancel,
};

struct session_source *cluster_session_source(struct cluster *c)
{
	return &c->source;
}

bool cluster_count_sessions(const struct cluster *c, uint64_t *count, uint64_t *bytes)
{
	*count = shelf_count(store_shelf(c->store), bytes);
	return !c->peers.placement;
}

/* The first living holder of a session counts it for the cluster. */
static int source_counts_here(const void *ctx, const uint8_t *id)
{
	const struct cluster *c = ctx;
	const struct placement_ranks holders = placement_rank(c->peers.placement, id, c->conf->broadcast.replicas);

	for (unsigned i = 0; i < holders.count; i++) {
		if (holders.agents[i] == c->peers.self)
			return 1;
		if (peers_alive(&c->peers, holders.agents[i]))
			return 0;
	}
	return 0;
}

struct session_listing *cluster_list_sessions(struct cluster *c, const struct session_query *q)
{
	struct session_query query = *q;

	if (c->peers.placement) {
		query.is_counted_here = source_counts_here;
		query.counting = c;
	}
	return session_listing_create(c->store, &query, cluster_now_ms());
}

static void source_import(struct cluster *c, const struct offer *o, int64_t now_ms)
{
	const struct session_facts *f = &o->obj->facts;

	if (source_id_check(c, f->session_id, f->session_id_len, NULL) != 0)
		count(COUNT_SESSIONS_REFUSED);
	else if (store_put(c->store, o, now_ms) >= 0)
		pulls_found(c, f->session_id);
}

/* A broadcast object has exactly one part: the store takes sessions, the table takes live parts. */
void cluster_import(
	void *cluster, agent_index from, const ProtobufCBinaryData *encoded, const struct heard_times *times)
{
	struct cluster *c = cluster;
	struct sess_obj obj;
	const struct offer offer = { .obj = &obj,
		.encoded = encoded->data,
		.len = encoded->len,
		.made_ms = times->made_ms,
		.family_made_ms = times->family_made_ms < times->made_ms ? times->family_made_ms : times->made_ms,
		.by = STORED_HEARD,
		.from = from };

	if (sess_obj_decode(encoded->data, encoded->len, &obj) != 0) {
		count(COUNT_SESSIONS_REFUSED);
		return;
	}
	if (obj.live && obj.session)
		count(COUNT_SESSIONS_REFUSED);
	else if (obj.live)
		cluster_import_live(c, &offer, times->now_ms);
	else if (obj.session)
		source_import(c, &offer, times->now_ms);
	sess_obj_destroy(&obj);
}
