/* uniting.c: what claimed servers hold becomes the queue: all of it at a start, and what a server that comes back late
 * has beside it. */
#include "smtpproxy/queue/uniting.h"

#include <stdlib.h>
#include <string.h>

#include "net/report/log.h"
#include "smtpproxy/queue/joining.h"
#include "smtpproxy/queue/queue_core.h"
#include "smtpproxy/queue/reading.h"
#include "smtpproxy/queue/rivals.h"
#include "smtpproxy/queue/spares.h"
#include "smtpproxy/queue/stock.h"

/* --- a backup that came back ---
 *
 * It is brought up to date without being emptied, because it may hold the only copy: the other one may be lost before
 * it has answered everything. All its items are read. It then deletes those that the queue does not have any more, and
 * gets those that it lacks, in the order of their ids. */

static void compare_begin(struct queue *q, struct backup *b)
{
	for (struct item *i = q->items.oldest; i; i = i->newer)
		i->seen &= (uint8_t) ~(1u << b->index);
	b->stats.fills++;
	if (b->sight.state == SIGHT_MARKED) /* it was left behind, or has been read just now */
		marker_left_of(&q->shared.marker, b->index, b->sight.marker.run_id)->version = b->sight.marker.version;
	backup_advance(b, BACKUP_COMPARING);
}

static void compare_delete(struct backup *b, enum item_kind kind, uint64_t id)
{
	struct item *i = calloc(1, sizeof *i); /* to name the field: none is in memory */

	if (!i) {
		backup_give_up(b, "out of memory");
		return;
	}
	*i = (struct item){ .id = id, .kind = (uint8_t)kind, .state = ITEM_GONE, .refs = 1 };
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
		compare_delete(b, kind, id);
	else if (kind != ITEM_STATE)
		i->seen |= (uint8_t)(1u << b->index);
}

/* --- all of them --- */

/* Sends @b the messages that only the other one of the united servers had, and the states, which may differ. */
static void unite_complete(struct queue *q, struct backup *b)
{
	for (struct item *i = q->items.oldest; i && backup_is_live(b); i = i->newer) {
		if (i->seen & 1u << b->index) {
			if (i->note && q->recovery.from == (1u << BACKUPS) - 1)
				backup_push(b, CHANGE_REPLACE, i);
			continue;
		}
		if (i->copies == ITEM_COPIES_DAMAGED) /* a put leaves a damaged copy alone */
			compare_delete(b, (enum item_kind)i->kind, i->id);
		if (backup_is_live(b))
			backup_push(b, CHANGE_PUT, i);
	}
}

static void unite_settle(struct queue *q, struct item *i)
{
	i->reading = ITEM_SETTLED;
	if (i->state == ITEM_OPAQUE)
		return;
	if (i->kind != ITEM_MESSAGE) {
		item_move(i, ITEM_KEPT);
		return;
	}
	i->past = ITEM_PAST_IN_DOUBT;
	destination_settle(&q->destinations, i, queue_now_ms(q));
	q->stats.recovered++;
}

/* A backup that is being filled may be past its place. One that has the message may have an older state of it, which a
 * put leaves alone. */
static void unite_put(struct queue *q, struct item *i)
{
	for (unsigned n = 0; n < BACKUPS; n++) {
		struct backup *b = &q->backups[n];

		if (backup_is_live(b))
			backup_push(b, CHANGE_PUT, i);
		if (backup_is_live(b) && i->note && i->seen & 1u << n)
			backup_push(b, CHANGE_REPLACE, i);
	}
}

/* Messages of an absent member that came back while the queue goes on: no other backup has them. */
static void unite_late(struct queue *q)
{
	reading_apply(q);
	for (struct item *i = q->items.oldest; i; i = i->newer) {
		if (i->reading != ITEM_FRESH || reading_is_half(q, i))
			continue;
		unite_put(q, i);
		unite_settle(q, i);
	}
	stock_bury(q);
	for (unsigned i = 0; i < BACKUPS; i++)
		if (q->backups[i].state == BACKUP_FILLING) /* its place was in the old order */
			q->backups[i].fill_next = q->items.oldest;
}

