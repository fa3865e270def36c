/* stock.c: every change of an item, in memory and in the backups. */
#include "smtpproxy/queue/stock.h"

#include <stdlib.h>

#include "net/memory/array.h"
#include "net/report/log_pace.h"
#include "proto/error.h"
#include "smtpproxy/queue/queue_core.h"

#define GONE_UNSORTED_MAX 64u

void stock_push(struct queue *q, enum change_kind kind, struct item *i, bool waits)
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

/* --- ids of messages that were read back and then deleted ---
 *
 * A server that was not read may still have them, and must not bring them back when it is united. While a marker names
 * such a server as apart or not read, the backups keep the ids too, in items of their own (graves): this gateway may
 * end before that server comes back. When all backups are in sync, no server has such a message any more, and all
 * graves go. */

static int gone_by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static bool gone_has(struct queue *q, uint64_t id)
{
	if (q->gone.count - q->gone.sorted > GONE_UNSORTED_MAX) {
		qsort(q->gone.ids, q->gone.count, sizeof *q->gone.ids, gone_by_number);
		q->gone.sorted = q->gone.count;
	}
	for (size_t n = q->gone.sorted; n < q->gone.count; n++)
		if (q->gone.ids[n] == id)
			return true;
	return q->gone.sorted && bsearch(&id, q->gone.ids, q->gone.sorted, sizeof id, gone_by_number);
}

/* Without memory the message may come back, and is delivered again. */
static void gone_keep(struct queue *q, uint64_t id)
{
	if (!array_make_room(&q->gone.ids, &q->gone.cap, q->gone.count, sizeof id))
		q->gone.ids[q->gone.count++] = id;
}

static void gone_clear(struct queue *q)
{
	free(q->gone.ids);
	q->gone.ids = NULL;
	q->gone.count = q->gone.cap = q->gone.sorted = 0;
}

/* Into the part that holds its kind. */
static int stock_enter(struct queue *q, struct item *i, const struct content *c)
{
	const int64_t now_ms = queue_now_ms(q);
	struct queue_destination *d;

	/* The clock of the gateway that wrote it may have been ahead. */
	i->accepted_ms = c->at_ms < now_ms ? c->at_ms : now_ms;
	switch ((enum item_kind)i->kind) {
	case ITEM_MESSAGE:
		d = destination_get(&q->destinations, (const char *)c->name.data, c->name.len, true);
		if (!d)
			return CSSL_E_NO_MEMORY;
		i->source = q->conf.source_of ? q->conf.source_of(c->envelope) : 0;
		destination_take_in(d, i);
		return 0;
	case ITEM_DECIDED: return decided_enter(&q->decided, i, c->name);
	case ITEM_ORDER:
		d = destination_get(&q->destinations, (const char *)c->name.data, c->name.len, true);
		if (!d)
			return CSSL_E_NO_MEMORY;
		destination_take_in(d, i);
		q->stats.orders++;
		if (d->order == i)
			destination_pace(d, c->stops ? DESTINATION_STOPPED : DESTINATION_FLOWS, c->rate);
		return 0;
	case ITEM_GRAVE:
		gone_keep(q, c->dead);
		q->stats.graves++;
		return 0;
	case ITEM_STATE: break;
	}
	return CSSL_E_RANGE;
}

struct item *stock_make(struct queue *q, enum item_kind kind, const struct content *c)
{
	const uint64_t id = q->shared.epoch << QUEUE_ID_EPOCH | ++q->counter;
	size_t len = 0;
	uint8_t *sealed = content_seal(q->shared.seal, kind, id, c, &len);
	struct item *i = sealed ? item_add(&q->items, kind, id, sealed, len) : NULL;

	if (!i)
		free(sealed);
	if (!i || !stock_enter(q, i, c))
		return i;
	item_remove(&q->items, i);
	return NULL;
}

/* Messages of our own epoch came later than any that such a server has. Also a server that was read may come back with
 * older ones, if it restarted and another gateway used it meanwhile. */
static void gone_note(struct queue *q, const struct item *i)
{
	struct item *grave = NULL;

	if (i->id >> QUEUE_ID_EPOCH == q->shared.epoch)
		return;
	if (queue_counting(q) == (1u << BACKUPS) - 1 && !q->spares.owed)
		return;
	if (i->kind == ITEM_MESSAGE && queue_owns(q) && queue_any_unread(q))
		grave = stock_make(q, ITEM_GRAVE, &(struct content){ .dead = i->id });
	if (grave)
		stock_push(q, CHANGE_PUT, grave, true);
	else
		gone_keep(q, i->id);
}

