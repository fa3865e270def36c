/* servers.c: the queue reacts when a backup comes, answers or goes. It decides which backup may be claimed, and fills
 * it. */
#include "smtpproxy/queue/servers.h"

#include <stdlib.h>
#include <string.h>

#include "net/memory/array.h"
#include "net/report/log.h"
#include "net/report/log_pace.h"
#include "smtpproxy/queue/backup/backup_look.h"
#include "smtpproxy/queue/joining.h"
#include "smtpproxy/queue/looking.h"
#include "smtpproxy/queue/queue_core.h"
#include "smtpproxy/queue/rivals.h"
#include "smtpproxy/queue/spares.h"
#include "smtpproxy/queue/stock.h"
#include "smtpproxy/queue/uniting.h"

#define FILL_AHEAD      4096u /* changes in the line of a backup that is filled */
#define ORDER_REPEAT_MS 5000

static void on_room(struct backup *b)
{
	struct queue *q = queue_of(b);

	if (b->fill_next && redis_link_clock_ms() < b->fill_after_ms)
		return;
	while (b->fill_next && b->line.count < FILL_AHEAD) {
		struct item *i = b->fill_next;
		const bool lacks = !(i->seen & 1u << b->index);

		b->fill_next = i->newer;
		/* The state of a message that it has may be an older one. */
		if ((lacks || i->note) && backup_push(b, lacks ? CHANGE_PUT : CHANGE_REPLACE, i))
			return;
	}
	joining_join_filled(q);
}

/* --- claiming --- */

/* @b does not hold what its place waits for, and another server may. */
static bool claim_has_to_wait(const struct queue *q, const struct backup *b)
{
	const char *apart = q->shared.marker.apart[b->index];

	if (!apart[0] || !strcmp(apart, b->run_id))
		return false;
	for (unsigned n = 0; n < q->spares.count; n++)
		if ((n == b->index || n >= BACKUPS) && spares_server(q, n)->is_probe &&
			spares_server(q, n)->state != BACKUP_SEEN)
			return true;
	return false;
}

/* A server that came back empty does not know its former owner. While the lease lasts, no other gateway has claimed
 * it, because a standby waits longer than that. Later, an operator has to order it, unless there is no other gateway.
 */
static bool claim_may(const struct queue *q, struct backup *b)
{
	int64_t now_ms = redis_link_clock_ms();
	const char *cause = "another gateway may own the queue; an operator has to order the takeover";

	if (now_ms < b->fill_after_ms)
		return false;
	if (claim_has_to_wait(q, b))
		cause = "another server of the file does not answer, and may be the one that this place waits for";
	else if (rivals_is_ours(q, b) || q->lease.until_ms > now_ms || q->orders || q->conf.role == QUEUE_ALONE)
		return true;
	if (b->not_used != cause)
		log_event(LOG_WARNING, NULL, "backup not claimed", "backup=%u cause=\"%s\"", b->index, cause);
	b->not_used = cause;
	return false;
}

void servers_consider(struct queue *q)
{
	const bool fresh = looking_step(q);

	/* Our epoch rises before a rival is met: an order is meant to keep this memory, and a rival may end it. */
	if (queue_owns(q) && fresh)
		rivals_outrank(q);
	for (unsigned i = 0; i < BACKUPS && queue_owns(q); i++) {
		struct backup *b = &q->backups[i];

		if (b->state != BACKUP_SEEN || !fresh)
			continue;
		if (b->sight.marker.epoch > q->shared.epoch) {
			rivals_meet(q, b);
		} else if (claim_may(q, b)) {
			rivals_note_branch(q, b);
			backup_claim(b);
		}
	}
	for (unsigned i = 0; i < BACKUPS && queue_owns(q); i++)
		if (q->backups[i].state == BACKUP_FILLING)
			on_room(&q->backups[i]);
	if (queue_owns(q))
		joining_join_filled(q);
	if (queue_counting(q))
		q->orders = 0;
}

