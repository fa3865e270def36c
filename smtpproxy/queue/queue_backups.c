/* queue_backups.c: the queue reacts when a backup comes, answers or goes. It decides which backup may be claimed and
 * which is filled. */
#include "smtpproxy/queue/queue_inside.h"

#include <string.h>

#include "net/log.h"
#include "net/log_pace.h"

#define FILL_AHEAD 4096u /* changes in the line of a backup that is filled */

void queue_note_left(struct queue *q, unsigned at, const char run_id[static RUN_ID_LEN + 1], uint64_t version)
{
	marker_left_of(&q->shared.marker.left[at], run_id);
	q->shared.marker.left[at].version = version;
}

void queue_tell_ready(struct queue *q)
{
	unsigned in_sync = 0;
	unsigned was = q->ready;

	if (q->state == QUEUE_FLUSHING) /* its owner has closed the listening sockets */
		return;
	for (unsigned i = 0; i < BACKUPS; i++)
		in_sync += q->backups[i].state == BACKUP_IN_SYNC;
	q->ready = q->state == QUEUE_ACTIVE ? in_sync : 0;
	if (!was == !q->ready)
		return;
	if (q->recovery_ms)
		q->stats.recovery_ms = (uint64_t)(redis_link_clock_ms() - q->recovery_ms);
	q->recovery_ms = 0;
	log_event(q->ready ? LOG_INFO : LOG_ERROR, NULL, q->ready ? "queue accepts" : "queue accepts nothing",
		"in_sync=%u", q->ready);
	if (q->ready)
		q->ops->on_ready(q->user);
	else
		q->ops->on_unready(q->user);
}

bool queue_is_ours(const struct queue *q, const struct backup *b)
{
	return b->sight.marker.epoch >= q->from_epoch && !strcmp(b->sight.marker.nonce, q->shared.nonce);
}

static bool is_behind(const struct backup *b)
{
	const struct queue *q = queue_of(b);
	const struct marker *m = &b->sight.marker;

	return marker_is_replaced(q->shared.marker.replaced, m) ||
	       (m->version <= q->from_version && marker_is_behind(m, q->from_markers));
}

bool queue_is_branch(const struct queue *q, const struct backup *b)
{
	return b->sight.state == SIGHT_MARKED && !queue_is_ours(q, b) && !is_behind(b);
}

/* --- a backup that came back ---
 *
 * It is brought up to date without being emptied, because it may hold the only copy: the other one may be lost before
 * it has answered everything. All its items are read. It then deletes those that the queue does not have any more, and
 * gets those that it lacks, in the order of their ids. */

static void begin_compare(struct queue *q, struct backup *b)
{
	for (struct item *i = q->items.oldest; i; i = i->newer)
		i->seen &= (uint8_t) ~(1u << b->index);
	b->stats.fills++;
	if (b->sight.state == SIGHT_MARKED) /* it was left behind, or has been read just now */
		queue_note_left(q, b->index, b->sight.marker.run_id, b->sight.marker.version);
	backup_advance(b, BACKUP_COMPARING);
}

void queue_delete_field(struct backup *b, enum item_kind kind, uint64_t id)
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
static void compare_item(struct queue *q, struct backup *b, const char *field, size_t field_len)
{
	enum item_kind kind;
	struct item *i;
	uint64_t id;

	if (item_field_parse(field, field_len, &kind, &id))
		return;
	i = item_find(&q->items, id);
	if (!i)
		queue_delete_field(b, kind, id);
	else if (kind != ITEM_STATE)
		i->seen |= (uint8_t)(1u << b->index);
}

/* --- claiming --- */

/* A server that came back empty does not know its former owner. While the lease lasts, no other gateway has claimed
 * it, because a standby waits longer than that. Later, an operator has to order it, unless there is no other gateway.
 */
static bool may_claim(const struct queue *q, struct backup *b)
{
	int64_t now_ms = redis_link_clock_ms();
	const char *cause = "another gateway may own the queue; an operator has to order the takeover";

	if (now_ms < b->fill_after_ms)
		return false;
	if (queue_spares_waits(q, b))
		cause = "another server of the file does not answer, and may be the one that this place waits for";
	else if (queue_is_ours(q, b) || q->lease.until_ms > now_ms || q->orders || q->conf.role == QUEUE_ALONE)
		return true;
	if (b->not_used != cause)
		log_event(LOG_WARNING, NULL, "backup not claimed", "backup=%u cause=\"%s\"", b->index, cause);
	b->not_used = cause;
	return false;
}

