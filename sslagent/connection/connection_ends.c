/* connection_ends.c: the ends of a conversation: by the client (close_notify, a bare FIN, a breach of the record
 * layer), by the backend (FIN, reset, out of reach), by a time limit; and the last bytes to the client.
 *
 * close_notify certifies that nothing was cut off. So the agent sends it only where the protocol itself shows the
 * end; elsewhere a fatal alert, or, if it may not seal one, a reset. The bytes that the client sent before its end
 * go to the backend first.
 */
#include "net/log_pace.h"
#include "proto/tls_record.h"
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"

/* --- the last words --- */

enum said { SAID, SAID_NOT, SAID_LATER };

/* Why the service ends the conversation, by enum last_words. */
static const enum service_parting partings[] = {
	[LAST_FAREWELL] = SERVICE_LEAVES,
	[LAST_HEAD_LATE] = SERVICE_HEAD_LATE,
	[LAST_BACKEND_LOST] = SERVICE_BACKEND_LOST,
	[LAST_TRACK_LOST] = SERVICE_TRACK_LOST,
	[LAST_INTERNAL_ERROR] = SERVICE_STAYS,
};

/* Words that a client should read before the last ones are sent a little earlier. */
#define WORDS_APART_MS 20u

/* Sends it after a due KeyUpdate; all of it or nothing. */
static enum said say_answer(struct connection *c)
{
	size_t len;

	if (connection_say_words(c) > 0) {
		if (c->state == CONNECTION_ENDED)
			return SAID_NOT;
		deadline_set(c->home->worker, &c->deadline, WORDS_APART_MS);
		return SAID_LATER;
	}
	const char *answer = service_last_words(&c->service, partings[c->last_words], &len);
	if (answer && len == 0)
		return SAID;
	if (!answer || (live_ends(c->live) & LIVE_WRITE_CLOSED) || live_due(c->live) == LIVE_LIMIT_REACHED)
		return SAID_NOT;
	connection_say_due(c);
	if (c->state == CONNECTION_ENDED || live_due(c->live) != LIVE_NOTHING_DUE ||
		connection_credit(c) < len + live_overhead(c->live))
		return SAID_LATER;
	return connection_seal(c, (const uint8_t *)answer, len) == len ? SAID : SAID_NOT;
}

/* 0: they are not all on their way to the client, and may be later. */
static bool replies_are_said(struct connection *c)
{
	if (c->last_words == LAST_INTERNAL_ERROR || !service_stands_between(&c->service) || connection_seal_replies(c))
		return true;
	if (live_due(c->live) != LIVE_LIMIT_REACHED)
		return false;
	c->last_words = LAST_INTERNAL_ERROR; /* the key seals no more of them */
	return true;
}

/* Where something is cut off, only this agent knows what the client was told: it is sealed. Each reason has a rate
 * limit of its own, as RAgent's lines of ended connections. */
static void log_cut(const struct connection *c, const char *told)
{
	static struct log_pace paces[END_REASON_COUNT];
	struct log_pace unpaced = { 0 };
	struct log_pace *pace = c->home->conf->log.connections == CONF_LOG_ALL ? &unpaced : &paces[c->end_reason];

	log_event_paced(
		pace, LOG_INFO, &c->id, "client told", "reason=%s told=%s", end_reason_text(c->end_reason), told);
}

static const char *told_last(const struct connection *c, int said)
{
	return !said ? "reset" : c->last_words == LAST_INTERNAL_ERROR ? "alert" : "answer";
}

/* Something is cut off, or the client got a reply that its server did not give. */
static bool tells_more(const struct connection *c, enum last_words wanted)
{
	if (service_stands_between(&c->service) && c->end_reason != END_DONE && c->end_reason != END_IDLE_TIMEOUT)
		return true;
	return wanted != LAST_CLOSE_NOTIFY && wanted != LAST_FAREWELL;
}