static void on_seen(struct backup *b)
{
	servers_consider(queue_of(b));
}

/* --- answers --- */

static void on_done(struct backup *b, enum change_kind kind, struct item *i)
{
	struct queue *q = queue_of(b);
	unsigned bit = 1u << b->index;

	if (kind == CHANGE_PUT)
		i->seen |= (uint8_t)bit;
	if (kind == CHANGE_PUT && i->state != ITEM_GONE)
		stock_answered(q, i, bit);
	if (kind != CHANGE_DELETE || !(i->waits & bit))
		return;
	i->waits &= (uint8_t)~bit;
	/* Every counting backup has confirmed the delete, or is given up. */
	if (i->kind == ITEM_MESSAGE && !i->waits && q->stats.deletes_unconfirmed-- == QUEUE_UNCONFIRMED_MAX)
		worker_at_turn_end(q->shared.worker, &q->tell_take);
}

/* The memory of @b is full. The order counts all the same, and is put again later. */
static void order_refused(struct queue *q, const struct backup *b, struct item *i)
{
	q->stats.orders_refused++;
	i->refused |= (uint8_t)(1u << b->index);
	q->orders_repeat_ms = redis_link_clock_ms() + ORDER_REPEAT_MS;
	log_paced(LOG_WARNING, NULL, "order not stored", "destination=%s backup=%u cause=%s", i->to->name, b->index,
		"its memory is full; the order counts, and is put again");
}

static void on_refused(struct backup *b, struct item *i)
{
	struct queue *q = queue_of(b);

	if (i->reading == ITEM_FRESH) /* of a server that was lost while it was read: that one still has it */
		return;
	if (i->state == ITEM_STORING && i->kind == ITEM_ORDER) {
		order_refused(q, b, i);
		return;
	}
	if (i->state == ITEM_STORING) {
		stock_refuse(q, i, QUEUE_REFUSED);
		return;
	}
	if (i->state == ITEM_GONE)
		return;
	b->fill_after_ms = redis_link_clock_ms() + JOINING_FULL_AGAIN_MS;
	backup_give_up(b, "its memory is full, and it lacks a stored message");
}

/* --- changes whose lost backup has to be left out by a marker first --- */

/* Backup @b is lost, and what waits for its answer waits for the marker that leaves it out. An item for which there is
 * no memory waits for ever: its sender times out. */
static void wait_for_mark(struct queue *q, struct backup *b)
{
	unsigned bit = 1u << b->index;

	for (uint32_t n = 0; n < b->line.count; n++) {
		const struct change *c = change_at(&b->line, n);

		q->alone += c->kind != CHANGE_PUT && c->item && c->item->kind == ITEM_MESSAGE && !queue_counting(q);
		if (c->kind == CHANGE_DELETE)
			on_done(b, CHANGE_DELETE, c->item);
		if (c->kind != CHANGE_PUT || c->item->state != ITEM_STORING || !(c->item->waits & bit))
			continue; /* one that is GONE waits for its DELETE, which comes later in the line */
		if (!(c->item->waits & ITEM_WAITS_MARK)) {
			if (array_make_room(
				    &q->waiting.items, &q->waiting.cap, q->waiting.count, sizeof(struct item *)))
				continue;
			item_hold(c->item);
			q->waiting.items[q->waiting.count++] = c->item;
		}
		c->item->waits = (uint8_t)((c->item->waits & ~bit) | ITEM_WAITS_MARK);
	}
}

static void wait_release(struct queue *q, uint64_t version)
{
	struct item **waiting = q->waiting.items;
	size_t count = q->waiting.count;

	if (!count || version < q->waiting.version)
		return;
	q->waiting.items = NULL;
	q->waiting.count = q->waiting.cap = 0;
	for (size_t n = 0; n < count; n++) {
		stock_answered(q, waiting[n], ITEM_WAITS_MARK);
		item_drop(waiting[n]);
	}
	free(waiting);
}

