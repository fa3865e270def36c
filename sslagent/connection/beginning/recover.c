/* recover.c: an owner after a takeover.
 *
 * It opens all records that the lost agent had got, and holds them back: only then it knows whether it may ask the
 * backend again (recovery.h). Nothing of them is consumed before the backend has it. So after another loss RAgent is in
 * the same state as after this one.
 *
 * If the owner before it left a note (succession.c), it asks the backend for the rest of the answer, and gives the
 * client only bytes that are certainly the rest of the same answer (service.h).
 */
#include "sslagent/connection/beginning/recover.h"

#include <assert.h>
#include <stdlib.h>

#include <sodium.h>

#include "net/memory/container_of.h"
#include "net/report/log_pace.h"
#include "proto/error.h"
#include "proto/link_words.h"
#include "sslagent/connection/beginning/recovery.h"
#include "sslagent/connection/flow/between.h"
#include "sslagent/connection/flow/consumed.h"
#include "sslagent/connection/flow/flow.h"
#include "sslagent/connection/succession.h"
#include "sslagent/counters.h"

/* An adopter's knowledge so far. */
struct recovering {
	struct interlude interlude; /* its bytes: the plaintext of the records that the lost owner had got */
	uint64_t exposed;           /* client records below this number have to be read again */
	Cssl__Fate fate;
	enum { RECOVERING_HEARS, RECOVERING_ASKS /* for the rest of the answer */ } step;
	struct service_recall *recall; /* the cut answer; NULL: nothing is known of it */
	uint32_t given_len;            /* bytes of it that a service has which stands between */
};

static struct recovering *recovering_of(const struct connection *c)
{
	return container_of(c->interlude, struct recovering, interlude);
}

static void recover_drop(struct interlude *i)
{
	struct recovering *r = container_of(i, struct recovering, interlude);

	service_forget(r->recall);
	free(r);
}

/* 0 and *out if the cut answer may continue. Else negative. */
static int recover_recall(const struct connection *c, const Cssl__LinkSslId *id, struct service_recall **out)
{
	uint64_t around = live_overhead(c->live);
	uint8_t note[SERVICE_NOTE_MAX];

	if (id->response_records > id->response_bytes / around)
		return CSSL_E_NOT_FOUND;
	const ptrdiff_t len = succession_open_note(c, id, note);
	if (len < 0)
		return (int)len;
	return service_recall(&c->service, note, (size_t)len, id->response_bytes - id->response_records * around, out);
}

/* --- what comes of it --- */

static void recover_say_lost(struct connection *c)
{
	count(COUNT_RECOVERED_502);
	words_finish(c, LAST_BACKEND_LOST, END_AGENT_LOST);
}

/* Say the alert, and end. */
static void recover_not(struct connection *c, enum end_reason reason)
{
	count(COUNT_RECOVERED_ALERT);
	words_finish(c, LAST_INTERNAL_ERROR, reason);
}

static void recover_go_on(struct connection *c)
{
	flow_start(c);
	words_finish_if_over(c); /* the client's end had come before */
}

/* RECOVERING -> OWNER */
static void recover_done(struct connection *c)
{
	connection_drop_interlude(c);
	connection_to(c, CONNECTION_OWNER);
	consumed_opened(c);
	recover_go_on(c);
}

/* Give the records to a backend, as if they had just come. */
static int recover_replay(struct connection *c)
{
	const struct kept_bytes *heard = c->interlude->kept;

	if (!heard || service_is_stranded(&c->service))
		return 0;
	count(COUNT_RECOVERED_REPLAYED);
	int r = conversation_write(c, heard->bytes, heard->len);
	if (r == 0 && c->from_client == HALF_CLOSED)
		backend_shutdown(c->backend);
	return r;
}

/* --- the rest of an answer --- */

static void recover_lose_rest(struct connection *c)
{
	const struct service_recall *r = recovering_of(c)->recall;

	log_paced(LOG_INFO, &c->id, "download ended", "delivered=%llu of=%lld", (unsigned long long)r->delivered,
		(long long)r->len); /* -1: not known */
	count(COUNT_DOWNLOADS_REFUSED);
	conversation_release(c, END_AGENT_LOST);
	recover_not(c, END_AGENT_LOST);
}

static void recover_go_on_with_answer(struct connection *c)
{
	struct service_recall *r = recovering_of(c)->recall;

	service_go_on(&c->service, r);
	count(COUNT_DOWNLOADS_RESUMED);
	if (r->how == SERVICE_REPEATS)
		count(COUNT_DOWNLOADS_REPEATED);
	recover_done(c);
}