/* The last record, as c->last_words has it, and the end. @wanted: before the service was asked for its words. */
static void say_last_and_end(struct connection *c, enum last_words wanted)
{
	const int had_said = live_ends(c->live) & LIVE_WRITE_CLOSED;
	int said = had_said;

	if (!said && c->last_words == LAST_CLOSE_NOTIFY)
		said = connection_send_alert(c, TLS_ALERT_WARNING, TLS_ALERT_CLOSE_NOTIFY) == 0;
	else if (!said)
		said = connection_send_alert(c, TLS_ALERT_FATAL, TLS_ALERT_INTERNAL_ERROR) == 0;
	if (!said || tells_more(c, wanted))
		log_cut(c, had_said ? "nothing" : told_last(c, said));
	connection_end(c, (enum end_reason)c->end_reason, said ? CARRIER_ORDERLY : CARRIER_ABORT);
}

void connection_say_last_words(struct connection *c)
{
	if (live_due(c->live) == LIVE_WAITS_FOR_COMMIT || !replies_are_said(c))
		return;
	if (c->state == CONNECTION_ENDED)
		return;
	const enum last_words wanted = (enum last_words)c->last_words;
	if (partings[wanted] != SERVICE_STAYS) {
		enum said answer = say_answer(c);
		if (c->state == CONNECTION_ENDED || answer == SAID_LATER)
			return;
		/* an end in order needs no words */
		c->last_words = answer == SAID || wanted == LAST_FAREWELL ? LAST_CLOSE_NOTIFY : LAST_INTERNAL_ERROR;
	}
	say_last_and_end(c, wanted);
}

void connection_words_were_read(struct connection *c, struct connection_event *e)
{
	if (c->report != REPORT_NOTHING)
		connection_report(c);
	else
		connection_say_last_words(c);
}

void connection_finish(struct connection *c, enum last_words words, enum end_reason reason)
{
	c->client_pace = CLIENT_GOES_ON; /* nothing is opened any more */
	connection_tell_pace(c);
	connection_to(c, CONNECTION_ENDING);
	connection_drop_settling(c);
	connection_drop_recovery(c);
	connection_wipe(&c->head);
	connection_drop_asked(c);
	c->last_words = (uint8_t)words;
	c->end_reason = (uint8_t)reason;
	connection_say_last_words(c);
}

void connection_note_broken(const struct connection *c)
{
	count(COUNT_TRACKS_LOST);
	log_paced(LOG_INFO, &c->id, "protocol broken", "service=%s", service_traits[c->service.kind].name);
}

void connection_part(struct connection *c, enum service_parting why)
{
	if (why == SERVICE_LEAVES) {
		connection_finish(c, LAST_FAREWELL, END_DONE);
		return;
	}
	connection_note_broken(c);
	connection_finish(c, LAST_TRACK_LOST, END_TRACK_LOST);
}

size_t connection_say_words(struct connection *c)
{
	size_t len, said = 0;
	const char *words;

	while ((connection_serves(c) || c->state == CONNECTION_ENDING) && live_due(c->live) == LIVE_NOTHING_DUE) {
		words = service_words(&c->service, &len);
		if (!words || connection_credit(c) < len + live_overhead(c->live) ||
			connection_seal(c, (const uint8_t *)words, len) < len)
			break;
		said += len;
	}
	return said;
}

/* The end, after the last words of its service. */
static void part(struct connection *c, enum end_reason reason)
{
	const bool is_late = reason == END_IDLE_TIMEOUT || reason == END_BACKEND_TIMEOUT;
	const enum service_parting why = is_late                    ? SERVICE_TIMED_OUT
					 : reason == END_OVERLOADED ? SERVICE_OVERLOADED
								    : SERVICE_LEAVES;

	service_end(&c->service, why);
	connection_finish(c, LAST_CLOSE_NOTIFY, reason);
}

bool connection_cuts_nothing(const struct connection *c)
{
	return connection_at_checkpoint(c) || connection_only_blank_waits(c);
}

