/* handshaking.c: a connection's handshake (parked or not), and what comes of it: KEPT (owner) or HANDED_OFF (frozen).
 */
#include "sslagent/connection/beginning/handshaking.h"

#include <assert.h>
#include <protobuf-c/protobuf-c.h>

#include "net/points/fault.h"
#include "net/report/log_pace.h"
#include "proto/error.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/connection/flow/consumed.h"
#include "sslagent/connection/flow/flow.h"
#include "sslagent/connection/succession.h"
#include "sslagent/counters.h"
#include "sslagent/tls/handshake.h"

/* --- what comes of it --- */

static void handshaking_describe(const struct session_facts *f, const struct handshake_facts *h, Cssl__Handshake *out)
{
	out->protocol_version = f->protocol_version;
	out->cipher_suite = f->cipher_suite;
	out->resumed = h->kind == HANDSHAKE_RESUMED;
	out->server_name = (char *)f->server_name;
	out->alpn = (char *)f->alpn;
	out->session_id = (ProtobufCBinaryData){ f->session_id_len, (uint8_t *)f->session_id };
	out->family_id = (ProtobufCBinaryData){ FAMILY_ID_LEN, (uint8_t *)f->family_id };
	out->ja4 = (ProtobufCBinaryData){ f->ja4.kind[0] ? sizeof f->ja4 : 0, (uint8_t *)&f->ja4 };
}

/* The first ownership, under new keys. */
static int handshaking_claim(struct connection *c, const struct live_part *part, uint16_t owner)
{
	const struct seen_claim claim = {
		.at = { 1, part->write_generation, part->write_sequence }, .owner = owner, .start = CLAIM_BEGINS
	};

	return cluster_claim(c->home->cluster, &c->id, &claim);
}

static int handshaking_keep(struct connection *c, struct sess_obj *obj, Cssl__Handshake *handshake)
{
	struct live_part *part = obj->live;
	const struct live_position at = { part->read_generation, part->write_generation, part->read_sequence,
		part->write_sequence };
	int r = handshaking_claim(c, part, succession_owner(c));

	if (r == 0)
		r = live_create(
			c->home->live_pool, part, obj->facts.cipher_suite, &at, c->epoch, LIVE_CONTINUES, &c->live);
	if (r == 0)
		r = succession_announce(c, FRAME_KEPT, obj, part, handshake, CSSL__BACKEND_HALF__BACKEND_NONE);
	if (r < 0)
		return r;
	succession_tell_peers(c, obj);
	connection_to(c, CONNECTION_OWNER);
	return 0;
}

static int handshaking_hand_off(struct connection *c, struct sess_obj *obj, Cssl__Handshake *handshake)
{
	int r = handshaking_claim(c, obj->live, SEEN_NO_OWNER);

	if (r < 0)
		return r;
	c->frozen = slabs_take(&c->home->frozen);
	if (!c->frozen)
		return CSSL_E_NO_MEMORY;
	*c->frozen = *obj->live;
	c->frozen->exported = EXPORT_AT_FREEZE;
	connection_to(c, CONNECTION_FROZEN);
	count(COUNT_HANDED_OFF);
	r = succession_announce(c, FRAME_HANDED_OFF, obj, c->frozen, handshake, CSSL__BACKEND_HALF__BACKEND_NONE);
	if (r == 0)
		succession_tell_peers(c, obj);
	return r;
}

/* A session was offered, but its client certificate has expired or is revoked. */
static void handshaking_count_certificate(const struct connection *c)
{
	static const char *const causes[] = { [CERTIFICATE_OVER] = "over", [CERTIFICATE_REVOKED] = "revoked" };
	enum certificate_standing standing = handshake_offered_certificate(c->handshake);

	if (standing == CERTIFICATE_STANDS)
		return;
	count(COUNT_RESUMPTIONS_REFUSED_CERTIFICATE);
	log_paced(LOG_INFO, &c->id, "session not resumed", "client_certificate=%s", causes[standing]);
}

