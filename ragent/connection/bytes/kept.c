/* kept.c: records in one contiguous block. The record headers were checked when the records came, so walking them
 * finds the record boundaries, and there is no index.
 */
#include "ragent/connection/bytes/kept.h"

#include <assert.h>
#include <string.h>

#include "proto/error.h"
#include "proto/tls_record.h"

/* Move the bytes to the front of @data, which is of @cap bytes and may be the same block. */
static void kept_move_to(struct kept *k, struct blocks *pool, uint8_t *data, uint32_t cap)
{
	const size_t have = k->end - k->start;

	if (have)
		memmove(data, k->data + k->start, have);
	if (data != k->data)
		block_return(pool, k->data, k->cap);
	k->data = data;
	k->cap = cap;
	k->consumed -= k->start;
	k->sent -= k->start;
	k->start = 0;
	k->end = (uint32_t)have;
}

/* A new block has twice the needed length. So moving is rare, however full the queue is. */
static int kept_make_room(struct kept *k, struct blocks *pool, size_t len)
{
	const size_t have = k->end - k->start;
	uint8_t *data = k->data;
	uint32_t cap = k->cap;

	if (k->cap - k->end >= len)
		return 0;
	if (2 * (have + len) > BLOCK_LARGEST)
		return CSSL_E_TOO_LONG;
	if (2 * (have + len) > k->cap && (data = block_take(pool, have ? 2 * (have + len) : len, &cap)) == NULL)
		return CSSL_E_NO_MEMORY;
	kept_move_to(k, pool, data, cap);
	return 0;
}

int kept_append(struct kept *k, struct blocks *pool, const uint8_t *data, size_t len, unsigned records)
{
	int r = kept_make_room(k, pool, len);

	if (r < 0)
		return r;
	memcpy(k->data + k->end, data, len);
	k->end += (uint32_t)len;
	k->next_record += records;
	return 0;
}

size_t kept_unsent(const struct kept *k, size_t max, const uint8_t **data)
{
	struct tls_record_run run;
	struct tls_record_header bad;
	size_t len = kept_unsent_len(k);

	if (len == 0)
		return 0;
	*data = k->data + k->sent;
	if (len <= max)
		return len;
	if (k->unit == KEPT_BYTES)
		return max;
	int r = tls_record_scan_run(*data, len, max, &run, &bad);
	assert(r == 0);
	return r == 0 ? run.len : 0;
}

void kept_mark_sent(struct kept *k, size_t len)
{
	assert(len <= kept_unsent_len(k));
	k->sent += (uint32_t)len;
}

/* Bytes of the first @records unconsumed records. 0, or CSSL_E_RANGE if the first @most bytes do not have them. */
static int kept_records_len(const struct kept *k, uint64_t records, size_t most, size_t *len)
{
	*len = k->unit == KEPT_BYTES ? (size_t)records : 0;
	if (k->unit == KEPT_BYTES)
		return records <= most ? 0 : CSSL_E_RANGE;
	for (; records; records--) {
		struct tls_record_header h;
		if (*len == most || tls_record_scan(k->data + k->consumed + *len, most - *len, &h) != 0)
			return CSSL_E_RANGE;
		*len += TLS_RECORD_HEADER_LEN + h.length;
	}
	return 0;
}

int kept_mark_sent_to(struct kept *k, uint64_t record)
{
	size_t len;

	if (record < k->consumed_record || record > k->next_record ||
		kept_records_len(k, record - k->consumed_record, kept_len(k), &len) < 0)
		return CSSL_E_RANGE;
	k->sent = k->consumed + (uint32_t)len;
	return 0;
}

uint64_t kept_sent_records(const struct kept *k)
{
	uint64_t records = 0;
	size_t at = k->consumed;
	struct tls_record_header h;

	if (k->unit == KEPT_BYTES)
		return k->sent - k->consumed;
	for (; at < k->sent && tls_record_scan(k->data + at, k->sent - at, &h) == 0; records++)
		at += TLS_RECORD_HEADER_LEN + h.length;
	return records;
}

int kept_consume(struct kept *k, uint64_t record)
{
	size_t len;

	if (record == k->consumed_record)
		return 0;
	if (record < k->consumed_record || record > k->next_record)
		return CSSL_E_RANGE;
	int r = kept_records_len(k, record - k->consumed_record, k->sent - k->consumed, &len);
	if (r < 0)
		return r;
	k->consumed += (uint32_t)len;
	k->consumed_record = record;
	return 0;
}

void kept_forget_consumed(struct kept *k, struct blocks *pool)
{
	k->start = k->consumed;
	k->first_record = k->consumed_record;
	if (k->start == k->end)
		kept_clear(k, pool);
}

void kept_fit(struct kept *k, struct blocks *pool)
{
	size_t have = k->end - k->start;
	uint32_t cap;

	if (have == 0 || have > k->cap / 2)
		return;
	uint8_t *smaller = block_take(pool, have, &cap);
	if (smaller)
		kept_move_to(k, pool, smaller, cap);
}

/* How many complete records are in @len bytes; -1: the bytes do not end with a record. */
static int64_t kept_whole_records(const struct kept *k, const uint8_t *data, size_t len)
{
	struct tls_record_run run;
	struct tls_record_header bad;

	if (len == 0 || k->unit == KEPT_BYTES)
		return (int64_t)len; /* if it is 0, there may be no data either */
	if (tls_record_scan_run(data, len, len, &run, &bad) < 0 || run.len != len)
		return -1;
	return run.records;
}

int kept_restore(
	struct kept *k, struct blocks *pool, const uint8_t *data, size_t len, size_t consumed_len, size_t sent_len)
{
	if (k->first_record > k->consumed_record || k->consumed_record > k->next_record || consumed_len > sent_len ||
		sent_len > len)
		return CSSL_E_RANGE;
	if (kept_whole_records(k, data, sent_len) < 0 ||
		kept_whole_records(k, data, len) != (int64_t)(k->next_record - k->first_record) ||
		kept_whole_records(k, data, consumed_len) != (int64_t)(k->consumed_record - k->first_record))
		return CSSL_E_RANGE;
	if (len == 0)
		return 0;
	int r = kept_append(k, pool, data, len, 0);
	if (r == 0) {
		k->consumed = (uint32_t)consumed_len;
		k->sent = (uint32_t)sent_len;
	}
	return r;
}

void kept_clear(struct kept *k, struct blocks *pool)
{
	block_return(pool, k->data, k->cap);
	k->data = NULL;
	k->cap = k->start = k->consumed = k->sent = k->end = 0;
	k->first_record = k->consumed_record = k->next_record;
}