static void on_marked(struct backup *b, uint64_t version)
{
	struct queue *q = queue_of(b);
	const unsigned joining = q->joining.mask;

	log_event(LOG_INFO, NULL, "backup marked", "backup=%u version=%llu messages=%zu", b->index,
		(unsigned long long)version, q->items.count);
	q->alone = 0; /* it was compared with the memory */
	q->joining.marked_version = version > q->joining.marked_version ? version : q->joining.marked_version;
	marker_left_of(&q->shared.marker, b->index, b->run_id)->version = version;
	if (version >= q->joining.version) {
		q->joining.mask = 0; /* they are marked when the others have answered */
		for (unsigned i = 0; i < BACKUPS; i++)
			if (joining & 1u << i)
				backup_push(&q->backups[i], CHANGE_MARK, NULL);
	}
	wait_release(q, version);
	joining_tell_ready(q);
	if (q->ready == BACKUPS && !q->spares.owed)
		stock_forget_graves(q);
}

/* One that is not complete proves nothing: another gateway may own those that are. But nobody else owns the queue while
 * all servers are ours, complete or not. If they are full, they get room only by deliveries. */
static int64_t proven_ms(const struct queue *q, const struct backup *b)
{
	int64_t oldest_ms = b->renewed_ms;

	if (b->state == BACKUP_IN_SYNC || q->conf.role == QUEUE_ALONE)
		return b->renewed_ms;
	for (unsigned i = 0; i < BACKUPS; i++) {
		const int64_t at_ms = backup_is_live(&q->backups[i]) ? q->backups[i].renewed_ms : INT64_MIN / 2;

		oldest_ms = at_ms < oldest_ms ? at_ms : oldest_ms;
	}
	return oldest_ms;
}

static void on_renewed(struct backup *b, int64_t sent_ms)
{
	struct queue *q = queue_of(b);

	b->renewed_ms = sent_ms > b->renewed_ms ? sent_ms : b->renewed_ms;
	if (queue_owns(q))
		lease_renewed(&q->lease, proven_ms(q, b));
}

/* It stays ours meanwhile, and gets every delete: if both servers are full, only deliveries make room, and these need
 * the lease. */
static void on_full(struct backup *b)
{
	if (redis_link_clock_ms() >= b->fill_after_ms)
		log_paced(LOG_WARNING, NULL, "backup not filled", "backup=%u cause=%s", b->index, "its memory is full");
	b->fill_after_ms = redis_link_clock_ms() + JOINING_FULL_AGAIN_MS;
	b->fill_next = queue_of(b)->items.oldest; /* it goes past those that the backup has */
}

static void on_given_up(struct backup *b, enum backup_state was)
{
	struct queue *q = queue_of(b);
	unsigned joining;

	if (uniting_lost(q, b, was))
		return;
	if (was != BACKUP_MARKING && was != BACKUP_IN_SYNC)
		return;
	wait_for_mark(q, b);
	q->waiting.version = q->shared.marker.version + 1;
	joining = q->joining.mask & ~(1u << b->index);
	q->joining.mask = 0;
	if (joining)
		memcpy(q->shared.marker.members, q->joining.members_before, sizeof q->shared.marker.members);
	for (unsigned i = 0; i < BACKUPS; i++)
		if (joining & 1u << i)
			backup_give_up(&q->backups[i], "the other one was lost before it knew of this one");
	if (queue_counting(q))
		joining_mark(q);
	joining_tell_ready(q);
}

const struct backup_ops servers_ops = {
	.on_seen = on_seen,
	.on_claimed = uniting_claimed,
	.on_item = uniting_item,
	.on_read = uniting_read,
	.on_done = on_done,
	.on_refused = on_refused,
	.on_full = on_full,
	.on_marked = on_marked,
	.on_renewed = on_renewed,
	.on_room = on_room,
	.on_given_up = on_given_up,
	.on_deposed = rivals_deposed,
	.is_behind = rivals_is_behind,
};
