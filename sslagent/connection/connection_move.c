/* connection_move.c: an ordered move. With an open backend conversation, both directions stop, the backend takes the
 * bytes that it was sent, and its socket goes to the target agent. Then one function freezes the connection and
 * sends HANDED_OFF.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/fault.h"
#include "net/mutant.h"
#include "proto/error.h"
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"

/* The next owner: an agent now, or any agent when the client's next record comes. */
enum heir { HEIR_NOW, HEIR_AT_WAKE };

/* For tests: a frozen owner that still sends a record that it never sealed. */
static void say_forged(struct connection *c)
{
	static const uint8_t forged[TLS_RECORD_HEADER_LEN + 32] = { TLS_APPLICATION_DATA, 3, 3, 0, 32 };
	uint8_t *room = c->carrier->ops->reserve(c->carrier, sizeof forged);

	if (!room)
		return;
	memcpy(room, forged, sizeof forged);
	c->carrier->ops->send(c->carrier, sizeof forged, 0);
}

static void hand_off_to(struct connection *c, Cssl__BackendHalf backend, enum heir heir)
{
	struct sess_obj obj;
	struct live_part part;
	int r = connection_facts(c, &obj);

	if (r < 0) {
		connection_end(c, END_INTERNAL, CARRIER_ABORT);
		return;
	}
	assert(!c->head); /* it is at a checkpoint, or a backend has it */
	live_freeze(c->live, &part);
	cluster_leave(c->home->cluster, &c->id, c->epoch);
	part.read_sequence -= connection_holds(c) ? 1 : 0; /* its record is sent again, too */
	connection_to(c, CONNECTION_FROZEN);
	deadline_cancel(&c->deadline);
	connection_drop_settling(c);
	connection_input_drop(c); /* RAgent sends unopened records again */
	connection_drop_asked(c);
	connection_weigh(c);
	fault_at("move.frozen", NULL, NULL);
	r = connection_announce(c, FRAME_HANDED_OFF, &obj, &part, NULL, backend);
	if (fault_at("move.said", NULL, NULL) == FAULT_FAIL)
		say_forged(c);
	if (mutant("frozen-owner-seals"))
		connection_send_alert(c, TLS_ALERT_WARNING, TLS_ALERT_NO_RENEGOTIATION);
	const struct seen_mark at = connection_sealed_mark(c);
	if (r == 0 && heir == HEIR_NOW && !mutant("freeze-untold"))
		connection_tell_peers(c, &obj);
	else if (r == 0 && heir == HEIR_AT_WAKE) /* no agent keeps anything of it, except where it stopped */
		cluster_tell_stopped(c->home->cluster, c->home->worker, &c->id, &at, SEEN_RESTS);
	live_part_wipe(&part);
	obj.live = NULL;
	sess_obj_destroy(&obj);
	if (r < 0)
		connection_end(c, END_INTERNAL, CARRIER_ABORT);
	else
		count(COUNT_HANDED_OFF);
}

void connection_hand_off(struct connection *c, Cssl__BackendHalf backend)
{
	hand_off_to(c, backend, HEIR_NOW);
}

void connection_stay(struct connection *c, const char *why)
{
	count(COUNT_MOVES_REFUSED);
	c->carrier->ops->refused(c->carrier, CSSL__LINK_REFUSED__REASON__CANNOT_MOVE, why);
}

/* The backend half cannot follow: the move waits for a checkpoint, if there is time and a checkpoint will come. */
static void stay_or_settle(struct connection *c, const struct ordered_move *order, const char *why)
{
	if (order->until_ms > worker_now_ms(c->home->worker) &&
		service_traits_now(&c->service)->following == SERVICE_FOLLOWED)
		connection_settle(c, SETTLES_TO_MOVE, order);
	else
		connection_stay(c, why);
}

/* --- the backend half goes along --- */

#define DRAIN_BACKEND_MS 2000u

/* It stays owner: report what the backend took meanwhile, and both directions go on. */
static void pass_failed(struct connection *c, const char *why)
{
	const struct ordered_move order = c->pass->order;

	connection_drop_pass(c);
	connection_to(c, CONNECTION_OWNER);
	if (service_stands_between(&c->service)) {
		connection_leave_without_backend(c);
		return;
	}
	stay_or_settle(c, &order, why);
	connection_mark(c);
	connection_pump(c);
}

void connection_pass_answered(struct connection *c, struct connection_event *e)
{
	if (e->error == 0) {
		fault_at("move.passed", NULL, NULL);
		connection_drop_pass(c);
		connection_hand_off(c, CSSL__BACKEND_HALF__BACKEND_PASSED);
	} else {
		pass_failed(c, cssl_strerror(e->error));
	}
}

static void on_passed(void *ctx, int error)
{
	struct connection_pass *pass = ctx;

	pass->step = PASS_ANSWERED;
	if (pass->connection)
		connection_happens(
			pass->connection, &(struct connection_event){ .kind = EVENT_PASSED, .error = error });
	else
		free(pass);
}

void connection_drop_pass(struct connection *c)
{
	if (c->pass && c->pass->step == PASS_UNDER_WAY)
		c->pass->connection = NULL; /* on_passed frees it */
	else
		free(c->pass);
	c->pass = NULL;
}

