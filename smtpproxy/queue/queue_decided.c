/* queue_decided.c: the last replies of transactions that a cluster may ask for. They are items of their own, so that
 * the backups have them, and go after decided_s. When there are decided_max, the oldest goes for each new one. Then,
 * and while a backup that may hold others is apart, nobody can say that a transaction never was. In memory, item.next
 * links a bucket, and item.previous the list by age. The list holds a reference, because an item may be removed before
 * its turn. item.due_ms is the hash of the name.
 */
#include "smtpproxy/queue/queue_inside.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

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
	q->decided_bytes += queue_bytes_of(i);
	return 0;
}

void queue_decided_forget(struct queue *q, struct item *i)
{
	struct item **at = &q->decided[(uint64_t)i->due_ms % DECIDED_BUCKETS];

	while (*at != i)
		at = &(*at)->next;
	*at = i->next;
	q->stats.decided--;
	q->decided_bytes -= queue_bytes_of(i);
}

struct item *queue_decided_make(struct queue *q, struct content_bytes name, struct content_bytes reply)
{
	const struct content content = { .at_ms = queue_now_ms(q), .name = name, .rest = reply };
	struct item *i = queue_make(q, ITEM_DECIDED, &content);

	if (!i || !queue_decided_enter(q, i, name))
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
	if (queue_decided_make_room(q))
		return QUEUE_FULL;
	i = queue_decided_make(q, name, reply);
	if (!i)
		return CSSL_E_NO_MEMORY;
	queue_push(q, CHANGE_PUT, i, true);
	return 0;
}

/* 1: @i is the transaction of that name, and its reply is in @out. */
static bool reply_of(
	struct queue *q, const struct item *i, struct content_bytes name, char *out, size_t cap, size_t *len)
{
	uint8_t *plain = malloc(i->sealed_len);
	struct content c;
	const bool is = plain && !queue_unseal(q, ITEM_DECIDED, i->id, i->sealed, i->sealed_len, plain, &c) &&
			c.name.len == name.len && !memcmp(c.name.data, name.data, name.len);

	if (is) {
		*len = c.rest.len < cap ? c.rest.len : cap;
		memcpy(out, c.rest.data, *len);
	}
	free(plain);
	return is;
}

static int64_t kept_ms(const struct queue *q)
{
	return (int64_t)q->conf.decided_s * 1000;
}

int queue_decided(struct queue *q, struct content_bytes name, char *out, size_t cap, size_t *len)
{
	const uint64_t hash = hash_of(name);
	const int64_t now_ms = queue_now_ms(q);
	struct item *i = q->decided ? q->decided[hash % DECIDED_BUCKETS] : NULL;

	for (; i; i = i->next)
		if ((uint64_t)i->due_ms == hash && reply_of(q, i, name, out, cap, len))
			return i->state == ITEM_KEPT ? 0 : QUEUE_UNDECIDED;
	/* Items that cannot be opened, and servers that were not read, may hold what a gateway before this one decided,
	 * until each of these would have been forgotten anyway. */
	if (!queue_owns(q) || now_ms < q->forgot_before_ms ||
		((queue_any_unread(q) || q->stats.opaque) && now_ms < q->active_ms + kept_ms(q)))
		return QUEUE_FORGOTTEN;
	return now_ms < q->forgot_here_ms ? QUEUE_FORGOTTEN_HERE : QUEUE_NONE;
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

/* 0: the oldest one is gone. QUEUE_NONE: there is none that is stored. */
static int drop_oldest(struct queue *q)
{
	struct item *i = q->decided_oldest;

	if (!i || i->state == ITEM_STORING)
		return QUEUE_NONE;
	oldest_out(q);
	if (i->state == ITEM_KEPT)
		queue_remove(q, i);
	item_drop(i);
	return 0;
}

void queue_decided_expire(struct queue *q)
{
	const int64_t before_ms = queue_now_ms(q) - kept_ms(q);

	while (q->decided_oldest && q->decided_oldest->accepted_ms < before_ms && !drop_oldest(q))
		;
}

int queue_decided_forget_oldest(struct queue *q)
{
	struct item *i = q->decided_oldest;
	int64_t *until_ms;
	int r;

	if (!i)
		return QUEUE_NONE;
	item_hold(i);
	r = drop_oldest(q);
	if (!r) {
		/* The sessions' own ledger knows what this gateway decided, as long as it forgets nothing. */
		const bool here = i->id >> QUEUE_ID_EPOCH == q->shared.epoch && i->accepted_ms >= q->active_ms;

		until_ms = here ? &q->forgot_here_ms : &q->forgot_before_ms;
		if (*until_ms < i->accepted_ms + kept_ms(q))
			*until_ms = i->accepted_ms + kept_ms(q);
		q->stats.decided_forgotten++;
	}
	item_drop(i);
	return r;
}

int queue_decided_make_room(struct queue *q)
{
	int r = 0;

	while (!r && q->stats.decided >= q->conf.decided_max)
		r = queue_decided_forget_oldest(q);
	return r;
}

void queue_decided_clear(struct queue *q)
{
	while (q->decided_oldest)
		item_drop(oldest_out(q));
	free(q->decided);
	q->decided = NULL;
	q->stats.decided = 0;
	q->decided_bytes = 0;
}
