/* store.c: what is given to the queue: messages, the replies of transactions, and an operator's orders; and whether
 * there is room for it. What the queue reads back is never refused, so its memory may be used up more than fully then.
 *
 * The replies go after decided_s. When there are decided_max, the oldest goes for each new one. Then, and while a
 * backup that may hold others is apart, nobody can say that a transaction never was.
 *
 * Orders count after a restart, and at the gateway that takes over. Those of a destination are a list: the newest,
 * which counts, and older ones that a backup may still hold: an order is deleted when every backup has the newer one. A
 * backup whose memory is full refuses the newer one; then it is put again every few seconds. */
#include "net/report/log.h"
#include "proto/error.h"
#include "smtpproxy/queue/queue_core.h"
#include "smtpproxy/queue/stock.h"

/* --- decided transactions --- */

static int64_t decided_kept_ms(const struct queue *q)
{
	return (int64_t)q->conf.decided_s * 1000;
}

/* 0: the oldest one is gone. QUEUE_NONE: there is none that is stored. */
static int decided_drop_oldest(struct queue *q)
{
	struct item *i = q->decided.oldest;

	if (!i || i->state == ITEM_STORING)
		return QUEUE_NONE;
	decided_pop(&q->decided);
	if (i->state == ITEM_KEPT)
		stock_remove(q, i);
	item_drop(i);
	return 0;
}

static void decided_expire(struct queue *q)
{
	const int64_t before_ms = queue_now_ms(q) - decided_kept_ms(q);

	while (q->decided.oldest && q->decided.oldest->accepted_ms < before_ms && !decided_drop_oldest(q))
		;
}

static int decided_forget_oldest(struct queue *q)
{
	struct item *i = q->decided.oldest;
	int64_t *until_ms;
	int r;

	if (!i)
		return QUEUE_NONE;
	item_hold(i);
	r = decided_drop_oldest(q);
	if (!r) {
		/* The sessions' own ledger knows what this gateway decided, as long as it forgets nothing. */
		const bool here = i->id >> QUEUE_ID_EPOCH == q->shared.epoch && i->accepted_ms >= q->active_ms;

		until_ms = here ? &q->decided.forgot_here_ms : &q->decided.forgot_before_ms;
		if (*until_ms < i->accepted_ms + decided_kept_ms(q))
			*until_ms = i->accepted_ms + decided_kept_ms(q);
		q->stats.decided_forgotten++;
	}
	item_drop(i);
	return r;
}

static int decided_make_room(struct queue *q)
{
	int r = 0;

	while (!r && q->decided.count >= q->conf.decided_max)
		r = decided_forget_oldest(q);
	return r;
}

/* --- room: lines, destinations, messages that are not stored yet, and the memory of all that is stored --- */

static bool store_has_room(struct queue *q, const struct queue_destination *d)
{
	if (d)
		return d->count < q->conf.messages_max;
	if (q->destinations.names.count >= q->conf.destinations_max)
		destination_sweep(&q->destinations);
	return q->destinations.names.count < q->conf.destinations_max;
}

int queue_room(const struct queue *q)
{
	if (q->state != QUEUE_ACTIVE || !q->ready)
		return QUEUE_NOT_READY;
	return q->fill == QUEUE_FILLED ? QUEUE_FULL : 0;
}

static bool store_is_nearly_full(const struct queue *q)
{
	return item_set_memory(&q->items) - q->decided.bytes > q->conf.memory_max / 10 * 9;
}

/* While more than a tenth is free, only large messages find no memory. */
static void store_fill(struct queue *q)
{
	if (q->fill == QUEUE_FILLED || !store_is_nearly_full(q))
		return;
	q->fill = QUEUE_FILLED;
	log_event(LOG_WARNING, NULL, "queue has no memory for more mail", "messages=%llu bytes=%llu most=%llu",
		(unsigned long long)(q->items.count - q->decided.count), (unsigned long long)item_set_memory(&q->items),
		(unsigned long long)q->conf.memory_max);
}

