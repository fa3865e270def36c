/* connection_recover.c: an owner after a takeover. It opens all records that the lost agent had got, and holds them
 * back: only then it knows whether it may ask the backend again (recovery.h). Nothing of them is consumed before the
 * backend has it. So after another loss RAgent is in the same state as after this one.
 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/log.h"
#include "proto/error.h"
#include "proto/link_words.h"
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"

void connection_drop_recovery(struct connection *c)
{
	struct connection_recovery *r = c->recovery;

	if (r && r->heard)
		sodium_memzero(r->heard, r->heard_len);
	if (r) {
		service_forget(r->recall);
		free(r->heard);
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
	struct connection_recovery *recovery = c->recovery;

	if (recovery->heard_len == 0 || service_is_stranded(&c->service))
		return 0;
	count(COUNT_RECOVERED_REPLAYED);
	int r = connection_write_to_backend(c, recovery->heard, recovery->heard_len);
	if (r == 0 && c->from_client == HALF_CLOSED)
		backend_shutdown(c->backend);
	return r;
}

static void ask_again(struct connection *c)
{
	if (replay(c) == 0)
		connection_recovered(c);
	else
		connection_backend_unreachable(c);
}

/* --- hearing --- */

int connection_hears(const struct connection *c)
{
	return c->recovery->step == RECOVERING_HEARS && c->client_records < c->recovery->exposed;
}

/* RAgent keeps no more than this. */
static size_t heard_max(const struct connection *c)
{
	return connection_window(c) + TLS_RECORD_MAX;
}

/* Without realloc(), so that no plaintext is left in memory. */
static int grow(struct connection_recovery *r, uint32_t cap)
{
	uint8_t *bigger = malloc(cap);

	if (!bigger)
		return CSSL_E_NO_MEMORY;
	if (r->heard) {
		memcpy(bigger, r->heard, r->heard_len);
		sodium_memzero(r->heard, r->heard_len);
		free(r->heard);
	}
	r->heard = bigger;
	r->heard_cap = cap;
	return 0;
}

/* They are for a backend, as if they had just come. */
static int keep_heard(struct connection_recovery *r, const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	if (r->heard_len + len > r->heard_cap && grow(r, (uint32_t)(r->heard_len + len) * 2) < 0)
		return CSSL_E_NO_MEMORY;
	memcpy(r->heard + r->heard_len, data, len);
	r->heard_len += (uint32_t)len;
	return 0;
}

int connection_hear(struct connection *c, const uint8_t *data, size_t len)
{
	struct connection_recovery *r = c->recovery;

	if (r->heard_len + len > heard_max(c))
		return CSSL_E_FULL;
	if (service_stands_between(&c->service)) { /* it keeps them itself */
		r->heard_len += (uint32_t)len;
		service_at_record(&c->service, c->client_records);
		service_from_client(&c->service, data, len);
		return 0;
	}
	for (size_t used = 0; used < len;) {
		struct service_outgoing to;
		size_t n = service_pass(&c->service, SERVICE_ALL, data + used, len - used, &to);
		if (keep_heard(r, data + used, to.len) < 0 || keep_heard(r, to.words, to.words_len) < 0)
			return CSSL_E_NO_MEMORY;
		used += n;
	}
	return 0;
}

/* The service decides, and asks or repeats what is necessary. */
static void judge_between(struct connection *c)
{
	c->to_backend += c->recovery->heard_len;
	service_heard_all(&c->service);
	connection_recovered(c);
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

	log_event(LOG_INFO, &c->id, "replay read", "bytes=%u outstanding=%u then=%s", c->recovery->heard_len,
		heard.outstanding, recovery_name(r));
	switch (r) {
	case RECOVERY_BACKEND_LOST: say_backend_lost(c); return;
	case RECOVERY_ALERT: connection_not_recovered(c, END_AGENT_LOST); return;
	case RECOVERY_ASK_REST: connection_ask_rest(c); return;
	default: ask_again(c); return;
	}
}

void connection_heard(struct connection *c)
{
	if (c->recovery->step != RECOVERING_HEARS || connection_hears(c))
		return;
	if (service_stands_between(&c->service))
		judge_between(c);
	else
		judge(c);
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
	if (connection_recall(c, id, &r->recall) < 0)
		r->recall = NULL;
	connection_to(c, CONNECTION_RECOVERING);
	return 0;
}

void connection_recover_between(struct connection *c, const Cssl__LinkSslId *id)
{
	switch (connection_resume_between(c, id)) {
	case RESUMED: go_on(c); return;
	case RESUMED_NOT_AT_ALL: connection_not_recovered(c, END_AGENT_LOST); return;
	case RESUMED_CUT: break;
	}
	if (begin(c, id) == 0)
		connection_heard(c); /* if there are no records to read */
}

/* An operator wants to know of it. Where records are heard, the line "replay read" has the decision; and a connection
 * that only goes on needs no line. */
static int decides_alone(enum recovery r)
{
	return r != RECOVERY_GO_ON && r != RECOVERY_HEAR;
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

	log_event(decides_alone(r) ? LOG_INFO : LOG_DEBUG, &c->id, "takes over", "response=%s exposed=%s first=%s",
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
