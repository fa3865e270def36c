/* content.c: encodes and decodes messages, states, decided transactions, orders and graves. */
#include "smtpproxy/queue/items/content.h"

#include "proto/error.h"
#include "proto/wire.h"

#define VERSION 1u

static bool has_name(enum item_kind kind)
{
	return kind == ITEM_MESSAGE || kind == ITEM_DECIDED || kind == ITEM_ORDER;
}

size_t content_len(enum item_kind kind, const struct content *c)
{
	static const uint8_t numbers[] = { [ITEM_MESSAGE] = 8 + 4,
		[ITEM_STATE] = 8 + 2 + 2 + 1,
		[ITEM_DECIDED] = 8,
		[ITEM_ORDER] = 1 + 4,
		[ITEM_GRAVE] = 8 };

	return 1u + numbers[kind] + has_name(kind) + c->name.len + c->envelope.len + c->rest.len;
}

void content_write(enum item_kind kind, const struct content *c, uint8_t *out)
{
	struct wire_writer w = wire_writer(out, content_len(kind, c));

	wire_put_u8(&w, VERSION);
	if (kind == ITEM_GRAVE)
		wire_put_u64(&w, c->dead);
	else if (kind != ITEM_ORDER)
		wire_put_u64(&w, (uint64_t)c->at_ms);
	if (kind == ITEM_STATE) {
		wire_put_u16(&w, c->attempts);
		wire_put_u16(&w, c->steps);
	}
	if (kind == ITEM_STATE || kind == ITEM_ORDER)
		wire_put_u8(&w, (uint8_t)c->stops);
	if (kind == ITEM_ORDER)
		wire_put_u32(&w, c->rate);
	if (has_name(kind))
		wire_put_u8(&w, (uint8_t)c->name.len);
	wire_put_bytes(&w, c->name.data, c->name.len);
	if (kind == ITEM_MESSAGE)
		wire_put_u32(&w, (uint32_t)c->envelope.len);
	wire_put_bytes(&w, c->envelope.data, c->envelope.len);
	wire_put_bytes(&w, c->rest.data, c->rest.len);
}

static struct content_bytes take(struct wire_reader *reader, size_t len)
{
	return (struct content_bytes){ .data = wire_bytes(reader, len), .len = len };
}

int content_read(enum item_kind kind, struct content *c, const uint8_t *in, size_t len)
{
	struct wire_reader reader = wire_reader(in, len);
	const uint8_t version = wire_u8(&reader);
	int r;

	*c = (struct content){ 0 };
	if (kind == ITEM_GRAVE)
		c->dead = wire_u64(&reader);
	else if (kind != ITEM_ORDER)
		c->at_ms = (int64_t)wire_u64(&reader);
	if (kind == ITEM_STATE) {
		c->attempts = wire_u16(&reader);
		c->steps = wire_u16(&reader);
	}
	if (kind == ITEM_STATE || kind == ITEM_ORDER)
		c->stops = wire_u8(&reader);
	if (kind == ITEM_ORDER)
		c->rate = wire_u32(&reader);
	if (has_name(kind))
		c->name = take(&reader, wire_u8(&reader));
	if (kind == ITEM_MESSAGE)
		c->envelope = take(&reader, wire_u32(&reader));
	if (kind != ITEM_ORDER && kind != ITEM_GRAVE)
		c->rest = take(&reader, wire_left(&reader));
	r = wire_reader_end(&reader);
	if (r)
		return r;
	if (version != VERSION)
		return CSSL_E_VERSION;
	return c->at_ms < 0 || c->stops > 1 || (has_name(kind) && !c->name.len) ? CSSL_E_RANGE : 0;
}
