/* flow.c: an owner in the midst of things: the backend's answers go to the client, the ends that the backend makes, and
 * whatever became possible goes on in both ways. Each direction stops when the other side has no room.
 */
#include "sslagent/connection/flow/flow.h"

#include "net/report/log.h"
#include "sslagent/connection/flow/between.h"
#include "sslagent/connection/flow/consumed.h"
#include "sslagent/connection/flow/sealing.h"

static size_t flow_seal(struct connection *c, const uint8_t *data, size_t len)
{
	size_t used = 0;

	while (used < len && connection_serves(c)) {
		words_say_due(c);
		if (!connection_serves(c) || live_due(c->live) != LIVE_NOTHING_DUE)
			break;
		const size_t held = service_hold(&c->service, data + used, len - used);
		used += held;
		const size_t said = words_say(c);
		if (!connection_serves(c))
			break;
		size_t n = sealing_seal(c, data + used, service_until_words(&c->service, data + used, len - used));
		if (n == 0 && held == 0 && said == 0) /* the client has no room; else the next bytes may be held, too */
			break;
		used += n;
		enum service_parting parting = service_parting(&c->service);
		if (parting != SERVICE_STAYS && connection_serves(c))
			words_part(c, parting);
	}
	words_say(c);
	return used;
}

/* Bytes of an answer that the client has no room for stay with the socket. */
static void flow_read_backend(struct connection *c, size_t room)
{
	if (room)
		backend_read_on(c->backend, room);
	else
		backend_read_pause(c->backend);
}

/* Give the client [data + used, data + len). Returns the bytes used. */
size_t flow_pass_on(struct connection *c, uint8_t *data, size_t used, size_t len)
{
	if (connection_serves(c))
		used += flow_seal(c, data + used, len - used);
	if (c->state == CONNECTION_ENDED)
		return len;
	if (used == len && c->state == CONNECTION_OWNER && c->from_client == HALF_OPEN)
		conversation_reuse(c);
	if (c->backend)
		flow_read_backend(c, used == len ? sealing_room(c, BACKEND_READ_MAX) : 0);
	words_finish_if_over(c);
	connection_look(c);
	return used;
}

/* --- the ends that the backend makes --- */

static void flow_close(struct connection *c)
{
	c->from_backend = HALF_CLOSING;
	if (service_traits_now(&c->service)->ends == SERVICE_JUDGES_ENDS) {
		words_finish(c, LAST_FAREWELL, END_DONE);
		return;
	}
	if (c->from_client == HALF_CLOSED) {
		words_finish_if_over(c);
		return;
	}
	if (live_due(c->live) == LIVE_WAITS_FOR_COMMIT)
		return;
	c->from_backend = HALF_CLOSED;
	if (live_ends(c->live) & LIVE_WRITE_CLOSED) /* a former owner sent it */
		return;
	if (connection_send_alert(c, TLS_ALERT_WARNING, TLS_ALERT_CLOSE_NOTIFY) == 0)
		c->carrier->ops->fin(c->carrier, FRAME_AUTHENTICATED);
	else
		connection_end(c, END_INTERNAL, CARRIER_ABORT);
}

/* The answer is complete. Bytes of the request that the backend did not take count as taken. */
static void conversation_over(struct connection *c)
{
	c->backend = NULL;
	c->written = c->to_backend;
	consumed_opened(c);
}

static void backend_ended_whole(struct connection *c)
{
	bool between = service_place(&c->service) == SERVICE_CHECKPOINT &&
		       service_backend_reuse(&c->service) >= SERVICE_BACKEND_FOR_CLIENT && c->from_client == HALF_OPEN;

	if (!between) {
		flow_close(c);
		return;
	}
	backend_close(c->backend); /* an idle keep-alive connection; the next request gets another one */
	conversation_over(c);
}

static void backend_failed(struct connection *c, enum stream_end end, int uv_error)
{
	enum end_reason reason = end == STREAM_EOF               ? END_BACKEND_CLOSED
				 : end == STREAM_RESET           ? END_BACKEND_RESET
				 : backend_is_own_lack(uv_error) ? END_OVERLOADED
								 : END_BACKEND_UNREACHABLE;

	backend_reset(c->backend);
	c->backend = NULL;
	if (service_place(&c->service) != SERVICE_CHECKPOINT ||
		service_traits_now(&c->service)->ends == SERVICE_HALVES_END) {
		words_backend_lost(c, reason);
		return;
	}
	bool tied = service_backend_reuse(&c->service) == SERVICE_BACKEND_TIED;
	conversation_over(c);
	if (tied)
		words_finish(c, LAST_FAREWELL, END_DONE);
	else
		words_finish_if_over(c);
}