void connection_finish_early(struct connection *c, struct connection_event *e)
{
	const bool stands_between = service_stands_between(&c->service);

	/* a verdict has a longer limit than silence; when that is over, the carrier comes again with another reason */
	if (e->reason == END_IDLE_TIMEOUT && stands_between && service_awaits_verdict(&c->service))
		return;
	if (stands_between)
		part(c, e->reason);
	else if (c->state == CONNECTION_OWNER && e->reason != END_OVERLOADED && connection_backend_is_alone(c))
		connection_leave(c, e->reason);
	else
		connection_finish(c, connection_cuts_nothing(c) ? LAST_FAREWELL : LAST_INTERNAL_ERROR, e->reason);
}

/* The carrier comes again because of the same silence. Nobody awaits a verdict here: the client does not take its last
 * words. Otherwise it ends already. */
void connection_cut_last_words(struct connection *c, struct connection_event *e)
{
	if (e->reason == END_BACKEND_TIMEOUT)
		connection_end(c, END_IDLE_TIMEOUT, CARRIER_ABORT);
}

/* --- both sides are done --- */

void connection_finish_if_over(struct connection *c)
{
	if (!connection_serves(c) || c->from_client != HALF_CLOSED)
		return;
	bool answered = c->from_backend != HALF_OPEN || connection_at_checkpoint(c);
	if (!c->backend || (answered && c->to_backend == c->written))
		connection_finish(c, LAST_CLOSE_NOTIFY, END_DONE); /* the client will begin nothing more */
}

/* --- the client --- */

/* RFC 8446 6.1 allows to go on sending. RFC 5246 7.2.1 wants pending writes dropped, but many clients of TLS 1.2
 * close after their request and wait for its answer. So their answer is finished first, too. */
void connection_close_towards_backend(struct connection *c)
{
	c->from_client = HALF_CLOSED;
	if (service_stands_between(&c->service))
		connection_step_between(c);
	else if (c->head && !connection_only_blank_waits(c) && connection_ensure_backend(c) < 0)
		connection_backend_unreachable(c);
	else if (c->backend)
		backend_shutdown(c->backend);
	connection_finish_if_over(c);
}

void connection_violated(struct connection *c, enum tls_alert alert, enum end_reason reason)
{
	count(COUNT_RECORD_VIOLATIONS);
	log_paced(LOG_INFO, &c->id, "record violation", "alert=%d reason=%s", (int)alert, end_reason_text(reason));
	/* if the alert may not be sealed (our KeyUpdate is not committed yet), a reset is enough */
	bool said = connection_send_alert(c, TLS_ALERT_FATAL, alert) == 0;
	connection_end(c, reason, said ? CARRIER_ORDERLY : CARRIER_ABORT);
}

/* A bare FIN. After close_notify it means nothing new: the client may still read. Half a request must not pass for a
 * complete one. */
static void client_went(struct connection *c)
{
	if (c->from_client == HALF_CLOSED)
		return;
	if (connection_cuts_nothing(c))
		connection_end(c, END_DONE, CARRIER_ORDERLY);
	else
		connection_finish(c, LAST_INTERNAL_ERROR, END_CLIENT_CLOSED);
}

void connection_take_tail(struct connection *c)
{
	enum tail tail = (enum tail)c->tail;

	if (!connection_serves(c) || c->input_len || connection_holds(c) || tail == TAIL_NONE)
		return;
	c->tail = TAIL_NONE;
	if (tail == TAIL_FIN)
		client_went(c);
	else
		connection_violated(c,
			c->bad.length > TLS12_CIPHERTEXT_MAX ? TLS_ALERT_RECORD_OVERFLOW : TLS_ALERT_UNEXPECTED_MESSAGE,
			END_RECORD_VIOLATION);
}

void connection_keep_tail(struct connection *c, struct connection_event *e)
{
	c->tail = e->kind == EVENT_FIN ? TAIL_FIN : TAIL_VIOLATION;
	if (e->kind == EVENT_VIOLATION)
		c->bad = *e->violation;
}

