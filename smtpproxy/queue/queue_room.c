/* queue_room.c: whether a message may be added: lines, destinations, messages that are not stored yet, and the memory
 * of all that is stored. What the queue reads back is never refused, so its memory may be used up more than fully then.
 */
#include "smtpproxy/queue/queue_inside.h"

#include "net/log.h"
#include "proto/error.h"

int queue_has_room(struct queue *q, const struct queue_destination *d)
{
	if (d)
		return d->count < q->conf.messages_max;
	if (q->destinations.names.count >= q->conf.destinations_max)
		destination_sweep(&q->destinations);
	return q->destinations.names.count < q->conf.destinations_max;
}

int queue_is_ready(const struct queue *q)
{
	return q->state == QUEUE_ACTIVE && q->ready;
}

/* Memory */

uint64_t queue_memory(const struct queue *q)
{
	return q->items.bytes + q->items.count * QUEUE_ITEM_BYTES;
}

int queue_is_full(const struct queue *q)
{
	return q->fill == QUEUE_FILLED;
}

static int is_nearly_full(const struct queue *q)
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
static int has_memory(struct queue *q, const struct queue_mail *m)
{
	const uint64_t bytes = m->body.len + m->envelope.len + 2 * QUEUE_ITEM_BYTES + m->transaction.len + m->reply.len;
	const uint64_t most = q->conf.memory_max;
	int r = 0;

	if (queue_memory(q) + bytes > most && queue_memory(q) - q->decided_bytes + bytes <= most)
		while (!r && queue_memory(q) + bytes > most)
			r = queue_decided_forget_oldest(q);
	if (queue_memory(q) + bytes <= most)
		return 1;
	fill(q);
	return 0;
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

int queue_may_add(struct queue *q, const struct queue_mail *m)
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
