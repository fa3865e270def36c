/* words.c: what the agent says to the client itself: words of the service, KeyUpdates and warnings that the record
 * layer owes, and the last bytes.
 *
 * close_notify certifies that nothing was cut off. So the agent sends it only where the protocol itself shows the
 * end; elsewhere a fatal alert, or, if it may not seal one, a reset.
 */
#include "sslagent/connection/flow/words.h"

#include "net/points/fault.h"
#include "net/report/log_pace.h"
#include "sslagent/connection/flow/consumed.h"
#include "sslagent/connection/flow/sealing.h"
#include "sslagent/connection/succession.h"
#include "sslagent/counters.h"

void words_say_due(struct connection *c)
{
	int r = 0;

	switch (live_due(c->live)) {
	case LIVE_NOTHING_DUE:
	case LIVE_WAITS_FOR_COMMIT: break;
	case LIVE_WARNING_DUE: r = connection_send_alert(c, TLS_ALERT_WARNING, TLS_ALERT_NO_RENEGOTIATION); break;
	case LIVE_KEY_UPDATE_DUE:
		/* a client that sends requests and never reads has to wait, as for data */
		if (sealing_credit(c) > 0 && fault_at("keyupdate.due", NULL, NULL) != FAULT_FAIL)
			r = sealing_key_update(c);
		break;
	case LIVE_LIMIT_REACHED:
		if (c->state == CONNECTION_ENDING)
			return;
		words_finish(c, conversation_cuts_nothing(c) ? LAST_FAREWELL : LAST_INTERNAL_ERROR, END_KEY_LIMIT);
		return;
	}
	if (r < 0)
		connection_end(c, END_INTERNAL, CARRIER_ABORT);
}

size_t words_say(struct connection *c)
{
	size_t len, said = 0;
	const char *words;

	while ((connection_serves(c) || c->state == CONNECTION_ENDING) && live_due(c->live) == LIVE_NOTHING_DUE) {
		words = service_words(&c->service, &len);
		if (!words || sealing_credit(c) < len + live_overhead(c->live) ||
			sealing_seal(c, (const uint8_t *)words, len) < len)
			break;
		said += len;
	}
	return said;
}

/* Seals one reply, as one record if possible. 1: there may be another. */
static bool seal_reply(struct connection *c)
{
	const uint8_t *data;
	const size_t len = service_for_client(&c->service, &data);

	if (len == 0 || live_due(c->live) != LIVE_NOTHING_DUE)
		return false;
	if (len > sealing_fragment_max(c))
		service_splits_reply(&c->service);
	succession_leave_word(c);
	return sealing_seal(c, data, len) > 0 && c->state != CONNECTION_ENDED;
}

bool words_say_replies(struct connection *c)
{
	const uint8_t *data;

	words_say_due(c);
	while (c->state != CONNECTION_ENDED && seal_reply(c))
		;
	return c->state == CONNECTION_ENDED || service_for_client(&c->service, &data) == 0;
}

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

	if (words_say(c) > 0) {
		if (c->state == CONNECTION_ENDED)
			return SAID_NOT;
		deadline_set(c->home->worker, &c->deadline, WORDS_APART_MS);
		return SAID_LATER;
	}
	const char *answer = service_last_words(&c->service, partings[c->words.last], &len);
	if (answer && len == 0)
		return SAID;
	if (!answer || (live_ends(c->live) & LIVE_WRITE_CLOSED) || live_due(c->live) == LIVE_LIMIT_REACHED)
		return SAID_NOT;
	words_say_due(c); /* a KeyUpdate that is due goes before any other record (law 6) */
	if (c->state == CONNECTION_ENDED || live_due(c->live) != LIVE_NOTHING_DUE ||
		sealing_credit(c) < len + live_overhead(c->live))
		return SAID_LATER;
	return sealing_seal(c, (const uint8_t *)answer, len) == len ? SAID : SAID_NOT;
}

/* 0: they are not all on their way to the client, and may be later. */
static bool replies_are_said(struct connection *c)
{
	if (c->words.last == LAST_INTERNAL_ERROR || !service_stands_between(&c->service) || words_say_replies(c))
		return true;
	if (live_due(c->live) != LIVE_LIMIT_REACHED)
		return false;
	c->words.last = LAST_INTERNAL_ERROR; /* the key seals no more of them */
	return true;
}

/* Where something is cut off, only this agent knows what the client was told: it is sealed. Each reason has a rate
 * limit of its own, as RAgent's lines of ended connections. */
static void log_cut(const struct connection *c, const char *told)
{
	static struct log_pace paces[END_REASON_COUNT];
	struct log_pace unpaced = { 0 };
	struct log_pace *pace = c->home->conf->log.connections == CONF_LOG_ALL ? &unpaced : &paces[c->words.reason];

	log_event_paced(
		pace, LOG_INFO, &c->id, "client told", "reason=%s told=%s", end_reason_text(c->words.reason), told);
}

