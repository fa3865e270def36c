/* backup_read.c: reads what a server holds, in blocks of items. */
#include "smtpproxy/queue/backup/backup_inside.h"

#include <string.h>

#define BLOCK_ITEMS_FIRST 1u /* until the size of items is known */
#define BLOCK_GROWTH      8u /* of the next block, because its items may be larger */
#define BLOCK_BYTES       (4u << 20)

static void scan(struct backup *b, const char *cursor)
{
	struct redis_link *l = &b->active->link;

	if (b->reads == BACKUP_READS_NAMES) {
		backup_call_begin(b, FUNCTION_NAMES, 2);
		redis_link_text(l, cursor);
	} else {
		redis_link_begin(l, 5);
		redis_link_text(l, "HSCAN");
		redis_link_text(l, b->shared->items_key);
		redis_link_text(l, cursor);
		redis_link_text(l, "COUNT");
	}
	redis_link_number(l, b->block);
	redis_link_end(l, ASKED_SCAN);
}

void backup_read(struct backup *b, enum backup_reads what)
{
	b->reads = what;
	b->block = BLOCK_ITEMS_FIRST;
	scan(b, "0");
}

void backup_compare(struct backup *b)
{
	backup_move(b, BACKUP_COMPARING);
	backup_read(b, BACKUP_READS_NAMES);
}

/* How many items of this mean size make a block. The server handles a whole block at once, and messages may have
 * megabytes. */
static uint32_t block_of(const struct backup *b, uint64_t count, uint64_t bytes)
{
	const uint64_t allowed = b->shared->block_items;
	const uint64_t most = count * BLOCK_GROWTH < allowed ? count * BLOCK_GROWTH : allowed;
	const uint64_t fit = count * BLOCK_BYTES / (bytes + 1);

	return (uint32_t)(fit > most ? most : fit ? fit : 1);
}

static uint64_t bytes_of(const redisReply *values, size_t first, size_t step)
{
	uint64_t bytes = 0;

	for (size_t i = first; i < values->elements; i += step)
		bytes += values->element[i]->len;
	return bytes;
}

/* Its items are being read. */
static bool is_reading(const struct backup *b)
{
	return b->state == BACKUP_CLAIMED || b->state == BACKUP_COMPARING;
}

static void take_items(struct backup *b, const redisReply *items)
{
	for (size_t i = 0; i + 1 < items->elements && is_reading(b); i += 2) {
		const redisReply *field = items->element[i], *value = items->element[i + 1];
		bool is_name;

		if (field->type != REDIS_REPLY_STRING || value->type != REDIS_REPLY_STRING)
			continue;
		is_name = b->reads == BACKUP_READS_NAMES && field->len && field->str[0] == ITEM_MESSAGE;
		queue_on_item(b, field->str, field->len, is_name ? NULL : (const uint8_t *)value->str, value->len);
	}
}

static void scan_answered(struct backup *b, const redisReply *reply)
{
	const size_t elements = b->reads == BACKUP_READS_NAMES ? 3 : 2;
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
		b->block = block_of(b, items->elements / 2,
			elements == 3 ? (uint64_t)reply->element[2]->integer : bytes_of(items, 1, 2));
	if (!is_last)
		scan(b, reply->element[0]->str); /* the server works on it while we handle these */
	take_items(b, items);
	if (is_reading(b) && is_last) /* otherwise, handling one of them gave the backup up */
		queue_on_read(b);
}

/* --- messages of which only the names are known --- */

/* HMGET */
static void fetch_block(struct backup *b)
{
	struct redis_link *l = &b->active->link;
	const size_t left = b->fetch_count - b->fetched;
	const uint32_t count = left < b->block ? (uint32_t)left : b->block;
	char field[ITEM_FIELD_LEN];

	b->block = count;
	redis_link_begin(l, 2 + count);
	redis_link_text(l, "HMGET");
	redis_link_text(l, b->shared->items_key);
	for (uint32_t n = 0; n < count; n++) {
		item_field(ITEM_MESSAGE, b->fetch[b->fetched + n], field);
		redis_link_argument(l, field, sizeof field);
	}
	redis_link_end(l, ASKED_MESSAGES);
}

void backup_fetch(struct backup *b, const uint64_t *ids, size_t count)
{
	b->fetch = ids;
	b->fetch_count = count;
	b->fetched = 0;
	b->block = BLOCK_ITEMS_FIRST;
	fetch_block(b);
}

static void fetch_answered(struct backup *b, const redisReply *reply)
{
	const size_t first = b->fetched;
	char field[ITEM_FIELD_LEN];

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != b->block) {
		backup_give_up(b, "its messages cannot be read");
		return;
	}
	b->fetched += reply->elements;
	b->stats.blocks++;
	b->block = block_of(b, reply->elements, bytes_of(reply, 0, 1));
	if (b->fetched < b->fetch_count)
		fetch_block(b);
	for (size_t n = 0; n < reply->elements && is_reading(b); n++) {
		const redisReply *value = reply->element[n];

		item_field(ITEM_MESSAGE, b->fetch[first + n], field);
		if (value->type == REDIS_REPLY_STRING)
			queue_on_item(b, field, sizeof field, (const uint8_t *)value->str, value->len);
	}
	if (is_reading(b) && b->fetched == b->fetch_count)
		queue_on_read(b);
}

void backup_read_answered(struct backup *b, enum backup_tag tag, const redisReply *reply)
{
	if (!is_reading(b))
		return;
	if (reply->type == REDIS_REPLY_ERROR)
		backup_call_failed(b, reply->str);
	else if (tag == ASKED_SCAN)
		scan_answered(b, reply);
	else
		fetch_answered(b, reply);
}