void connection_take_tail_served(struct connection *c, struct connection_event *e)
{
	connection_keep_tail(c, e);
	connection_take_tail(c);
}

/* --- the backend --- */

void connection_close_towards_client(struct connection *c)
{
	c->from_backend = HALF_CLOSING;
	if (service_traits_now(&c->service)->ends == SERVICE_JUDGES_ENDS) {
		connection_finish(c, LAST_FAREWELL, END_DONE);
		return;
	}
	if (c->from_client == HALF_CLOSED) {
		connection_finish_if_over(c);
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

static void backend_lost(struct connection *c, enum end_reason reason)
{
	count(COUNT_BACKEND_FAILURES);
	connection_finish(c, LAST_BACKEND_LOST, reason);
}

/* Without a connection that fails, this process lacks descriptors or memory for one. */
void connection_backend_unreachable(struct connection *c)
{
	backend_lost(c, c->backend ? END_BACKEND_UNREACHABLE : END_OVERLOADED);
}

/* The answer is complete. Bytes of the request that the backend did not take count as taken. */
static void conversation_over(struct connection *c)
{
	c->backend = NULL;
	c->written = c->to_backend;
	connection_mark(c);
}

static void backend_ended_whole(struct connection *c)
{
	bool between = service_place(&c->service) == SERVICE_CHECKPOINT &&
		       service_backend_reuse(&c->service) >= SERVICE_BACKEND_FOR_CLIENT && c->from_client == HALF_OPEN;

	if (!between) {
		connection_close_towards_client(c);
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
		backend_lost(c, reason);
		return;
	}
	bool tied = service_backend_reuse(&c->service) == SERVICE_BACKEND_TIED;
	conversation_over(c);
	if (tied)
		connection_finish(c, LAST_FAREWELL, END_DONE);
	else
		connection_finish_if_over(c);
}

/* Its answer is complete, and was the last one. A reset after it means no more than a FIN, and other requests of the
 * client get no answer (RFC 9112 9.6). */
void connection_backend_said_last(struct connection *c, enum stream_end end)
{
	if (end == STREAM_EOF)
		backend_close(c->backend);
	else
		backend_reset(c->backend);
	c->backend = NULL;
	connection_finish(c, LAST_FAREWELL, END_DONE);
}

/* A kept connection ended, maybe before its backend read the request (RFC 9112 9.3.1, 9.5). 1: another is asked. */
static bool is_asked_again(struct connection *c)
{
	if (!c->asked || !connection_serves(c) || !service_may_ask_again(&c->service))
		return false;
	backend_reset(c->backend);
	c->backend = NULL;
	if (connection_ask_anew(c) < 0)
		connection_backend_unreachable(c);
	return true;
}

void connection_drop_backend(struct connection *c, struct connection_event *e)
{
	connection_release_backend(c, END_DONE);
}

void connection_lose_backend(struct connection *c, struct connection_event *e)
{
	const enum stream_end end = e->end.how;

	log_event(LOG_DEBUG, &c->id, "backend ended", "how=%s error=%s", end == STREAM_EOF ? "fin" : "reset",
		end == STREAM_ERROR ? uv_strerror(e->end.uv_error) : "none");
	/* A reset does not end an answer, not even one that ends with the connection. */
	if (service_stands_between(&c->service))
		connection_backend_left_service(c, end == STREAM_ERROR ? e->end.uv_error : 0);
	else if (service_said_last(&c->service))
		connection_backend_said_last(c, end);
	else if (is_asked_again(c))
		return;
	else if (end == STREAM_EOF && service_backend_ended(&c->service) == SERVICE_END_WHOLE)
		backend_ended_whole(c);
	else
		backend_failed(c, end, e->end.uv_error);
	connection_hand_off_if_settled(c);
	connection_open_waiting(c); /* it may have waited for this backend */
}
