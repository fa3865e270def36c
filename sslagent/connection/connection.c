/* connection.c: the life of a connection at this agent: its states, its handshake (parked or not), its end. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "conf/memory.h"
#include "net/audit.h"
#include "net/fault.h"
#include "net/log_pace.h"
#include "net/mutant.h"
#include "proto/error.h"
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"

#define TO(name) (1u << CONNECTION_##name)

static const struct {
	const char *name;
	unsigned may_go_to;
} state_rows[CONNECTION_STATE_COUNT] = {
	[CONNECTION_HANDSHAKING] = { "handshaking", TO(PARKED) | TO(FROZEN) | TO(OWNER) | TO(ENDED) },
	[CONNECTION_PARKED] = { "parked", TO(HANDSHAKING) | TO(ENDED) },
	[CONNECTION_ADOPTING] = { "adopting", TO(OWNER) | TO(ENDED) },
	[CONNECTION_FROZEN] = { "frozen", TO(ENDED) },
	[CONNECTION_OWNER] = { "owner",
		TO(RECOVERING) | TO(PASSING) | TO(SETTLING) | TO(FROZEN) | TO(ENDING) | TO(ENDED) },
	[CONNECTION_RECOVERING] = { "recovering", TO(OWNER) | TO(ENDING) | TO(ENDED) },
	[CONNECTION_PASSING] = { "passing", TO(OWNER) | TO(FROZEN) | TO(ENDING) | TO(ENDED) },
	[CONNECTION_SETTLING] = { "settling", TO(OWNER) | TO(FROZEN) | TO(ENDING) | TO(ENDED) },
	[CONNECTION_ENDING] = { "ending", TO(ENDED) },
	[CONNECTION_ENDED] = { "ended", 0 },
};

const char *connection_state_name(enum connection_state state)
{
	return state_rows[state].name;
}

bool connection_may_go(enum connection_state from, enum connection_state to)
{
	return (state_rows[from].may_go_to >> to) & 1;
}

_Static_assert(sizeof(struct connection) <= MEMORY_OF_AGENT_CONNECTION / 4,
	"what --check says of a connection has room for its keys, facts, backend and carrier, too");

void connection_to(struct connection *c, enum connection_state to)
{
	assert(connection_may_go((enum connection_state)c->state, to));
	if (log_enabled(LOG_DEBUG))
		log_event(LOG_DEBUG, &c->id, "state", "from=%s to=%s", state_rows[c->state].name, state_rows[to].name);
	c->state = (uint8_t)to;
}

bool connection_serves(const struct connection *c)
{
	return c->state == CONNECTION_OWNER || c->state == CONNECTION_SETTLING;
}

struct connection *connection_create(struct connection_home *home, struct carrier *carrier,
	const struct tls_listener *listener, const struct connection_id *id, const Cssl__Endpoints *endpoints,
	enum connection_state first)
{
	struct connection *c = slabs_take(&home->connection_blocks);

	if (!c)
		return NULL;
	*c = (struct connection){
		.home = home, .carrier = carrier, .listener = listener, .id = *id, .epoch = 1, .state = (uint8_t)first
	};
	c->deadline.fn = connection_on_deadline;
	if (endpoints_from_message(&c->endpoints, endpoints) < 0 || connection_table_add(&home->table, c) < 0) {
		endpoints_clear(&c->endpoints);
		slabs_give(&home->connection_blocks, c);
		return NULL;
	}
	c->contexts = tls_contexts_ref(home->contexts);
	service_init(&c->service, tls_listener_conf(listener)->service, &home->service_blocks);
	service_of_listener(&c->service, tls_listener_conf(listener));
	count(COUNT_CONNECTIONS_OPENED);
	return c;
}

/* Failures inside the cluster do not count as refusals. */
static void count_refusal(const struct handshake *h, enum end_reason reason)
{
	enum refusal refusal;

	_Static_assert(COUNT_HANDSHAKES_REFUSED_VERSION + REFUSAL_OTHER == COUNT_HANDSHAKES_REFUSED_OTHER, "one order");
	switch (reason) {
	case END_HANDSHAKE_FAILED: refusal = handshake_refusal(h); break;
	case END_HANDSHAKE_TIMEOUT: refusal = REFUSAL_TIMEOUT; break;
	case END_CLIENT_CLOSED:
	case END_CLIENT_RESET: refusal = REFUSAL_CLIENT_GONE; break;
	case END_NOT_TLS:
	case END_RECORD_VIOLATION: refusal = REFUSAL_MESSAGE; break;
	default: return;
	}
	count(COUNT_HANDSHAKES_REFUSED_VERSION + refusal);
}

