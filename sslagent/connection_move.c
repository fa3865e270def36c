/* connection_move.c: ownership. Export after the handshake (KEPT or HANDED_OFF), fresh sealed copies, adopt (SSL_ID)
 * from the own frozen state, the broadcast or the sealed copy, and the commanded move with its backend half.
 *
 * The law (design 8): only OPEN(keep) or SSL_ID makes an owner; HANDED_OFF is sent in the same function that freezes;
 * every ownership has a higher epoch, claimed before anything is sealed under it.
 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/arena.h"
#include "net/fault.h"
#include "net/log.h"
#include "proto/error.h"
#include "proto/sealed_copy.h"
#include "sslagent/agent.h"
#include "sslagent/connection_internal.h"
#include "sslagent/counters.h"

#define LIVE_PART_LIFETIME_S (7u * 24u * 3600u)
#define FACTS_CERTIFICATE_MAX                                                                                          \
	4096u /* a larger one stays in the session: every owner would hold and every copy carry it */

/* --- facts --- */

/* Keep the facts of a session as an encoded SESS_OBJ without keys: a tenth of the struct's size, and what a copy is
 * made of. */
static int keep_facts(struct connection *c, const struct sess_obj *from)
{
	struct sess_obj facts = *from;

	facts.live = NULL;
	facts.session = NULL;
	facts.memory = NULL;
	if (facts.certificate_len > FACTS_CERTIFICATE_MAX) {
		facts.certificate = NULL;
		facts.certificate_len = 0;
	}
	ptrdiff_t len = sess_obj_encoded_len(&facts);
	if (len < 0)
		return (int)len;
	c->facts = malloc((size_t)len);
	if (!c->facts)
		return CSSL_E_NO_MEMORY;
	len = sess_obj_encode(&facts, c->facts, (size_t)len);
	if (len < 0)
		return (int)len;
	c->facts_len = (uint32_t)len;
	return 0;
}

int connection_facts(const struct connection *c, struct sess_obj *out)
{
	return sess_obj_decode(c->facts, c->facts_len, out);
}

static enum conf_service service_of(const struct connection *c, const char *alpn, const struct conf_alpn **row)
{
	const struct conf_listener *l = tls_listener_conf(c->listener);

	*row = NULL;
	for (size_t i = 0; alpn[0] && i < l->alpn_count; i++) {
		if (strcmp(l->alpn[i].protocol, alpn) == 0) {
			*row = &l->alpn[i];
			return l->alpn[i].service;
		}
	}
	return l->service;
}

static void choose_service(struct connection *c, const struct session_facts *facts)
{
	const struct conf_alpn *row;

	service_destroy(&c->service);
	service_init(&c->service, service_of(c, facts->alpn, &row));
	c->backend_name = row ? row->backend : tls_listener_conf(c->listener)->backend;
}

/* --- copies --- */

static int seal_copy(struct connection *c, struct sess_obj *obj, struct live_part *part, uint8_t **out, size_t *out_len)
{
	const struct copy_binding to = {
		.connection = c->id, .listener = tls_listener_conf(c->listener)->name, .epoch = part->epoch
	};

	part->remaining_s = LIVE_PART_LIFETIME_S;
	obj->live = part;
	ptrdiff_t len = sealed_copy_len(c->home->agents_key, obj);
	if (len < 0)
		return (int)len;
	*out = malloc((size_t)len);
	if (!*out)
		return CSSL_E_NO_MEMORY;
	len = sealed_copy_seal(c->home->agents_key, &to, obj, *out, (size_t)len);
	if (len < 0) {
		free(*out);
		return (int)len;
	}
	*out_len = (size_t)len;
	return 0;
}

static int can_move(const struct connection *c)
{
	return carrier_moves(c->carrier) && tls_listener_conf(c->listener)->migration == CONF_MIGRATION_ON;
}

