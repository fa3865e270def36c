/* content.c: encodes and decodes messages, states, decided transactions, orders and graves. */
#include "smtpproxy/queue/content.h"

#include "proto/error.h"
#include "proto/wire.h"

#define VERSION       1u
#define VERSION_STEPS 2u /* of a state: with steps */

size_t content_message_len(const struct content_message *m)
{
	return 1 + 8 + 1 + m->destination.len + 4 + m->envelope.len + m->body.len;
}

size_t content_state_len(const struct content_state *s)
{
	return 1 + 2 + 8 + 1 + (s->steps ? 2 : 0) + s->note.len;
}

size_t content_decided_len(const struct content_decided *d)
{
	return 1 + 8 + 1 + d->name.len + d->reply.len;
}

size_t content_order_len(const struct content_order *o)
{
	return 1 + 1 + 4 + o->destination.len;
}

void content_message_write(const struct content_message *m, uint8_t *out)
{
	struct wire_writer w = wire_writer(out, content_message_len(m));

	wire_put_u8(&w, VERSION);
	wire_put_u64(&w, (uint64_t)m->accepted_ms);
	wire_put_u8(&w, (uint8_t)m->destination.len);
	wire_put_bytes(&w, m->destination.data, m->destination.len);
	wire_put_u32(&w, (uint32_t)m->envelope.len);
	wire_put_bytes(&w, m->envelope.data, m->envelope.len);
	wire_put_bytes(&w, m->body.data, m->body.len);
}

void content_state_write(const struct content_state *s, uint8_t *out)
{
	struct wire_writer w = wire_writer(out, content_state_len(s));

	wire_put_u8(&w, s->steps ? VERSION_STEPS : VERSION);
	wire_put_u16(&w, s->attempts);
	wire_put_u64(&w, (uint64_t)s->due_ms);
	wire_put_u8(&w, (uint8_t)s->held);
	if (s->steps)
		wire_put_u16(&w, s->steps);
	wire_put_bytes(&w, s->note.data, s->note.len);
}

void content_decided_write(const struct content_decided *d, uint8_t *out)
{
	struct wire_writer w = wire_writer(out, content_decided_len(d));

	wire_put_u8(&w, VERSION);
	wire_put_u64(&w, (uint64_t)d->decided_ms);
	wire_put_u8(&w, (uint8_t)d->name.len);
	wire_put_bytes(&w, d->name.data, d->name.len);
	wire_put_bytes(&w, d->reply.data, d->reply.len);
}

void content_order_write(const struct content_order *o, uint8_t *out)
{
	struct wire_writer w = wire_writer(out, content_order_len(o));

	wire_put_u8(&w, VERSION);
	wire_put_u8(&w, (uint8_t)o->stopped);
	wire_put_u32(&w, o->rate);
	wire_put_bytes(&w, o->destination.data, o->destination.len);
}

void content_grave_write(uint64_t id, uint8_t *out)
{
	struct wire_writer w = wire_writer(out, CONTENT_GRAVE_LEN);

	wire_put_u8(&w, VERSION);
	wire_put_u64(&w, id);
}

static struct content_bytes take(struct wire_reader *reader, size_t len)
{
	return (struct content_bytes){ .data = wire_bytes(reader, len), .len = len };
}

static int end(struct wire_reader *reader, uint8_t version)
{
	int r = wire_reader_end(reader);

	return r ? r : version == VERSION ? 0 : CSSL_E_VERSION;
}

int content_message_read(struct content_message *m, const uint8_t *in, size_t len)
{
	struct wire_reader reader = wire_reader(in, len);
	uint8_t version = wire_u8(&reader);
	int r;

	m->accepted_ms = (int64_t)wire_u64(&reader);
	m->destination = take(&reader, wire_u8(&reader));
	m->envelope = take(&reader, wire_u32(&reader));
	m->body = take(&reader, wire_left(&reader));
	r = end(&reader, version);
	if (r)
		return r;
	return m->destination.len && m->accepted_ms >= 0 ? 0 : CSSL_E_RANGE;
}

int content_state_read(struct content_state *s, const uint8_t *in, size_t len)
{
	struct wire_reader reader = wire_reader(in, len);
	uint8_t version = wire_u8(&reader);
	int r;

	s->attempts = wire_u16(&reader);
	s->due_ms = (int64_t)wire_u64(&reader);
	s->held = wire_u8(&reader);
	s->steps = version == VERSION_STEPS ? wire_u16(&reader) : 0;
	s->note = take(&reader, wire_left(&reader));
	r = end(&reader, version == VERSION_STEPS ? VERSION : version);
	if (r)
		return r;
	return s->held <= 1 && s->due_ms >= 0 ? 0 : CSSL_E_RANGE;
}

int content_decided_read(struct content_decided *d, const uint8_t *in, size_t len)
{
	struct wire_reader reader = wire_reader(in, len);
	uint8_t version = wire_u8(&reader);
	int r;

	d->decided_ms = (int64_t)wire_u64(&reader);
	d->name = take(&reader, wire_u8(&reader));
	d->reply = take(&reader, wire_left(&reader));
	r = end(&reader, version);
	if (r)
		return r;
	return d->name.len && d->decided_ms >= 0 ? 0 : CSSL_E_RANGE;
}

int content_order_read(struct content_order *o, const uint8_t *in, size_t len)
{
	struct wire_reader reader = wire_reader(in, len);
	uint8_t version = wire_u8(&reader);
	int r;

	o->stopped = wire_u8(&reader);
	o->rate = wire_u32(&reader);
	o->destination = take(&reader, wire_left(&reader));
	r = end(&reader, version);
	if (r)
		return r;
	return o->stopped <= 1 && o->destination.len && o->destination.len <= 255 ? 0 : CSSL_E_RANGE;
}

int content_grave_read(uint64_t *id, const uint8_t *in, size_t len)
{
	struct wire_reader reader = wire_reader(in, len);
	uint8_t version = wire_u8(&reader);

	*id = wire_u64(&reader);
	return end(&reader, version);
}
