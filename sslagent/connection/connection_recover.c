/* connection_recover.c: an owner after a takeover, and what the owner before it left for that.
 *
 * It opens all records that the lost agent had got, and holds them back: only then it knows whether it may ask the
 * backend again (recovery.h). Nothing of them is consumed before the backend has it. So after another loss RAgent is in
 * the same state as after this one.
 *
 * Before the first byte of an answer that can continue, its owner leaves the service's note with RAgent. A successor
 * asks the backend for the rest, and gives the client only bytes that are certainly the rest of the same answer
 * (service.h).
 */
#include <stdlib.h>

#include <sodium.h>

#include "net/log_pace.h"
#include "proto/error.h"
#include "proto/link_words.h"
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"
#include "sslagent/service/sealed_note.h"

/* --- notes --- */

static struct note_binding binding_of(const struct connection *c)
{
	return (struct note_binding){ .connection = c->id, .listener = tls_listener_conf(c->listener)->name };
}

/* 0 or negative. */
static int leave(struct connection *c, const uint8_t *note, size_t len)
{
	const struct note_binding to = binding_of(c);
	Cssl__LinkDownload message = CSSL__LINK_DOWNLOAD__INIT;
	uint8_t sealed[SEALED_NOTE_MAX];
	const ptrdiff_t sealed_len = sealed_note_seal(c->home->agents_key, &to, note, len, sealed);

	if (sealed_len < 0)
		return (int)sealed_len;
	message.sealed = (ProtobufCBinaryData){ (size_t)sealed_len, sealed };
	c->carrier->ops->say(c->carrier, FRAME_DOWNLOAD, &message.base);
	return 0;
}

void connection_leave_note(struct connection *c, const uint8_t *data, size_t len, size_t together)
{
	uint8_t note[SERVICE_NOTE_MAX];

	if (!connection_can_move(c))
		return;
	/* The delivered bytes may be of the answer before this one. Then only the answer before can go on. */
	if (c->delivered != DELIVERED_NOTHING) {
		const size_t next_len = service_leave_next_note(&c->service, data, together, note);
		if (next_len)
			leave(c, note, next_len);
		return;
	}
	const size_t note_len = service_leave_note(&c->service, data, len, together, note);
	if (note_len && leave(c, note, note_len) == 0)
		count(COUNT_DOWNLOADS_OFFERED);
}

void connection_leave_word(struct connection *c)
{
	uint8_t note[SERVICE_NOTE_MAX];
	const size_t len = connection_can_move(c) ? service_note(&c->service, note) : 0;

	if (len)
		leave(c, note, len);
}

/* Opens the note that RAgent kept. Its bytes; CSSL_E_NOT_FOUND: there is none; or another error. */
static ptrdiff_t open_note(const struct connection *c, const Cssl__LinkSslId *id, uint8_t out[static SERVICE_NOTE_MAX])
{
	const struct note_binding to = binding_of(c);

	if (id->sealed_download.len == 0)
		return CSSL_E_NOT_FOUND;
	return sealed_note_open(c->home->agents_key, &to, id->sealed_download.data, id->sealed_download.len, out);
}

/* 0 and *out if the cut answer may continue. Else negative. */
static int recall(const struct connection *c, const Cssl__LinkSslId *id, struct service_recall **out)
{
	uint64_t around = live_overhead(c->live);
	uint8_t note[SERVICE_NOTE_MAX];

	if (id->response_records > id->response_bytes / around)
		return CSSL_E_NOT_FOUND;
	const ptrdiff_t len = open_note(c, id, note);
	if (len < 0)
		return (int)len;
	return service_recall(&c->service, note, (size_t)len, id->response_bytes - id->response_records * around, out);
}

/* --- the end of it --- */

void connection_drop_recovery(struct connection *c)
{
	struct connection_recovery *r = c->recovery;

	if (r) {
		service_forget(r->recall);
		connection_wipe(&r->heard);
	}
	free(r);
	c->recovery = NULL;
}

/* --- what comes of it --- */

static void say_backend_lost(struct connection *c)
{
	count(COUNT_RECOVERED_502);
	connection_finish(c, LAST_BACKEND_LOST, END_AGENT_LOST);
}

void connection_not_recovered(struct connection *c, enum end_reason reason)
{
	count(COUNT_RECOVERED_ALERT);
	connection_finish(c, LAST_INTERNAL_ERROR, reason);
}

static void go_on(struct connection *c)
{
	connection_start_owning(c);
	connection_finish_if_over(c); /* the client's end had come before */
}

void connection_recovered(struct connection *c)
{
	connection_drop_recovery(c);
	connection_to(c, CONNECTION_OWNER);
	connection_mark(c);
	go_on(c);
}