void connection_drop_handshake(struct connection *c)
{
	turn_share_leave(&c->home->handshake_share, handshake_waiter(c->handshake));
	connection_home_count_handshakes(c->home, -1);
	handshake_limit_leave(c->home->handshake_places, handshake_place(c->handshake));
	handshake_destroy(c->handshake);
	c->handshake = NULL;
	connection_home_trim_heap(c->home);
}

static void release_handshake(struct connection *c, enum end_reason reason)
{
	if (c->state == CONNECTION_PARKED) {
		struct session_source *source = cluster_session_source(c->home->cluster);
		source->pull_cancel(source, c->pull);
		c->pull = NULL;
		c->home->parked--;
	}
	if (c->handshake) {
		count_refusal(c->handshake, reason);
		connection_drop_handshake(c);
	}
}

/* A connection that has ended can say nothing more, and its carrier may be gone. */
static const struct carrier_ops nothing;
static struct carrier no_carrier = { .ops = &nothing, .pace = CARRIER_PAUSED };

/* Releases everything but the memory, which lasts until the end of the loop turn: callers further up the stack may
 * still use it. */
static void connection_release(struct connection *c, enum end_reason reason)
{
	if (c->live && c->state != CONNECTION_ADOPTING) /* else its epoch may be another owner's */
		cluster_leave(c->home->cluster, &c->id, c->epoch);
	release_handshake(c, reason);
	connection_drop_pass(c);
	connection_drop_settling(c);
	connection_drop_recovery(c);
	connection_wipe(&c->head);
	connection_drop_asked(c);
	connection_release_backend(c, reason);
	deadline_cancel(&c->deadline);
	live_destroy(c->live);
	c->live = NULL;
	slabs_give(&c->home->frozen, c->frozen);
	c->frozen = NULL;
	service_destroy(&c->service);
	if (c->input)
		sodium_memzero(c->input, c->input_len);
	free(c->input);
	connection_drop_facts(c);
	endpoints_clear(&c->endpoints);
	tls_contexts_unref(c->contexts);
	c->input = NULL;
	c->contexts = NULL;
	c->carrier = &no_carrier;
	table_remove(&c->home->table, &c->by_id);
	count(COUNT_CONNECTIONS_ENDED);
	connection_to(c, CONNECTION_ENDED);
	connection_weigh(c);
	c->by_id.next = c->home->buried;
	c->home->buried = &c->by_id;
	worker_at_turn_end(c->home->worker, &c->home->burial);
}

static void tell_ended(struct connection *c)
{
	const struct seen_mark at = connection_sealed_mark(c);

	if (mutant("end-untold"))
		return;
	cluster_tell_stopped(c->home->cluster, c->home->worker, &c->id, &at, SEEN_ENDED);
}

void connection_end(struct connection *c, enum end_reason reason, enum carrier_end how)
{
	if (c->state == CONNECTION_ENDED)
		return;
	log_event(LOG_DEBUG, &c->id, "ended", "reason=%s state=%s", end_reason_text(reason), state_rows[c->state].name);
	if (carrier_moves(c->carrier) && c->state != CONNECTION_HANDSHAKING && c->state != CONNECTION_PARKED)
		tell_ended(c);
	c->carrier->ops->end(c->carrier, reason, how);
	connection_release(c, reason);
}

/* Its link is lost: from now on it seals nothing (law 7). */
static void leave_lost(struct connection *c)
{
	audit_left(AUDIT_LOST, c->id.bytes, c->epoch);
	if (mutant("lost-owner-seals"))
		connection_send_alert(c, TLS_ALERT_FATAL, TLS_ALERT_INTERNAL_ERROR);
}

void connection_drop_unowned(struct connection *c, struct connection_event *e)
{
	if (c->live && e->reason == END_AGENT_LOST)
		leave_lost(c);
	connection_release(c, e->reason);
}

/* Nobody here begins below what RAgent has confirmed, and an honest RAgent does not ask for that. The rest may be lost
 * with the link: to refuse that, too, would end the connections of an honest RAgent (doc/trust.md). */
static void note_confirmed(struct connection *c)
{
	struct seen_mark at = connection_sealed_mark(c);
	const ptrdiff_t less = c->carrier->ops->unconfirmed ? c->carrier->ops->unconfirmed(c->carrier) : -1;

	/* a KeyUpdate under way was of the generation before */
	if (less < 0 || (uint64_t)less > at.write_sequence || live_due(c->live) == LIVE_WAITS_FOR_COMMIT ||
		live_has_record_nonce(c->live) || mutant("confirmed-forgotten"))
		return;
	at.write_sequence -= (uint64_t)less;
	cluster_note(c->home->cluster, &c->id, &at);
}

void connection_drop_owned(struct connection *c, struct connection_event *e)
{
	if (e->reason == END_AGENT_LOST) {
		note_confirmed(c);
		leave_lost(c);
	} else if (carrier_moves(c->carrier))
		tell_ended(c);
	connection_release(c, e->reason);
}

