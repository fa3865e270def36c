/* connection_recover.c: an owner after a takeover. What the lost agent had got is opened, but held back until all of
 * it is heard: only then is it known whether the backend may be asked again (recovery.h). Nothing that was heard is
 * consumed before the backend has it, so that another loss finds RAgent where this one found it.
 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/log.h"
#include "proto/error.h"
#include "sslagent/agent.h"
#include "sslagent/connection_internal.h"
#include "sslagent/counters.h"
#include "sslagent/recovery.h"

struct connection_recovery {
	uint64_t exposed; /* client records below this number are to be heard */
	Cssl__Fate fate;
	uint32_t heard_len, heard_cap;
	uint8_t *heard; /* their plaintext */
};

void connection_drop_recovery(struct connection *c)
{
	struct connection_recovery *r = c->recovery;

	if (r && r->heard)
		sodium_memzero(r->heard, r->heard_len);
	if (r)
		free(r->heard);
	free(r);
	c->recovery = NULL;
}

/* --- what comes of it --- */

static void say_bad_gateway(struct connection *c)
{
	count(COUNT_RECOVERED_502);
	connection_finish(c, LAST_BAD_GATEWAY, END_AGENT_LOST);
}

static void say_alert(struct connection *c, enum end_reason reason)
{
	count(COUNT_RECOVERED_ALERT);
	connection_finish(c, LAST_INTERNAL_ERROR, reason);
}

/* What was heard goes to a backend as if it had just come. */
static int replay(struct connection *c)
{
	struct connection_recovery *r = c->recovery;

	if (r->heard_len == 0)
		return 0;
	count(COUNT_RECOVERED_REPLAYED);
	if (connection_ensure_backend(c) < 0)
		return CSSL_E_SYSTEM;
	c->to_backend += r->heard_len;
	count_by(COUNT_BYTES_TO_BACKEND, r->heard_len);
	return backend_write(c->backend, r->heard, r->heard_len);
}

static void go_on(struct connection *c)
{
	connection_start_owning(c);
	connection_finish_if_over(c); /* the client's end had come before */
}

static void stop_hearing(struct connection *c)
{
	int r = replay(c);

	connection_drop_recovery(c);
	connection_to(c, CONNECTION_OWNER);
	if (r < 0) {
		connection_backend_unreachable(c, END_BACKEND_UNREACHABLE);
		return;
	}
	connection_mark(c);
	if (c->from_client == HALF_CLOSED && c->backend)
		backend_shutdown(c->backend);
	go_on(c);
}

/* --- hearing --- */

int connection_hears(const struct connection *c)
{
	return c->client_records < c->recovery->exposed;
}

/* RAgent keeps no more than this. */
static size_t heard_max(const struct connection *c)
{
	return connection_window(c) + TLS_RECORD_MAX;
}

/* By hand, so that no plaintext stays behind. */
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

int connection_hear(struct connection *c, const uint8_t *data, size_t len)
{
	struct connection_recovery *r = c->recovery;

	if (r->heard_len + len > heard_max(c))
		return CSSL_E_FULL;
	if (r->heard_len + len > r->heard_cap && grow(r, (uint32_t)(r->heard_len + len) * 2) < 0)
		return CSSL_E_NO_MEMORY;
	memcpy(r->heard + r->heard_len, data, len);
	r->heard_len += (uint32_t)len;
	service_from_client(&c->service, data, len);
	return 0;
}

static void judge(struct connection *c)
{
	const struct recovery_heard heard = {
		.service = c->service.kind,
		.repeat = service_repeat(&c->service),
		.outstanding = service_outstanding(&c->service),
		.fate = c->recovery->fate,
	};
	enum recovery r = recovery_judge(&heard);

	log_event(LOG_DEBUG, &c->id, "heard", "bytes=%u outstanding=%u then=\"%s\"", c->recovery->heard_len,
		heard.outstanding, recovery_name(r));
	switch (r) {
	case RECOVERY_BAD_GATEWAY: say_bad_gateway(c); return;
	case RECOVERY_ALERT: say_alert(c, END_AGENT_LOST); return;
	default: stop_hearing(c); return;
	}
}

void connection_heard(struct connection *c)
{
	if (!connection_hears(c))
		judge(c);
}

static void begin_hearing(struct connection *c, const Cssl__LinkSslId *id)
{
	c->recovery = calloc(1, sizeof *c->recovery);
	if (!c->recovery) {
		say_alert(c, END_INTERNAL);
		return;
	}
	c->recovery->exposed = id->exposed_records;
	c->recovery->fate = id->fate;
	connection_to(c, CONNECTION_RECOVERING);
}

void connection_recover(struct connection *c, const Cssl__LinkSslId *id)
{
	const struct recovery_facts facts = {
		.service = c->service.kind,
		.on_loss = tls_listener_conf(c->listener)->on_agent_loss,
		.response = id->response_state,
		.exposed = id->exposed_records > c->client_records ? RECOVERY_EXPOSED : RECOVERY_NOTHING_EXPOSED,
	};
	enum recovery r = recovery_begin(&facts);

	log_event(LOG_DEBUG, &c->id, "takes over", "response=%d exposed=%d first=\"%s\"", (int)id->response_state,
		(int)facts.exposed, recovery_name(r));
	switch (r) {
	case RECOVERY_GO_ON: go_on(c); return;
	case RECOVERY_HEAR: begin_hearing(c, id); return;
	case RECOVERY_BAD_GATEWAY: say_bad_gateway(c); return;
	case RECOVERY_ALERT:
		say_alert(
			c, id->response_state == CSSL__RESPONSE_STATE__RESPONSE_POISONED ? END_POISON : END_AGENT_LOST);
		return;
	}
}