/* Give the records to a backend, as if they had just come. */
static int replay(struct connection *c)
{
	const struct kept_bytes *heard = c->recovery->heard;

	if (!heard || service_is_stranded(&c->service))
		return 0;
	count(COUNT_RECOVERED_REPLAYED);
	int r = connection_write_to_backend(c, heard->bytes, heard->len);
	if (r == 0 && c->from_client == HALF_CLOSED)
		backend_shutdown(c->backend);
	return r;
}

/* --- the rest of an answer --- */

void connection_lose_rest(struct connection *c, struct connection_event *e)
{
	const struct service_recall *r = c->recovery->recall;

	log_paced(LOG_INFO, &c->id, "download ended", "delivered=%llu of=%lld", (unsigned long long)r->delivered,
		(long long)r->len); /* -1: not known */
	count(COUNT_DOWNLOADS_REFUSED);
	connection_release_backend(c, END_AGENT_LOST);
	connection_not_recovered(c, END_AGENT_LOST);
}

static void go_on_with_answer(struct connection *c)
{
	service_go_on(&c->service, c->recovery->recall);
	count(COUNT_DOWNLOADS_RESUMED);
	if (c->recovery->recall->how == SERVICE_REPEATS)
		count(COUNT_DOWNLOADS_REPEATED);
	connection_recovered(c);
}

static int send_question(struct connection *c)
{
	const struct kept_bytes *heard = c->recovery->heard; /* the request */
	const size_t cap = (heard ? heard->len : 0) + SERVICE_ASK_MORE;
	uint8_t *question = heard ? malloc(cap) : NULL;

	if (!question)
		return CSSL_E_NO_MEMORY;
	ptrdiff_t len = service_ask_rest(c->recovery->recall, heard->bytes, heard->len, question, cap);
	int r = len < 0 ? (int)len : connection_ensure_backend(c);
	if (r == 0)
		r = backend_write(c->backend, question, (size_t)len);
	if (r == 0)
		c->to_backend += (uint64_t)len;
	sodium_memzero(question, cap);
	free(question);
	return r;
}

/* The request was heard. */
static void ask_rest(struct connection *c)
{
	struct connection_recovery *r = c->recovery;

	if (r->recall->how == SERVICE_ASKS_REST &&
		r->recall->delivered == r->recall->len) { /* the client has all of it, but not its end */
		go_on_with_answer(c);
		return;
	}
	r->step = RECOVERING_ASKS;
	if (send_question(c) < 0) {
		connection_lose_rest(c, NULL);
		return;
	}
	connection_say_due(c); /* the KeyUpdate is sent meanwhile */
}

size_t connection_take_rest(struct connection *c, const uint8_t *data, size_t len)
{
	size_t hidden;
	int known = service_is_rest(&c->service, c->recovery->recall, data, len, &hidden);

	if (known == SERVICE_INCOMPLETE)
		return hidden;
	if (known < 0) {
		if (c->recovery->recall->how == SERVICE_REPEATS)
			count(COUNT_DOWNLOADS_DIFFERED);
		connection_lose_rest(c, NULL);
		return 0;
	}
	go_on_with_answer(c);
	return hidden;
}

/* --- hearing --- */

bool connection_hears(const struct connection *c)
{
	return c->recovery->step == RECOVERING_HEARS && c->client_records < c->recovery->exposed;
}

static uint32_t kept_len(const struct connection_recovery *r)
{
	return r->heard ? r->heard->len : 0;
}

int connection_hear(struct connection *c, const uint8_t *data, size_t len)
{
	struct connection_recovery *r = c->recovery;

	if (kept_len(r) + r->given_len + len > c->home->window_len + TLS_RECORD_MAX) /* RAgent keeps no more */
		return CSSL_E_FULL;
	if (service_stands_between(&c->service)) { /* it keeps them itself */
		r->given_len += (uint32_t)len;
		service_at_record(&c->service, c->client_records);
		service_from_client(&c->service, data, len);
		return 0;
	}
	for (size_t used = 0; used < len;) {
		struct service_outgoing to;
		size_t n = service_pass(&c->service, SERVICE_ALL, data + used, len - used, &to);
		if (connection_keep(&r->heard, data + used, to.len) < 0 ||
			connection_keep(&r->heard, to.words, to.words_len) < 0)
			return CSSL_E_NO_MEMORY;
		used += n;
	}
	return 0;
}

static void judge(struct connection *c)
{
	const struct recovery_heard heard = {
		.loss = service_traits_now(&c->service)->loss,
		.repeat = service_repeat(&c->service),
		.outstanding = service_outstanding(&c->service),
		.fate = c->recovery->fate,
		.answer = c->recovery->recall ? RECOVERY_ANSWER_KNOWN : RECOVERY_ANSWER_LOST,
		.requests = service_can_go_on(&c->service) ? RECOVERY_HEARD_ITS_REQUEST : RECOVERY_HEARD_ANY,
	};
	enum recovery r = recovery_judge(&heard);

	log_event(LOG_INFO, &c->id, "replay read", "bytes=%u outstanding=%u then=%s", kept_len(c->recovery),
		heard.outstanding, recovery_name(r));
	switch (r) {
	case RECOVERY_BACKEND_LOST: say_backend_lost(c); return;
	case RECOVERY_ALERT: connection_not_recovered(c, END_AGENT_LOST); return;
	case RECOVERY_ASK_REST: ask_rest(c); return;
	default: break;
	}
	if (replay(c) == 0)
		connection_recovered(c);
	else
		connection_backend_unreachable(c);
}