int connection_send_copy(struct connection *c, enum live_moment moment)
{
	struct sess_obj obj;
	struct live_part part;
	Cssl__LinkCopy copy = CSSL__LINK_COPY__INIT;

	if (!can_move(c))
		return 0;
	int r = connection_facts(c, &obj);
	if (r < 0)
		return r;
	r = live_describe(c->live, moment, &part);
	if (r == 0)
		r = seal_copy(c, &obj, &part, &copy.sealed_copy.data, &copy.sealed_copy.len);
	if (r == 0) {
		copy.read_generation = part.read_generation;
		copy.write_generation = part.write_generation;
		c->carrier->ops->copy(c->carrier, &copy);
		cluster_share_live(c->home->cluster, c->home->worker, &obj);
		free(copy.sealed_copy.data);
	}
	obj.live = NULL;
	sess_obj_destroy(&obj);
	live_part_wipe(&part);
	return r;
}

/* --- export --- */

static void fill_position(const struct connection *c, const struct live_part *part, Cssl__Position *p)
{
	p->client_records = c->client_records;
	p->offset = c->skip;
	p->read_generation = part->read_generation;
	p->read_sequence = part->read_sequence;
	p->server_records = c->server_records;
	p->write_generation = part->write_generation;
	p->write_sequence = part->write_sequence;
}

static void fill_handshake(const struct session_facts *f, const struct handshake_facts *h, Cssl__Handshake *out)
{
	out->protocol_version = f->protocol_version;
	out->cipher_suite = f->cipher_suite;
	out->resumed = h->kind == HANDSHAKE_RESUMED;
	out->server_name = (char *)f->server_name;
	out->alpn = (char *)f->alpn;
	out->session_id = (ProtobufCBinaryData){ f->session_id_len, (uint8_t *)f->session_id };
	out->family_id = (ProtobufCBinaryData){ FAMILY_ID_LEN, (uint8_t *)f->family_id };
}

/* Say KEPT or HANDED_OFF, with the copy when this connection can move at all, and tell the peers. */
static int announce(struct connection *c, enum frame_type type, struct sess_obj *obj, struct live_part *part,
	Cssl__Handshake *handshake, Cssl__BackendHalf backend)
{
	Cssl__LinkLive live = CSSL__LINK_LIVE__INIT;
	Cssl__Position position = CSSL__POSITION__INIT;
	int r = 0;

	if (!carrier_moves(c->carrier))
		return 0;
	if (can_move(c)) {
		r = seal_copy(c, obj, part, &live.sealed_copy.data, &live.sealed_copy.len);
		if (r < 0)
			return r;
		cluster_share_live(c->home->cluster, c->home->worker, obj);
	}
	fill_position(c, part, &position);
	live.position = &position;
	live.handshake = handshake;
	live.backend = backend;
	live.at_checkpoint = connection_at_checkpoint(c);
	live.read_closed = c->from_client != HALF_OPEN;
	live.write_closed = c->from_backend == HALF_CLOSED;
	c->carrier->ops->live(c->carrier, type, &live);
	free(live.sealed_copy.data);
	return 0;
}

static int own(struct connection *c, const struct live_part *part, uint16_t suite, const struct live_position *at,
	uint16_t epoch, enum live_start start)
{
	int r = live_create(c->home->live_pool, part, suite, at, epoch, start, &c->live);

	if (r == 0)
		c->epoch = epoch;
	return r;
}

static int export_kept(struct connection *c, struct sess_obj *obj, Cssl__Handshake *handshake)
{
	struct live_part *part = obj->live;
	const struct live_position at = { part->read_generation, part->write_generation, part->read_sequence,
		part->write_sequence };
	int r = cluster_claim_epoch(c->home->cluster, &c->id, 1);

	if (r == 0)
		r = own(c, part, obj->facts.cipher_suite, &at, 1, LIVE_CONTINUES);
	if (r == 0)
		r = announce(c, FRAME_KEPT, obj, part, handshake, CSSL__BACKEND_HALF__BACKEND_NONE);
	if (r == 0)
		connection_to(c, CONNECTION_OWNER);
	return r;
}

