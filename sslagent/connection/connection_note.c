/* connection_note.c: answers that continue after the loss of their owner. Before the first byte of such an answer,
 * the owner leaves the service's note with RAgent. A successor asks the backend for the rest, and gives the client
 * only bytes that are certainly the rest of the same answer (service.h).
 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/log_pace.h"
#include "proto/error.h"
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"
#include "sslagent/service/sealed_note.h"

static struct note_binding binding_of(const struct connection *c)
{
	return (struct note_binding){ .connection = c->id, .listener = tls_listener_conf(c->listener)->name };
}

/* --- the owner --- */

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
	c->carrier->ops->download(c->carrier, &message);
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

/* --- a successor --- */

ptrdiff_t connection_open_note(
	const struct connection *c, const Cssl__LinkSslId *id, uint8_t out[static SERVICE_NOTE_MAX])
{
	const struct note_binding to = binding_of(c);

	if (id->sealed_download.len == 0)
		return CSSL_E_NOT_FOUND;
	return sealed_note_open(c->home->agents_key, &to, id->sealed_download.data, id->sealed_download.len, out);
}

int connection_recall(const struct connection *c, const Cssl__LinkSslId *id, struct service_recall **out)
{
	uint64_t around = live_overhead(c->live);
	uint8_t note[SERVICE_NOTE_MAX];

	if (id->response_records > id->response_bytes / around)
		return CSSL_E_NOT_FOUND;
	const ptrdiff_t len = connection_open_note(c, id, note);
	if (len < 0)
		return (int)len;
	return service_recall(&c->service, note, (size_t)len, id->response_bytes - id->response_records * around, out);
}

void connection_refuse_rest(struct connection *c)
{
	const struct service_recall *r = c->recovery->recall;

	log_paced(LOG_INFO, &c->id, "download ended", "delivered=%llu of=%lld", (unsigned long long)r->delivered,
		(long long)r->len); /* -1: not known */
	count(COUNT_DOWNLOADS_REFUSED);
	connection_release_backend(c, END_AGENT_LOST);
	connection_not_recovered(c, END_AGENT_LOST);
}

void connection_lose_rest(struct connection *c, struct connection_event *e)
{
	connection_refuse_rest(c);
}

static void go_on(struct connection *c)
{
	service_go_on(&c->service, c->recovery->recall);
	count(COUNT_DOWNLOADS_RESUMED);
	if (c->recovery->recall->how == SERVICE_REPEATS)
		count(COUNT_DOWNLOADS_REPEATED);
	connection_recovered(c);
}

static int send_question(struct connection *c)
{
	struct connection_recovery *recovery = c->recovery;
	size_t cap = recovery->heard_len + SERVICE_ASK_MORE;
	uint8_t *question = malloc(cap);

	if (!question)
		return CSSL_E_NO_MEMORY;
	ptrdiff_t len = service_ask_rest(recovery->recall, recovery->heard, recovery->heard_len, question, cap);
	int r = len < 0 ? (int)len : connection_ensure_backend(c);
	if (r == 0)
		r = backend_write(c->backend, question, (size_t)len);
	if (r == 0)
		c->to_backend += (uint64_t)len;
	sodium_memzero(question, cap);
	free(question);
	return r;
}

void connection_ask_rest(struct connection *c)
{
	struct connection_recovery *r = c->recovery;

	if (r->recall->how == SERVICE_ASKS_REST &&
		r->recall->delivered == r->recall->len) { /* the client has all of it, but not its end */
		go_on(c);
		return;
	}
	r->step = RECOVERING_ASKS;
	if (send_question(c) < 0) {
		connection_refuse_rest(c);
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
		connection_refuse_rest(c);
		return 0;
	}
	go_on(c);
	return hidden;
}
