/* backup_calls.c: what a backup that is ours is asked under our token: changes as calls of its functions, and what it
 * holds, in blocks of items. And the answers. */
#include "smtpproxy/queue/backup/backup_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "net/report/log.h"
#include "net/report/log_pace.h"
#include "proto/error.h"
#include "smtpproxy/queue/backup/functions.h"
#include "smtpproxy/queue/backup/record.h"

#define BLOCK_ITEMS_FIRST 1u /* until the size of items is known */
#define BLOCK_GROWTH      8u /* of the next block, because its items may be larger */
#define BLOCK_BYTES       (4u << 20)

#define LINE_SLOW  (1u << 20) /* for a backup that does not count yet */
#define LINE_SHORT 1024u      /* changes; a FILLING backup then asks for more */

static const char *const call_functions[] = {
	[CHANGE_PUT] = FUNCTION_PUT,
	[CHANGE_REPLACE] = FUNCTION_REPLACE,
	[CHANGE_DELETE] = FUNCTION_DELETE,
	[CHANGE_MARK] = FUNCTION_MARK,
};

void backup_call_begin(struct backup *b, const char *function, unsigned more)
{
	struct redis_link *l = &b->active->link;
	char token[48];

	snprintf(token, sizeof token, "%" PRIu64 ".%" PRIu64, b->shared->epoch, b->generation);
	redis_link_begin(l, 6 + more);
	redis_link_text(l, "FCALL");
	redis_link_text(l, function);
	redis_link_text(l, "2");
	redis_link_text(l, b->shared->owner_key);
	redis_link_text(l, b->shared->items_key);
	redis_link_text(l, token);
}

/* What a call has of a change: name and value of the item, and of its state. */
enum { ITEM_NAME = 1, ITEM_VALUE = 2, STATE_NAME = 4, STATE_VALUE = 8 };

static unsigned parts_of(const struct change *c)
{
	switch (c->kind) {
	case CHANGE_PUT: return ITEM_NAME | ITEM_VALUE | (c->item->note ? STATE_NAME | STATE_VALUE : 0);
	case CHANGE_REPLACE: return STATE_NAME | STATE_VALUE;
	case CHANGE_DELETE: return ITEM_NAME | (c->item->kind == ITEM_MESSAGE ? STATE_NAME : 0);
	case CHANGE_MARK: break;
	}
	return 0;
}

/* The names and values of the newest marker, for this server. */
static void mark_out(struct backup *b)
{
	struct backup_shared *s = b->shared;
	struct marker_left *ours = marker_left_of(&s->marker, b->index, b->run_id);
	struct marker m;

	/* It may execute this marker although its answer is lost. */
	ours->sent = s->marker.version;
	memcpy(ours->by, s->nonce, sizeof ours->by);
	m = s->marker;
	for (unsigned i = 0; i < BACKUPS; i++)
		if (m.members[i][0] || m.apart[i][0])
			m.left[i] = (struct marker_left){ 0 };
	memcpy(m.run_id, b->run_id, sizeof m.run_id);
	memcpy(m.by, s->nonce, sizeof m.by);
	snprintf(m.key, sizeof m.key, "%s", seal_print(s->seal));
	record_write(&b->active->link, &m);
}

static void change_out(struct backup *b, const struct change *c)
{
	struct redis_link *l = &b->active->link;
	const unsigned parts = parts_of(c);
	char field[ITEM_FIELD_LEN];

	if (c->kind == CHANGE_MARK) {
		mark_out(b);
		return;
	}
	item_field(c->item->kind, c->item->id, field);
	if (parts & ITEM_NAME)
		redis_link_argument(l, field, sizeof field);
	if (parts & ITEM_VALUE)
		redis_link_argument(l, c->item->sealed, c->item->sealed_len);
	field[0] = ITEM_STATE;
	if (parts & STATE_NAME)
		redis_link_argument(l, field, sizeof field);
	if (parts & STATE_VALUE)
		redis_link_argument(l, c->item->note, c->item->note_len);
}

