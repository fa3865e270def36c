/* wire.h: a cursor for reading and writing all fixed wire formats. Numbers are big endian.
 *
 * A cursor without bytes left is spent: each later call returns 0 or NULL and writes nothing. So a parser checks once,
 * at its end, with wire_reader_end() or wire_writer_len().
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Single values. The caller has checked that there is room. The cursor uses them, and the two scanners of frames and
 * records. */
static inline uint16_t wire_load_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t wire_load_u32(const uint8_t *p)
{
	return (uint32_t)wire_load_u16(p) << 16 | wire_load_u16(p + 2);
}

static inline uint64_t wire_load_u64(const uint8_t *p)
{
	return (uint64_t)wire_load_u32(p) << 32 | wire_load_u32(p + 4);
}

/* Copy bytes that another process may be changing. What is read of the copy afterwards cannot change any more: without
 * the barrier the compiler might read the original again. */
static inline void wire_take_copy(uint8_t *out, const uint8_t *in, size_t len)
{
	memcpy(out, in, len);
	__asm__ volatile("" : : "r"(out) : "memory");
}

static inline void wire_store_u16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void wire_store_u32(uint8_t *p, uint32_t v)
{
	wire_store_u16(p, (uint16_t)(v >> 16));
	wire_store_u16(p + 2, (uint16_t)v);
}

static inline void wire_store_u64(uint8_t *p, uint64_t v)
{
	wire_store_u32(p, (uint32_t)(v >> 32));
	wire_store_u32(p + 4, (uint32_t)v);
}

struct wire_reader {
	const uint8_t *at; /* NULL: spent */
	const uint8_t *end;
};

struct wire_writer {
	uint8_t *start;
	uint8_t *at; /* NULL: spent */
	uint8_t *end;
};

struct wire_reader wire_reader(const uint8_t *in, size_t len);
uint8_t wire_u8(struct wire_reader *r);
uint16_t wire_u16(struct wire_reader *r);
uint32_t wire_u24(struct wire_reader *r);
uint32_t wire_u32(struct wire_reader *r);
uint64_t wire_u64(struct wire_reader *r);

/* The next @len bytes, in place. NULL: the cursor is spent now, or was before. */
const uint8_t *wire_bytes(struct wire_reader *r, size_t len);

/* A reader over the next @len bytes; a spent reader when there are fewer. */
struct wire_reader wire_sub(struct wire_reader *r, size_t len);

size_t wire_left(const struct wire_reader *r);

/* 0 when everything was read and nothing is left; CSSL_E_TRUNCATED; CSSL_E_TRAILING. */
int wire_reader_end(const struct wire_reader *r);

struct wire_writer wire_writer(uint8_t *out, size_t cap);
void wire_put_u8(struct wire_writer *w, uint8_t v);
void wire_put_u16(struct wire_writer *w, uint16_t v);
void wire_put_u24(struct wire_writer *w, uint32_t v);
void wire_put_u32(struct wire_writer *w, uint32_t v);
void wire_put_u64(struct wire_writer *w, uint64_t v);
void wire_put_bytes(struct wire_writer *w, const void *in, size_t len);

/* Room for @len bytes that the caller fills. NULL: the cursor is spent now, or was before. */
uint8_t *wire_put_room(struct wire_writer *w, size_t len);

/* Bytes written, or CSSL_E_TOO_LONG: they did not fit. */
ptrdiff_t wire_writer_len(const struct wire_writer *w);