void connection_pass_loses_backend(struct connection *c, struct connection_event *e)
{
	connection_drop_pass(c);
	deadline_cancel(&c->deadline);
	connection_to(c, CONNECTION_OWNER);
	connection_stay(c, "the backend ended");
	connection_lose_backend(c, e);
	connection_pump(c); /* the deadline has its old purpose again */
}

void connection_finish_passing(struct connection *c, struct connection_event *e)
{
	connection_drop_pass(c);
	connection_finish_early(c, e);
}

static void pass_now(struct connection *c)
{
	struct passed_backend p;
	struct connection_pass *pass = c->pass;

	deadline_cancel(&c->deadline);
	int r = connection_describe_backend(c, &p);
	if (r == CSSL_E_STATE)
		pass->order.until_ms =
			0; /* the service is amid a change of its own: the next order finds it behind that */
	if (r < 0) {
		pass_failed(c, cssl_strerror(r));
		return;
	}
	pass->step = PASS_UNDER_WAY;
	p.next_epoch = pass->order.next_epoch;
	cluster_pass_backend(c->home->cluster, c->home->worker, pass->order.target, &p, on_passed, pass);
}

void connection_pass_goes_on(struct connection *c, struct connection_event *e)
{
	connection_count_written(c, e);
	if (c->written == c->to_backend)
		pass_now(c);
}

void connection_pass_is_late(struct connection *c, struct connection_event *e)
{
	pass_failed(c, "the backend does not take what was sent");
}

/* Stop both directions, let the backend take the bytes that it was sent, pass its socket, then freeze. */
void connection_begin_pass(struct connection *c, const struct ordered_move *order)
{
	c->pass = calloc(1, sizeof *c->pass);
	if (!c->pass) {
		connection_stay(c, cssl_strerror(CSSL_E_NO_MEMORY));
		return;
	}
	connection_report(c); /* the deadline gets another purpose now */
	*c->pass = (struct connection_pass){ .connection = c, .order = *order };
	connection_to(c, CONNECTION_PASSING);
	backend_read_off(c->backend);
	if (c->written == c->to_backend) {
		pass_now(c);
		return;
	}
	deadline_set(c->home->worker, &c->deadline, DRAIN_BACKEND_MS);
}

/* --- MOVE --- */

/* A service that is not followed has one checkpoint: the point before the first byte. There, a new connection to the
 * backend is as good as the old one. */
bool connection_backend_may_stay(const struct connection *c)
{
	return connection_at_checkpoint(c) && (service_traits_now(&c->service)->following == SERVICE_NOT_FOLLOWED ||
						      service_backend_reuse(&c->service) != SERVICE_BACKEND_USED_UP);
}

bool connection_backend_is_alone(const struct connection *c)
{
	return c->backend && service_backend_reuse(&c->service) == SERVICE_BACKEND_TIED;
}

static bool may_rest(const struct connection *c)
{
	return service_traits_now(&c->service)->rest == SERVICE_MAY_REST && connection_at_checkpoint(c) &&
	       c->input_len == 0 && live_unfinished(c->live) == 0 && c->skip == 0 && c->tail == TAIL_NONE &&
	       c->client_pace == CLIENT_GOES_ON && (!c->backend || connection_backend_may_stay(c));
}

static void rest(struct connection *c)
{
	if (!may_rest(c)) {
		connection_stay(c, "not at a checkpoint");
		return;
	}
	connection_reuse_backend(c);
	connection_release_backend(c, END_DONE);
	count(COUNT_RESTED);
	hand_off_to(c, CSSL__BACKEND_HALF__BACKEND_NONE, HEIR_AT_WAKE);
}

void connection_refuse_move(struct connection *c, struct connection_event *e)
{
	connection_stay(c, "not an owner that can move");
}

void connection_carry_out_move(struct connection *c, struct connection_event *e)
{
	const Cssl__LinkMove *move = e->move;
	struct ordered_move order = { .next_epoch = (uint16_t)move->next_epoch };

	if (!connection_can_move(c)) {
		connection_refuse_move(c, e);
		return;
	}
	if (move->cause == CSSL__CAUSE__CAUSE_REST) {
		rest(c);
		return;
	}
	snprintf(order.target, sizeof order.target, "%s", move->target);
	if (move->deadline_ms)
		order.until_ms = worker_now_ms(c->home->worker) + move->deadline_ms;
	if (service_stands_between(&c->service)) {
		connection_move_between(c, &order);
		return;
	}
	if (c->head && connection_ensure_backend(c) < 0) { /* the backend half has to have a backend */
		connection_stay(c, "no connection to the backend");
		return;
	}
	bool can_pass = cluster_can_pass_to(c->home->cluster, move->target);
	const bool is_alone = connection_backend_is_alone(c);
	if (c->backend && connection_backend_may_stay(c) && !is_alone)
		connection_release_backend(c, END_DONE);
	if (!c->backend)
		connection_hand_off(c, CSSL__BACKEND_HALF__BACKEND_NONE);
	else if (can_pass)
		connection_begin_pass(c, &order);
	else if (is_alone && order.until_ms)
		connection_settle(c, SETTLES_TO_STRAND, &order);
	else
		stay_or_settle(c, &order, "the target agent is on another host");
}
