/* wire.c: the cursor. Room is compared as a length, never by computing a pointer past the end. */
#include "proto/wire.h"

#include <string.h>

#include "proto/error.h"

/* An empty message may come as (NULL, 0). It is empty; it does not mean that the reader failed. */
static const uint8_t nothing[1];

struct wire_reader wire_reader(const uint8_t *in, size_t len)
{
	const uint8_t *at = in ? in : nothing;
	return (struct wire_reader){ .at = at, .end = at + (in ? len : 0) };
}

const uint8_t *wire_bytes(struct wire_reader *r, size_t len)
{
	const uint8_t *at = r->at;
	if (!at || (size_t)(r->end - at) < len) {
		r->at = NULL;
		return NULL;
	}
	r->at = at + len;
	return at;
}

uint8_t wire_u8(struct wire_reader *r)
{
	const uint8_t *p = wire_bytes(r, 1);
	return p ? p[0] : 0;
}

uint16_t wire_u16(struct wire_reader *r)
{
	const uint8_t *p = wire_bytes(r, 2);
	return p ? wire_load_u16(p) : 0;
}

uint32_t wire_u24(struct wire_reader *r)
{
	const uint8_t *p = wire_bytes(r, 3);
	return p ? (uint32_t)p[0] << 16 | wire_load_u16(p + 1) : 0;
}

uint32_t wire_u32(struct wire_reader *r)
{
	const uint8_t *p = wire_bytes(r, 4);
	return p ? wire_load_u32(p) : 0;
}

uint64_t wire_u64(struct wire_reader *r)
{
	const uint8_t *p = wire_bytes(r, 8);
	return p ? wire_load_u64(p) : 0;
}

struct wire_reader wire_sub(struct wire_reader *r, size_t len)
{
	const uint8_t *p = wire_bytes(r, len);
	if (!p)
		return (struct wire_reader){ .at = NULL, .end = NULL };
	return wire_reader(p, len);
}

size_t wire_left(const struct wire_reader *r)
{
	return r->at ? (size_t)(r->end - r->at) : 0;
}

int wire_reader_end(const struct wire_reader *r)
{
	if (!r->at)
		return CSSL_E_TRUNCATED;
	return r->at == r->end ? 0 : CSSL_E_TRAILING;
}

struct wire_writer wire_writer(uint8_t *out, size_t cap)
{
	return (struct wire_writer){ .start = out, .at = out, .end = out ? out + cap : NULL };
}

/* Room for @len bytes, or NULL and the cursor is spent. */
static uint8_t *writer_take(struct wire_writer *w, size_t len)
{
	uint8_t *at = w->at;
	if (!at || (size_t)(w->end - at) < len) {
		w->at = NULL;
		return NULL;
	}
	w->at = at + len;
	return at;
}

void wire_put_u8(struct wire_writer *w, uint8_t v)
{
	uint8_t *p = writer_take(w, 1);
	if (p)
		p[0] = v;
}

void wire_put_u16(struct wire_writer *w, uint16_t v)
{
	uint8_t *p = writer_take(w, 2);
	if (p)
		wire_store_u16(p, v);
}

void wire_put_u24(struct wire_writer *w, uint32_t v)
{
	uint8_t *p = writer_take(w, 3);
	if (!p)
		return;
	p[0] = (uint8_t)(v >> 16);
	wire_store_u16(p + 1, (uint16_t)v);
}

void wire_put_u32(struct wire_writer *w, uint32_t v)
{
	uint8_t *p = writer_take(w, 4);
	if (p)
		wire_store_u32(p, v);
}

void wire_put_u64(struct wire_writer *w, uint64_t v)
{
	uint8_t *p = writer_take(w, 8);
	if (p)
		wire_store_u64(p, v);
}

void wire_put_bytes(struct wire_writer *w, const void *in, size_t len)
{
	uint8_t *p = writer_take(w, len);
	if (p && len)
		memcpy(p, in, len);
}

uint8_t *wire_put_room(struct wire_writer *w, size_t len)
{
	return writer_take(w, len);
}

ptrdiff_t wire_writer_len(const struct wire_writer *w)
{
	return w->at ? w->at - w->start : CSSL_E_TOO_LONG;
}
