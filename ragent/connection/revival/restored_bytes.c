/* restored_bytes.c: the bytes of a connection that the process before left: those of its client, from its log and its
 * worker's read buffer, and those for its client that no agent holds. All values are checked, because that process can
 * have been attacked.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "ragent/connection/revival/connection_restoring.h"

/* Bytes that the process before had read and not logged when it died: it was reading this connection. In the read
 * buffer they are behind those that were logged and not used. */
static int restored_take_unlogged(struct restored *r, uint64_t end, size_t count)
{
	const uint64_t used = r->slot->bytes_read;

	if (count == 0)
		return 0;
	if (!r->read_last || used > end || end - used > WORKER_READ_BUFFER_LEN ||
		count > WORKER_READ_BUFFER_LEN - (size_t)(end - used))
		return CSSL_E_RANGE;
	memcpy(r->input + r->input_len, r->read_last + (end - used), count);
	r->input_len += count;
	return 0;
}

static void restored_keep_nothing(struct restored *r)
{
	const uint64_t records = r->c.now.position.now.client_records;

	r->busy.kept = (struct kept){ .first_record = records, .consumed_record = records, .next_record = records };
}

/* From the first kept byte on. 0 or negative. */
static int restored_find_input(struct restored *r, uint64_t read)
{
	const uint64_t from = r->image->first_byte, end = byte_log_end(&r->trail->log);

	if (from > end || read < end || end - from > BLOCK_LARGEST || read - end > WORKER_READ_BUFFER_LEN)
		return CSSL_E_RANGE;
	r->input_len = (size_t)(end - from);
	r->input = malloc(r->input_len + (size_t)(read - end) + 1);
	if (!r->input)
		return CSSL_E_NO_MEMORY;
	int result = byte_log_copy(&r->trail->log, r->home->table, from, r->input, r->input_len);
	return result < 0 ? result : restored_take_unlogged(r, end, (size_t)(read - end));
}

/* Bytes of the first @records records. 0 or CSSL_E_RANGE. */
static int restored_records_len(const struct restored *r, uint64_t records, size_t *out)
{
	size_t len = 0;

	for (; records; records--) {
		struct tls_record_header h;
		if (tls_record_scan(r->input + len, r->input_len - len, &h) != 0)
			return CSSL_E_RANGE;
		len += TLS_RECORD_HEADER_LEN + h.length;
	}
	*out = len;
	return 0;
}

/* In clear, all that fits into a window behind what the agent has read. What it has got, it tells later. Until the
 * banner has come, nothing goes to the agent. */
static int restored_take_clear(struct restored *r)
{
	const uint64_t first = r->image->first_record;
	const size_t window = r->busy.resumes == CONNECTION_RELAYED ? connection_window(&r->c) : FRAME_PREAMBLE_WINDOW;
	const size_t most = r->preamble.now.said == PREAMBLE_NOTHING ? 0 : window;
	const size_t n = r->input_len < most ? r->input_len : most;

	if (first > UINT64_MAX - n)
		return CSSL_E_RANGE;
	r->busy.kept = (struct kept){ .data = n ? r->input : NULL,
		.cap = (uint32_t)n,
		.sent = (uint32_t)n,
		.end = (uint32_t)n,
		.first_record = first,
		.consumed_record = first,
		.next_record = first + n,
		.unit = KEPT_BYTES };
	r->busy.client.kept = (struct stream_buffer){
		.data = r->input, .cap = (uint32_t)r->input_len, .start = (uint32_t)n, .end = (uint32_t)r->input_len
	};
	return 0;
}

/* Whole records, not more than a window of them, are kept. The others are the next input. The owner tells later what it
 * got. */
static int restored_take_records(struct restored *r)
{
	const uint64_t first = r->image->first_record, consumed = r->c.now.position.now.client_records;
	struct tls_record_run run = { 0 };
	struct tls_record_header bad;
	size_t consumed_len;

	if (consumed < first || restored_records_len(r, consumed - first, &consumed_len) < 0)
		return CSSL_E_RANGE;
	const size_t most = consumed_len + connection_window(&r->c);
	const bool keeps_records = r->c.now.state != CONNECTION_PROXY && r->c.now.state != CONNECTION_HELLO;
	if (r->input_len && keeps_records && tls_record_scan_run(r->input, r->input_len, most, &run, &bad) < 0)
		return CSSL_E_RANGE;
	r->busy.kept = (struct kept){ .data = run.len ? r->input : NULL,
		.cap = (uint32_t)run.len,
		.consumed = (uint32_t)consumed_len,
		.sent = (uint32_t)run.len, /* as far as anybody knows */
		.end = (uint32_t)run.len,
		.first_record = first,
		.consumed_record = consumed,
		.next_record = first + run.records };
	r->busy.client.kept = (struct stream_buffer){ .data = r->input,
		.cap = (uint32_t)r->input_len,
		.start = (uint32_t)run.len,
		.end = (uint32_t)r->input_len };
	return 0;
}

static int restored_take_input(struct restored *r, uint64_t read)
{
	int result = restored_find_input(r, read);

	if (result < 0)
		return result;
	return connection_is_in_clear(&r->c) ? restored_take_clear(r) : restored_take_records(r);
}

static int restored_take_owed(struct restored *r, uint64_t written)
{
	const struct byte_log *owed = r->image ? &r->trail->owed : NULL;
	const uint64_t end = owed && owed->first ? byte_log_end(owed) : 0;

	if (end <= written)
		return 0;
	if (end - written > BLOCK_LARGEST)
		return CSSL_E_RANGE;
	r->owed_len = (size_t)(end - written);
	r->owed = malloc(r->owed_len);
	if (!r->owed)
		return CSSL_E_NO_MEMORY;
	r->busy.client.out =
		(struct stream_buffer){ .data = r->owed, .cap = (uint32_t)r->owed_len, .end = (uint32_t)r->owed_len };
	return byte_log_copy(owed, r->home->table, written, r->owed, r->owed_len);
}

int restored_take_bytes(struct restored *r, const struct tcp_counts *counts)
{
	const int result = restored_take_owed(r, counts->written);

	if (result < 0)
		return result;
	if (r->c.now.state != CONNECTION_REATTACHING && counts->written + r->owed_len != r->c.now.queued)
		return CSSL_E_RANGE;
	r->c.now.queued = counts->written + r->owed_len;
	if (r->image && r->c.now.state != CONNECTION_LINGERING)
		return restored_take_input(r, counts->read);
	restored_keep_nothing(r);
	return 0;
}