/* Mail is more important than decisions, so the oldest of these go if that is enough. */
static bool store_has_memory(struct queue *q, const struct queue_mail *m)
{
	const uint64_t bytes = m->body.len + m->envelope.len + 2 * ITEM_ROOM + m->transaction.len + m->reply.len;
	const uint64_t most = q->conf.memory_max;
	int r = 0;

	if (item_set_memory(&q->items) + bytes > most && item_set_memory(&q->items) - q->decided.bytes + bytes <= most)
		while (!r && item_set_memory(&q->items) + bytes > most)
			r = decided_forget_oldest(q);
	if (item_set_memory(&q->items) + bytes <= most)
		return true;
	store_fill(q);
	return false;
}

static void store_follow_fill(struct queue *q)
{
	if (item_set_memory(&q->items) - q->decided.bytes >= q->conf.memory_max) {
		store_fill(q);
	} else if (q->fill == QUEUE_FILLED && !store_is_nearly_full(q)) {
		q->fill = QUEUE_UNFILLED;
		log_event(LOG_INFO, NULL, "queue has memory for mail again", "bytes=%llu",
			(unsigned long long)item_set_memory(&q->items));
	}
	if (q->fill == q->fill_told)
		return;
	q->fill_told = q->fill;
	if (q->fill == QUEUE_FILLED)
		q->ops->on_unready(q->user);
	else if (q->ready)
		q->ops->on_ready(q->user);
}

static int store_may_add(struct queue *q, const struct queue_mail *m)
{
	const char *name = (const char *)m->destination.data;
	/* Messages that are not stored yet use up what this one may fill. */
	const uint64_t most = m->turn == QUEUE_TURN_MORE ? q->conf.unstored_bytes_max / 4 : q->conf.unstored_bytes_max;

	if (!m->destination.len || m->destination.len > DESTINATION_NAME_MAX || m->transaction.len > 255 ||
		m->envelope.len >= UINT32_MAX / 4 || m->body.len >= UINT32_MAX / 4 || m->reply.len >= 65536)
		return CSSL_E_RANGE;
	if (queue_room(q) == QUEUE_NOT_READY)
		return QUEUE_NOT_READY;
	if (m->turn != QUEUE_TURN_NEXT && q->stats.unstored_bytes >= most)
		return QUEUE_BUSY;
	if (!store_has_room(q, destination_get(&q->destinations, name, m->destination.len, false)) ||
		(m->turn != QUEUE_TURN_INSTEAD && !store_has_memory(q, m)))
		return QUEUE_FULL;
	return m->transaction.len && decided_make_room(q) ? QUEUE_FULL : 0;
}

/* --- adding --- */

int queue_decided(struct queue *q, struct content_bytes name, char *out, size_t cap, size_t *len)
{
	const int64_t now_ms = queue_now_ms(q);
	const struct item *i = decided_find(&q->decided, q->shared.seal, name, out, cap, len);

	if (i)
		return i->state == ITEM_KEPT ? 0 : QUEUE_UNDECIDED;
	/* Items that cannot be opened, and servers that were not read, may hold what a gateway before this one decided,
	 * until each of these would have been forgotten anyway. */
	if (!queue_owns(q) || now_ms < q->decided.forgot_before_ms ||
		((queue_any_unread(q) || q->stats.opaque) && now_ms < q->active_ms + decided_kept_ms(q)))
		return QUEUE_FORGOTTEN;
	return now_ms < q->decided.forgot_here_ms ? QUEUE_FORGOTTEN_HERE : QUEUE_NONE;
}

/* The message and the decision of its transaction, which goes with it. NULL: out of memory. */
static struct item *store_message(struct queue *q, const struct queue_mail *m)
{
	const struct content content = {
		.at_ms = queue_now_ms(q), .name = m->destination, .envelope = m->envelope, .rest = m->body
	};
	const struct content decision = { .at_ms = content.at_ms, .name = m->transaction, .rest = m->reply };
	struct item *i = stock_make(q, ITEM_MESSAGE, &content);

	if (!i || !m->transaction.len)
		return i;
	i->with = stock_make(q, ITEM_DECIDED, &decision);
	if (!i->with) {
		destination_let_go(&q->destinations, i);
		item_remove(&q->items, i);
		return NULL;
	}
	item_hold(i->with);
	return i;
}

