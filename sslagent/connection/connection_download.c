/* connection_download.c: answers that go on after the loss of their owner. An owner leaves word of such an answer with
 * RAgent before its first byte; a successor asks the backend for the rest, and gives the client only what is certainly
 * the rest of the same representation (download.h).
 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/log.h"
#include "proto/error.h"
#include "sslagent/agent.h"
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"
#include "sslagent/service/sealed_download.h"

static struct download_binding binding_of(const struct connection *c)
{
	return (struct download_binding){ .connection = c->id, .listener = tls_listener_conf(c->listener)->name };
}

/* --- the owner --- */

void connection_offer_download(struct connection *c, const uint8_t *data, size_t len, size_t whole)
{
	const struct download_binding to = binding_of(c);
	Cssl__LinkDownload message = CSSL__LINK_DOWNLOAD__INIT;
	uint8_t sealed[SEALED_DOWNLOAD_MAX];
	struct download d;

	if (!connection_can_move(c) || download_begins(data, len, &d) != 0 || d.head_len + d.len <= whole)
		return;
	ptrdiff_t sealed_len = sealed_download_seal(c->home->agents_key, &to, &d, sealed);
	if (sealed_len < 0)
		return;
	message.sealed = (ProtobufCBinaryData){ (size_t)sealed_len, sealed };
	c->carrier->ops->download(c->carrier, &message);
	count(COUNT_DOWNLOADS_OFFERED);
}

/* --- a successor --- */

int connection_find_download(
	const struct connection *c, const Cssl__LinkSslId *id, struct download *out, uint64_t *done)
{
	const struct download_binding to = binding_of(c);
	uint64_t around = live_overhead(c->live);

	if (id->sealed_download.len == 0 || id->response_records > id->response_bytes / around)
		return CSSL_E_NOT_FOUND;
	int error =
		sealed_download_open(c->home->agents_key, &to, id->sealed_download.data, id->sealed_download.len, out);
	if (error)
		return error;
	uint64_t delivered = id->response_bytes - id->response_records * around;
	if (delivered < out->head_len || delivered - out->head_len > out->len)
		return CSSL_E_RANGE;
	*done = delivered - out->head_len;
	return 0;
}

void connection_refuse_download(struct connection *c)
{
	log_event(LOG_INFO, &c->id, "download ended", "delivered=%llu of=%llu", (unsigned long long)c->recovery->done,
		(unsigned long long)c->recovery->download.len);
	count(COUNT_DOWNLOADS_REFUSED);
	connection_release_backend(c, END_AGENT_LOST);
	connection_not_recovered(c, END_AGENT_LOST);
}

/* Who follows the messages is told of an answer whose body is what is left. */
static void go_on(struct connection *c)
{
	const struct connection_recovery *r = c->recovery;
	char head[DOWNLOAD_REST_HEAD_MAX];
	size_t len = download_rest_head(&r->download, r->download.len - r->done, head);

	service_from_backend(&c->service, (const uint8_t *)head, len);
	count(COUNT_DOWNLOADS_RESUMED);
	connection_recovered(c);
}

static int send_question(struct connection *c)
{
	struct connection_recovery *r = c->recovery;
	size_t cap = r->heard_len + DOWNLOAD_ASK_MORE;
	uint8_t *question = malloc(cap);

	if (!question)
		return CSSL_E_NO_MEMORY;
	ptrdiff_t len = download_ask(&r->download, r->done, r->heard, r->heard_len, question, cap);
	int error = len < 0 ? (int)len : connection_ensure_backend(c);
	if (error == 0)
		error = backend_write(c->backend, question, (size_t)len);
	if (error == 0)
		c->to_backend += (uint64_t)len;
	sodium_memzero(question, cap);
	free(question);
	return error;
}

void connection_ask_download(struct connection *c)
{
	struct connection_recovery *r = c->recovery;

	if (r->done == r->download.len) { /* all of it was delivered, and only its end not told */
		go_on(c);
		return;
	}
	r->step = RECOVERING_ASKS;
	if (send_question(c) < 0) {
		connection_refuse_download(c);
		return;
	}
	connection_say_due(c); /* the KeyUpdate is on its way meanwhile */
}

size_t connection_resume_download(struct connection *c, const uint8_t *data, size_t len)
{
	struct connection_recovery *r = c->recovery;
	size_t head_len;
	int error = download_resumes(&r->download, r->done, data, len, &head_len);

	if (error == DOWNLOAD_INCOMPLETE)
		return 0;
	if (error < 0) {
		connection_refuse_download(c);
		return 0;
	}
	go_on(c);
	return head_len;
}
