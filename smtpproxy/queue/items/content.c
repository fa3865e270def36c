/* content.c: encodes and decodes messages, states, decided transactions, orders and graves. */
#include "smtpproxy/queue/items/content.h"

#include <stdlib.h>

#include "proto/error.h"
#include "proto/wire.h"
#include "smtpproxy/queue/items/seal.h"

#define VERSION     1u
#define SEALED_HEAD (SEAL_OVERHEAD - 16u) /* before the ciphertext */

static bool content_has_name(enum item_kind kind)
{
	return kind == ITEM_MESSAGE || kind == ITEM_DECIDED || kind == ITEM_ORDER;
}

/* The length of the plain form. */
static size_t content_len(enum item_kind kind, const struct content *c)
{
	static const uint8_t numbers[] = { [ITEM_MESSAGE] = 8 + 4,
		[ITEM_STATE] = 8 + 2 + 2 + 1,
		[ITEM_DECIDED] = 8,
		[ITEM_ORDER] = 1 + 4,
		[ITEM_GRAVE] = 8 };

	return 1u + numbers[kind] + content_has_name(kind) + c->name.len + c->envelope.len + c->rest.len;
}

/* @out has room for that length. */
static void content_write(enum item_kind kind, const struct content *c, uint8_t *out)
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
	if (content_has_name(kind))
		wire_put_u8(&w, (uint8_t)c->name.len);
	wire_put_bytes(&w, c->name.data, c->name.len);
	if (kind == ITEM_MESSAGE)
		wire_put_u32(&w, (uint32_t)c->envelope.len);
	wire_put_bytes(&w, c->envelope.data, c->envelope.len);
	wire_put_bytes(&w, c->rest.data, c->rest.len);
}

static struct content_bytes content_take(struct wire_reader *reader, size_t len)
{
	return (struct content_bytes){ .data = wire_bytes(reader, len), .len = len };
}

/* The results point into @in. */
static int content_read(enum item_kind kind, struct content *c, const uint8_t *in, size_t len)
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
	if (content_has_name(kind))
		c->name = content_take(&reader, wire_u8(&reader));
	if (kind == ITEM_MESSAGE)
		c->envelope = content_take(&reader, wire_u32(&reader));
	if (kind != ITEM_ORDER && kind != ITEM_GRAVE)
		c->rest = content_take(&reader, wire_left(&reader));
	/* the reader gives zeros behind the end, and only here says that it was read over */
	r = wire_reader_end(&reader);
	if (r)
		return r;
	if (version != VERSION)
		return CSSL_E_VERSION;
	return c->at_ms < 0 || c->stops > 1 || (content_has_name(kind) && !c->name.len) ? CSSL_E_RANGE : 0;
}

uint8_t *content_seal(const struct seal *s, enum item_kind kind, uint64_t id, const struct content *c, size_t *len)
{
	const size_t plain_len = content_len(kind, c);
	uint8_t *room = malloc(plain_len + SEAL_OVERHEAD);

	if (!room)
		return NULL;
	content_write(kind, c, room + SEALED_HEAD);
	seal_seal(s, (char)kind, id, room + SEALED_HEAD, plain_len, room);
	*len = plain_len + SEAL_OVERHEAD;
	return room;
}

int content_open(const struct seal *s, enum item_kind kind, uint64_t id, const uint8_t *sealed, size_t len,
	uint8_t *plain, struct content *c)
{
	const int r = seal_open(s, (char)kind, id, sealed, len, plain);

	return r ? r : content_read(kind, c, plain, len - SEAL_OVERHEAD);
}
