/* queue_orders.c: an operator's orders for destinations. They are items of their own, so that they count after a
 * restart, and at the gateway that takes over. item.next links the orders of a destination: the newest, which counts,
 * and older ones that a backup may still hold, because a gateway died between the put of one and the delete of the
 * other. */
#include "smtpproxy/queue/queue_inside.h"

#include <stdlib.h>

#include "net/log.h"
#include "proto/error.h"

#define SEALED_HEAD (SEAL_OVERHEAD - 16u)

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

void queue_order_forget(struct queue *q, struct item *i)
{
	struct item **at = &i->to->order;

	while (*at != i)
		at = &(*at)->next;
	*at = i->next;
	i->next = NULL;
	q->stats.orders--;
}

int queue_order_read(struct queue *q, struct item *i, const uint8_t *plain, size_t len)
{
	struct queue_destination *d;
	struct content_order o;
	int r = content_order_read(&o, plain, len);

	if (r)
		return r;
	d = destination_get(&q->destinations, (const char *)o.destination.data, o.destination.len, 1);
	if (!d)
		return CSSL_E_NO_MEMORY;
	enter(q, d, i);
	if (d->order == i)
		destination_pace(d, o.stopped ? DESTINATION_STOPPED : DESTINATION_FLOWS, o.rate);
	return 0;
}

static struct item *make(struct queue *q, const struct content_order *o)
{
	uint64_t id = q->shared.epoch << QUEUE_ID_EPOCH | ++q->counter;
	size_t len = content_order_len(o);
	uint8_t *room = malloc(len + SEAL_OVERHEAD);

	if (!room)
		return NULL;
	content_order_write(o, room + SEALED_HEAD);
	return queue_make(q, ITEM_ORDER, id, queue_seal(q, ITEM_ORDER, id, room, len), len + SEAL_OVERHEAD);
}

/* The new order is put before the old ones are deleted. Without a stop and a rate there is nothing to keep. */
static int keep(struct queue *q, struct queue_destination *d, const struct content_order *o)
{
	struct item *old = d->order, *next, *i = NULL;

	if (o->stopped || o->rate) {
		i = make(q, o);
		if (!i)
			return CSSL_E_NO_MEMORY;
		enter(q, d, i);
		queue_push(q, CHANGE_PUT, i, 1);
	}
	for (; old; old = next) {
		next = old->next;
		queue_remove(q, old);
	}
	return 0;
}

int queue_order(struct queue *q, struct content_bytes name, enum destination_flow flow, uint32_t rate)
{
	const struct content_order o = { .stopped = flow == DESTINATION_STOPPED, .rate = rate, .destination = name };
	struct queue_destination *d;
	int r;

	if (!name.len || name.len > DESTINATION_NAME_MAX)
		return CSSL_E_RANGE;
	if (!queue_is_ready(q))
		return QUEUE_NOT_READY;
	d = destination_get(&q->destinations, (const char *)name.data, name.len, 0);
	if (!queue_has_room(q, d))
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