int queue_add(struct queue *q, const struct queue_mail *m, struct queue_receipt *receipt)
{
	struct item *i;
	int r = store_may_add(q, m);

	if (r)
		return r;
	i = store_message(q, m);
	if (!i)
		return CSSL_E_NO_MEMORY;
	q->stats.unstored++;
	q->stats.unstored_bytes += i->sealed_len;
	i->becomes = m->start == QUEUE_PARKED ? ITEM_PARKED : ITEM_READY;
	*receipt = (struct queue_receipt){ .on_stored = receipt->on_stored, .id = i->id, .item = i };
	i->receipt = receipt;
	stock_push(q, CHANGE_PUT, i, true);
	if (i->with)
		stock_push(q, CHANGE_PUT, i->with, true);
	return 0;
}

static struct item *store_parked(struct queue *q, const struct queue_receipt *r)
{
	struct item *i = item_find(&q->items, r->id);

	return i && i->state == ITEM_PARKED ? i : NULL;
}

int queue_unpark(struct queue *q, const struct queue_receipt *r)
{
	struct item *i = store_parked(q, r);

	if (!i)
		return QUEUE_NONE;
	destination_append(i->to, i);
	return 0;
}

void queue_forget(struct queue *q, struct queue_receipt *r)
{
	struct item *i = r->item ? r->item : store_parked(q, r);

	if (i && i->state == ITEM_PARKED)
		stock_remove(q, i);
	if (!i || i->receipt != r)
		return;
	i->receipt = NULL;
	r->item = NULL;
	stock_refuse(q, i, QUEUE_LOST);
}

/* --- orders --- */

/* A backup that counts no more does not owe an answer. It gets the order when it comes back. */
static void order_repeat(struct queue *q, struct item *i)
{
	const unsigned refused = i->refused;

	i->refused = 0;
	for (unsigned n = 0; n < BACKUPS; n++)
		if (refused & 1u << n && backup_counts(&q->backups[n]))
			backup_push(&q->backups[n], CHANGE_PUT, i);
		else if (refused & 1u << n)
			stock_answered(q, i, 1u << n);
}

static void orders_repeat(struct queue *q)
{
	if (!q->orders_repeat_ms || redis_link_clock_ms() < q->orders_repeat_ms)
		return;
	q->orders_repeat_ms = 0;
	for (struct queue_destination *d = NULL; (d = destination_next(&q->destinations, d));)
		if (d->order && d->order->refused)
			order_repeat(q, d->order);
}

/* @old and older ones: all, or those that not every backup has. */
static void orders_drop(struct queue *q, struct item *old, bool all)
{
	for (struct item *next; old; old = next) {
		next = old->next;
		if (all || item_is_unstored(old))
			stock_remove(q, old);
	}
}

/* Without a stop and a rate there is nothing to keep. A destination has one order that is stored, and at most one that
 * is not. */
static int order_keep(struct queue *q, struct queue_destination *d, const struct content *o)
{
	struct item *i;

	if (!o->stops && !o->rate) {
		orders_drop(q, d->order, true);
		return 0;
	}
	i = stock_make(q, ITEM_ORDER, o);
	if (!i)
		return CSSL_E_NO_MEMORY;
	q->stats.orders_unstored++;
	orders_drop(q, i->next, false);
	stock_push(q, CHANGE_PUT, i, true);
	return 0;
}

int queue_order(struct queue *q, struct content_bytes name, enum destination_flow flow, uint32_t rate)
{
	const struct content o = { .stops = flow == DESTINATION_STOPPED, .rate = rate, .name = name };
	struct queue_destination *d;
	int r;

	if (!name.len || name.len > DESTINATION_NAME_MAX)
		return CSSL_E_RANGE;
	if (queue_room(q) == QUEUE_NOT_READY)
		return QUEUE_NOT_READY;
	d = destination_get(&q->destinations, (const char *)name.data, name.len, false);
	if (!d && !store_has_room(q, NULL))
		return QUEUE_FULL;
	d = d ? d : destination_get(&q->destinations, (const char *)name.data, name.len, true);
	r = d ? order_keep(q, d, &o) : CSSL_E_NO_MEMORY;
	if (r)
		return r;
	destination_pace(d, flow, rate);
	log_event(LOG_INFO, NULL, "order for a destination", "destination=%s flow=%s rate_per_minute=%u", d->name,
		destination_flow_name(flow), rate);
	return 0;
}

void store_tick(struct queue *q)
{
	decided_expire(q);
	store_follow_fill(q);
	orders_repeat(q);
}