/* KNOWN: the item is deleted because a server has its grave. */
enum stock_grave { GRAVE_WANTED, GRAVE_KNOWN };

static void stock_take_out(struct queue *q, struct item *i, enum stock_grave grave)
{
	/* The parts count it by its state, so it becomes GONE behind them. */
	if (i->kind == ITEM_ORDER) {
		q->stats.orders--;
		q->stats.orders_unstored -= item_is_unstored(i);
	}
	if (i->to && (i->kind == ITEM_MESSAGE || i->kind == ITEM_ORDER))
		destination_let_go(&q->destinations, i);
	if (i->kind == ITEM_DECIDED)
		decided_leave(&q->decided, i);
	q->stats.graves -= i->kind == ITEM_GRAVE;
	if (grave == GRAVE_WANTED)
		gone_note(q, i);
	item_move(i, ITEM_GONE);
	i->waits = 0;
	for (unsigned n = 0; n < BACKUPS; n++)
		if (q->backups[n].fill_next == i)
			q->backups[n].fill_next = i->newer;
	stock_push(q, CHANGE_DELETE, i, true);
	if (i->kind == ITEM_MESSAGE)
		*(i->waits ? &q->stats.deletes_unconfirmed : &q->alone) += 1;
	item_remove(&q->items, i);
}

void stock_remove(struct queue *q, struct item *i)
{
	stock_take_out(q, i, GRAVE_WANTED);
}

/* Messages that one of the servers had, and of which another one has the grave. A delivery under way goes on. */
void stock_bury(struct queue *q)
{
	const unsigned waiting = 1u << ITEM_READY | 1u << ITEM_DEFERRED | 1u << ITEM_HELD;

	for (size_t n = 0; n < q->gone.count; n++) {
		struct item *i = item_find(&q->items, q->gone.ids[n]);

		if (!i || i->kind != ITEM_MESSAGE || !(waiting & 1u << i->state))
			continue;
		q->stats.recovered--;
		stock_take_out(q, i, GRAVE_KNOWN);
	}
}

void stock_forget_graves(struct queue *q)
{
	struct item *next;

	gone_clear(q);
	for (struct item *i = q->items.oldest; i && q->stats.graves; i = next) {
		next = i->newer;
		if (i->kind == ITEM_GRAVE && i->state != ITEM_OPAQUE)
			stock_remove(q, i);
	}
}

/* --- what a backup had --- */

static int stock_open(struct queue *q, struct item *i)
{
	uint8_t *plain = malloc(i->sealed_len + 1u);
	struct content c;
	int r = plain ? content_open(
				q->shared.seal, (enum item_kind)i->kind, i->id, i->sealed, i->sealed_len, plain, &c)
		      : CSSL_E_NO_MEMORY;

	if (!r)
		r = stock_enter(q, i, &c);
	free(plain);
	return r;
}

/* These take over the sealed bytes. */

/* The copy of another server could not be opened. If this one can, it takes that one's place, also there
 * (uniting.c): the damaged one is not "seen" any more. */
static int stock_mend(struct queue *q, const struct backup *b, struct item *i, uint8_t *sealed, size_t len)
{
	uint8_t *damaged = i->sealed;
	const size_t damaged_len = i->sealed_len;
	int r;

	item_set_sealed(&q->items, i, sealed, len);
	r = stock_open(q, i);
	if (r) {
		item_set_sealed(&q->items, i, damaged, damaged_len);
		free(sealed);
		return r == CSSL_E_NO_MEMORY ? r : 0;
	}
	free(damaged);
	item_move(i, ITEM_STORING);
	q->stats.opaque--;
	i->seen = 0;
	i->reading = ITEM_FRESH;
	i->copies = ITEM_COPIES_DAMAGED;
	log_paced(LOG_WARNING, NULL, "a damaged copy of an item is replaced", "backup=%u id=%llu", b->index,
		(unsigned long long)i->id);
	return 0;
}

static int stock_read_new(
	struct queue *q, const struct backup *b, enum item_kind kind, uint64_t id, uint8_t *sealed, size_t len)
{
	struct item *i = item_add(&q->items, kind, id, sealed, len);
	int r;