static int export_handed_off(struct connection *c, struct sess_obj *obj, Cssl__Handshake *handshake)
{
	c->frozen = arena_alloc(c->home->frozen);
	if (!c->frozen)
		return CSSL_E_NO_MEMORY;
	*c->frozen = *obj->live;
	connection_to(c, CONNECTION_FROZEN);
	count(COUNT_HANDED_OFF);
	return announce(c, FRAME_HANDED_OFF, obj, c->frozen, handshake, CSSL__BACKEND_HALF__BACKEND_NONE);
}

static void count_handshake(const struct connection *c, const struct session_facts *f, const struct handshake_facts *h)
{
	static const enum agent_counter by_kind[] = { [RESUMED_NOT] = COUNT_HANDSHAKES_FULL,
		[RESUMED_BY_ID] = COUNT_RESUMED_BY_ID,
		[RESUMED_BY_PSK] = COUNT_RESUMED_BY_PSK,
		[RESUMED_BY_TICKET] = COUNT_RESUMED_BY_TICKET };

	count(by_kind[h->by]);
	if (h->kind == HANDSHAKE_RESUMED)
		count(COUNT_HANDSHAKES_RESUMED);
	c->home->handshake_us = (c->home->handshake_us * 7 + c->handshake_ns / 1000) / 8;
	count(f->protocol_version == TLS13_VERSION_WIRE ? COUNT_HANDSHAKES_TLS13 : COUNT_HANDSHAKES_TLS12);
}

int connection_export(struct connection *c)
{
	struct sess_obj obj = { 0 };
	struct handshake_facts facts;
	Cssl__Handshake handshake = CSSL__HANDSHAKE__INIT;
	int r = handshake_export(c->handshake, &obj, &facts);

	if (r < 0)
		return r;
	count_handshake(c, &obj.facts, &facts);
	if (facts.kind == HANDSHAKE_FULL && obj.certificate_len)
		obj.facts.certificate_seen = CERTIFICATE_IN_CONNECTION;
	choose_service(c, &obj.facts);
	fill_handshake(&obj.facts, &facts, &handshake);
	r = keep_facts(c, &obj);
	if (r == 0 && c->disposition == CSSL__LINK_OPEN__DISPOSITION__HAND_OFF)
		r = export_handed_off(c, &obj, &handshake);
	else if (r == 0)
		r = export_kept(c, &obj, &handshake);
	sess_obj_destroy(&obj);
	c->home->handshakes--;
	handshake_destroy(c->handshake);
	c->handshake = NULL;
	return r;
}

/* --- adopt --- */

struct adoption {
	Cssl__LinkSslId *id;
	struct connection_id connection;
	struct live_position at;
	struct sess_obj obj;
	struct live_part part;
	Cssl__LinkAdopted__Source source;
	struct connection *frozen; /* this agent's own; its backend half comes back with it */
	const char *detail;
};

static int refuse(struct adoption *a, Cssl__LinkRefused__Reason *reason, Cssl__LinkRefused__Reason why, int error)
{
	*reason = why;
	a->detail = cssl_strerror(error);
	return error;
}

/* Own frozen state, then the broadcast, then the sealed copy. 0 or negative. */
static int find_live_part(struct agent_worker *home, struct adoption *a)
{
	struct connection *f = connection_table_find(&home->connections, &a->connection);
	uint16_t copy_epoch;

	if (f && f->state == CONNECTION_FROZEN && f->facts) {
		a->source = CSSL__LINK_ADOPTED__SOURCE__FROM_FROZEN;
		a->frozen = f;
		if (f->frozen)
			a->part = *f->frozen;
		int r = f->frozen ? 0 : live_describe(f->live, LIVE_NOW, &a->part);
		return r < 0 ? r : connection_facts(f, &a->obj);
	}
	if (cluster_find_live(home->cluster, &a->connection, (uint16_t)a->id->epoch, a->at.read_generation,
		    a->at.write_generation, &a->obj) == 0) {
		a->source = CSSL__LINK_ADOPTED__SOURCE__FROM_BROADCAST;
		a->part = *a->obj.live;
		return 0;
	}
	a->source = CSSL__LINK_ADOPTED__SOURCE__FROM_COPY;
	int r = sealed_copy_open(home->agents_key, &a->connection, a->id->listener, a->id->sealed_copy.data,
		a->id->sealed_copy.len, a->id->copy_age_s, &a->obj, &copy_epoch);
	if (r == 0 && (!a->obj.live || copy_epoch >= a->id->epoch))
		r = CSSL_E_MISMATCH;
	if (r == 0)
		a->part = *a->obj.live;
	return r;
}