/* Its answer is complete, and was the last one. A reset after it means no more than a FIN, and other requests of the
 * client get no answer (RFC 9112 9.6). */
static void flow_backend_said_last(struct connection *c, enum stream_end end)
{
	if (end == STREAM_EOF)
		backend_close(c->backend);
	else
		backend_reset(c->backend);
	c->backend = NULL;
	words_finish(c, LAST_FAREWELL, END_DONE);
}

/* A kept connection ended, maybe before its backend read the request (RFC 9112 9.3.1, 9.5). 1: another is asked. */
static bool is_asked_again(struct connection *c)
{
	if (!c->asked || !connection_serves(c) || !service_may_ask_again(&c->service))
		return false;
	backend_reset(c->backend);
	c->backend = NULL;
	if (conversation_ask_anew(c) < 0)
		words_backend_unreachable(c);
	return true;
}

void flow_lose_backend(struct connection *c, struct connection_event *e)
{
	const enum stream_end end = e->end.how;

	log_event(LOG_DEBUG, &c->id, "backend ended", "how=%s error=%s", end == STREAM_EOF ? "fin" : "reset",
		end == STREAM_ERROR ? uv_strerror(e->end.uv_error) : "none");
	/* A reset does not end an answer, not even one that ends with the connection. */
	if (service_stands_between(&c->service))
		between_backend_ended(c, end == STREAM_ERROR ? e->end.uv_error : 0);
	else if (service_said_last(&c->service))
		flow_backend_said_last(c, end);
	else if (is_asked_again(c))
		return;
	else if (end == STREAM_EOF && service_backend_ended(&c->service) == SERVICE_END_WHOLE)
		backend_ended_whole(c);
	else
		backend_failed(c, end, e->end.uv_error);
	connection_look(c);
	from_client_open_waiting(c); /* it may have waited for this backend */
}

/* --- both ways --- */

void flow_answer(struct connection *c, struct connection_event *e)
{
	if (service_stands_between(&c->service)) {
		between_hear(c, e->bytes.data, e->bytes.len);
		words_finish_if_over(c);
		connection_look(c);
		from_client_open_waiting(c);
		e->bytes.used = e->bytes.len;
	} else if (service_said_last(&c->service)) {
		flow_backend_said_last(c, STREAM_RESET);
		e->bytes.used = e->bytes.len;
	} else {
		e->bytes.used = flow_pass_on(c, e->bytes.data, 0, e->bytes.len);
	}
}

void flow_backend_took(struct connection *c, struct connection_event *e)
{
	if (service_stands_between(&c->service))
		between_step(c);
	else
		c->written += e->written;
	if (!connection_serves(c))
		return;
	consumed_written(c);
	words_finish_if_over(c);
	connection_look(c);
	from_client_open_waiting(c);
}

void flow_go_on(struct connection *c)
{
	if (!connection_serves(c))
		return;
	/* What is due comes first, because nothing is sealed before it (law 6). The backend is read last: only then it
	 * is known how much room its answer has. */
	words_say_due(c);
	if (connection_serves(c) && service_stands_between(&c->service))
		between_step(c);
	if (connection_serves(c) && c->from_backend == HALF_CLOSING)
		flow_close(c);
	from_client_open_waiting(c);
	from_client_take_tail(c, NULL);
	words_say(c);
	if (connection_serves(c) && service_stands_between(&c->service))
		between_read(c);
	else if (connection_serves(c) && c->backend && live_due(c->live) == LIVE_NOTHING_DUE)
		flow_read_backend(c, sealing_room(c, BACKEND_READ_MAX));
	from_client_watch_head(c);
	if (c->consumed.pace == CLIENT_WAITS) /* it may come from a state in which the deadline had another purpose */
		consumed_arm(c);
	connection_look(c);
}

void flow_start(struct connection *c)
{
	c->owner_since_ms = (uint32_t)worker_now_ms(c->home->worker);
	consumed_judge_pace(c);
	if (between_own(c) < 0) {
		words_finish(c, LAST_INTERNAL_ERROR, END_INTERNAL);
		return;
	}
	if (service_traits_now(&c->service)->first == SERVICE_BACKEND_FIRST && conversation_ensure(c) < 0) {
		words_backend_unreachable(c);
		return;
	}
	flow_go_on(c);
	if (connection_serves(c))
		consumed_tell_pace(c);
}
