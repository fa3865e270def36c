/* connection_settle.c: a MOVE whose backend half cannot follow waits for a checkpoint: requests that have begun are
 * finished and answered, and no byte of a later one goes to the backend. The record in which the last of them ends
 * may contain the beginning of the next. The successor gets that record again, with the offset up to which it was
 * used.
 */
#include <stdlib.h>

#include "net/container_of.h"
#include "net/fault.h"
#include "proto/error.h"
#include "sslagent/connection/connection_internal.h"

struct connection_settling {
	struct connection *connection;
	struct deadline deadline;
	/* plaintext of the last opened record, from the next request on */
	struct kept_bytes *held;
	size_t record_len; /* of that record */
	enum settling wanted;
	struct ordered_move order;
	enum end_reason reason; /* of the end */
};

bool connection_holds(const struct connection *c)
{
	return c->settling && c->settling->held;
}

void connection_hold(struct connection *c, const struct live_record *r, size_t taken, size_t record_len)
{
	struct connection_settling *s = c->settling;

	if (connection_keep(&s->held, r->data + taken, r->len - taken) < 0) {
		connection_finish(c, LAST_INTERNAL_ERROR, END_INTERNAL);
		return;
	}
	s->record_len = record_len;
	c->client_records--;
	c->record_bytes -= record_len;
	c->skip = (uint32_t)taken;
}

/* Give the held bytes to the backend after all. */
static void release_held(struct connection *c, struct connection_settling *s)
{
	if (!s->held)
		return;
	c->client_records++;
	c->record_bytes += s->record_len;
	c->skip = 0;
	if (connection_give_to_backend(c, s->held->bytes, s->held->len) < 0)
		connection_backend_unreachable(c);
}

static void settling_destroy(struct connection_settling *s)
{
	deadline_cancel(&s->deadline);
	connection_wipe(&s->held);
	free(s);
}

void connection_drop_settling(struct connection *c)
{
	if (c->settling)
		settling_destroy(c->settling);
	c->settling = NULL;
}

static void go_on(struct connection *c, const char *why)
{
	struct connection_settling *s = c->settling;

	c->settling = NULL;
	connection_to(c, CONNECTION_OWNER);
	if (s->wanted != SETTLES_TO_END)
		connection_stay(c, why);
	release_held(c, s);
	settling_destroy(s);
	if (c->state != CONNECTION_OWNER)
		return;
	connection_mark(c);
	connection_pump(c);
}

static void on_deadline(struct deadline *d)
{
	const struct connection_settling *s = container_of(d, struct connection_settling, deadline);

	connection_happens(s->connection, &(struct connection_event){ .kind = EVENT_SETTLING_LATE });
}

void connection_settle_no_longer(struct connection *c, struct connection_event *e)
{
	struct connection_settling *s = c->settling;

	const bool is_late = worker_now_ms(c->home->worker) >= s->order.until_ms;
	const bool is_amid = service_outstanding(&c->service) > 0 || service_place(&c->service) == SERVICE_ANSWERING;

	if (s->wanted == SETTLES_TO_MOVE || (s->wanted == SETTLES_TO_STRAND && is_amid && is_late)) {
		go_on(c, "no checkpoint came in time");
	} else if (is_amid) { /* of an end, RAgent has a limit */
		deadline_set(c->home->worker, &s->deadline, LEAVE_MS);
	} else if (s->wanted == SETTLES_TO_END) {
		connection_finish(c, LAST_FAREWELL, s->reason);
	} else {
		connection_release_backend(c, END_DONE);
		connection_hand_off(c, CSSL__BACKEND_HALF__BACKEND_NONE);
	}
}

/* 0 or CSSL_E_NO_MEMORY. */
static int begin(struct connection *c, enum settling wanted, const struct ordered_move *order, enum end_reason reason)
{
	const uint64_t now_ms = worker_now_ms(c->home->worker), within_ms = order->until_ms - now_ms;
	struct connection_settling *s = calloc(1, sizeof *s);

	if (!s)
		return CSSL_E_NO_MEMORY;
	*s = (struct connection_settling){
		.connection = c, .deadline.fn = on_deadline, .wanted = wanted, .order = *order, .reason = reason
	};
	deadline_set(c->home->worker, &s->deadline,
		wanted != SETTLES_TO_MOVE && within_ms > LEAVE_MS ? LEAVE_MS : within_ms);
	c->settling = s;
	connection_to(c, CONNECTION_SETTLING);
	fault_at("move.settling", NULL, NULL);
	service_wind_down(&c->service);
	connection_say_words(c);
	return 0;
}

void connection_settle(struct connection *c, enum settling wanted, const struct ordered_move *order)
{
	if (begin(c, wanted, order, END_DONE) < 0)
		connection_stay(c, cssl_strerror(CSSL_E_NO_MEMORY));
}

void connection_leave(struct connection *c, enum end_reason reason)
{
	const struct ordered_move order = { .until_ms = worker_now_ms(c->home->worker) + LEAVE_MS };

	if (begin(c, SETTLES_TO_END, &order, reason) < 0)
		connection_finish(c, LAST_FAREWELL, reason);
}

/* Unopened records come again to the successor. */
static void leave_if_settled(struct connection *c)
{
	const struct ordered_move order = c->settling->order;

	if (!connection_at_checkpoint(c))
		return;
	connection_drop_settling(c);
	connection_to(c, CONNECTION_OWNER);
	connection_leave_settled(c, &order);
}

void connection_hand_off_if_settled(struct connection *c)
{
	if (c->state != CONNECTION_SETTLING)
		return;
	if (service_traits_now(&c->service)->following == SERVICE_NOT_FOLLOWED) {
		go_on(c, "it became opaque");
		return;
	}
	if (service_stands_between(&c->service)) {
		leave_if_settled(c);
		return;
	}
	if (!connection_at_checkpoint(c) || (c->backend && !connection_backend_may_stay(c)))
		return;
	if (c->settling->wanted == SETTLES_TO_END && c->input_len) /* it may have a request that crossed the GOAWAY */
		return;
	if (c->settling->wanted == SETTLES_TO_END || connection_backend_is_alone(c)) {
		connection_finish(c, LAST_FAREWELL, c->settling->reason); /* the client has seen that it has to leave */
		return;
	}
	connection_reuse_backend(c);
	connection_release_backend(c, END_DONE);
	connection_hand_off(c, CSSL__BACKEND_HALF__BACKEND_NONE);
}