/* The messages that were read of @b go to the other server now, because this process may end before @b comes back. None
 * of them is delivered before @b comes back: its later states and its graves may not have been read. */
static void unite_interrupted(struct queue *q, const struct backup *b)
{
	uint64_t messages = 0;

	for (struct item *i = q->items.oldest; i; i = i->newer) {
		if (i->reading != ITEM_FRESH || !(i->seen & 1u << b->index))
			continue;
		unite_put(q, i);
		messages += i->kind == ITEM_MESSAGE;
	}
	if (messages)
		log_event(LOG_WARNING, NULL, "backup lost while its messages were read",
			"backup=%u messages=%llu effect=\"%s\"", b->index, (unsigned long long)messages,
			"they are delivered when it comes back, or at the next start, which may need an order");
}

/* Another gateway claimed or marked the server after the answer @before, and before @now. AWAY: not known. */
static bool claim_came_late(const struct sight *before, const struct sight *now)
{
	const struct marker *m = &before->marker, *n = &now->marker;

	if (now->state == SIGHT_AWAY)
		return false;
	if (now->state != before->state || m->epoch != n->epoch || strcmp(m->nonce, n->nonce))
		return true;
	return now->state == SIGHT_MARKED && (m->version != n->version || strcmp(m->by, n->by));
}

static void recovery_claimed(struct queue *q, struct backup *b);

void uniting_claimed(struct backup *b)
{
	struct queue *q = queue_of(b);
	char was_apart;

	if (q->state == QUEUE_CLAIMING) {
		recovery_claimed(q, b);
		return;
	}
	if (!queue_owns(q))
		return;
	if (claim_came_late(&b->judged, &b->replaced)) {
		b->sight = b->replaced;
		rivals_note_branch(q, b);
	}
	/* An absent member of the start came back, and its content is what the marker of the other one means. */
	if (marker_is_apart(&q->shared.marker, &b->sight, b->index)) {
		q->recovery.reads |= 1u << b->index;
		backup_read(b, BACKUP_READS_ITEMS, NULL, 0);
		return;
	}
	/* If it was lost while it was read, and is empty now, then what was read is all that is left of it. */
	was_apart = q->shared.marker.apart[b->index][0];
	q->shared.marker.apart[b->index][0] = '\0';
	if (was_apart)
		unite_late(q);
	compare_begin(q, b);
}

/* --- a start --- */

/* All is read. The servers that were read go on as backups in sync; the others are filled. */
static void recovery_end(struct queue *q)
{
	const unsigned all = (1u << BACKUPS) - 1;
	unsigned lacking = 0; /* a bit for each server that lacks an item, or may have an older state of one */

	reading_apply(q);
	queue_move(q, QUEUE_ACTIVE);
	q->recovery.refusing_told = 0;
	spares_note_owed(q);
	for (struct item *i = q->items.oldest; i; i = i->newer) {
		lacking |= i->note && q->recovery.from == all ? all : all & ~(unsigned)i->seen;
		unite_settle(q, i);
	}
	log_event(LOG_INFO, NULL, "queue read back", "messages=%llu unreadable=%llu ms=%llu from=%u",
		(unsigned long long)q->stats.recovered, (unsigned long long)q->stats.unreadable,
		(unsigned long long)(redis_link_clock_ms() - q->recovery.began_ms), q->recovery.from);
	for (unsigned i = 0; i < BACKUPS; i++) {
		struct backup *b = &q->backups[i];

		if (b->state != BACKUP_CLAIMED)
			continue;
		if (!(q->recovery.from & 1u << i)) {
			uniting_claimed(b);
			continue;
		}
		backup_advance(b, BACKUP_MARKING);
		if (lacking & 1u << i)
			unite_complete(q, b);
	}
	stock_bury(q);
	if (queue_counting(q))
		joining_mark(q);
}

