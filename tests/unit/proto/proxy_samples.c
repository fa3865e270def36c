/* proxy_samples.c: see the header. */
#include "tests/unit/proto/proxy_samples.h"

#include <check.h>
#include <string.h>

#define LENGTH_AT 14u
#define FIXED_LEN 16u

static void put_u16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

void sample_begin(struct sample *s, uint8_t version_command, uint8_t family)
{
	static const uint8_t signature[] = { 0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a };
	memcpy(s->bytes, signature, sizeof(signature));
	s->bytes[12] = version_command;
	s->bytes[13] = family;
	put_u16(s->bytes + LENGTH_AT, 0);
	s->len = FIXED_LEN;
}

void sample_add(struct sample *s, const void *bytes, size_t len)
{
	ck_assert_uint_le(s->len + len, sizeof(s->bytes));
	memcpy(s->bytes + s->len, bytes, len);
	s->len += len;
	put_u16(s->bytes + LENGTH_AT, s->len - FIXED_LEN);
}

void sample_add_tlv(struct sample *s, uint8_t type, const void *value, size_t len)
{
	uint8_t head[3] = { type };
	put_u16(head + 1, len);
	sample_add(s, head, sizeof(head));
	sample_add(s, value, len);
}

void sample_seal(struct sample *s)
{
	sample_add_tlv(s, 0x03, "\0\0\0\0", 4);
	uint32_t crc = sample_crc32c(s->bytes, s->len);
	put_u16(s->bytes + s->len - 4, crc >> 16);
	put_u16(s->bytes + s->len - 2, crc & 0xffff);
}

void sample_tcp4(struct sample *s)
{
	static const uint8_t block[] = { 192, 0, 2, 1, 198, 51, 100, 2, 0x9c, 0x40, 0x01, 0xbb };
	sample_begin(s, 0x21, 0x11);
	sample_add(s, block, sizeof(block));
}

uint32_t sample_crc32c(const uint8_t *in, size_t len)
{
	uint32_t crc = UINT32_MAX;
	for (size_t i = 0; i < len; i++) {
		crc ^= in[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}
