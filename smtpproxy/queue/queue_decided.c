/* queue_decided.c: the last replies of transactions that a cluster may ask for. They are items of their own, so that
 * the backups have them, and go after decided_s. In memory, item.next links a bucket, and item.previous the list by
 * age. The list holds a reference, because an item may be removed before its turn. item.due_ms is the hash of the name.
 */
#include "smtpproxy/queue/queue_inside.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

#define SEALED_HEAD (SEAL_OVERHEAD - 16u)

static uint64_t hash_of(struct content_bytes name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < name.len; i++)
		h = (h ^ name.data[i]) * UINT64_C(0x100000001b3);
	return h;
}

int queue_decided_enter(struct queue *q, struct item *i, struct content_bytes name)
{
	uint64_t hash = hash_of(name);
	struct item **bucket;

	if (!q->decided)
		q->decided = calloc(DECIDED_BUCKETS, sizeof *q->decided);
	if (!q->decided)
		return CSSL_E_NO_MEMORY;
	bucket = &q->decided[hash % DECIDED_BUCKETS];
	i->due_ms = (int64_t)hash;
	i->next = *bucket;
	*bucket = i;
	*(q->decided_newest ? &q->decided_newest->previous : &q->decided_oldest) = i;
	q->decided_newest = i;
	item_hold(i);
	q->stats.decided++;
	return 0;
}

void queue_decided_forget(struct queue *q, struct item *i)
{
	struct item **at = &q->decided[(uint64_t)i->due_ms % DECIDED_BUCKETS];

	while (*at != i)
		at = &(*at)->next;
	*at = i->next;
	q->stats.decided--;
}

struct item *queue_decided_make(struct queue *q, struct content_bytes name, struct content_bytes reply)
{
	uint64_t id = q->shared.epoch << QUEUE_ID_EPOCH | ++q->counter;
	struct content_decided content = { .decided_ms = queue_now_ms(q), .name = name, .reply = reply };
	size_t len = content_decided_len(&content);
	uint8_t *room = malloc(len + SEAL_OVERHEAD);
	struct item *i;

	if (!room)
		return NULL;
	content_decided_write(&content, room + SEALED_HEAD);
	i = queue_make(q, ITEM_DECIDED, id, queue_seal(q, ITEM_DECIDED, id, room, len), len + SEAL_OVERHEAD);
	if (!i)
		return NULL;
	i->accepted_ms = content.decided_ms;
	if (!queue_decided_enter(q, i, name))
		return i;
	item_remove(&q->items, i);
	return NULL;
}

int queue_decide(struct queue *q, struct content_bytes name, struct content_bytes reply)
{
	struct item *i;

	if (!name.len || name.len > 255)
		return CSSL_E_RANGE;
	if (q->state != QUEUE_ACTIVE || !q->ready)
		return QUEUE_NOT_READY;
	if (q->stats.decided >= q->conf.decided_max)
		return QUEUE_FULL;
	i = queue_decided_make(q, name, reply);
	if (!i)
		return CSSL_E_NO_MEMORY;
	queue_push(q, CHANGE_PUT, i, 1);
	return 0;
}

/* 1: @i is the transaction of that name, and its reply is in @out. */
static int reply_of(
	struct queue *q, const struct item *i, struct content_bytes name, char *out, size_t cap, size_t *len)
{
	uint8_t *plain = malloc(i->sealed_len);
	struct content_decided d;
	int is = 0;

	if (plain && !seal_open(q->seal, ITEM_DECIDED, i->id, i->sealed, i->sealed_len, plain) &&
		!content_decided_read(&d, plain, i->sealed_len - SEAL_OVERHEAD))
		is = d.name.len == name.len && !memcmp(d.name.data, name.data, name.len);
	if (is) {
		*len = d.reply.len < cap ? d.reply.len : cap;
		memcpy(out, d.reply.data, *len);
	}
	free(plain);
	return is;
}

int queue_decided(struct queue *q, struct content_bytes name, char *out, size_t cap, size_t *len)
{
	uint64_t hash = hash_of(name);

	if (!q->decided)
		return QUEUE_NONE;
	for (struct item *i = q->decided[hash % DECIDED_BUCKETS]; i; i = i->next)
		if ((uint64_t)i->due_ms == hash && reply_of(q, i, name, out, cap, len))
			return i->state == ITEM_KEPT ? 0 : QUEUE_UNDECIDED;
	return QUEUE_NONE;
}

static struct item *oldest_out(struct queue *q)
{
	struct item *i = q->decided_oldest;

	q->decided_oldest = i->previous;
	if (!q->decided_oldest)
		q->decided_newest = NULL;
	i->previous = NULL;
	return i;
}

void queue_decided_expire(struct queue *q)
{
	int64_t before_ms = queue_now_ms(q) - (int64_t)q->conf.decided_s * 1000;

	while (q->decided_oldest && q->decided_oldest->accepted_ms < before_ms) {
		struct item *i = q->decided_oldest;

		if (i->state == ITEM_STORING)
			return;
		oldest_out(q);
		if (i->state == ITEM_KEPT)
			queue_remove(q, i);
		item_drop(i);
	}
}

void queue_decided_clear(struct queue *q)
{
	while (q->decided_oldest)
		item_drop(oldest_out(q));
	free(q->decided);
	q->decided = NULL;
	q->stats.decided = 0;
}