/* Until it was read it is apart, also when it is lost again meanwhile. The next marker is above its own one: if the
 * version of a server went down, whoever goes on with it alone could come to one that another marker leaves behind. */
static void note_branch(struct queue *q, const struct backup *b)
{
	const struct marker *m = &b->sight.marker;

	if (!queue_is_branch(q, b))
		return;
	if (!queue_any_apart(q) || m->version < q->shared.marker.apart_version)
		q->shared.marker.apart_version = m->version;
	if (m->version > q->shared.marker.version)
		q->shared.marker.version = m->version;
	memcpy(q->shared.marker.apart[b->index], m->run_id, sizeof q->shared.marker.apart[b->index]);
	log_event(LOG_WARNING, NULL, "backup may hold messages that no other has", "backup=%u from_version=%llu",
		b->index, (unsigned long long)m->version);
}

void queue_consider(struct queue *q)
{
	if (q->state == QUEUE_LOOKING || q->state == QUEUE_WATCHING)
		queue_recover(q);
	if (queue_owns(q))
		queue_outrank(q);
	for (unsigned i = 0; i < BACKUPS && queue_owns(q); i++) {
		struct backup *b = &q->backups[i];

		if (b->state != BACKUP_SEEN || !queue_is_fresh(q))
			continue;
		if (b->sight.marker.epoch > q->shared.epoch) {
			queue_meet_rival(q, b);
		} else if (may_claim(q, b)) {
			note_branch(q, b);
			backup_claim(b);
		}
	}
	for (unsigned i = 0; i < BACKUPS && queue_owns(q); i++)
		if (q->backups[i].state == BACKUP_FILLING)
			queue_on_room(&q->backups[i]);
	if (queue_owns(q))
		queue_join_filled(q);
	if (queue_counting(q))
		q->orders = 0;
}

static void on_seen(struct backup *b)
{
	queue_consider(queue_of(b));
}

void queue_on_claimed(struct backup *b)
{
	struct queue *q = queue_of(b);
	char was_apart;

	if (q->state == QUEUE_CLAIMING) {
		queue_recovery_claimed(q, b);
		return;
	}
	if (!queue_owns(q))
		return;
	if (marker_changed(&b->judged, &b->replaced)) {
		b->sight = b->replaced;
		note_branch(q, b);
	}
	/* An absent member of the start came back, and its content is what the marker of the other one means. */
	if (marker_is_apart(&q->shared.marker, &b->sight, b->index)) {
		q->reads |= 1u << b->index;
		backup_read(b, BACKUP_READS_ITEMS);
		return;
	}
	/* If it was lost while it was read, and is empty now, then what was read is all that is left of it. */
	was_apart = q->shared.marker.apart[b->index][0];
	q->shared.marker.apart[b->index][0] = '\0';
	if (was_apart)
		queue_unite(q);
	begin_compare(q, b);
}

static void on_item(struct backup *b, const char *field, size_t field_len, const uint8_t *value, size_t len)
{
	if (b->state == BACKUP_COMPARING)
		compare_item(queue_of(b), b, field, field_len);
	else
		queue_read_item(queue_of(b), b, field, field_len, value, len);
}

static void on_read(struct backup *b)
{
	struct queue *q = queue_of(b);
	bool owned = queue_owns(q);

	if (b->state == BACKUP_COMPARING) {
		b->fill_next = q->items.oldest;
		backup_advance(b, BACKUP_FILLING);
		return;
	}
	queue_read_end(q, b);
	if (owned && b->state == BACKUP_CLAIMED)
		begin_compare(q, b);
}

void queue_on_done(struct backup *b, enum change_kind kind, struct item *i)
{
	struct queue *q = queue_of(b);
	unsigned bit = 1u << b->index;

	if (kind == CHANGE_PUT)
		i->seen |= (uint8_t)bit;
	if (kind == CHANGE_PUT && i->state != ITEM_GONE)
		queue_answered(q, i, bit);
	if (kind != CHANGE_DELETE || !(i->waits & bit))
		return;
	i->waits &= (uint8_t)~bit;
	/* Every counting backup has confirmed the delete, or is given up. */
	if (i->kind == ITEM_MESSAGE && !i->waits && q->stats.deletes_unconfirmed-- == QUEUE_UNCONFIRMED_MAX)
		worker_at_turn_end(q->shared.worker, &q->tell_take);
}

