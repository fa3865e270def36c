/* move.c: an ordered move. With an open backend conversation, both directions stop, the backend takes the bytes that it
 * was sent, and its socket goes to the target agent. Then hand_off.c freezes the connection.
 */
#include "sslagent/connection/leaving/move.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/memory/container_of.h"
#include "net/points/fault.h"
#include "proto/error.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/connection/flow/between.h"
#include "sslagent/connection/flow/consumed.h"
#include "sslagent/connection/flow/flow.h"
#include "sslagent/connection/leaving/hand_off.h"
#include "sslagent/connection/leaving/settle.h"
#include "sslagent/connection/succession.h"
#include "sslagent/counters.h"

#define DRAIN_BACKEND_MS 2000u

/* A move with an open backend conversation. */
struct pass {
	struct interlude interlude;
	struct connection *connection; /* NULL: it has ended */
	struct ordered_move order;
	enum { PASS_DRAINING, PASS_UNDER_WAY, PASS_ANSWERED } step;
};

static struct pass *pass_of(const struct connection *c)
{
	return container_of(c->interlude, struct pass, interlude);
}

static void pass_drop(struct interlude *i)
{
	struct pass *pass = container_of(i, struct pass, interlude);

	if (pass->step == PASS_UNDER_WAY)
		pass->connection = NULL; /* pass_on_answer frees it */
	else
		free(pass);
}

static const struct interlude_ops pass_ops = { .drop = pass_drop };

/* The backend half cannot follow: the move waits for a checkpoint, if there is time and a checkpoint will come. */
static void move_stay_or_settle(struct connection *c, const struct ordered_move *order, const char *why)
{
	if (order->until_ms > worker_now_ms(c->home->worker) &&
		service_traits_now(&c->service)->following == SERVICE_FOLLOWED)
		settle_begin(c, SETTLES_TO_MOVE, order, NULL);
	else
		hand_off_refuse(c, why);
}

/* --- a service that stands between moves at checkpoints --- */

static void move_without_backend(struct connection *c)
{
	if (!service_may_begin_anew(&c->service)) {
		service_end(&c->service, SERVICE_LEAVES);
		between_step(c);
		return;
	}
	succession_leave_word(c);
	conversation_release(c, END_DONE);
	hand_off_connection(c, CSSL__BACKEND_HALF__BACKEND_NONE, HEIR_NOW);
}

/* --- the backend half goes along --- */

/* It stays owner: report what the backend took meanwhile, and both directions go on. */
static void pass_failed(struct connection *c, const char *why)
{
	const struct ordered_move order = pass_of(c)->order;

	connection_drop_interlude(c);
	connection_to(c, CONNECTION_OWNER);
	if (service_stands_between(&c->service)) {
		move_without_backend(c);
		return;
	}
	move_stay_or_settle(c, &order, why);
	consumed_opened(c);
	flow_go_on(c);
}

static void pass_answered(struct connection *c, int error)
{
	if (error == 0) {
		fault_at("move.passed", NULL, NULL);
		connection_drop_interlude(c);
		hand_off_connection(c, CSSL__BACKEND_HALF__BACKEND_PASSED, HEIR_NOW);
	} else {
		pass_failed(c, cssl_strerror(error));
	}
}

static void pass_on_answer(void *ctx, int error)
{
	struct pass *pass = ctx;

	pass->step = PASS_ANSWERED;
	if (pass->connection)
		pass->connection->home->up->happens(
			pass->connection, &(struct connection_event){ .kind = EVENT_PASSED, .error = error });
	else
		free(pass);
}

static void pass_loses_backend(struct connection *c, struct connection_event *e)
{
	connection_drop_interlude(c);
	deadline_cancel(&c->deadline);
	connection_to(c, CONNECTION_OWNER);
	hand_off_refuse(c, "the backend ended");
	flow_lose_backend(c, e);
	flow_go_on(c); /* the deadline has its old purpose again */
}

static void pass_now(struct connection *c)
{
	struct passed_backend p;
	struct pass *pass = pass_of(c);

	deadline_cancel(&c->deadline);
	int r = conversation_describe(c, &p);
	if (r == CSSL_E_STATE)
		pass->order.until_ms =
			0; /* the service is amid a change of its own: the next order finds it behind that */
	if (r < 0) {
		pass_failed(c, cssl_strerror(r));
		return;
	}
	pass->step = PASS_UNDER_WAY;
	p.next_epoch = pass->order.next_epoch;
	cluster_pass_backend(c->home->cluster, c->home->worker, pass->order.target, &p, pass_on_answer, pass);
}

