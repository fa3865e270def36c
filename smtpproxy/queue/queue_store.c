/* queue_store.c: whether a message may be added. Accepts messages, and tells their senders when the backups have them.
 */
#include "smtpproxy/queue/queue_inside.h"

#include <stdlib.h>

#include "net/array.h"
#include "net/log.h"
#include "proto/error.h"

#define SEALED_HEAD (SEAL_OVERHEAD - 16u) /* before the ciphertext */

uint8_t *queue_seal(struct queue *q, enum item_kind kind, uint64_t id, const struct content *c, size_t *len)
{
	const size_t plain_len = content_len(kind, c);
	uint8_t *room = malloc(plain_len + SEAL_OVERHEAD);

	if (!room)
		return NULL;
	content_write(kind, c, room + SEALED_HEAD);
	seal_seal(q->shared.seal, (char)kind, id, room + SEALED_HEAD, plain_len, room);
	*len = plain_len + SEAL_OVERHEAD;
	return room;
}

int queue_unseal(const struct queue *q, enum item_kind kind, uint64_t id, const uint8_t *sealed, size_t len,
	uint8_t *plain, struct content *c)
{
	const int r = seal_open(q->shared.seal, (char)kind, id, sealed, len, plain);

	return r ? r : content_read(kind, c, plain, len - SEAL_OVERHEAD);
}

struct item *queue_make(struct queue *q, enum item_kind kind, const struct content *c)
{
	const uint64_t id = q->shared.epoch << QUEUE_ID_EPOCH | ++q->counter;
	size_t len = 0;
	uint8_t *sealed = queue_seal(q, kind, id, c, &len);
	struct item *i = sealed ? item_add(&q->items, kind, id, sealed, len) : NULL;

	if (i)
		i->accepted_ms = c->at_ms;
	else
		free(sealed);
	return i;
}

void queue_push(struct queue *q, enum change_kind kind, struct item *i, bool waits)
{
	for (unsigned n = 0; n < BACKUPS; n++) {
		struct backup *b = &q->backups[n];

		if (!backup_is_live(b))
			continue;
		/* One that does not count yet gets the new item in its turn: the filling comes to it. If it had come to
		 * the end, it goes on here. Otherwise the backup would join without @i. */
		if (kind == CHANGE_PUT && !backup_counts(b)) {
			if (b->state == BACKUP_FILLING && !b->fill_next)
				b->fill_next = i;
			continue;
		}
		if (waits && backup_counts(b))
			i->waits |= (uint8_t)(1u << n);
		if (backup_push(b, kind, i))
			i->waits &= (uint8_t) ~(1u << n);
	}
}

/* --- room: lines, destinations, messages that are not stored yet, and the memory of all that is stored. What the queue
 * reads back is never refused, so its memory may be used up more than fully then. --- */

bool queue_has_room(struct queue *q, const struct queue_destination *d)
{
	if (d)
		return d->count < q->conf.messages_max;
	if (q->destinations.names.count >= q->conf.destinations_max)
		destination_sweep(&q->destinations);
	return q->destinations.names.count < q->conf.destinations_max;
}

bool queue_is_ready(const struct queue *q)
{
	return q->state == QUEUE_ACTIVE && q->ready;
}

/* Memory */

uint64_t queue_memory(const struct queue *q)
{
	return q->items.bytes + q->items.count * QUEUE_ITEM_BYTES;
}

bool queue_is_full(const struct queue *q)
{
	return q->fill == QUEUE_FILLED;
}

static bool is_nearly_full(const struct queue *q)
{
	return queue_memory(q) - q->decided_bytes > q->conf.memory_max / 10 * 9;
}

/* While more than a tenth is free, only large messages find no memory. */
static void fill(struct queue *q)
{
	if (q->fill == QUEUE_FILLED || !is_nearly_full(q))
		return;
	q->fill = QUEUE_FILLED;
	log_event(LOG_WARNING, NULL, "queue has no memory for more mail", "messages=%llu bytes=%llu most=%llu",
		(unsigned long long)(q->items.count - q->stats.decided), (unsigned long long)queue_memory(q),
		(unsigned long long)q->conf.memory_max);
}

/* Mail is more important than decisions, so the oldest of these go if that is enough. */
static bool has_memory(struct queue *q, const struct queue_mail *m)
{
	const uint64_t bytes = m->body.len + m->envelope.len + 2 * QUEUE_ITEM_BYTES + m->transaction.len + m->reply.len;
	const uint64_t most = q->conf.memory_max;
	int r = 0;

	if (queue_memory(q) + bytes > most && queue_memory(q) - q->decided_bytes + bytes <= most)
		while (!r && queue_memory(q) + bytes > most)
			r = queue_decided_forget_oldest(q);
	if (queue_memory(q) + bytes <= most)
		return true;
	fill(q);
	return false;
}

