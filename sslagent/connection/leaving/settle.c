/* settle.c: a MOVE whose backend half cannot follow waits for a checkpoint: requests that have begun are finished and
 * answered, and no byte of a later one goes to the backend. The record in which the last of them ends may contain the
 * beginning of the next. The successor gets that record again, with the offset up to which it was used.
 */
#include "sslagent/connection/leaving/settle.h"

#include <stdlib.h>

#include "net/memory/container_of.h"
#include "net/points/fault.h"
#include "proto/error.h"
#include "sslagent/connection/flow/consumed.h"
#include "sslagent/connection/flow/flow.h"
#include "sslagent/connection/leaving/hand_off.h"

struct settling {
	struct interlude interlude; /* its bytes: plaintext of the last opened record, from the next request on */
	struct connection *connection;
	struct deadline deadline;
	enum settle_to wanted;
	struct ordered_move order;
	settle_reached *reached;
	enum end_reason reason; /* of the end */
};

static struct settling *settling_of(const struct connection *c)
{
	return container_of(c->interlude, struct settling, interlude);
}

static void settle_drop(struct interlude *i)
{
	struct settling *s = container_of(i, struct settling, interlude);

	deadline_cancel(&s->deadline);
	free(s);
}

static void settle_stay(struct connection *c, const char *why)
{
	struct settling *s = settling_of(c);

	c->interlude = NULL;
	connection_to(c, CONNECTION_OWNER);
	if (s->wanted != SETTLES_TO_END)
		hand_off_refuse(c, why);
	from_client_give_held(c, &s->interlude);
	kept_bytes_wipe(&s->interlude.kept);
	settle_drop(&s->interlude);
	if (c->state != CONNECTION_OWNER)
		return;
	consumed_opened(c);
	flow_go_on(c);
}

static void settle_on_deadline(struct deadline *d)
{
	const struct settling *s = container_of(d, struct settling, deadline);

	s->connection->home->up->happens(s->connection, &(struct connection_event){ .kind = EVENT_SETTLING_LATE });
}

void settle_is_late(struct connection *c, struct connection_event *e)
{
	struct settling *s = settling_of(c);

	const bool is_late = worker_now_ms(c->home->worker) >= s->order.until_ms;
	const bool is_amid = service_outstanding(&c->service) > 0 || service_place(&c->service) == SERVICE_ANSWERING;

	if (s->wanted == SETTLES_TO_MOVE || (s->wanted == SETTLES_TO_STRAND && is_amid && is_late)) {
		settle_stay(c, "no checkpoint came in time");
	} else if (is_amid) { /* of an end, RAgent has a limit */
		deadline_set(c->home->worker, &s->deadline, LEAVE_MS);
	} else if (s->wanted == SETTLES_TO_END) {
		words_finish(c, LAST_FAREWELL, s->reason);
	} else {
		conversation_release(c, END_DONE);
		hand_off_connection(c, CSSL__BACKEND_HALF__BACKEND_NONE, HEIR_NOW);
	}
}

/* Unopened records come again to the successor. */
static void settle_leave(struct connection *c)
{
	const struct ordered_move order = settling_of(c)->order;
	settle_reached *const reached = settling_of(c)->reached;

	if (!conversation_at_checkpoint(c))
		return;
	connection_drop_interlude(c);
	connection_to(c, CONNECTION_OWNER);
	reached(c, &order);
}

/* Is it settled now? Then it goes. */
static void settle_look(struct connection *c)
{
	const struct settling *s = settling_of(c);

	if (service_traits_now(&c->service)->following == SERVICE_NOT_FOLLOWED) {
		settle_stay(c, "it became opaque");
		return;
	}
	if (service_stands_between(&c->service)) {
		settle_leave(c);
		return;
	}
	if (!conversation_at_checkpoint(c) || (c->backend && !conversation_backend_may_stay(c)))
		return;
	if (s->wanted == SETTLES_TO_END && c->input.len) /* it may have a request that crossed the GOAWAY */
		return;
	if (s->wanted == SETTLES_TO_END || conversation_is_tied(c)) {
		words_finish(c, LAST_FAREWELL, s->reason); /* the client has seen that it has to leave */
		return;
	}
	conversation_reuse(c);
	conversation_release(c, END_DONE);
	hand_off_connection(c, CSSL__BACKEND_HALF__BACKEND_NONE, HEIR_NOW);
}

static const struct interlude_ops settle_ops = { .drop = settle_drop, .look = settle_look };

static void settle_start(struct connection *c, enum settle_to wanted, const struct ordered_move *order,
	enum end_reason reason, settle_reached *reached)
{
	const uint64_t now_ms = worker_now_ms(c->home->worker), within_ms = order->until_ms - now_ms;
	struct settling *s = calloc(1, sizeof *s);

	if (!s) {
		if (wanted == SETTLES_TO_END)
			words_finish(c, LAST_FAREWELL, reason);
		else
			hand_off_refuse(c, cssl_strerror(CSSL_E_NO_MEMORY));
		return;
	}
	*s = (struct settling){ .interlude.ops = &settle_ops,
		.connection = c,
		.deadline.fn = settle_on_deadline,
		.wanted = wanted,
		.order = *order,
		.reason = reason,
		.reached = reached };
	deadline_set(c->home->worker, &s->deadline,
		wanted != SETTLES_TO_MOVE && within_ms > LEAVE_MS ? LEAVE_MS : within_ms);
	c->interlude = &s->interlude;
	connection_to(c, CONNECTION_SETTLING);
	fault_at("move.settling", NULL, NULL);
	service_wind_down(&c->service);
	words_say(c);
}

void settle_begin(
	struct connection *c, enum settle_to wanted, const struct ordered_move *order, settle_reached *reached)
{
	settle_start(c, wanted, order, END_DONE, reached);
}

/* OWNER, at a checkpoint of a service that asks its client to leave: when the client has seen that, and all that it
 * asked meanwhile is answered, the connection ends in order. */
static void settle_to_end(struct connection *c, enum end_reason reason)
{
	const struct ordered_move order = { .until_ms = worker_now_ms(c->home->worker) + LEAVE_MS };

	settle_start(c, SETTLES_TO_END, &order, reason, NULL);
}

/* The end, after the last words of its service. */
static void settle_part(struct connection *c, enum end_reason reason)
{
	const bool is_late = reason == END_IDLE_TIMEOUT || reason == END_BACKEND_TIMEOUT;
	const enum service_parting why = is_late                    ? SERVICE_TIMED_OUT
					 : reason == END_OVERLOADED ? SERVICE_OVERLOADED
								    : SERVICE_LEAVES;

	service_end(&c->service, why);
	words_finish(c, LAST_CLOSE_NOTIFY, reason);
}

void settle_give_up(struct connection *c, struct connection_event *e)
{
	const bool stands_between = service_stands_between(&c->service);

	/* a verdict has a longer limit than silence; when that is over, the carrier comes again with another reason */
	if (e->reason == END_IDLE_TIMEOUT && stands_between && service_awaits_verdict(&c->service))
		return;
	if (stands_between)
		settle_part(c, e->reason);
	else if (c->state == CONNECTION_OWNER && e->reason != END_OVERLOADED && conversation_is_tied(c))
		settle_to_end(c, e->reason);
	else /* close_notify would certify that nothing was cut off (law 8) */
		words_finish(c, conversation_cuts_nothing(c) ? LAST_FAREWELL : LAST_INTERNAL_ERROR, e->reason);
}
