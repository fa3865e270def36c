/* cluster_sessions.c: sessions and live parts: share, import, find. The functions of the session source and of live
 * parts run on worker threads, cluster_import() on any thread. */
#include <openssl/crypto.h>
#include <sodium.h>
#include <string.h>
#include <time.h>

#include "net/mutant.h"
#include "proto/error.h"
#include "sslagent/counters.h"
#include "sslagent/cluster/peer.h"
#include "sslagent/sessions/session_listing.h"

#define AGE_TOLD_WITHIN_MS 5 /* between reading the clock for a family's age and asking about it */

static struct cluster *cluster_of(struct session_source *s)
{
	return container_of(s, struct cluster, source);
}

/* 1 when an agent lives that may have it: a holder, or an agent of its origin's number. */
static bool may_be_elsewhere(const struct cluster *c, const uint8_t *id, uint16_t origin)
{
	struct placement_ranks holders = { 0 };

	if (c->placement)
		holders = cluster_holders(c, id, c->conf->broadcast.replicas + 1);
	for (unsigned i = 0; i < holders.count; i++)
		if (atomic_load(&c->flags[holders.agents[i]].alive))
			return true;
	for (struct peer *p = peer_next(c, NULL); p; p = peer_next(c, p))
		if (c->flags[p->index].origin == origin && atomic_load(&c->flags[p->index].alive))
			return true;
	return false;
}

static enum session_answer source_find(struct session_source *s, const uint8_t *id, size_t id_len, struct sess_obj *out)
{
	struct cluster *c = cluster_of(s);
	int64_t family_made_ms, now_ms = cluster_now_ms();
	int64_t absent_until_ms = 0;
	struct session_seen who = { .id = id, .family_made_ms = INT64_MAX, .made_ms = AGE_UNKNOWN };
	struct session_id_facts facts;

	if (cluster_id_check(c, id, id_len, &facts) != 0)
		return SESSION_ABSENT;
	if (store_find(c->store, id, now_ms, out, &family_made_ms) == 0) {
		recent_note(c->families, out->facts.family_id, family_made_ms);
		count(COUNT_SESSIONS_FOUND);
		return SESSION_FOUND;
	}
	recent_find(c->negatives, recent_id(id), &absent_until_ms);
	if (may_be_elsewhere(c, id, facts.origin) && absent_until_ms <= now_ms && !tombstones_hit(c->tombstones, &who))
		return SESSION_ELSEWHERE;
	count(COUNT_SESSIONS_ABSENT);
	return SESSION_ABSENT;
}

static void source_make_id(struct session_source *s, uint8_t out[static SESSION_ID_LEN])
{
	struct cluster *c = cluster_of(s);
	uint8_t random[22];

	randombytes_buf(random, sizeof random);
	session_id_make(out, c->self_origin, worker_wall_s(), random, c->id_check_keys[0]);
}

/* Number @m for every agent, or for the holders of the session. 0 or CSSL_E_TOO_LONG. */
static int tell_holders(struct cluster_thread *t, const uint8_t *id, Cssl__BroadcastMessage *m)
{
	const struct cluster *c = t->cluster;
	struct placement_ranks holders;
	int r = 0;

	if (!c->placement)
		return cluster_thread_number(t, BROADCAST_ALL, m);
	holders = cluster_holders(c, id, c->conf->broadcast.replicas);
	for (unsigned i = 0; !r && i < holders.count; i++)
		r = cluster_thread_number(t, holders.agents[i], m);
	return r;
}

static void tell_too_large(struct cluster_thread *t, const struct sess_obj *obj)
{
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .what_case = CSSL__BROADCAST_MESSAGE__WHAT_TOO_LARGE,
		.too_large = bytes_of(obj->facts.session_id, SESSION_ID_LEN) };

	tell_holders(t, obj->facts.session_id, &m);
	count(COUNT_OBJECTS_TOO_LARGE);
}

/* Send a session's object to its holders. With @id NULL it is a live part and goes to all. 0 or CSSL_E_TOO_LONG. */
static int tell_object(struct cluster_thread *t, const uint8_t *id, const struct offer *o)
{
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .made_ms = o->made_ms,
		.family_made_ms = o->family_made_ms, .what_case = CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ,
		.ssl_obj = bytes_of(o->encoded, o->len) };

	return id ? tell_holders(t, id, &m) : cluster_thread_number(t, BROADCAST_ALL, &m);
}

/* A SESS_OBJ gives a family's age in seconds. A child made from it would seem up to a second too young, and a child of
 * that child again. So the exact time is remembered between the look-up of a session and the sharing of its child. Age
 * 0: the full handshake was just made. Any other age may be a second too low. */