void queue_follow_fill(struct queue *q)
{
	if (queue_memory(q) - q->decided_bytes >= q->conf.memory_max) {
		fill(q);
	} else if (q->fill == QUEUE_FILLED && !is_nearly_full(q)) {
		q->fill = QUEUE_UNFILLED;
		log_event(LOG_INFO, NULL, "queue has memory for mail again", "bytes=%llu",
			(unsigned long long)queue_memory(q));
	}
	if (q->fill == q->fill_told)
		return;
	q->fill_told = q->fill;
	if (q->fill == QUEUE_FILLED)
		q->ops->on_unready(q->user);
	else if (q->ready)
		q->ops->on_ready(q->user);
}

static int may_add(struct queue *q, const struct queue_mail *m)
{
	const char *name = (const char *)m->destination.data;
	/* Messages that are not stored yet use up what this one may fill. */
	const uint64_t most = m->turn == QUEUE_TURN_MORE ? q->conf.unstored_bytes_max / 4 : q->conf.unstored_bytes_max;

	if (!m->destination.len || m->destination.len > DESTINATION_NAME_MAX || m->transaction.len > 255 ||
		m->envelope.len >= UINT32_MAX / 4 || m->body.len >= UINT32_MAX / 4 || m->reply.len >= 65536)
		return CSSL_E_RANGE;
	if (!queue_is_ready(q))
		return QUEUE_NOT_READY;
	if (m->turn != QUEUE_TURN_NEXT && q->stats.unstored_bytes >= most)
		return QUEUE_BUSY;
	if (!queue_has_room(q, destination_get(&q->destinations, name, m->destination.len, 0)) ||
		(m->turn != QUEUE_TURN_INSTEAD && !has_memory(q, m)))
		return QUEUE_FULL;
	return m->transaction.len && queue_decided_make_room(q) ? QUEUE_FULL : 0;
}

/* --- adding --- */

/* The message and the decision of its transaction, which goes with it. NULL: out of memory. */
static struct item *make_message(struct queue *q, const struct queue_mail *m)
{
	const struct content content = {
		.at_ms = queue_now_ms(q), .name = m->destination, .envelope = m->envelope, .rest = m->body
	};
	struct item *i = queue_make(q, ITEM_MESSAGE, &content);

	if (!i || !m->transaction.len)
		return i;
	i->with = queue_decided_make(q, m->transaction, m->reply);
	if (!i->with) {
		item_remove(&q->items, i);
		return NULL;
	}
	item_hold(i->with);
	return i;
}

int queue_add(struct queue *q, const struct queue_mail *m, struct queue_receipt *receipt)
{
	struct queue_destination *d;
	struct item *i;
	int r = may_add(q, m);

	if (r)
		return r;
	d = destination_get(&q->destinations, (const char *)m->destination.data, m->destination.len, 1);
	i = d ? make_message(q, m) : NULL;
	if (!i)
		return CSSL_E_NO_MEMORY;
	i->source = queue_source_of(q, m->envelope);
	destination_take_in(d, i);
	q->stats.unstored++;
	q->stats.unstored_bytes += i->sealed_len;
	if (m->start == QUEUE_PARKED)
		i->seen |= ITEM_PARKS;
	*receipt = (struct queue_receipt){ .on_stored = receipt->on_stored, .id = i->id, .item = i };
	i->receipt = receipt;
	queue_push(q, CHANGE_PUT, i, true);
	if (i->with)
		queue_push(q, CHANGE_PUT, i->with, true);
	return 0;
}

static void leave_unstored(struct queue *q, struct item *i)
{
	q->stats.unstored--;
	q->stats.unstored_bytes -= i->sealed_len;
	if (i->receipt)
		i->receipt->item = NULL;
	i->receipt = NULL;
	if (i->with)
		item_drop(i->with);
	i->with = NULL;
}

/* DUE is told for the first message of a line only. */
void queue_append(struct queue *q, struct item *i)
{
	destination_append(i->to, i);
	if (i->to->ready == 1)
		queue_note_due(q, i->to);
}

static void stored(struct queue *q, struct item *i)
{
	struct queue_receipt *r = i->receipt;

	if (i->kind == ITEM_ORDER)
		queue_order_stored(q, i);
	if (i->kind != ITEM_MESSAGE) {
		item_move(i, ITEM_KEPT);
		return;
	}
	leave_unstored(q, i);
	q->stats.stored++;
	if (i->seen & ITEM_PARKS)
		item_move(i, ITEM_PARKED);
	item_hold(i);
	if (r)
		r->on_stored(r, QUEUE_STORED);
	if (i->state == ITEM_STORING)
		queue_append(q, i);
	item_drop(i);
}

void queue_answered(struct queue *q, struct item *i, unsigned bits)
{
	if (!(i->waits & bits))
		return;
	i->waits &= (uint8_t)~bits;
	if (!i->waits && i->state == ITEM_STORING)
		stored(q, i);
}

