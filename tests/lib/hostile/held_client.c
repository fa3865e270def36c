/* held_client.c: whole records both ways, and a position by RAgent's own rules. */
#include "tests/lib/hostile/held_client.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/memory/container_of.h"
#include "net/points/audit.h"
#include "proto/tls_record.h"

static struct held_client *of_stream(struct stream *s)
{
	return container_of(s, struct held_client, stream);
}

static struct held_client *of_hearer(struct hearer *h)
{
	return (struct held_client *)h;
}

/* --- from the client --- */

unsigned held_client_replay(const struct held_client *c, struct agent_link *link, uint32_t stream, uint64_t first)
{
	unsigned sent = 0;

	for (uint64_t n = first; n < c->records; n++, sent++)
		agent_link_send(link, stream, FRAME_DATA, 0, c->said + c->starts[n], c->starts[n + 1] - c->starts[n]);
	return sent;
}

static void forward(struct held_client *c)
{
	if (c->state != HELD_HANDSHAKING && c->state != HELD_OWNED)
		return;
	held_client_replay(c, c->link, c->at, c->sent);
	c->sent = c->records;
}

static void find_records(struct held_client *c)
{
	struct tls_record_header h;

	while (c->records < RECORDS_MAX) {
		const size_t start = c->starts[c->records];
		if (tls_record_scan(c->said + start, c->said_len - start, &h) != 0)
			return;
		c->starts[++c->records] = start + TLS_RECORD_HEADER_LEN + h.length;
	}
}

static size_t on_data(struct stream *s, uint8_t *data, size_t len)
{
	struct held_client *c = of_stream(s);
	const size_t room = sizeof c->said - c->said_len, taken = len < room ? len : room;

	memcpy(c->said + c->said_len, data, taken);
	c->said_len += taken;
	find_records(c);
	forward(c);
	return len;
}

static void on_end(struct stream *s, enum stream_end end, int uv_error)
{
	of_stream(s)->state = HELD_OVER;
}

static void on_closed(struct stream *s)
{
}

static const struct stream_ops stream_ops = { .on_data = on_data, .on_end = on_end, .on_closed = on_closed };

/* --- from the agent --- */

static void acknowledge(const struct held_client *c)
{
	const struct frame_accepted a = { c->position.server_records, c->drained, c->position.write_generation, 0 };
	uint8_t out[FRAME_ACCEPTED_MAX];

	const size_t len = frame_accepted_write(out, &a);
	agent_link_send(c->link, c->at, FRAME_ACCEPTED, 0, out, len);
}

static void in_data(struct held_client *c, const struct frame *f)
{
	struct tls_record_run run = { 0 };
	struct tls_record_header bad;

	tls_record_scan_run(f->payload, f->len, f->len, &run, &bad);
	position_commit(&c->position, f->flags, run.records, f->len);
	if (c->position.stage == POSITION_LIVE && !agent_link_is_scribbled(c->link))
		audit_accepted(c->id, c->epoch, f->payload, f->len);
	if (c->state != HELD_OVER)
		stream_write(&c->stream, f->payload, f->len);
	c->drained += f->len;
	acknowledge(c);
}

static void keep_copy(struct held_client *c, const ProtobufCBinaryData *copy)
{
	if (copy->len > sizeof c->copy)
		return;
	memcpy(c->copy, copy->data, copy->len);
	c->copy_len = copy->len;
}

static void in_live(struct held_client *c, const struct frame *f)
{
	Cssl__LinkLive *live = cssl__link_live__unpack(NULL, f->len, f->payload);

	if (live && live->position) {
		position_claim(&c->position, live);
		keep_copy(c, &live->sealed_copy);
		c->state = f->type == FRAME_KEPT ? HELD_OWNED : HELD_FROZEN;
		forward(c);
	}
	if (live)
		cssl__link_live__free_unpacked(live, NULL);
}

static void in_copy(struct held_client *c, const struct frame *f)
{
	Cssl__LinkCopy *copy = cssl__link_copy__unpack(NULL, f->len, f->payload);

	if (copy) {
		keep_copy(c, &copy->sealed_copy);
		cssl__link_copy__free_unpacked(copy, NULL);
	}
}

static void on_frame(struct hearer *h, struct agent_link *l, const struct frame *f)
{
	struct held_client *c = of_hearer(h);
	struct frame_consumed consumed;

	switch (f->type) {
	case FRAME_DATA: in_data(c, f); return;
	case FRAME_CONSUMED:
		if (frame_consumed_read(f, &consumed) == 0)
			position_consume(&c->position, &consumed, f->flags);
		return;
	case FRAME_KEPT:
	case FRAME_HANDED_OFF: in_live(c, f); return;
	case FRAME_COPY: in_copy(c, f); return;
	case FRAME_FIN: stream_shutdown(&c->stream); return;
	case FRAME_REFUSED:
	case FRAME_END:
		if (l != c->link || f->stream != c->at || c->state == HELD_GIVEN)
			return; /* of a former owner */
		c->state = HELD_OVER;
		stream_shutdown(&c->stream);
		return;
	default: return;
	}
}

static void on_lost(struct hearer *h)
{
	struct held_client *c = of_hearer(h);

	if (c->state != HELD_OVER)
		stream_shutdown(&c->stream);
	c->state = HELD_OVER;
}

void held_client_is_given(struct held_client *c)
{
	if (c->state != HELD_OVER)
		c->state = HELD_GIVEN;
}

void held_client_goes_on(struct held_client *c, struct agent_link *link, uint32_t stream, uint32_t epoch)
{
	c->link = link;
	c->at = stream;
	c->epoch = epoch;
	c->state = HELD_OWNED;
	c->drained = 0;
	c->sent = (unsigned)c->position.now.client_records;
	forward(c);
}

/* --- begin --- */

static void say_open(struct held_client *c, int hand_off)
{
	Cssl__LinkOpen m = CSSL__LINK_OPEN__INIT;
	Cssl__Endpoints e;

	endpoints_message(&c->endpoints, &e);
	m.connection_id = (ProtobufCBinaryData){ sizeof c->id, c->id };
	m.listener = (char *)c->listener;
	m.endpoints = &e;
	m.disposition = hand_off ? CSSL__LINK_OPEN__DISPOSITION__HAND_OFF : CSSL__LINK_OPEN__DISPOSITION__KEEP;
	agent_link_say(c->link, c->at, FRAME_OPEN, &m.base);
}

struct held_client *held_client_create(struct worker *w, int fd, const char *listener, struct agent_link *link,
	int hand_off, unsigned number, const uint8_t *id)
{
	struct held_client *c = calloc(1, sizeof *c);
	struct sockaddr_storage client, server;

	if (!c || stream_open_fd(&c->stream, w, &stream_ops, fd) < 0)
		exit(EXIT_FAILURE);
	c->hearer = (struct hearer){ on_frame, on_lost };
	c->number = number;
	c->listener = listener;
	c->link = link;
	c->epoch = 1;
	randombytes_buf(c->id, sizeof c->id);
	if (id)
		memcpy(c->id, id, sizeof c->id);
	position_init(&c->position);
	stream_peer(&c->stream, &client);
	stream_local(&c->stream, &server);
	endpoints_from_sockets(&c->endpoints, (struct sockaddr *)&client, (struct sockaddr *)&server);
	c->at = agent_link_begin(link, &c->hearer);
	say_open(c, hand_off);
	stream_read_start(&c->stream);
	return c;
}