/* Stop both directions, let the backend take the bytes that it was sent, pass its socket, then freeze. */
static void move_pass(struct connection *c, const struct ordered_move *order)
{
	struct pass *pass = calloc(1, sizeof *pass);

	if (!pass) {
		hand_off_refuse(c, cssl_strerror(CSSL_E_NO_MEMORY));
		return;
	}
	consumed_report(c); /* the deadline gets another purpose now */
	*pass = (struct pass){ .interlude.ops = &pass_ops, .connection = c, .order = *order };
	c->interlude = &pass->interlude;
	connection_to(c, CONNECTION_PASSING);
	backend_read_off(c->backend);
	if (c->written == c->to_backend) {
		pass_now(c);
		return;
	}
	deadline_set(c->home->worker, &c->deadline, DRAIN_BACKEND_MS);
}

void move_passing(struct connection *c, struct connection_event *e)
{
	switch (e->kind) {
	case EVENT_GIVE_UP:
		connection_drop_interlude(c);
		settle_give_up(c, e);
		return;
	case EVENT_BACKEND_WRITTEN:
		conversation_count_written(c, e);
		if (c->written == c->to_backend)
			pass_now(c);
		return;
	case EVENT_BACKEND_ENDED: pass_loses_backend(c, e); return;
	case EVENT_DEADLINE: pass_failed(c, "the backend does not take what was sent"); return;
	case EVENT_PASSED: pass_answered(c, e->error); return;
	default: assert(!"an event that another part takes");
	}
}

/* At a checkpoint. */
static void move_at_checkpoint(struct connection *c, const struct ordered_move *order)
{
	if (!c->backend) {
		succession_leave_word(c);
		hand_off_connection(c, CSSL__BACKEND_HALF__BACKEND_NONE, HEIR_NOW);
	} else if (cluster_can_pass_to(c->home->cluster, order->target)) {
		move_pass(c, order);
	} else {
		move_without_backend(c);
	}
}

static void move_between(struct connection *c, const struct ordered_move *order)
{
	if (conversation_at_checkpoint(c))
		move_at_checkpoint(c, order);
	else if (order->until_ms)
		settle_begin(c, SETTLES_TO_MOVE, order, move_at_checkpoint);
	else
		hand_off_refuse(c, "in the midst of a mail");
}

/* --- MOVE --- */

static bool move_may_rest(const struct connection *c)
{
	return service_traits_now(&c->service)->rest == SERVICE_MAY_REST && conversation_at_checkpoint(c) &&
	       c->input.len == 0 && live_unfinished(c->live) == 0 && c->skip == 0 && c->tail == TAIL_NONE &&
	       c->consumed.pace == CLIENT_GOES_ON && (!c->backend || conversation_backend_may_stay(c));
}

static void move_to_rest(struct connection *c)
{
	if (!move_may_rest(c)) {
		hand_off_refuse(c, "not at a checkpoint");
		return;
	}
	conversation_reuse(c);
	conversation_release(c, END_DONE);
	count(COUNT_RESTED);
	hand_off_connection(c, CSSL__BACKEND_HALF__BACKEND_NONE, HEIR_AT_WAKE);
}

void move_order(struct connection *c, struct connection_event *e)
{
	const Cssl__LinkMove *move = e->move;
	struct ordered_move order = { .next_epoch = (uint16_t)move->next_epoch };

	if (!succession_is_possible(c)) {
		hand_off_refuse(c, NOT_AN_OWNER);
		return;
	}
	if (move->cause == CSSL__CAUSE__CAUSE_REST) {
		move_to_rest(c);
		return;
	}
	snprintf(order.target, sizeof order.target, "%s", move->target);
	if (move->deadline_ms)
		order.until_ms = worker_now_ms(c->home->worker) + move->deadline_ms;
	if (service_stands_between(&c->service)) {
		move_between(c, &order);
		return;
	}
	if (c->head && conversation_ensure(c) < 0) { /* the backend half has to have a backend */
		hand_off_refuse(c, "no connection to the backend");
		return;
	}
	/* a backend connection that nobody waits for stays behind, unless only it can go on with the conversation */
	bool can_pass = cluster_can_pass_to(c->home->cluster, move->target);
	const bool is_alone = conversation_is_tied(c);
	if (c->backend && conversation_backend_may_stay(c) && !is_alone)
		conversation_release(c, END_DONE);
	if (!c->backend)
		hand_off_connection(c, CSSL__BACKEND_HALF__BACKEND_NONE, HEIR_NOW);
	else if (can_pass)
		move_pass(c, &order);
	else if (is_alone && order.until_ms)
		settle_begin(c, SETTLES_TO_STRAND, &order, NULL);
	else
		move_stay_or_settle(c, &order, "the target agent is on another host");
}