static int recover_send_question(struct connection *c)
{
	const struct kept_bytes *heard = c->interlude->kept; /* the request */
	const size_t cap = (heard ? heard->len : 0) + SERVICE_ASK_MORE;
	uint8_t *question = heard ? malloc(cap) : NULL;

	if (!question)
		return CSSL_E_NO_MEMORY;
	ptrdiff_t len = service_ask_rest(recovering_of(c)->recall, heard->bytes, heard->len, question, cap);
	int r = len < 0 ? (int)len : conversation_ensure(c);
	if (r == 0)
		r = backend_write(c->backend, question, (size_t)len);
	if (r == 0)
		c->to_backend += (uint64_t)len;
	sodium_memzero(question, cap);
	free(question);
	return r;
}

/* The request was heard. */
static void recover_ask_rest(struct connection *c)
{
	struct recovering *r = recovering_of(c);

	if (r->recall->how == SERVICE_ASKS_REST &&
		r->recall->delivered == r->recall->len) { /* the client has all of it, but not its end */
		recover_go_on_with_answer(c);
		return;
	}
	r->step = RECOVERING_ASKS;
	if (recover_send_question(c) < 0) {
		recover_lose_rest(c);
		return;
	}
	words_say_due(c); /* the KeyUpdate is sent meanwhile */
}

/* Bytes of the backend's answer. Returns how many are not for the client. */
static size_t recover_take_rest(struct connection *c, const uint8_t *data, size_t len)
{
	struct service_recall *r = recovering_of(c)->recall;
	size_t hidden;
	int known = service_is_rest(&c->service, r, data, len, &hidden);

	if (known == SERVICE_INCOMPLETE)
		return hidden;
	if (known < 0) {
		if (r->how == SERVICE_REPEATS)
			count(COUNT_DOWNLOADS_DIFFERED);
		recover_lose_rest(c);
		return 0;
	}
	recover_go_on_with_answer(c);
	return hidden;
}

/* --- hearing --- */

/* More of them are to be opened. */
static bool recover_hears(const struct connection *c)
{
	const struct recovering *r = recovering_of(c);

	return r->step == RECOVERING_HEARS && c->client_records < r->exposed;
}

static uint32_t recover_kept_len(const struct recovering *r)
{
	return r->interlude.kept ? r->interlude.kept->len : 0;
}

/* 0 or negative. */
static int recover_hear(struct connection *c, const uint8_t *data, size_t len)
{
	struct recovering *r = recovering_of(c);

	if (recover_kept_len(r) + r->given_len + len > c->home->window_len + TLS_RECORD_MAX) /* RAgent keeps no more */
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
		if (kept_bytes_add(&r->interlude.kept, data + used, to.len) < 0 ||
			kept_bytes_add(&r->interlude.kept, to.words, to.words_len) < 0)
			return CSSL_E_NO_MEMORY;
		used += n;
	}
	return 0;
}

static void recover_judge(struct connection *c)
{
	const struct recovering *now = recovering_of(c);
	const struct recovery_heard heard = {
		.loss = service_traits_now(&c->service)->loss,
		.repeat = service_repeat(&c->service),
		.outstanding = service_outstanding(&c->service),
		.fate = now->fate,
		.answer = now->recall ? RECOVERY_ANSWER_KNOWN : RECOVERY_ANSWER_LOST,
		.requests = service_can_go_on(&c->service) ? RECOVERY_HEARD_ITS_REQUEST : RECOVERY_HEARD_ANY,
	};
	enum recovery r = recovery_judge(&heard);

	log_event(LOG_INFO, &c->id, "replay read", "bytes=%u outstanding=%u then=%s", recover_kept_len(now),
		heard.outstanding, recovery_name(r));
	switch (r) {
	case RECOVERY_BACKEND_LOST: recover_say_lost(c); return;
	case RECOVERY_ALERT: recover_not(c, END_AGENT_LOST); return;
	case RECOVERY_ASK_REST: recover_ask_rest(c); return;
	default: break;
	}
	if (recover_replay(c) == 0)
		recover_done(c);
	else
		words_backend_unreachable(c);
}

/* Records were opened: judge them if they are all. */
static void recover_heard(struct connection *c)
{
	const struct recovering *r = recovering_of(c);

	if (r->step != RECOVERING_HEARS || recover_hears(c))
		return;
	if (!service_stands_between(&c->service)) {
		recover_judge(c);
		return;
	}
	c->to_backend += r->given_len;
	service_heard_all(&c->service); /* it decides, and asks or repeats what is necessary */
	recover_done(c);
}

static const struct interlude_ops recover_ops = {
	.drop = recover_drop, .look = recover_heard, .hears = recover_hears, .hear = recover_hear
};