static void call_out(struct backup *b, const struct change_call *call)
{
	struct change_line *l = &b->line;
	const uint32_t first = l->sent - call->changes;
	const enum change_kind kind = change_at(l, first)->kind;
	unsigned more = kind == CHANGE_MARK ? 2 * RECORD_MARKER_FIELDS : 0;

	for (uint32_t i = 0; i < call->changes; i++)
		more += (unsigned)__builtin_popcount(parts_of(change_at(l, first + i)));
	backup_call_begin(b, call_functions[kind], more);
	for (uint32_t i = 0; i < call->changes; i++)
		change_out(b, change_at(l, first + i));
	redis_link_end(&b->active->link, ASKED_CALL);
	b->stats.calls++;
}

void backup_send(struct backup *b)
{
	struct change_call call;

	/* After a change of paths the server is checked first. Until then nothing may be sent, because the token is
	 * not ours yet. */
	if (!b->active || b->looks || !backup_is_live(b) || b->generation == 0)
		return;
	while (b->active->link.state == REDIS_LINK_READY &&
		change_next_call(&b->line, b->shared->marker.version, &call))
		call_out(b, &call);
	if (b->state == BACKUP_FILLING && b->line.count < LINE_SHORT)
		b->shared->ops->on_room(b);
}

static void send_at_turn_end(struct turn_end *t)
{
	backup_send(container_of(t, struct backup, turn));
}

static void send_soon(struct backup *b)
{
	b->turn.fn = send_at_turn_end;
	worker_at_turn_end(b->shared->worker, &b->turn);
}

int backup_push(struct backup *b, enum change_kind kind, struct item *i)
{
	int r;

	if (!backup_counts(b) && b->line.count >= LINE_SLOW) { /* it delays no sender, so its line is bounded here */
		b->fill_after_ms = redis_link_clock_ms() + 5000;
		backup_give_up(b, "it is too slow to be filled");
		return CSSL_E_FULL;
	}
	r = change_push(&b->line, kind, i);
	if (r) {
		backup_give_up(b, "out of memory");
		return r;
	}
	send_soon(b);
	return 0;
}

/* The changes of one call are done one by one: a callback may give the backup up, and then the line is empty. */
static void call_done(struct backup *b, const struct change_call *call)
{
	for (uint32_t n = 0; n < call->changes && backup_is_live(b); n++) {
		struct change c = change_pop(&b->line, CHANGE_MADE);

		b->stats.puts += c.kind == CHANGE_PUT;
		b->stats.replaces += c.kind == CHANGE_REPLACE;
		b->stats.deletes += c.kind == CHANGE_DELETE;
		if (c.kind == CHANGE_MARK && b->state == BACKUP_MARKING) {
			refusal_lifted(&b->refusal, REFUSAL_AT_CALL);
			backup_move(b, BACKUP_IN_SYNC);
		}
		if (c.kind == CHANGE_MARK)
			b->shared->ops->on_marked(b, call->version);
		else
			b->shared->ops->on_done(b, c.kind, c.item);
		if (c.item)
			item_drop(c.item);
	}
}

/* The server's memory is full. It did nothing of the call. */
static void call_refused(struct backup *b, const struct change_call *call)
{
	const bool counts = backup_counts(b);

	if (counts)
		log_paced(LOG_WARNING, NULL, "backup is full", "backup=%u changes=%u effect=\"%s\" remedy=\"%s\"",
			b->index, call->changes, "senders get 452 until deliveries make room", "raise its maxmemory");
	for (uint32_t n = 0; n < call->changes && backup_is_live(b); n++) {
		struct change c = change_pop(&b->line, CHANGE_REFUSED);

		b->stats.refused++;
		if (counts)
			b->shared->ops->on_refused(b, c.item);
		item_drop(c.item);
	}
	if (b->state == BACKUP_FILLING)
		b->shared->ops->on_full(b);
}