static void handshaking_count(
	const struct connection *c, const struct session_facts *f, const struct handshake_facts *h)
{
	static const enum agent_counter by_kind[] = { [RESUMED_NOT] = COUNT_HANDSHAKES_FULL,
		[RESUMED_BY_ID] = COUNT_RESUMED_BY_ID,
		[RESUMED_BY_PSK] = COUNT_RESUMED_BY_PSK,
		[RESUMED_BY_TICKET] = COUNT_RESUMED_BY_TICKET };

	count(by_kind[h->by]);
	count_by(COUNT_SESSIONS_WITHOUT_EMS, h->sessions_without_ems);
	if (h->kind == HANDSHAKE_RESUMED)
		count(COUNT_HANDSHAKES_RESUMED);
	if (h->early_data == EARLY_DATA_SKIPPED)
		count(COUNT_EARLY_DATA_SKIPPED);
	c->home->handshake_us = (c->home->handshake_us * 7 + c->handshake_ns / 1000) / 8;
	count(f->protocol_version == TLS13_VERSION_WIRE ? COUNT_HANDSHAKES_TLS13 : COUNT_HANDSHAKES_TLS12);
}

static int handshaking_export(struct connection *c)
{
	struct sess_obj obj = { 0 };
	struct handshake_facts facts;
	Cssl__Handshake handshake = CSSL__HANDSHAKE__INIT;
	int r = handshake_export(c->handshake, &obj, &facts);

	if (r < 0)
		return r;
	handshaking_count_certificate(c);
	handshaking_count(c, &obj.facts, &facts);
	if (facts.kind == HANDSHAKE_FULL && obj.certificate_len)
		obj.facts.certificate_seen = CERTIFICATE_IN_CONNECTION;
	connection_choose_service(c, &obj.facts);
	handshaking_describe(&obj.facts, &facts, &handshake);
	r = kept_facts_keep(&c->facts, &c->home->facts_blocks, &obj);
	if (r == 0 && c->disposition == CSSL__LINK_OPEN__DISPOSITION__HAND_OFF)
		r = handshaking_hand_off(c, &obj, &handshake);
	else if (r == 0)
		r = handshaking_keep(c, &obj, &handshake);
	sess_obj_destroy(&obj);
	connection_drop_handshake(c);
	return r;
}

/* --- its steps --- */

/* Sends OpenSSL's records to the carrier: handshake records, tickets, its alert. */
static int handshaking_send(struct connection *c)
{
	const uint8_t *data;
	struct tls_record_run run;
	int r;

	while ((r = handshake_output_run(c->handshake, FRAME_PAYLOAD_MAX, &data, &run)) == 0 && run.len > 0) {
		r = connection_send(c, data, (ptrdiff_t)run.len, run.records, 0);
		if (r < 0)
			return r;
		handshake_output_taken(c->handshake, run.len);
	}
	return r;
}

static void handshaking_on_pulled(void *ctx, enum session_answer answer);

/* 0: a pull is under way. Else the handshake goes on without the session. */
static int handshaking_park(struct connection *c)
{
	struct connection_home *home = c->home;
	struct session_source *source = cluster_session_source(home->cluster);

	if (home->parked >= home->conf->broadcast.parked_max) {
		count(COUNT_PARKS_REFUSED);
		log_paced(LOG_INFO, &c->id, "session not asked for",
			"cause=\"too many handshakes wait\" limit=%u remedy=broadcast.parked_max", home->parked);
		return CSSL_E_FULL;
	}
	c->pull = source->pull(source, home->worker, handshake_wanted_id(c->handshake), handshaking_on_pulled, c);
	if (!c->pull)
		return CSSL_E_NO_MEMORY;
	connection_to(c, CONNECTION_PARKED);
	home->parked++;
	return 0;
}

static void handshaking_failed(struct connection *c)
{
	log_paced(LOG_INFO, &c->id, "handshake failed", "cause=%s", handshake_error(c->handshake));
	count(COUNT_HANDSHAKES_FAILED);
	handshaking_count_certificate(c);
	handshaking_send(c);
	connection_end(c, END_HANDSHAKE_FAILED, CARRIER_ORDERLY);
}