void connection_heard(struct connection *c)
{
	if (c->recovery->step != RECOVERING_HEARS || connection_hears(c))
		return;
	if (!service_stands_between(&c->service)) {
		judge(c);
		return;
	}
	c->to_backend += c->recovery->given_len;
	service_heard_all(&c->service); /* it decides, and asks or repeats what is necessary */
	connection_recovered(c);
}

/* OWNER -> RECOVERING; 0, or the connection ended. */
static int begin(struct connection *c, const Cssl__LinkSslId *id)
{
	struct connection_recovery *r = calloc(1, sizeof *r);

	if (!r) {
		connection_not_recovered(c, END_INTERNAL);
		return CSSL_E_NO_MEMORY;
	}
	c->recovery = r;
	r->exposed = id->exposed_records;
	r->fate = id->fate;
	if (recall(c, id, &r->recall) < 0)
		r->recall = NULL;
	connection_to(c, CONNECTION_RECOVERING);
	return 0;
}

/* --- a service that stands between --- */

static int resume_from(const struct connection *c, const Cssl__LinkSslId *id)
{
	if (id->cause != CSSL__CAUSE__CAUSE_TAKEOVER)
		return SERVICE_RESUME_AT_CHECKPOINT;
	if (id->response_state == CSSL__RESPONSE_STATE__RESPONSE_NOT_REPLAYABLE)
		return SERVICE_RESUME_BLIND;
	return id->response_state == CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT &&
			       id->exposed_records <= c->client_records
		       ? SERVICE_RESUME_AT_CHECKPOINT
		       : SERVICE_RESUME_CUT;
}

static int resume(struct connection *c, const Cssl__LinkSslId *id, struct service_resumption *r)
{
	uint8_t note[SERVICE_NOTE_MAX];
	const ptrdiff_t len = open_note(c, id, note);

	if (len < 0 && len != CSSL_E_NOT_FOUND)
		return (int)len;
	*r = (struct service_resumption){ .note = note,
		.len = len < 0 ? 0 : (size_t)len,
		.replies = id->response_records,
		.at_checkpoint = id->response_state == CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT,
		.from = resume_from(c, id),
		.again = id->response_state == CSSL__RESPONSE_STATE__RESPONSE_POISONED ? SERVICE_SAYS_NOTHING_AGAIN
										       : SERVICE_MAY_SAY_AGAIN };
	return service_resume(&c->service, r);
}

void connection_recover_between(struct connection *c, const Cssl__LinkSslId *id)
{
	struct service_resumption r;

	if (resume(c, id, &r) < 0)
		connection_not_recovered(c, END_AGENT_LOST);
	else if (r.from != SERVICE_RESUME_CUT)
		go_on(c);
	else if (begin(c, id) == 0)  /* what the lost owner got is to be heard first */
		connection_heard(c); /* if there are no records to read */
}

void connection_recover(struct connection *c, const Cssl__LinkSslId *id)
{
	if (begin(c, id) < 0)
		return;
	const struct recovery_facts facts = {
		.loss = service_traits_now(&c->service)->loss,
		.on_loss = tls_listener_conf(c->listener)->on_agent_loss,
		.response = id->response_state,
		.exposed = id->exposed_records > c->client_records ? RECOVERY_EXPOSED : RECOVERY_NOTHING_EXPOSED,
		.answer = c->recovery->recall ? RECOVERY_ANSWER_KNOWN : RECOVERY_ANSWER_LOST,
	};
	enum recovery r = recovery_begin(&facts);

	/* An operator wants to know what this line decides. Where records are heard, the line "replay read" has the
	 * decision; and a connection that only goes on needs no line. */
	const enum log_level level = r == RECOVERY_GO_ON || r == RECOVERY_HEAR ? LOG_DEBUG : LOG_INFO;
	log_event(level, &c->id, "takes over", "response=%s exposed=%s first=%s",
		link_response_name(id->response_state), facts.exposed == RECOVERY_EXPOSED ? "yes" : "no",
		recovery_name(r));
	switch (r) {
	case RECOVERY_HEAR: return; /* connection_heard() will know more */
	case RECOVERY_BACKEND_LOST: say_backend_lost(c); return;
	case RECOVERY_ALERT:
		connection_not_recovered(
			c, id->response_state == CSSL__RESPONSE_STATE__RESPONSE_POISONED ? END_POISON : END_AGENT_LOST);
		return;
	default: connection_recovered(c); return;
	}
}