static int check_ssl_id(const Cssl__LinkSslId *id)
{
	return id->connection_id.len == CONNECTION_ID_LEN && id->position && id->endpoints && id->epoch >= 2 &&
			       id->epoch <= UINT16_MAX && id->position->offset <= TLS_PLAINTEXT_MAX
		       ? 0
		       : CSSL_E_RANGE;
}

/* The backend half of the move: nothing, what came over the agent-agent link, or what the frozen connection still has.
 */
static int take_backend(struct connection *c, struct adoption *a)
{
	struct passed_backend p;

	if (a->id->backend == CSSL__BACKEND_HALF__BACKEND_NONE)
		return 0;
	/* what was passed for this very epoch is newer than anything frozen here */
	if (cluster_take_passed(c->home->cluster, &c->id, c->epoch, &p) < 0) {
		if (!a->frozen || !a->frozen->backend)
			return CSSL_E_NOT_FOUND;
		connection_take_back(c, a->frozen);
		return 0;
	}
	int r = connection_restore_backend(c, &p);
	passed_backend_destroy(&p);
	return r;
}

static int adopt_into(struct connection *c, struct adoption *a, Cssl__LinkRefused__Reason *reason)
{
	enum live_start start = a->id->cause == CSSL__CAUSE__CAUSE_TAKEOVER ? LIVE_TAKES_OVER : LIVE_CONTINUES;
	const Cssl__Position *p = a->id->position;
	int r = keep_facts(c, &a->obj);

	if (r < 0)
		return refuse(a, reason, CSSL__LINK_REFUSED__REASON__INTERNAL, r);
	r = own(c, &a->part, a->obj.facts.cipher_suite, &a->at, (uint16_t)a->id->epoch, start);
	if (r == CSSL_E_UNSAFE)
		return refuse(a, reason, CSSL__LINK_REFUSED__REASON__NONCE_UNSAFE, r);
	if (r < 0)
		return refuse(a, reason, CSSL__LINK_REFUSED__REASON__COPY_BAD, r);
	choose_service(c, &a->obj.facts);
	c->client_records = p->client_records;
	c->server_records = p->server_records;
	c->skip = p->offset;
	c->sent = a->id->undrained;
	c->from_client = a->id->read_closed ? HALF_CLOSED : HALF_OPEN;
	c->from_backend = a->id->write_closed ? HALF_CLOSED : HALF_OPEN;
	live_restore_ends(
		c->live, (a->id->read_closed ? LIVE_READ_CLOSED : 0u) | (a->id->write_closed ? LIVE_WRITE_CLOSED : 0u));
	r = take_backend(c, a);
	return r < 0 ? refuse(a, reason, CSSL__LINK_REFUSED__REASON__NO_BACKEND, r) : 0;
}

/* The connection exists and is owner, or nothing changed. */
static struct connection *adopt(
	struct agent_worker *home, struct carrier *carrier, struct adoption *a, Cssl__LinkRefused__Reason *reason)
{
	const struct tls_listener *listener = tls_listener_find(home->contexts, a->id->listener);
	struct connection *c = NULL;