void backup_call_failed(struct backup *b, const char *error)
{
	uint64_t epoch = strncmp(error, "STALE ", 6) ? 0 : strtoull(error + 6, NULL, 10);

	if (epoch >= b->shared->epoch && b->shared->epoch && epoch) {
		backup_give_up(b, "another gateway owns it");
		backup_move(b, BACKUP_REFUSED);
		b->shared->ops->on_deposed(b, epoch);
		return;
	}
	if (!strncmp(error, "STALE", 5) || !strncmp(error, "OOM", 3)) /* it lets this gateway in */
		log_event(LOG_WARNING, NULL, "backup refused a call", "backup=%u answer=%s", b->index, error);
	else
		refusal_told(&b->refusal, REFUSAL_AT_CALL, error, REFUSAL_TEXT_PLAIN, redis_link_clock_ms());
	backup_give_up(b, "it refused a call");
}

static void call_answered(struct backup *b, const redisReply *reply)
{
	struct change_call call;

	if (!backup_is_live(b))
		return;
	if (reply->type == REDIS_REPLY_ERROR &&
		(strncmp(reply->str, "OOM", 3) || change_at(&b->line, 0)->kind != CHANGE_PUT)) {
		backup_call_failed(b, reply->str);
		return;
	}
	call = change_call_answered(&b->line);
	if (reply->type == REDIS_REPLY_ERROR)
		call_refused(b, &call);
	else
		call_done(b, &call);
	if (b->line.count > b->line.sent || b->state == BACKUP_FILLING)
		send_soon(b);
}

/* --- reading --- */

static void read_scan(struct backup *b, const char *cursor)
{
	struct redis_link *l = &b->active->link;

	if (b->reading.what == BACKUP_READS_NAMES) {
		backup_call_begin(b, FUNCTION_NAMES, 2);
		redis_link_text(l, cursor);
	} else {
		redis_link_begin(l, 5);
		redis_link_text(l, "HSCAN");
		redis_link_text(l, b->shared->items_key);
		redis_link_text(l, cursor);
		redis_link_text(l, "COUNT");
	}
	redis_link_number(l, b->reading.block);
	redis_link_end(l, ASKED_SCAN);
}

/* How many items of this mean size make a block. The server handles a whole block at once, and messages may have
 * megabytes. */
static uint32_t read_block_of(const struct backup *b, uint64_t count, uint64_t bytes)
{
	const uint64_t allowed = b->shared->block_items;
	const uint64_t most = count * BLOCK_GROWTH < allowed ? count * BLOCK_GROWTH : allowed;
	const uint64_t fit = count * BLOCK_BYTES / (bytes + 1);

	return (uint32_t)(fit > most ? most : fit ? fit : 1);
}

static uint64_t read_bytes_of(const redisReply *values, size_t first, size_t step)
{
	uint64_t bytes = 0;

	for (size_t i = first; i < values->elements; i += step)
		bytes += values->element[i]->len;
	return bytes;
}

/* Its items are being read. */
static bool read_goes_on(const struct backup *b)
{
	return b->state == BACKUP_CLAIMED || b->state == BACKUP_COMPARING;
}

static void read_take_items(struct backup *b, const redisReply *items)
{
	for (size_t i = 0; i + 1 < items->elements && read_goes_on(b); i += 2) {
		const redisReply *field = items->element[i], *value = items->element[i + 1];
		bool is_name;

		if (field->type != REDIS_REPLY_STRING || value->type != REDIS_REPLY_STRING)
			continue;
		is_name = b->reading.what == BACKUP_READS_NAMES && field->len && field->str[0] == ITEM_MESSAGE;
		b->shared->ops->on_item(
			b, field->str, field->len, is_name ? NULL : (const uint8_t *)value->str, value->len);
	}
}