/* Does the work that follows a step of the handshake. Returns 0 while the handshake wants records. */
static int handshaking_after_step(struct connection *c, int step)
{
	if (step < 0) {
		handshaking_failed(c);
		return step;
	}
	if (handshaking_send(c) < 0) {
		connection_end(c, END_INTERNAL, CARRIER_ABORT);
		return CSSL_E_NO_MEMORY;
	}
	if (step == HANDSHAKE_PARKED)
		return handshaking_park(c) == 0 ? HANDSHAKE_PARKED
						: handshaking_after_step(c, handshake_continue(c->handshake));
	if (step == HANDSHAKE_DONE) {
		if (fault_at("handshake.before_export", NULL, NULL) == FAULT_FAIL || handshaking_export(c) < 0)
			connection_end(c, END_INTERNAL, CARRIER_ABORT);
		else
			fault_at("handshake.exported", NULL, NULL);
		return HANDSHAKE_DONE;
	}
	return 0;
}

static void handshaking_violated(struct connection *c)
{
	const struct tls_record_header bad = { c->bad.type, c->bad.version, c->bad.length };

	count(COUNT_RECORD_VIOLATIONS);
	bool said = handshake_violation(c->handshake, &bad) < 0 && handshaking_send(c) == 0;
	log_paced(LOG_INFO, &c->id, "handshake failed", "cause=%s", handshake_error(c->handshake));
	connection_end(c, END_RECORD_VIOLATION, said ? CARRIER_ORDERLY : CARRIER_ABORT);
}

/* The client has sent its last record, and the handshake is not complete: end it, unless earlier records still wait. */
static void handshaking_take_tail(struct connection *c)
{
	if (c->state == CONNECTION_HANDSHAKING && turn_waiter_waits(handshake_waiter(c->handshake)))
		return; /* earlier records still wait */
	if (c->tail == TAIL_FIN)
		connection_end(c, END_CLIENT_CLOSED, CARRIER_ORDERLY);
	else if (c->state == CONNECTION_HANDSHAKING)
		handshaking_violated(c);
}

/* A client with a long chain of certificates sends more than a window. Without credit it would stop in the middle. */
static void handshaking_report(struct connection *c)
{
	const struct frame_consumed consumed = { .client_records = c->client_records };

	if (c->record_bytes - c->consumed.reported_bytes < c->home->window_len / 2)
		return;
	c->consumed.reported_bytes = c->record_bytes;
	c->carrier->ops->consumed(c->carrier, &consumed, 0);
}

/* @record NULL: the session that it was parked for has come. */
static int handshaking_work(struct connection *c, const struct tls_record *record)
{
	const uint64_t before = uv_hrtime();
	const int step = record ? handshake_feed(c->handshake, record->bytes, tls_record_len(record))
				: handshake_continue(c->handshake);

	c->handshake_ns += (uint32_t)(uv_hrtime() - before);
	return step;
}

/* 1: this turn has used its time for handshakes; a later one calls connection_take_turn(). */
static bool handshaking_waits_for_turn(struct connection *c)
{
	struct turn_share *share = &c->home->handshake_share;

	if (turn_share_is_free(share))
		return false;
	turn_share_enter(
		share, handshake_waiter(c->handshake), handshake_place_source(handshake_place(c->handshake)), c);
	return true;
}

/* Feed the waiting records one by one: at the end of the handshake, all after its last record is still unopened
 * input. */
static void handshaking_feed(struct connection *c)
{
	uint32_t used = 0, count = 0;

	while (used < c->input.len && c->state == CONNECTION_HANDSHAKING && !handshaking_waits_for_turn(c)) {
		struct tls_record record;
		used = unopened_record(&c->input, used, &record);
		count++;
		c->client_records++;
		c->record_bytes += tls_record_len(&record);
		int step = handshaking_work(c, &record);
		if (handshaking_after_step(c, step) != 0)
			break;
	}
	if (c->state == CONNECTION_ENDED)
		return;
	unopened_used(&c->input, used, count, c->carrier);
	if (c->state == CONNECTION_HANDSHAKING && c->tail != TAIL_NONE) {
		handshaking_take_tail(c);
	} else if (connection_is_handshaking(c)) {
		handshake_rest(c->handshake);
		handshaking_report(c);
	} else if (c->state == CONNECTION_OWNER) {
		consumed_stand_here(c);
		flow_start(c);
	} else if (c->state == CONNECTION_FROZEN) {
		unopened_drop(&c->input, c->carrier); /* RAgent sends it again to the successor */
	}
}