static void on_refused(struct backup *b, struct item *i)
{
	struct queue *q = queue_of(b);

	if (i->seen & ITEM_FRESH) /* of a server that was lost while it was read: that one still has it */
		return;
	if (i->state == ITEM_STORING && i->kind == ITEM_ORDER) {
		queue_order_refused(q, b, i);
		return;
	}
	if (i->state == ITEM_STORING) {
		queue_refuse(q, i, QUEUE_REFUSED);
		return;
	}
	if (i->state == ITEM_GONE)
		return;
	b->fill_after_ms = redis_link_clock_ms() + QUEUE_FILL_AGAIN_MS;
	backup_give_up(b, "its memory is full, and it lacks a stored message");
}

static void on_marked(struct backup *b, uint64_t version)
{
	struct queue *q = queue_of(b);
	const unsigned joining = q->joining;

	log_event(LOG_INFO, NULL, "backup marked", "backup=%u version=%llu messages=%zu", b->index,
		(unsigned long long)version, q->items.count);
	q->alone = 0; /* it was compared with the memory */
	q->marked_version = version > q->marked_version ? version : q->marked_version;
	queue_note_left(q, b->index, b->run_id, version);
	if (version >= q->join_version) {
		q->joining = 0; /* they are marked when the others have answered */
		for (unsigned i = 0; i < BACKUPS; i++)
			if (joining & 1u << i)
				backup_push(&q->backups[i], CHANGE_MARK, NULL);
	}
	queue_release_waiting(q, version);
	queue_tell_ready(q);
	if (q->ready == BACKUPS && !queue_spares_any_owed(q))
		queue_gone_forget(q);
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
	b->fill_after_ms = redis_link_clock_ms() + QUEUE_FILL_AGAIN_MS;
	b->fill_next = queue_of(b)->items.oldest; /* it goes past those that the backup has */
}

void queue_on_room(struct backup *b)
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
	queue_join_filled(q);
}

static void on_given_up(struct backup *b, enum backup_state was)
{
	struct queue *q = queue_of(b);
	const bool was_read = (q->reads & 1u << b->index) != 0;
	unsigned joining;

	q->reads &= ~(1u << b->index);
	if (q->state == QUEUE_CLAIMING || q->state == QUEUE_READING) {
		queue_recovery_lost(q, b);
		return;
	}
	/* Messages of another server had waited for this one, which was being read, or about to be. */
	if (queue_owns(q) && (was_read || (was == BACKUP_CLAIMING && q->shared.marker.apart[b->index][0])))
		queue_unite(q);
	if (queue_owns(q) && was_read)
		queue_unite_interrupted(q, b);
	if (was != BACKUP_MARKING && was != BACKUP_IN_SYNC)
		return;
	queue_wait_for_mark(q, b);
	q->waiting_version = q->shared.marker.version + 1;
	joining = q->joining & ~(1u << b->index);
	q->joining = 0;
	if (joining)
		memcpy(q->shared.marker.members, q->members_before, sizeof q->shared.marker.members);
	for (unsigned i = 0; i < BACKUPS; i++)
		if (joining & 1u << i)
			backup_give_up(&q->backups[i], "the other one was lost before it knew of this one");
	if (queue_counting(q))
		queue_mark(q);
	queue_tell_ready(q);
}

/* One that was not complete yet is only looked at again: what it lacked may be in this memory only. Its sight is as old
 * as the claim. */
static void on_deposed(struct backup *b, uint64_t epoch)
{
	struct queue *q = queue_of(b);

	if (!queue_owns(q) || !queue_may_hold_more(q, b))
		queue_depose(q, epoch);
}

const struct backup_ops queue_backup_ops = {
	.on_seen = on_seen,
	.on_claimed = queue_on_claimed,
	.on_item = on_item,
	.on_read = on_read,
	.on_done = queue_on_done,
	.on_refused = on_refused,
	.on_full = on_full,
	.on_marked = on_marked,
	.on_renewed = on_renewed,
	.on_room = queue_on_room,
	.on_given_up = on_given_up,
	.on_deposed = on_deposed,
	.is_behind = is_behind,
};