static const char *told_last(const struct connection *c, int said)
{
	return !said ? "reset" : c->words.last == LAST_INTERNAL_ERROR ? "alert" : "answer";
}

/* Something is cut off, or the client got a reply that its server did not give. */
static bool tells_more(const struct connection *c, enum last_words wanted)
{
	if (service_stands_between(&c->service) && c->words.reason != END_DONE && c->words.reason != END_IDLE_TIMEOUT)
		return true;
	return wanted != LAST_CLOSE_NOTIFY && wanted != LAST_FAREWELL;
}

/* The last record, as c->words.last has it, and the end. @wanted: before the service was asked for its words. */
static void say_last_and_end(struct connection *c, enum last_words wanted)
{
	const int had_said = live_ends(c->live) & LIVE_WRITE_CLOSED;
	int said = had_said;

	if (!said && c->words.last == LAST_CLOSE_NOTIFY)
		said = connection_send_alert(c, TLS_ALERT_WARNING, TLS_ALERT_CLOSE_NOTIFY) == 0;
	else if (!said)
		said = connection_send_alert(c, TLS_ALERT_FATAL, TLS_ALERT_INTERNAL_ERROR) == 0;
	if (!said || tells_more(c, wanted))
		log_cut(c, had_said ? "nothing" : told_last(c, said));
	connection_end(c, (enum end_reason)c->words.reason, said ? CARRIER_ORDERLY : CARRIER_ABORT);
}

/* If they are allowed now. */
static void words_say_last(struct connection *c)
{
	if (live_due(c->live) == LIVE_WAITS_FOR_COMMIT || !replies_are_said(c)) /* law 6 */
		return;
	if (c->state == CONNECTION_ENDED)
		return;
	const enum last_words wanted = (enum last_words)c->words.last;
	if (partings[wanted] != SERVICE_STAYS) {
		enum said answer = say_answer(c);
		if (c->state == CONNECTION_ENDED || answer == SAID_LATER)
			return;
		/* an end in order needs no words */
		c->words.last = answer == SAID || wanted == LAST_FAREWELL ? LAST_CLOSE_NOTIFY : LAST_INTERNAL_ERROR;
	}
	say_last_and_end(c, wanted);
}

static void words_note_broken(const struct connection *c)
{
	count(COUNT_TRACKS_LOST);
	log_paced(LOG_INFO, &c->id, "protocol broken", "service=%s", service_traits[c->service.kind].name);
}

void words_finish(struct connection *c, enum last_words words, enum end_reason reason)
{
	if (reason == END_TRACK_LOST)
		words_note_broken(c);
	c->consumed.pace = CLIENT_GOES_ON; /* nothing is opened any more */
	consumed_tell_pace(c);
	connection_to(c, CONNECTION_ENDING);
	connection_drop_interlude(c);
	kept_bytes_wipe(&c->head);
	conversation_drop_asked(c);
	c->words.last = (uint8_t)words;
	c->words.reason = (uint8_t)reason;
	words_say_last(c);
}

void words_part(struct connection *c, enum service_parting why)
{
	if (why == SERVICE_LEAVES)
		words_finish(c, LAST_FAREWELL, END_DONE);
	else
		words_finish(c, LAST_TRACK_LOST, END_TRACK_LOST);
}

void words_backend_lost(struct connection *c, enum end_reason reason)
{
	count(COUNT_BACKEND_FAILURES);
	words_finish(c, LAST_BACKEND_LOST, reason);
}

void words_backend_unreachable(struct connection *c)
{
	words_backend_lost(c, c->backend ? END_BACKEND_UNREACHABLE : END_OVERLOADED);
}

void words_finish_if_over(struct connection *c)
{
	if (!connection_serves(c) || c->from_client != HALF_CLOSED)
		return;
	bool answered = c->from_backend != HALF_OPEN || conversation_at_checkpoint(c);
	if (!c->backend || (answered && c->to_backend == c->written))
		words_finish(c, LAST_CLOSE_NOTIFY, END_DONE); /* the client will begin nothing more */
}

void words_go_on(struct connection *c, struct connection_event *e)
{
	if (e->kind == EVENT_ACCEPTED)
		succession_accepted(c, e);
	if (e->kind == EVENT_DEADLINE && c->consumed.report != REPORT_NOTHING)
		consumed_report(c);
	else if (e->kind != EVENT_GIVE_UP)
		words_say_last(c);
	else if (e->reason == END_BACKEND_TIMEOUT)
		/* The carrier comes again because of the same silence. Nobody awaits a verdict here: the client does
		 * not take its last words. Otherwise it ends already. */
		connection_end(c, END_IDLE_TIMEOUT, CARRIER_ABORT);
}
