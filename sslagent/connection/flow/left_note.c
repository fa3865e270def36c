/* left_note.c: before the first byte of an answer that can continue, its owner leaves the service's note with RAgent.
 * A successor asks the backend for the rest with it (recover.c).
 */
#include "sslagent/connection/flow/left_note.h"

#include "proto/error.h"
#include "sslagent/connection/succession.h"
#include "sslagent/counters.h"
#include "sslagent/service/sealed_note.h"

static struct note_binding binding_of(const struct connection *c)
{
	return (struct note_binding){ .connection = c->id, .listener = tls_listener_conf(c->listener)->name };
}

/* 0 or negative. */
static int left_note_send(struct connection *c, const uint8_t *note, size_t len)
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

void left_note_leave(struct connection *c, const uint8_t *data, size_t len, size_t together)
{
	uint8_t note[SERVICE_NOTE_MAX];

	if (!succession_is_possible(c))
		return;
	/* The delivered bytes may be of the answer before this one. Then only the answer before can go on. */
	if (c->delivered != DELIVERED_NOTHING) {
		const size_t next_len = service_leave_next_note(&c->service, data, together, note);
		if (next_len)
			left_note_send(c, note, next_len);
		return;
	}
	const size_t note_len = service_leave_note(&c->service, data, len, together, note);
	if (note_len && left_note_send(c, note, note_len) == 0)
		count(COUNT_DOWNLOADS_OFFERED);
}

void left_note_word(struct connection *c)
{
	uint8_t note[SERVICE_NOTE_MAX];
	const size_t len = succession_is_possible(c) ? service_note(&c->service, note) : 0;

	if (len)
		left_note_send(c, note, len);
}

ptrdiff_t left_note_open(const struct connection *c, const Cssl__LinkSslId *id, uint8_t out[static SERVICE_NOTE_MAX])
{
	const struct note_binding to = binding_of(c);

	if (id->sealed_download.len == 0)
		return CSSL_E_NOT_FOUND;
	return sealed_note_open(c->home->agents_key, &to, id->sealed_download.data, id->sealed_download.len, out);
}