static int64_t family_made(struct cluster *c, const struct session_facts *f, int64_t now_ms)
{
	int64_t made_ms = f->family_age_s > 0 ? now_ms - ((int64_t)f->family_age_s + 1) * 1000 : now_ms;

	recent_find(c->families, f->family_id, &made_ms);
	return made_ms;
}

static int share(struct cluster *c, struct cluster_thread *t, const struct offer *o)
{
	const struct session_facts *f = &o->obj->facts;
	int result = store_put(c->store, o, o->made_ms);

	if (result < 0)
		return result;
	recent_note(c->families, f->family_id, o->family_made_ms);
	if (t && tell_object(t, f->session_id, o) != 0)
		tell_too_large(t, o->obj);
	return 0;
}

static int source_share(struct session_source *s, struct worker *w, const struct sess_obj *obj)
{
	struct cluster *c = cluster_of(s);
	const int64_t now_ms = cluster_now_ms();
	uint8_t encoded[SESS_OBJ_LEN_MAX];
	ptrdiff_t len = CSSL_E_TOO_LONG;

	if (obj->session && !obj->live && obj->session_len <= SESSION_DER_MAX &&
		cluster_id_check(c, obj->facts.session_id, obj->facts.session_id_len, NULL) == 0)
		len = sess_obj_encode(obj, encoded, sizeof encoded);
	if (len < 0) {
		count(COUNT_SESSIONS_REFUSED);
		return (int)len;
	}
	const struct offer offer = { .obj = obj,
		.encoded = encoded,
		.len = (size_t)len,
		.made_ms = now_ms,
		.family_made_ms = family_made(c, &obj->facts, now_ms),
		.by = STORED_OWN };
	int r = share(c, cluster_thread_of(c, w), &offer);
	OPENSSL_cleanse(encoded, (size_t)len);
	return r;
}

/* The earliest beginning of a family whose age is given as @age_s. An age counts whole seconds of the wall clock.
 * Counted from the beginning of the current second, the result is the same for every call. When this second has just
 * begun, the age may have been read in the second before. */
static int64_t began_at_earliest_ms(uint32_t age_s)
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
	struct cluster *c = cluster_of(s);
	struct session_seen who = { .family_id = family->id,
		.server_name = family->server_name,
		.client = family->client,
		.family_made_ms = began_at_earliest_ms(family->age_s),
		.made_ms = family->carried == OFFERED_IN_TICKET ? began_at_earliest_ms(family->session_age_s)
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
	return ticket_keys_derive(cluster_of(s)->tickets, name, salt, cluster_now_ms(), out);
}

static struct session_pull *source_pull(struct session_source *s, struct worker *w,
	const uint8_t id[static SESSION_ID_LEN], void (*done)(void *ctx, enum session_answer answer), void *ctx)
{
	return pulls_start(cluster_of(s), w, id, done, ctx);
}

static void source_pull_cancel(struct session_source *s, struct session_pull *p)
{
	pulls_cancel(p);
}

void cluster_source_init(struct cluster *c)
{
	c->source = (struct session_source){
		.origin = c->self->name,
		.find = source_find,
		.make_id = source_make_id,
		.share = source_share,
		.family_revoked = source_family_revoked,
		.ticket_key = source_ticket_key,
		.pull = source_pull,
		.pull_cancel = source_pull_cancel,
	};
}

struct session_source *cluster_session_source(struct cluster *c)
{
	return &c->source;
}

uint64_t cluster_session_count(const struct cluster *c, uint64_t *bytes)
{
	return shelf_count(store_shelf(c->store), bytes);
}

/* The first living holder of a session counts it for the cluster. */
static int is_counted_here(const void *ctx, const uint8_t *id)
{
	const struct cluster *c = ctx;
	const struct placement_ranks holders = placement_rank(c->placement, id, c->conf->broadcast.replicas);

	for (unsigned i = 0; i < holders.count; i++) {
		if (holders.agents[i] == c->self_index)
			return 1;
		if (atomic_load(&c->flags[holders.agents[i]].alive))
			return 0;
	}
	return 0;
}

bool cluster_sessions_are_spread(const struct cluster *c)
{
	return c->placement != NULL;
}

struct session_listing *cluster_list_sessions(struct cluster *c, const struct session_query *q)
{
	struct session_query query = *q;

	if (c->placement) {
		query.is_counted_here = is_counted_here;
		query.counting = c;
	}
	return session_listing_create(c->store, &query, cluster_now_ms());
}

/* How far the owner has certainly sealed. Only a frozen owner has stopped at its sequence. Records of other owners
 * under new keys may never have left them. */