	if (!i) {
		free(sealed);
		return CSSL_E_NO_MEMORY;
	}
	i->seen = (uint8_t)(1u << b->index);
	i->reading = ITEM_FRESH;
	r = stock_open(q, i);
	if (r == CSSL_E_NO_MEMORY)
		item_remove(&q->items, i);
	if (!r || r == CSSL_E_NO_MEMORY)
		return r;
	/* Its key may be missing, or it is damaged: it is never dropped, and only an operator can mend it. */
	item_move(i, ITEM_OPAQUE);
	q->stats.opaque++;
	return r;
}

int stock_read(struct queue *q, const struct backup *b, enum item_kind kind, uint64_t id, uint8_t *sealed, size_t len)
{
	struct item *i = item_find(&q->items, id);
	int r = 0;

	/* At the start stock_bury() deletes it from the servers, too. Later the server is compared, which does that. */
	if (!i && (q->state == QUEUE_READING || !gone_has(q, id)))
		return stock_read_new(q, b, kind, id, sealed, len);
	/* At the start two servers may show the same item. */
	if (i && q->state == QUEUE_READING && i->state == ITEM_OPAQUE && i->kind == kind)
		r = stock_mend(q, b, i, sealed, len);
	else
		free(sealed);
	if (i && !r)
		i->seen |= (uint8_t)(1u << b->index);
	return r;
}

/* --- answers of the backups --- */

/* Every backup that counts has the order @i: those that it replaces go. */
static void order_stored(struct queue *q, struct item *i)
{
	q->stats.orders_unstored--;
	for (struct item *old = i->next, *next; old; old = next) {
		next = old->next;
		stock_remove(q, old);
	}
}

static void stock_leave_unstored(struct queue *q, struct item *i)
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

static void stock_stored(struct queue *q, struct item *i)
{
	struct queue_receipt *r = i->receipt;

	if (i->kind == ITEM_ORDER)
		order_stored(q, i);
	if (i->kind != ITEM_MESSAGE) {
		item_move(i, ITEM_KEPT);
		return;
	}
	stock_leave_unstored(q, i);
	q->stats.stored++;
	if (i->becomes == ITEM_PARKED)
		item_move(i, ITEM_PARKED);
	item_hold(i);
	/* Only behind this it stands in a line: its sender may delete it inside. */
	if (r)
		r->on_stored(r, QUEUE_STORED);
	if (i->state == ITEM_STORING)
		destination_append(i->to, i);
	item_drop(i);
}

void stock_answered(struct queue *q, struct item *i, unsigned bits)
{
	if (!(i->waits & bits))
		return;
	i->waits &= (uint8_t)~bits;
	if (!i->waits && i->state == ITEM_STORING)
		stock_stored(q, i);
}

void stock_refuse(struct queue *q, struct item *i, enum queue_outcome outcome)
{
	struct queue_receipt *r = i->receipt;
	struct item *with = i->with;

	if (with)
		item_hold(with);
	if (i->kind == ITEM_MESSAGE) {
		stock_leave_unstored(q, i);
		q->stats.refused++;
	}
	stock_remove(q, i);
	if (with && with->state == ITEM_STORING)
		stock_remove(q, with);
	if (with)
		item_drop(with);
	if (r)
		r->on_stored(r, outcome);
}

/* Another gateway has the queue, so the waiting senders will get no answer from the backups. They may forget other
 * receipts during the call, so the receipts are linked into a list first. */
void stock_fail_unstored(struct queue *q)
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
			stock_leave_unstored(q, i);
			r->on_stored(r, QUEUE_LOST);
		}
		item_drop(i);
	}
}

void stock_clear(struct queue *q)
{
	for (size_t n = 0; n < q->reading.state_count; n++)
		free(q->reading.states[n].sealed);
	free(q->reading.states);
	q->reading.states = NULL;
	q->reading.state_count = q->reading.state_cap = 0;
	free(q->reading.told);
	q->reading.told = NULL;
	q->reading.told_count = q->reading.told_cap = 0;
	q->stats.opaque = q->stats.orders = q->stats.graves = 0;
	gone_clear(q);
	decided_clear(&q->decided);
	destination_table_clear(&q->destinations);
	item_set_clear(&q->items);
}