void connection_superseded(void *ctx, const struct connection_id *id, uint16_t of)
{
	struct connection_home *home = ctx;
	struct connection *c = connection_table_find_sealing(&home->table, id);

	if (!c || c->epoch > of)
		return; /* it has gone meanwhile */
	count(COUNT_OWNERS_SUPERSEDED);
	log_paced(LOG_WARNING, id, "superseded", "epoch=%u other_epoch=%u cause=\"another agent owns it, too\"",
		c->epoch, of);
	/* here at least nobody goes back behind it, also when memory is short */
	const struct seen_mark sealed = connection_sealed_mark(c);
	if (!live_has_record_nonce(c->live))
		cluster_note(home->cluster, &c->id, &sealed);
	leave_lost(c);
	c->carrier->ops->end(c->carrier, END_MOVE_UNSAFE, CARRIER_ABORT);
	connection_release(c, END_MOVE_UNSAFE);
}

void connection_abort_handshake(struct connection *c, struct connection_event *e)
{
	connection_end(c, e->reason, CARRIER_ABORT);
}

/* Sends OpenSSL's records to the carrier: handshake records, tickets, its alert. */
static int send_handshake_output(struct connection *c)
{
	const uint8_t *data;
	struct tls_record_run run;
	int r;

	while ((r = handshake_output_run(c->handshake, FRAME_PAYLOAD_MAX, &data, &run)) == 0 && run.len > 0) {
		uint8_t *room = c->carrier->ops->reserve(c->carrier, run.len);
		if (!room)
			return CSSL_E_NO_MEMORY;
		memcpy(room, data, run.len);
		c->carrier->ops->send(c->carrier, run.len, 0);
		c->sent += run.len;
		c->server_records += run.records;
		handshake_output_taken(c->handshake, run.len);
	}
	return r;
}

static void on_pulled(void *ctx, enum session_answer answer);

/* 0: a pull is under way. Else the handshake goes on without the session. */
static int connection_park(struct connection *c)
{
	struct connection_home *home = c->home;
	struct session_source *source = cluster_session_source(home->cluster);

	if (home->parked >= home->conf->broadcast.parked_max) {
		count(COUNT_PARKS_REFUSED);
		log_paced(LOG_INFO, &c->id, "session not asked for",
			"cause=\"too many handshakes wait\" limit=%u remedy=broadcast.parked_max", home->parked);
		return CSSL_E_FULL;
	}
	c->pull = source->pull(source, home->worker, handshake_wanted_id(c->handshake), on_pulled, c);
	if (!c->pull)
		return CSSL_E_NO_MEMORY;
	connection_to(c, CONNECTION_PARKED);
	home->parked++;
	return 0;
}

static void handshake_failed(struct connection *c)
{
	log_paced(LOG_INFO, &c->id, "handshake failed", "cause=%s", handshake_error(c->handshake));
	count(COUNT_HANDSHAKES_FAILED);
	connection_count_offered_certificate(c);
	send_handshake_output(c);
	connection_end(c, END_HANDSHAKE_FAILED, CARRIER_ORDERLY);
}

/* Does the work that follows a step of the handshake. Returns 0 while the handshake wants records. */
static int after_step(struct connection *c, int step)
{
	if (step < 0) {
		handshake_failed(c);
		return step;
	}
	if (send_handshake_output(c) < 0) {
		connection_end(c, END_INTERNAL, CARRIER_ABORT);
		return CSSL_E_NO_MEMORY;
	}
	if (step == HANDSHAKE_PARKED)
		return connection_park(c) == 0 ? HANDSHAKE_PARKED : after_step(c, handshake_continue(c->handshake));
	if (step == HANDSHAKE_DONE) {
		if (fault_at("handshake.before_export", NULL, NULL) == FAULT_FAIL || connection_export(c) < 0)
			connection_end(c, END_INTERNAL, CARRIER_ABORT);
		else
			fault_at("handshake.exported", NULL, NULL);
		return HANDSHAKE_DONE;
	}
	return 0;
}

static void violated_in_handshake(struct connection *c)
{
	const struct tls_record_header bad = { c->bad.type, c->bad.version, c->bad.length };

	count(COUNT_RECORD_VIOLATIONS);
	bool said = handshake_violation(c->handshake, &bad) < 0 && send_handshake_output(c) == 0;
	log_paced(LOG_INFO, &c->id, "handshake failed", "cause=%s", handshake_error(c->handshake));
	connection_end(c, END_RECORD_VIOLATION, said ? CARRIER_ORDERLY : CARRIER_ABORT);
}

/* The client has sent its last record, and the handshake is not complete: end it, unless earlier records still wait. */
static void take_tail(struct connection *c)
{
	if (c->state == CONNECTION_HANDSHAKING && turn_waiter_waits(handshake_waiter(c->handshake)))
		return; /* earlier records still wait */
	if (c->tail == TAIL_FIN)
		connection_end(c, END_CLIENT_CLOSED, CARRIER_ORDERLY);
	else if (c->state == CONNECTION_HANDSHAKING)
		violated_in_handshake(c);
}

