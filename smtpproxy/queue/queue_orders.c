/* queue_orders.c: an operator's orders for destinations. They are items of their own, so that they count after a
 * restart, and at the gateway that takes over. item.next links the orders of a destination: the newest, which counts,
 * and older ones that a backup may still hold: an order is deleted when every backup has the newer one. A backup whose
 * memory is full refuses the newer one; then it is put again every few seconds. */
#include "smtpproxy/queue/queue_inside.h"

#include "net/log.h"
#include "net/log_pace.h"
#include "proto/error.h"

#define REPEAT_MS 5000

static void enter(struct queue *q, struct queue_destination *d, struct item *i)
{
	struct item **at = &d->order;

	while (*at && (*at)->id > i->id)
		at = &(*at)->next;
	i->to = d;
	i->next = *at;
	*at = i;
	q->stats.orders++;
}

/* It was given and not read: not every backup has it. */
static bool is_unstored(const struct item *i)
{
	return i->state == ITEM_STORING && !(i->seen & ITEM_FRESH);
}

void queue_order_forget(struct queue *q, struct item *i)
{
	struct item **at = &i->to->order;

	while (*at != i)
		at = &(*at)->next;
	*at = i->next;
	i->next = NULL;
	q->stats.orders--;
	q->stats.orders_unstored -= is_unstored(i);
	if (!i->to->order)
		destination_note_unused(&q->destinations, i->to);
}

/* This one and all older ones. */
static void remove_from(struct queue *q, struct item *old)
{
	for (struct item *next; old; old = next) {
		next = old->next;
		queue_remove(q, old);
	}
}

void queue_order_stored(struct queue *q, struct item *i)
{
	q->stats.orders_unstored--;
	remove_from(q, i->next);
}

void queue_order_refused(struct queue *q, const struct backup *b, struct item *i)
{
	q->stats.orders_refused++;
	i->refused |= (uint8_t)(1u << b->index);
	q->orders_repeat_ms = redis_link_clock_ms() + REPEAT_MS;
	log_paced(LOG_WARNING, NULL, "order not stored", "destination=%s backup=%u cause=%s", i->to->name, b->index,
		"its memory is full; the order counts, and is put again");
}

/* A backup that counts no more does not owe an answer. It gets the order when it comes back. */
static void repeat(struct queue *q, struct item *i)
{
	const unsigned refused = i->refused;

	i->refused = 0;
	for (unsigned n = 0; n < BACKUPS; n++)
		if (refused & 1u << n && backup_counts(&q->backups[n]))
			backup_push(&q->backups[n], CHANGE_PUT, i);
		else if (refused & 1u << n)
			queue_answered(q, i, 1u << n);
}

void queue_orders_repeat(struct queue *q)
{
	if (!q->orders_repeat_ms || redis_link_clock_ms() < q->orders_repeat_ms)
		return;
	q->orders_repeat_ms = 0;
	for (struct queue_destination *d = NULL; (d = destination_next(&q->destinations, d));)
		if (d->order && d->order->refused)
			repeat(q, d->order);
}

int queue_order_read(struct queue *q, struct item *i, const struct content *o)
{
	struct queue_destination *d = destination_get(&q->destinations, (const char *)o->name.data, o->name.len, 1);

	if (!d)
		return CSSL_E_NO_MEMORY;
	enter(q, d, i);
	if (d->order == i)
		destination_pace(d, o->stops ? DESTINATION_STOPPED : DESTINATION_FLOWS, o->rate);
	if (d->ready)
		queue_note_due(q, d);
	return 0;
}

/* Without a stop and a rate there is nothing to keep. A destination has one order that is stored, and at most one that
 * is not. */
static int keep(struct queue *q, struct queue_destination *d, const struct content *o)
{
	struct item *i;

	if (!o->stops && !o->rate) {
		remove_from(q, d->order);
		return 0;
	}
	i = queue_make(q, ITEM_ORDER, o);
	if (!i)
		return CSSL_E_NO_MEMORY;
	enter(q, d, i);
	q->stats.orders_unstored++;
	for (struct item *old = i->next, *next; old; old = next) {
		next = old->next;
		if (is_unstored(old))
			queue_remove(q, old);
	}
	queue_push(q, CHANGE_PUT, i, true);
	return 0;
}

int queue_order(struct queue *q, struct content_bytes name, enum destination_flow flow, uint32_t rate)
{
	const struct content o = { .stops = flow == DESTINATION_STOPPED, .rate = rate, .name = name };
	struct queue_destination *d;
	int r;

	if (!name.len || name.len > DESTINATION_NAME_MAX)
		return CSSL_E_RANGE;
	if (!queue_is_ready(q))
		return QUEUE_NOT_READY;
	d = destination_get(&q->destinations, (const char *)name.data, name.len, 0);
	if (!d && !queue_has_room(q, NULL))
		return QUEUE_FULL;
	d = d ? d : destination_get(&q->destinations, (const char *)name.data, name.len, 1);
	r = d ? keep(q, d, &o) : CSSL_E_NO_MEMORY;
	if (r)
		return r;
	destination_pace(d, flow, rate);
	log_event(LOG_INFO, NULL, "order for a destination", "destination=%s flow=%s rate_per_minute=%u", d->name,
		destination_flow_name(flow), rate);
	if (d->ready)
		queue_note_due(q, d);
	return 0;
}
