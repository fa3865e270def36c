/* connection_between.c: a connection whose service stands between client and backend (service.h): the bytes of
 * either side go into the service, and its output goes on. Such a connection leaves a note with RAgent before any
 * effect that the note does not contain can be seen outside. It moves at checkpoints.
 */
#include <string.h>

#include <arpa/inet.h>

#include "net/fault.h"
#include "proto/error.h"
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"

/* --- who owns it --- */

static void fill_client(const struct connection *c, struct service_owner *o, char text[static INET6_ADDRSTRLEN])
{
	const struct client_address *a = &c->endpoints.client;
	const int family = a->len == 16 ? AF_INET6 : AF_INET;

	if (a->len == 0 || !inet_ntop(family, a->bytes, text, INET6_ADDRSTRLEN))
		return;
	o->client = text;
	o->client_port = c->endpoints.client_port;
	o->is_ipv6 = family == AF_INET6;
}

int connection_own_between(struct connection *c)
{
	struct service_owner owner = {
		.connection = &c->id, .epoch = c->epoch, .backend = conf_backend_find(c->home->conf, c->backend_name)
	};
	char address[INET6_ADDRSTRLEN];

	if (!service_stands_between(&c->service))
		return 0;
	connection_backend_id(c, &owner.id, &owner.id_len);
	fill_client(c, &owner, address);
	return service_own(&c->service, &owner);
}

/* --- both ways --- */

static void lose_backend(struct connection *c, bool is_own_lack)
{
	connection_release_backend(c, END_BACKEND_UNREACHABLE);
	count(COUNT_BACKEND_FAILURES);
	if (is_own_lack)
		service_end(&c->service, SERVICE_OVERLOADED);
	else
		service_backend_gone(&c->service);
}

/* All client bytes that the service used are at the backend. */
static void note_taken(struct connection *c)
{
	const uint8_t *data;

	if (service_for_backend(&c->service, &data) || (c->backend && backend_pending(c->backend)))
		return;
	c->written += service_taken(&c->service);
	connection_reach_marks(c);
}

/* 1: there may be replies to it already. */
static bool give_to_backend(struct connection *c)
{
	const uint8_t *data;
	int r = 0;

	if (!c->backend && service_wants_backend(&c->service))
		r = connection_ensure_backend(c);
	const bool is_own_lack = r < 0;
	const size_t len = service_for_backend(&c->service, &data);
	if (r == 0 && len && c->backend) {
		connection_leave_word(c);
		r = backend_write(c->backend, data, len);
		fault_at("request.given", NULL, NULL);
	}
	service_given_to_backend(&c->service);
	if (r < 0)
		lose_backend(c, is_own_lack);
	return r < 0 || len;
}

/* Seals one reply, as one record if possible. 1: there may be another. */
static bool seal_reply(struct connection *c)
{
	const uint8_t *data;
	const size_t len = service_for_client(&c->service, &data);

	if (len == 0 || live_due(c->live) != LIVE_NOTHING_DUE)
		return false;
	if (len > connection_fragment_max(c))
		service_splits_reply(&c->service);
	connection_leave_word(c);
	return connection_seal(c, data, len) > 0 && c->state != CONNECTION_ENDED;
}

bool connection_seal_replies(struct connection *c)
{
	const uint8_t *data;

	connection_say_due(c);
	while (c->state != CONNECTION_ENDED && seal_reply(c))
		;
	return c->state == CONNECTION_ENDED || service_for_client(&c->service, &data) == 0;
}

/* A server in the middle of a mail must not take it for a complete one (law 9). */
static void finish(struct connection *c)
{
	if (service_is_over(&c->service) == SERVICE_OVER_CUT)
		connection_release_backend(c, END_BACKEND_CLOSED);
	const enum end_reason reason = service_over_for(&c->service);
	if (reason == END_TRACK_LOST)
		connection_note_broken(c);
	connection_finish(c, LAST_CLOSE_NOTIFY, reason);
}

/* The client's replies come first: while it has to take some, the backend gets no new bytes. */
void connection_step_between(struct connection *c)
{
	if (!connection_serves(c))
		return;
	do {
		note_taken(c);
		if (!connection_seal_replies(c) || !connection_serves(c))
			return;
	} while (give_to_backend(c));
	note_taken(c);
	if (service_is_over(&c->service) != SERVICE_NOT_OVER)
		finish(c);
	else if (c->backend && c->from_client == HALF_CLOSED && c->to_backend == c->written)
		backend_shutdown(c->backend); /* nothing can complete what the server has only in part */
}

ptrdiff_t connection_give_to_service(struct connection *c, const uint8_t *data, size_t len)
{
	service_at_record(&c->service, c->client_records);
	c->to_backend += len;
	count_by(COUNT_BYTES_TO_BACKEND, len);
	service_from_client(&c->service, data, len);
	connection_step_between(c);
	return (ptrdiff_t)len;
}

bool connection_replies_wait(const struct connection *c)
{
	const uint8_t *data;

	return service_stands_between(&c->service) && service_for_client(&c->service, &data) > 0;
}

/* Further input waits until the client has room for the replies. */
void connection_read_between(struct connection *c)
{
	if (!connection_serves(c) || !c->backend)
		return;
	if (connection_replies_wait(c))
		backend_read_pause(c->backend);
	else
		backend_read_on(c->backend, BACKEND_READ_MAX);
}

size_t connection_hear_backend(struct connection *c, const uint8_t *data, size_t len)
{
	service_backend_says(&c->service, data, len);
	connection_step_between(c);
	connection_read_between(c);
	connection_finish_if_over(c);
	connection_hand_off_if_settled(c);
	connection_open_waiting(c);
	return len;
}

void connection_backend_left_service(struct connection *c, int uv_error)
{
	lose_backend(c, backend_is_own_lack(uv_error));
	connection_step_between(c);
}

/* --- moves --- */

/* Nothing is open. */
void connection_leave_settled(struct connection *c, const struct ordered_move *order)
{
	if (!c->backend) {
		connection_leave_word(c);
		connection_hand_off(c, CSSL__BACKEND_HALF__BACKEND_NONE);
	} else if (cluster_can_pass_to(c->home->cluster, order->target)) {
		connection_begin_pass(c, order);
	} else {
		connection_leave_without_backend(c);
	}
}

void connection_leave_without_backend(struct connection *c)
{
	if (!service_may_begin_anew(&c->service)) {
		service_end(&c->service, SERVICE_LEAVES);
		connection_step_between(c);
		return;
	}
	connection_leave_word(c);
	connection_release_backend(c, END_DONE);
	connection_hand_off(c, CSSL__BACKEND_HALF__BACKEND_NONE);
}

void connection_move_between(struct connection *c, const struct ordered_move *order)
{
	if (connection_at_checkpoint(c))
		connection_leave_settled(c, order);
	else if (order->until_ms)
		connection_settle(c, SETTLES_TO_MOVE, order);
	else
		connection_stay(c, "in the midst of a mail");
}