void queue_settle(struct queue *q, struct item *i)
{
	if (i->state == ITEM_HELD)
		i->to->held++;
	else if (i->due_ms <= queue_now_ms(q) || destination_defer(&q->destinations, i))
		queue_append(q, i);
}

void queue_remove(struct queue *q, struct item *i)
{
	if (i->kind == ITEM_MESSAGE && i->to)
		destination_let_go(&q->destinations, i);
	if (i->kind == ITEM_DECIDED)
		queue_decided_forget(q, i);
	if (i->kind == ITEM_ORDER)
		queue_order_forget(q, i);
	q->stats.graves -= i->kind == ITEM_GRAVE;
	queue_note_gone(q, i);
	item_move(i, ITEM_GONE);
	i->waits = 0;
	for (unsigned n = 0; n < BACKUPS; n++)
		if (q->backups[n].fill_next == i)
			q->backups[n].fill_next = i->newer;
	queue_push(q, CHANGE_DELETE, i, true);
	if (i->kind == ITEM_MESSAGE)
		*(i->waits ? &q->stats.deletes_unconfirmed : &q->alone) += 1;
	item_remove(&q->items, i);
}

void queue_refuse(struct queue *q, struct item *i, enum queue_outcome outcome)
{
	struct queue_receipt *r = i->receipt;
	struct item *with = i->with;

	if (with)
		item_hold(with);
	if (i->kind == ITEM_MESSAGE) {
		leave_unstored(q, i);
		q->stats.refused++;
	}
	queue_remove(q, i);
	if (with && with->state == ITEM_STORING)
		queue_remove(q, with);
	if (with)
		item_drop(with);
	if (r)
		r->on_stored(r, outcome);
}

static struct item *parked(struct queue *q, const struct queue_receipt *r)
{
	struct item *i = item_find(&q->items, r->id);

	return i && i->state == ITEM_PARKED ? i : NULL;
}

int queue_unpark(struct queue *q, const struct queue_receipt *r)
{
	struct item *i = parked(q, r);

	if (!i)
		return QUEUE_NONE;
	queue_append(q, i);
	return 0;
}

void queue_forget(struct queue *q, struct queue_receipt *r)
{
	struct item *i = r->item ? r->item : parked(q, r);

	if (i && i->state == ITEM_PARKED)
		queue_remove(q, i);
	if (!i || i->receipt != r)
		return;
	i->receipt = NULL;
	r->item = NULL;
	queue_refuse(q, i, QUEUE_LOST);
}

/* Backup @b is lost, and what waits for its answer waits for the marker that leaves it out. An item for which there is
 * no memory waits for ever: its sender times out. */
void queue_wait_for_mark(struct queue *q, struct backup *b)
{
	unsigned bit = 1u << b->index;

	for (uint32_t n = 0; n < b->line.count; n++) {
		const struct change *c = change_at(&b->line, n);

		q->alone += c->kind != CHANGE_PUT && c->item && c->item->kind == ITEM_MESSAGE && !queue_counting(q);
		if (c->kind == CHANGE_DELETE)
			queue_on_done(b, CHANGE_DELETE, c->item);
		if (c->kind != CHANGE_PUT || c->item->state != ITEM_STORING || !(c->item->waits & bit))
			continue; /* one that is GONE waits for its DELETE, which comes later in the line */
		if (!(c->item->waits & ITEM_WAITS_MARK)) {
			if (array_make_room(&q->waiting, &q->waiting_cap, q->waiting_count, sizeof(struct item *)))
				continue;
			item_hold(c->item);
			q->waiting[q->waiting_count++] = c->item;
		}
		c->item->waits = (uint8_t)((c->item->waits & ~bit) | ITEM_WAITS_MARK);
	}
}

void queue_release_waiting(struct queue *q, uint64_t version)
{
	struct item **waiting = q->waiting;
	size_t count = q->waiting_count;

	if (!count || version < q->waiting_version)
		return;
	q->waiting = NULL;
	q->waiting_count = q->waiting_cap = 0;
	for (size_t n = 0; n < count; n++) {
		queue_answered(q, waiting[n], ITEM_WAITS_MARK);
		item_drop(waiting[n]);
	}
	free(waiting);
}

/* Another gateway has the queue, so the waiting senders will get no answer from the backups. They may forget other
 * receipts during the call, so the receipts are linked into a list first. */
void queue_fail_waiting(struct queue *q)
{
	struct item *first = NULL;

	for (struct item *i = q->items.newest; i; i = i->older)
		if (i->state == ITEM_STORING && i->receipt) {
			item_hold(i);
			i->next = first;
			first = i;
		}
	while (first) {
		struct item *i = first;
		struct queue_receipt *r = i->receipt;

		first = i->next;
		i->next = NULL;
		if (r) {
			leave_unstored(q, i);
			r->on_stored(r, QUEUE_LOST);
		}
		item_drop(i);
	}
}