/* The session that it was parked for has come, or no agent has it. */
static void handshaking_continue(struct connection *c)
{
	if (handshaking_after_step(c, handshaking_work(c, NULL)) >= 0 && c->state != CONNECTION_ENDED)
		handshaking_feed(c);
}

static void handshaking_unpark(struct connection *c, enum session_answer answer)
{
	c->pull = NULL;
	c->home->parked--;
	if (answer != SESSION_FOUND)
		count(COUNT_PULLS_MISSED);
	handshake_pulled(c->handshake, answer);
	connection_to(c, CONNECTION_HANDSHAKING);
	if (!handshaking_waits_for_turn(c))
		handshaking_continue(c);
}

static void handshaking_on_pulled(void *ctx, enum session_answer answer)
{
	struct connection *c = ctx;

	c->home->up->happens(c, &(struct connection_event){ .kind = EVENT_PULLED, .answer = answer });
}

void handshaking_takes(struct connection *c, struct connection_event *e)
{
	switch (e->kind) {
	case EVENT_RECORDS:
		from_client_keep(c, e);
		if (c->state != CONNECTION_ENDED)
			handshaking_feed(c);
		return;
	case EVENT_FIN:
	case EVENT_VIOLATION: handshaking_take_tail(c); return;
	case EVENT_GIVE_UP: connection_end(c, e->reason, CARRIER_ABORT); return;
	case EVENT_PULLED: handshaking_unpark(c, e->answer); return;
	case EVENT_TURN:
		if (handshake_is_parked(c->handshake))
			handshaking_continue(c);
		else
			handshaking_feed(c);
		return;
	default: assert(!"an event that another part takes");
	}
}

/* RAgent has such a limit, too. But there may be several RAgents, and clients that come without one. */
static int handshaking_take_place(struct connection *c)
{
	struct handshake_place *place = handshake_place(c->handshake), *loser;
	int r = handshake_limit_enter(
		c->home->handshake_places, place, &c->endpoints.client, worker_now_ms(c->home->worker), &loser);

	if (r == CSSL_E_FULL) {
		count(COUNT_HANDSHAKES_REFUSED_LIMIT);
		log_paced(LOG_INFO, &c->id, "handshake refused",
			"cause=\"too many are under way\" remedy=\"limits.handshakes, limits.handshakes_per_source\"");
	}
	if (r < 0)
		return r;
	place->holder = c;
	if (loser) {
		count(COUNT_HANDSHAKES_DISPLACED);
		log_paced(LOG_INFO, &((struct connection *)loser->holder)->id, "handshake gave way",
			"cause=\"too many are under way\" remedy=limits.handshakes");
		connection_end(loser->holder, END_OVERLOADED, CARRIER_ABORT);
	}
	return 0;
}

struct connection *connection_open(struct connection_home *home, struct carrier *carrier,
	const struct tls_listener *listener, const struct connection_id *id, Cssl__LinkOpen__Disposition disposition,
	const Cssl__Endpoints *endpoints, enum end_reason *why)
{
	struct connection *c = connection_create(home, carrier, listener, id, endpoints, CONNECTION_HANDSHAKING);

	*why = END_INTERNAL;
	if (!c)
		return NULL;
	c->disposition = (uint8_t)disposition;
	const struct handshake_params params = {
		.connection = *id, .worker = home->worker, .client = c->endpoints.client
	};
	c->handshake = handshake_create(c->contexts, listener, &params);
	if (!c->handshake) {
		connection_forgotten(c, &(struct connection_event){ .reason = END_INTERNAL });
		return NULL;
	}
	connection_home_count_handshakes(home, 1);
	int r = handshaking_take_place(c);
	if (r == 0)
		return c;
	*why = r == CSSL_E_FULL ? END_LIMIT_HANDSHAKES : END_INTERNAL;
	connection_forgotten(c, &(struct connection_event){ .reason = *why });
	return NULL;
}