	if (!listener) {
		refuse(a, reason, CSSL__LINK_REFUSED__REASON__UNKNOWN_LISTENER, CSSL_E_NOT_FOUND);
		return NULL;
	}
	int r = cluster_claim_epoch(home->cluster, &a->connection, (uint16_t)a->id->epoch);
	if (r < 0) {
		refuse(a, reason, CSSL__LINK_REFUSED__REASON__EPOCH_OLD, r);
		return NULL;
	}
	r = find_live_part(home, a);
	if (r < 0) {
		refuse(a, reason, CSSL__LINK_REFUSED__REASON__COPY_BAD, r);
		return NULL;
	}
	c = connection_create(home, carrier, listener, &a->connection, a->id->endpoints, CONNECTION_ADOPTING);
	if (!c) {
		refuse(a, reason, CSSL__LINK_REFUSED__REASON__BUSY, CSSL_E_NO_MEMORY);
		return NULL;
	}
	a->id->endpoints = NULL;
	if (adopt_into(c, a, reason) < 0) {
		connection_forget(c, END_MOVE_FAILED);
		return NULL;
	}
	connection_to(c, CONNECTION_OWNER);
	return c;
}

/* Its state lives on under the new epoch and stream. RAgent will still say DETACH on the old one. */
static void leave_frozen(struct connection *frozen)
{
	struct carrier *old = frozen->carrier;

	connection_forget(frozen, END_DONE);
	old->ops->retire(old);
}

static const enum agent_counter by_source[] = {
	[CSSL__LINK_ADOPTED__SOURCE__FROM_COPY] = COUNT_ADOPTED_FROM_COPY,
	[CSSL__LINK_ADOPTED__SOURCE__FROM_BROADCAST] = COUNT_ADOPTED_FROM_BROADCAST,
	[CSSL__LINK_ADOPTED__SOURCE__FROM_FROZEN] = COUNT_ADOPTED_FROM_FROZEN,
};

struct connection *connection_adopt(struct agent_worker *home, struct carrier *carrier, Cssl__LinkSslId *id)
{
	struct adoption a = { .id = id };
	Cssl__LinkRefused__Reason reason;
	Cssl__LinkAdopted adopted = CSSL__LINK_ADOPTED__INIT;

	if (check_ssl_id(id) < 0) {
		carrier->ops->refused(carrier, CSSL__LINK_REFUSED__REASON__INTERNAL, "malformed SSL_ID");
		return NULL;
	}
	memcpy(a.connection.bytes, id->connection_id.data, CONNECTION_ID_LEN);
	a.at = (struct live_position){ id->position->read_generation, id->position->write_generation,
		id->position->read_sequence, id->position->write_sequence };
	struct connection *c = adopt(home, carrier, &a, &reason);
	sess_obj_destroy(&a.obj);
	live_part_wipe(&a.part);
	if (!c) {
		count(COUNT_ADOPTS_REFUSED);
		log_event(LOG_WARNING, &a.connection, "adopt refused", "epoch=%u reason=%d detail=\"%s\"", id->epoch,
			(int)reason, a.detail);
		carrier->ops->refused(carrier, reason, a.detail);
		return NULL;
	}
	if (a.frozen)
		leave_frozen(a.frozen);
	count(COUNT_ADOPTED);
	count(by_source[a.source]);
	adopted.epoch = id->epoch;
	adopted.source = a.source;
	carrier->ops->adopted(carrier, &adopted);
	cluster_tell_adopted(
		home->cluster, home->worker, &c->id, c->epoch, a.at.read_generation, a.at.write_generation);
	connection_start_owning(c);
	return c->state == CONNECTION_ENDED ? NULL : c;
}

/* --- the commanded move --- */

static void hand_off_now(struct connection *c, Cssl__BackendHalf backend)
{
	struct sess_obj obj;
	struct live_part part;
	int r = connection_facts(c, &obj);

	if (r < 0) {
		connection_end(c, END_INTERNAL, CARRIER_ABORT);
		return;
	}
	live_freeze(c->live, &part);
	connection_to(c, CONNECTION_FROZEN);
	deadline_cancel(&c->deadline);
	connection_input_used(c, c->input_len); /* RAgent replays what was not opened */
	fault_at("move.frozen", NULL, NULL);
	r = announce(c, FRAME_HANDED_OFF, &obj, &part, NULL, backend);
	live_part_wipe(&part);
	obj.live = NULL;
	sess_obj_destroy(&obj);
	if (r < 0)
		connection_end(c, END_INTERNAL, CARRIER_ABORT);
	else
		count(COUNT_HANDED_OFF);
}