/* OWNER -> RECOVERING; 0, or the connection ended. */
static int recover_start(struct connection *c, const Cssl__LinkSslId *id)
{
	struct recovering *r = calloc(1, sizeof *r);

	if (!r) {
		recover_not(c, END_INTERNAL);
		return CSSL_E_NO_MEMORY;
	}
	r->interlude.ops = &recover_ops;
	c->interlude = &r->interlude;
	r->exposed = id->exposed_records;
	r->fate = id->fate;
	if (recover_recall(c, id, &r->recall) < 0)
		r->recall = NULL;
	connection_to(c, CONNECTION_RECOVERING);
	return 0;
}

void recover_takes(struct connection *c, struct connection_event *e)
{
	switch (e->kind) {
	case EVENT_RECORDS:
		from_client_keep(c, e);
		if (c->state != CONNECTION_ENDED)
			from_client_open_input(c);
		return;
	case EVENT_BACKEND_DATA:
		e->bytes.used = recover_take_rest(c, e->bytes.data, e->bytes.len);
		if (c->state != CONNECTION_RECOVERING) /* while recovering, the unused bytes are a part of a head */
			e->bytes.used = flow_pass_on(c, e->bytes.data, e->bytes.used, e->bytes.len);
		return;
	case EVENT_BACKEND_ENDED: recover_lose_rest(c); return;
	default: assert(!"an event that another part takes");
	}
}

static int recover_resume_from(const struct connection *c, const Cssl__LinkSslId *id)
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

static int recover_resume(struct connection *c, const Cssl__LinkSslId *id, struct service_resumption *r)
{
	uint8_t note[SERVICE_NOTE_MAX];
	const ptrdiff_t len = succession_open_note(c, id, note);

	if (len < 0 && len != CSSL_E_NOT_FOUND)
		return (int)len;
	*r = (struct service_resumption){ .note = note,
		.len = len < 0 ? 0 : (size_t)len,
		.replies = id->response_records,
		.at_checkpoint = id->response_state == CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT,
		.from = recover_resume_from(c, id),
		.again = id->response_state == CSSL__RESPONSE_STATE__RESPONSE_POISONED ? SERVICE_SAYS_NOTHING_AGAIN
										       : SERVICE_MAY_SAY_AGAIN };
	return service_resume(&c->service, r);
}

static void recover_between(struct connection *c, const Cssl__LinkSslId *id)
{
	struct service_resumption r;

	if (recover_resume(c, id, &r) < 0)
		recover_not(c, END_AGENT_LOST);
	else if (r.from != SERVICE_RESUME_CUT)
		recover_go_on(c);
	else if (recover_start(c, id) == 0) /* what the lost owner got is to be heard first */
		recover_heard(c);           /* if there are no records to read */
}

/* Do what the state of the response requires. */
static void recover_answer(struct connection *c, const Cssl__LinkSslId *id)
{
	if (recover_start(c, id) < 0)
		return;
	const struct recovery_facts facts = {
		.loss = service_traits_now(&c->service)->loss,
		.on_loss = tls_listener_conf(c->listener)->on_agent_loss,
		.response = id->response_state,
		.exposed = id->exposed_records > c->client_records ? RECOVERY_EXPOSED : RECOVERY_NOTHING_EXPOSED,
		.answer = recovering_of(c)->recall ? RECOVERY_ANSWER_KNOWN : RECOVERY_ANSWER_LOST,
	};
	enum recovery r = recovery_begin(&facts);

	/* An operator wants to know what this line decides. Where records are heard, the line "replay read" has the
	 * decision; and a connection that only goes on needs no line. */
	const enum log_level level = r == RECOVERY_GO_ON || r == RECOVERY_HEAR ? LOG_DEBUG : LOG_INFO;
	log_event(level, &c->id, "takes over", "response=%s exposed=%s first=%s",
		link_response_name(id->response_state), facts.exposed == RECOVERY_EXPOSED ? "yes" : "no",
		recovery_name(r));
	switch (r) {
	case RECOVERY_HEAR: return; /* recover_heard() will know more */
	case RECOVERY_BACKEND_LOST: recover_say_lost(c); return;
	case RECOVERY_ALERT:
		recover_not(
			c, id->response_state == CSSL__RESPONSE_STATE__RESPONSE_POISONED ? END_POISON : END_AGENT_LOST);
		return;
	default: recover_done(c); return;
	}
}

void recover_or_start(struct connection *c, const Cssl__LinkSslId *id)
{
	consumed_stand_here(c);
	/* a conversation that came along was not cut */
	if (between_own(c) < 0)
		recover_not(c, END_INTERNAL);
	else if (service_stands_between(&c->service) && !c->backend)
		recover_between(c, id);
	else if (id->cause == CSSL__CAUSE__CAUSE_TAKEOVER && !c->backend)
		recover_answer(c, id);
	else
		flow_start(c);
}