static void read_scan_answered(struct backup *b, const redisReply *reply)
{
	const size_t elements = b->reading.what == BACKUP_READS_NAMES ? 3 : 2;
	const redisReply *items;
	bool is_last;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != elements ||
		reply->element[0]->type != REDIS_REPLY_STRING || reply->element[1]->type != REDIS_REPLY_ARRAY ||
		(elements == 3 && reply->element[2]->type != REDIS_REPLY_INTEGER)) {
		backup_give_up(b, "its items cannot be read");
		return;
	}
	items = reply->element[1];
	is_last = !strcmp(reply->element[0]->str, "0");
	b->stats.blocks++;
	if (items->elements)
		b->reading.block = read_block_of(b, items->elements / 2,
			elements == 3 ? (uint64_t)reply->element[2]->integer : read_bytes_of(items, 1, 2));
	if (!is_last)
		read_scan(b, reply->element[0]->str); /* the server works on it while we handle these */
	read_take_items(b, items);
	if (read_goes_on(b) && is_last) /* otherwise, handling one of them gave the backup up */
		b->shared->ops->on_read(b);
}

/* --- messages of which only the names are known --- */

/* HMGET */
static void read_fetch_block(struct backup *b)
{
	struct redis_link *l = &b->active->link;
	const size_t left = b->reading.fetch_count - b->reading.fetched;
	const uint32_t count = left < b->reading.block ? (uint32_t)left : b->reading.block;
	char field[ITEM_FIELD_LEN];

	b->reading.block = count;
	redis_link_begin(l, 2 + count);
	redis_link_text(l, "HMGET");
	redis_link_text(l, b->shared->items_key);
	for (uint32_t n = 0; n < count; n++) {
		item_field(ITEM_MESSAGE, b->reading.fetch[b->reading.fetched + n], field);
		redis_link_argument(l, field, sizeof field);
	}
	redis_link_end(l, ASKED_MESSAGES);
}

void backup_read(struct backup *b, enum backup_reads what, const uint64_t *ids, size_t count)
{
	b->reading =
		(struct backup_reading){ .what = what, .block = BLOCK_ITEMS_FIRST, .fetch = ids, .fetch_count = count };
	if (what == BACKUP_READS_THESE)
		read_fetch_block(b);
	else
		read_scan(b, "0");
}

static void read_fetch_answered(struct backup *b, const redisReply *reply)
{
	const size_t first = b->reading.fetched;
	char field[ITEM_FIELD_LEN];

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != b->reading.block) {
		backup_give_up(b, "its messages cannot be read");
		return;
	}
	b->reading.fetched += reply->elements;
	b->stats.blocks++;
	b->reading.block = read_block_of(b, reply->elements, read_bytes_of(reply, 0, 1));
	if (b->reading.fetched < b->reading.fetch_count)
		read_fetch_block(b);
	for (size_t n = 0; n < reply->elements && read_goes_on(b); n++) {
		const redisReply *value = reply->element[n];

		item_field(ITEM_MESSAGE, b->reading.fetch[first + n], field);
		if (value->type == REDIS_REPLY_STRING)
			b->shared->ops->on_item(b, field, sizeof field, (const uint8_t *)value->str, value->len);
	}
	if (read_goes_on(b) && b->reading.fetched == b->reading.fetch_count)
		b->shared->ops->on_read(b);
}

static void read_answered(struct backup *b, enum backup_tag tag, const redisReply *reply)
{
	if (!read_goes_on(b))
		return;
	if (reply->type == REDIS_REPLY_ERROR)
		backup_call_failed(b, reply->str);
	else if (tag == ASKED_SCAN)
		read_scan_answered(b, reply);
	else
		read_fetch_answered(b, reply);
}

void backup_answered(struct backup *b, enum backup_tag tag, int64_t sent_ms, const redisReply *reply)
{
	if (tag == ASKED_SCAN || tag == ASKED_MESSAGES) {
		read_answered(b, tag, reply);
		return;
	}
	if (reply->type != REDIS_REPLY_ERROR)
		b->shared->ops->on_renewed(b, sent_ms);
	if (tag == ASKED_CALL)
		call_answered(b, reply);
	else if (reply->type == REDIS_REPLY_ERROR)
		backup_call_failed(b, reply->str);
}

void backup_advance(struct backup *b, enum backup_state to)
{
	backup_move(b, to);
	if (to == BACKUP_COMPARING)
		backup_read(b, BACKUP_READS_NAMES, NULL, 0);
	if (to == BACKUP_FILLING)
		send_soon(b);
}