static void stay(struct connection *c, const char *why)
{
	count(COUNT_MOVES_REFUSED);
	c->carrier->ops->refused(c->carrier, CSSL__LINK_REFUSED__REASON__CANNOT_MOVE, why);
}

/* The owner that it was: what the backend took meanwhile is told, and both ways go on. */
static void go_on(struct connection *c, const char *why)
{
	connection_to(c, CONNECTION_OWNER);
	stay(c, why);
	connection_mark(c);
	connection_pump(c);
}

#define DRAIN_BACKEND_MS 2000u

static void on_passed(void *ctx, int error)
{
	struct connection_pass *pass = ctx;
	struct connection *c = pass->connection;

	free(pass);
	if (!c)
		return;
	c->pass = NULL;
	if (error == 0) {
		hand_off_now(c, CSSL__BACKEND_HALF__BACKEND_PASSED);
		return;
	}
	go_on(c, cssl_strerror(error));
}

void connection_drop_pass(struct connection *c)
{
	if (c->pass && c->pass->step == PASS_UNDER_WAY)
		c->pass->connection = NULL; /* on_passed frees it */
	else
		free(c->pass);
	c->pass = NULL;
}

void connection_abandon_pass(struct connection *c)
{
	connection_drop_pass(c);
	deadline_cancel(&c->deadline);
	connection_to(c, CONNECTION_OWNER);
	stay(c, "the backend ended");
}

void connection_pass_now(struct connection *c)
{
	struct passed_backend p;
	struct connection_pass *pass = c->pass;

	deadline_cancel(&c->deadline);
	if (connection_describe_backend(c, &p) < 0) {
		connection_drop_pass(c);
		go_on(c, cssl_strerror(CSSL_E_NO_MEMORY));
		return;
	}
	pass->step = PASS_UNDER_WAY;
	p.next_epoch = pass->next_epoch;
	cluster_pass_backend(c->home->cluster, c->home->worker, pass->target, &p, on_passed, pass);
}

static void on_drain_timeout(struct deadline *d)
{
	struct connection *c = (struct connection *)((char *)d - offsetof(struct connection, deadline));

	connection_drop_pass(c);
	go_on(c, "the backend does not take what was sent");
}

/* Stop both ways, let the backend take what it was sent, pass its socket, then freeze. */
static void begin_pass(struct connection *c, const Cssl__LinkMove *move)
{
	c->pass = calloc(1, sizeof *c->pass);
	if (!c->pass) {
		stay(c, cssl_strerror(CSSL_E_NO_MEMORY));
		return;
	}
	connection_report(c); /* the deadline gets another purpose */
	c->pass->connection = c;
	c->pass->next_epoch = (uint16_t)move->next_epoch;
	strncpy(c->pass->target, move->target, sizeof c->pass->target - 1);
	connection_to(c, CONNECTION_PASSING);
	backend_read_off(c->backend);
	if (c->written == c->to_backend) {
		connection_pass_now(c);
		return;
	}
	c->deadline.fn = on_drain_timeout;
	deadline_set(c->home->worker, &c->deadline, DRAIN_BACKEND_MS);
}

void connection_move(struct connection *c, const Cssl__LinkMove *move)
{
	if (c->state != CONNECTION_OWNER || !can_move(c)) {
		stay(c, "not an owner that can move");
		return;
	}
	if (c->backend && connection_at_checkpoint(c))
		connection_release_backend(c, END_DONE);
	if (!c->backend)
		hand_off_now(c, CSSL__BACKEND_HALF__BACKEND_NONE);
	else if (cluster_can_pass_to(c->home->cluster, move->target))
		begin_pass(c, move);
	else
		stay(c, "the target agent is on another host");
}
