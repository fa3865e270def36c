/* queue_gone.c: ids of messages that were read back and then deleted. A server that was not read may still have them,
 * and must not bring them back when it is united. While a marker names such a server as apart or not read, the backups
 * keep the ids too, in items of their own (graves): this gateway may end before that server comes back. When all
 * backups are in sync, no server has such a message any more, and all graves go. */
#include "smtpproxy/queue/queue_inside.h"

#include <stdlib.h>

#include "net/array.h"

#define GONE_UNSORTED_MAX 64u

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

bool queue_is_gone(struct queue *q, uint64_t id)
{
	if (q->gone_count - q->gone_sorted > GONE_UNSORTED_MAX) {
		qsort(q->gone, q->gone_count, sizeof *q->gone, by_number);
		q->gone_sorted = q->gone_count;
	}
	for (size_t n = q->gone_sorted; n < q->gone_count; n++)
		if (q->gone[n] == id)
			return true;
	return q->gone_sorted && bsearch(&id, q->gone, q->gone_sorted, sizeof id, by_number);
}

/* Without memory the message may come back, and is delivered again. */
void queue_keep_gone(struct queue *q, uint64_t id)
{
	if (!array_make_room(&q->gone, &q->gone_cap, q->gone_count, sizeof id))
		q->gone[q->gone_count++] = id;
}

bool queue_any_apart(const struct queue *q)
{
	for (unsigned i = 0; i < BACKUPS; i++)
		if (q->shared.marker.apart[i][0])
			return true;
	return false;
}

bool queue_any_unread(const struct queue *q)
{
	return q->shared.marker.unread || queue_any_apart(q) || queue_spares_any_owed(q);
}

/* Messages of our own epoch came later than any that such a server has. Also a server that was read may come back with
 * older ones, if it restarted and another gateway used it meanwhile. */
void queue_note_gone(struct queue *q, const struct item *i)
{
	struct item *grave;

	if (i->id >> QUEUE_ID_EPOCH == q->shared.epoch || i->seen & ITEM_BURIED)
		return;
	if (queue_counting(q) == (1u << BACKUPS) - 1 && !queue_spares_any_owed(q))
		return;
	queue_keep_gone(q, i->id);
	if (i->kind != ITEM_MESSAGE || !queue_owns(q) || !queue_any_unread(q))
		return;
	grave = queue_make(q, ITEM_GRAVE, &(struct content){ .dead = i->id });
	if (!grave)
		return;
	q->stats.graves++;
	queue_push(q, CHANGE_PUT, grave, true);
}

/* Messages that one of the servers had, and of which another one has the grave. A delivery under way goes on. */
void queue_bury(struct queue *q)
{
	const unsigned waiting = 1u << ITEM_READY | 1u << ITEM_DEFERRED | 1u << ITEM_HELD;

	for (size_t n = 0; n < q->gone_count; n++) {
		struct item *i = item_find(&q->items, q->gone[n]);

		if (!i || i->kind != ITEM_MESSAGE || !(waiting & 1u << i->state))
			continue;
		i->seen |= ITEM_BURIED;
		q->stats.recovered--;
		queue_remove(q, i);
	}
}

void queue_gone_clear(struct queue *q)
{
	free(q->gone);
	q->gone = NULL;
	q->gone_count = q->gone_cap = q->gone_sorted = 0;
}

void queue_gone_forget(struct queue *q)
{
	struct item *next;

	queue_gone_clear(q);
	for (struct item *i = q->items.oldest; i && q->stats.graves; i = next) {
		next = i->newer;
		if (i->kind == ITEM_GRAVE && i->state != ITEM_OPAQUE)
			queue_remove(q, i);
	}
}