static struct seen_mark mark_of(const struct live_part *l)
{
	struct seen_mark mark = { .epoch = l->epoch };

	if (l->exported == EXPORT_AT_FREEZE) {
		mark.write_generation = l->write_generation;
		mark.write_sequence = l->write_sequence;
	}
	return mark;
}

static void import_live(struct cluster *c, const struct offer *o, int64_t now_ms)
{
	const struct live_part *l = o->obj->live;
	struct seen_mark mark = mark_of(l);

	cluster_supersede(c, connections_seen_hear(c->seen, &l->connection, &mark, SEEN_HEARSAY, SEEN_NO_DOUBT, now_ms),
		&l->connection, mark.epoch);
	live_table_put(c->live, c->seen, o, now_ms);
}

static void import_session(struct cluster *c, const struct offer *o, int64_t now_ms)
{
	const struct session_facts *f = &o->obj->facts;

	if (cluster_id_check(c, f->session_id, f->session_id_len, NULL) != 0)
		count(COUNT_SESSIONS_REFUSED);
	else if (store_put(c->store, o, now_ms) >= 0)
		pulls_found(c, f->session_id);
}

/* A broadcast object has exactly one part: the store takes sessions, the table takes live parts. */
void cluster_import(struct cluster *c, agent_index from, const ProtobufCBinaryData *encoded, int64_t made_ms,
	int64_t family_made_ms, int64_t now_ms)
{
	struct sess_obj obj;
	const struct offer offer = { .obj = &obj,
		.encoded = encoded->data,
		.len = encoded->len,
		.made_ms = made_ms,
		.family_made_ms = family_made_ms < made_ms ? family_made_ms : made_ms,
		.by = STORED_HEARD,
		.from = from };

	if (sess_obj_decode(encoded->data, encoded->len, &obj) != 0) {
		count(COUNT_SESSIONS_REFUSED);
		return;
	}
	if (obj.live && obj.session)
		count(COUNT_SESSIONS_REFUSED);
	else if (obj.live)
		import_live(c, &offer, now_ms);
	else if (obj.session)
		import_session(c, &offer, now_ms);
	sess_obj_destroy(&obj);
}

/* Tell all agents that the connection exists, without its live part. */
static void share_presence(struct cluster *c, struct worker *w, const struct live_part *l)
{
	struct seen_mark mark = mark_of(l);

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
		share_presence(c, w, obj->live);
		return 0;
	}
	struct seen_mark mark = mark_of(obj->live);
	connections_seen_note(c->seen, &obj->live->connection, &mark, now_ms);
	const ptrdiff_t len = sess_obj_encode(obj, encoded, sizeof encoded);
	if (len < 0)
		return (int)len;
	const struct offer offer = { .encoded = encoded,
		.len = (size_t)len,
		.made_ms = now_ms,
		.family_made_ms = now_ms - (int64_t)obj->facts.family_age_s * 1000 };
	int r = tell_object(t, NULL, &offer);
	OPENSSL_cleanse(encoded, (size_t)len);
	return r;
}

int cluster_find_live(struct cluster *c, const struct connection_id *id, uint16_t epoch_below, uint32_t read_generation,
	uint32_t write_generation, struct sess_obj *out)
{
	struct live_wanted wanted = { id, epoch_below, read_generation, write_generation };

	return live_table_find(c->live, &wanted, cluster_now_ms(), out);
}

#define CLOCK_SLACK_MS 1000 /* another agent's clock may be ahead by this much, not heard yet */

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
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .what_case = CSSL__BROADCAST_MESSAGE__WHAT_ADOPTED,
		.adopted = &adopted };

	cluster_note(c, id, at);
	if (t)
		cluster_thread_number(t, BROADCAST_ALL, &m);
}

void cluster_tell_stopped(struct cluster *c, struct worker *w, const struct connection_id *id,
	const struct seen_mark *at, enum seen_stop stop)
{
	struct cluster_thread *t = cluster_thread_of(c, w);
	Cssl__Gone gone = { MESSAGE(gone), .connection_id = bytes_of(id->bytes, CONNECTION_ID_LEN), .epoch = at->epoch,
		.write_generation = at->write_generation, .write_sequence = at->write_sequence,
		.goes_on = stop == SEEN_RESTS };
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .what_case = CSSL__BROADCAST_MESSAGE__WHAT_GONE,
		.gone = &gone };

	/* Its live part may still be under way from the agent that handed it off. */
	connections_seen_stop(c->seen, id, at, stop, cluster_now_ms());
	live_table_drop(c->live, id);
	if (t)
		cluster_thread_number(t, BROADCAST_ALL, &m);
}