void connection_take_tail_unfinished(struct connection *c, struct connection_event *e)
{
	connection_keep_tail(c, e);
	take_tail(c);
}

/* A client with a long chain of certificates sends more than a window. Without credit it would stop in the middle. */
static void report_handshake(struct connection *c)
{
	const struct frame_consumed consumed = { .client_records = c->client_records };

	if (c->record_bytes - c->reported_bytes < c->home->window_len / 2)
		return;
	c->reported_bytes = c->record_bytes;
	c->carrier->ops->consumed(c->carrier, &consumed, 0);
}

/* @record NULL: the session that it was parked for has come. */
static int work_on_handshake(struct connection *c, const struct tls_record *record)
{
	const uint64_t before = uv_hrtime();
	const int step = record ? handshake_feed(c->handshake, record->bytes, tls_record_len(record))
				: handshake_continue(c->handshake);

	c->handshake_ns += (uint32_t)(uv_hrtime() - before);
	return step;
}

/* 1: this turn has used its time for handshakes; a later one calls connection_take_turn(). */
static bool waits_for_its_turn(struct connection *c)
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
static void feed_handshake(struct connection *c)
{
	uint32_t used = 0, count = 0;

	while (used < c->input_len && c->state == CONNECTION_HANDSHAKING && !waits_for_its_turn(c)) {
		struct tls_record record;
		used = connection_input_record(c, used, &record);
		count++;
		c->client_records++;
		c->record_bytes += tls_record_len(&record);
		int step = work_on_handshake(c, &record);
		if (after_step(c, step) != 0)
			break;
	}
	if (c->state == CONNECTION_ENDED)
		return;
	connection_input_used(c, used, count);
	if (c->state == CONNECTION_HANDSHAKING && c->tail != TAIL_NONE) {
		take_tail(c);
	} else if (connection_is_handshaking(c)) {
		handshake_rest(c->handshake);
		report_handshake(c);
	} else if (c->state == CONNECTION_OWNER) {
		connection_stand_here(c);
		connection_start_owning(c);
	} else if (c->state == CONNECTION_FROZEN) {
		connection_input_drop(c); /* RAgent sends it again to the successor */
	}
}

void connection_shake_hands(struct connection *c, struct connection_event *e)
{
	connection_keep_records(c, e);
	if (c->state != CONNECTION_ENDED)
		feed_handshake(c);
}

/* The session that it was parked for has come, or no agent has it. */
static void continue_parked(struct connection *c)
{
	if (after_step(c, work_on_handshake(c, NULL)) >= 0 && c->state != CONNECTION_ENDED)
		feed_handshake(c);
}

void connection_shake_hands_on(struct connection *c, struct connection_event *e)
{
	if (handshake_is_parked(c->handshake))
		continue_parked(c);
	else
		feed_handshake(c);
}

void connection_unpark(struct connection *c, struct connection_event *e)
{
	c->pull = NULL;
	c->home->parked--;
	if (e->answer != SESSION_FOUND)
		count(COUNT_PULLS_MISSED);
	handshake_pulled(c->handshake, e->answer);
	connection_to(c, CONNECTION_HANDSHAKING);
	if (!waits_for_its_turn(c))
		continue_parked(c);
}

static void on_pulled(void *ctx, enum session_answer answer)
{
	connection_happens(ctx, &(struct connection_event){ .kind = EVENT_PULLED, .answer = answer });
}

/* RAgent has such a limit, too. But there may be several RAgents, and clients that come without one. */
static int take_handshake_place(struct connection *c)
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
		connection_release(c, END_INTERNAL);
		return NULL;
	}
	connection_home_count_handshakes(home, 1);
	int r = take_handshake_place(c);
	if (r == 0)
		return c;
	*why = r == CSSL_E_FULL ? END_LIMIT_HANDSHAKES : END_INTERNAL;
	connection_release(c, *why);
	return NULL;
}

bool connection_is_idle(const struct connection *c)
{
	return c->state == CONNECTION_OWNER && c->to_backend > 0 && c->input_len == 0 && connection_at_checkpoint(c);
}

bool connection_is_handshaking(const struct connection *c)
{
	return c->state == CONNECTION_HANDSHAKING || c->state == CONNECTION_PARKED;
}

const char *connection_cause(const struct connection *c)
{
	return c->handshake ? handshake_error(c->handshake) : "";
}

bool connection_is_ending(const struct connection *c)
{
	return c->state == CONNECTION_ENDING;
}

bool connection_is_frozen(const struct connection *c)
{
	return c->state == CONNECTION_FROZEN;
}
