/* queue_compare.c: brings a backup that came back up to date without emptying it, because it may hold the only copy:
 * the other one may be lost before it has answered everything. All its items are read. It then deletes those that the
 * queue does not have any more, and gets those that it lacks, in the order of their ids. */
#include "smtpproxy/queue/queue_inside.h"

#include "proto/error.h"

void queue_compare(struct queue *q, struct backup *b)
{
	for (struct item *i = q->items.oldest; i; i = i->newer)
		i->seen &= (uint8_t) ~(1u << b->index);
	b->stats.fills++;
	backup_compare(b);
}

static void delete_field(struct backup *b, enum item_kind kind, uint64_t id)
{
	struct item *i = item_loose(kind, id);

	if (!i) {
		backup_give_up(b, "out of memory");
		return;
	}
	backup_push(b, CHANGE_DELETE, i);
	item_drop(i);
}

/* A field that is not an item stays: a later version of the gateway may know its meaning. */
void queue_compare_item(struct queue *q, struct backup *b, const char *field, size_t field_len)
{
	enum item_kind kind;
	struct item *i;
	uint64_t id;

	if (item_field_parse(field, field_len, &kind, &id))
		return;
	i = item_find(&q->items, id);
	if (!i)
		delete_field(b, kind, id);
	else if (kind != ITEM_STATE)
		i->seen |= (uint8_t)(1u << b->index);
}

void queue_compare_end(struct queue *q, struct backup *b)
{
	b->fill_next = q->items.oldest;
	backup_fill(b);
}

/* The state of a message that it has may be an older one. */
int queue_fill_next(struct backup *b)
{
	struct item *i = b->fill_next;

	b->fill_next = i->newer;
	if (!(i->seen & 1u << b->index))
		return backup_push(b, CHANGE_PUT, i);
	return i->note ? backup_push(b, CHANGE_REPLACE, i) : 0;
}