/* The bodies come from one of them: as a rule, the others have the same ones. */
static void recovery_read(struct queue *q)
{
	enum backup_reads what = BACKUP_READS_ITEMS;

	queue_move(q, QUEUE_READING);
	q->recovery.reads = q->recovery.from;
	for (unsigned i = 0; i < BACKUPS; i++) {
		if (!(q->recovery.from & 1u << i))
			continue;
		backup_read(&q->backups[i], what, NULL, 0);
		what = BACKUP_READS_NAMES;
	}
	if (!q->recovery.from)
		recovery_end(q);
}

/* With a higher epoch. @lost: is given up already, or NULL. */
static void recovery_begin_again(struct queue *q, const struct backup *lost)
{
	queue_move(q, QUEUE_LOOKING);
	q->looked_ms = redis_link_clock_ms();
	stock_clear(q);
	for (unsigned i = 0; i < BACKUPS; i++)
		if (&q->backups[i] != lost)
			backup_give_up(&q->backups[i], backup_begins_again);
}

static void recovery_claimed(struct queue *q, struct backup *b)
{
	bool changed = false;

	if (q->lease.from_ms)
		lease_wait_out(&q->lease, redis_link_clock_ms());
	q->recovery.claims &= ~(1u << b->index);
	if (q->recovery.claims)
		return;
	/* Another gateway may have written between the question and the claim. It cannot any more, so the next look is
	 * the last. */
	for (unsigned i = 0; i < BACKUPS; i++)
		changed |= q->backups[i].state == BACKUP_CLAIMED &&
			   claim_came_late(&q->backups[i].judged, &q->backups[i].replaced);
	if (changed) {
		log_event(LOG_WARNING, NULL, "queue looks again",
			"cause=\"another gateway wrote to a server meanwhile\"");
		recovery_begin_again(q, NULL);
		return;
	}
	recovery_read(q);
}

/* A server that had to be read is lost, or all are. */
static void recovery_lost(struct queue *q, struct backup *b)
{
	q->recovery.claims &= ~(1u << b->index);
	if (!(q->recovery.from & 1u << b->index) && queue_backups_in(q, 1u << BACKUP_CLAIMING | 1u << BACKUP_CLAIMED)) {
		if (q->state == QUEUE_CLAIMING && !q->recovery.claims)
			recovery_read(q);
		return;
	}
	recovery_begin_again(q, b);
}

void uniting_item(struct backup *b, const char *field, size_t field_len, const uint8_t *value, size_t len)
{
	if (b->state == BACKUP_COMPARING)
		compare_item(queue_of(b), b, field, field_len);
	else
		reading_item(queue_of(b), b, field, field_len, value, len);
}

/* All that @b holds was read. */
static void unite_read_end(struct queue *q, struct backup *b)
{
	q->recovery.reads &= ~(1u << b->index);
	if (q->state == QUEUE_READING) {
		if (!q->recovery.reads && !reading_fetch_told(q))
			recovery_end(q);
		return;
	}
	q->shared.marker.apart[b->index][0] = '\0';
	marker_note_owners(q->shared.marker.owners, &b->sight.marker);
	unite_late(q);
}

void uniting_read(struct backup *b)
{
	struct queue *q = queue_of(b);
	const bool owned = queue_owns(q);

	if (b->state == BACKUP_COMPARING) {
		b->fill_next = q->items.oldest;
		backup_advance(b, BACKUP_FILLING);
		return;
	}
	unite_read_end(q, b);
	if (owned && b->state == BACKUP_CLAIMED)
		compare_begin(q, b);
}

bool uniting_lost(struct queue *q, struct backup *b, enum backup_state was)
{
	const bool was_read = (q->recovery.reads & 1u << b->index) != 0;

	q->recovery.reads &= ~(1u << b->index);
	if (q->state == QUEUE_CLAIMING || q->state == QUEUE_READING) {
		recovery_lost(q, b);
		return true;
	}
	/* Messages of another server had waited for this one, which was being read, or about to be. */
	if (queue_owns(q) && (was_read || (was == BACKUP_CLAIMING && q->shared.marker.apart[b->index][0])))
		unite_late(q);
	if (queue_owns(q) && was_read)
		unite_interrupted(q, b);
	return false;
}
