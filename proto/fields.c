/* fields.c: a loop over the table both ways. */
#include "proto/fields.h"

#include <assert.h>
#include <string.h>

#include "proto/error.h"

/* --- out --- */

size_t fields_len(const struct field *rows, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += FIELD_HEADER_LEN + rows[i].size;
	return len;
}

/* The member as a number; a negative one as two's complement of the member's size. */
static uint64_t member_get(const void *member, size_t size)
{
	uint8_t u8;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;

	switch (size) {
	case 1: memcpy(&u8, member, size); return u8;
	case 2: memcpy(&u16, member, size); return u16;
	case 4: memcpy(&u32, member, size); return u32;
	default:
		assert(size == 8);
		memcpy(&u64, member, size);
		return u64;
	}
}

static void member_set(void *member, size_t size, uint64_t value)
{
	uint8_t u8 = (uint8_t)value;
	uint16_t u16 = (uint16_t)value;
	uint32_t u32 = (uint32_t)value;

	switch (size) {
	case 1: memcpy(member, &u8, size); break;
	case 2: memcpy(member, &u16, size); break;
	case 4: memcpy(member, &u32, size); break;
	default: assert(size == 8); memcpy(member, &value, size);
	}
}

void field_begin(struct wire_writer *w, uint16_t tag, size_t len)
{
	wire_put_u16(w, tag);
	wire_put_u32(w, (uint32_t)len);
}

void field_write(struct wire_writer *w, uint16_t tag, const void *value, size_t len)
{
	field_begin(w, tag, len);
	if (len)
		wire_put_bytes(w, value, len);
}

static void number_put(struct wire_writer *w, uint64_t value, size_t size)
{
	for (size_t i = size; i-- > 0;)
		wire_put_u8(w, (uint8_t)(value >> 8 * i));
}

void fields_write(struct wire_writer *w, const void *object, const struct field *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const uint8_t *member = (const uint8_t *)object + rows[i].offset;
		field_begin(w, rows[i].tag, rows[i].size);
		if (rows[i].kind == FIELD_BYTES)
			wire_put_bytes(w, member, rows[i].size);
		else
			number_put(w, member_get(member, rows[i].size), rows[i].size);
	}
}

/* --- in --- */

int field_next(struct wire_reader *r, struct field_item *out)
{
	if (r->at && wire_left(r) == 0)
		return FIELDS_END;
	out->tag = wire_u16(r);
	out->len = wire_u32(r);
	out->value = wire_bytes(r, out->len);
	return out->value ? 0 : CSSL_E_TRUNCATED;
}

static const struct field *fields_row_of(const struct field *rows, size_t count, uint16_t tag)
{
	if (tag != 0 && tag <= count && rows[tag - 1].tag == tag)
		return &rows[tag - 1]; /* in most tables the tags are 1, 2, 3, ... */
	for (size_t i = 0; i < count; i++)
		if (rows[i].tag == tag)
			return &rows[i];
	return NULL;
}

int field_number(const struct field_item *item, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;

	if (item->len == 0 || item->len > sizeof value)
		return CSSL_E_RANGE;
	for (uint32_t i = 0; i < item->len; i++)
		value = value << 8 | item->value[i];
	if (value > max)
		return CSSL_E_RANGE;
	*out = value;
	return 0;
}

static uint64_t largest_unsigned(size_t size)
{
	return size == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * size) - 1;
}

static int store_unsigned(void *member, const struct field *row, const struct field_item *item)
{
	uint64_t value, most = largest_unsigned(row->size);
	int r = field_number(item, row->max < most ? row->max : most, &value);

	if (r == 0)
		member_set(member, row->size, value);
	return r;
}

static int store_signed(void *member, const struct field *row, const struct field_item *item)
{
	uint64_t value;
	int r = field_number(item, UINT64_MAX, &value);

	if (r < 0)
		return r;
	if (item->len < 8 && value >> (8 * item->len - 1)) /* negative: extend the sign to all bytes */
		value |= ~largest_unsigned(item->len);
	uint64_t above = value >> (8 * row->size - 1);
	if (above != 0 && above != largest_unsigned(8) >> (8 * row->size - 1))
		return CSSL_E_RANGE;
	member_set(member, row->size, value);
	return 0;
}

int field_store(void *object, const struct field *rows, size_t count, const struct field_item *item)
{
	const struct field *row = fields_row_of(rows, count, item->tag);

	if (!row)
		return FIELD_OTHER;
	void *member = (uint8_t *)object + row->offset;
	if (row->kind == FIELD_UINT)
		return store_unsigned(member, row, item);
	if (row->kind == FIELD_INT)
		return store_signed(member, row, item);
	if (item->len != row->size)
		return CSSL_E_RANGE;
	memcpy(member, item->value, row->size);
	return 0;
}
