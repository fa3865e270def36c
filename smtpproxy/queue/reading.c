/* reading.c: an item that a backup held becomes an item in memory. A state may come before its message, so states are
 * applied when all has been read. */
#include "smtpproxy/queue/reading.h"

#include <stdlib.h>
#include <string.h>

#include "net/memory/array.h"
#include "net/report/log_pace.h"
#include "proto/error.h"
#include "smtpproxy/queue/queue_core.h"
#include "smtpproxy/queue/stock.h"

static void reading_unreadable(struct queue *q, const struct backup *b, const char *field, size_t field_len)
{
	q->stats.unreadable++;
	log_paced(LOG_ERROR, NULL, "an item of the backup cannot be opened", "backup=%u field=%.*s", b->index,
		(int)(field_len < 64 ? field_len : 64), field);
}

static int reading_keep_state(struct queue *q, const struct backup *b, uint64_t id, uint8_t *sealed, size_t len)
{
	if (array_make_room(
		    &q->reading.states, &q->reading.state_cap, q->reading.state_count, sizeof *q->reading.states)) {
		free(sealed);
		return CSSL_E_NO_MEMORY;
	}
	q->reading.states[q->reading.state_count++] =
		(struct read_state){ .id = id, .at = b->index, .sealed = sealed, .len = len };
	return 0;
}

/* The server that shows the messages themselves has no copy of @i that can be opened, or has not shown it yet. */
static bool reading_wants(const struct item *i)
{
	return !i || i->state == ITEM_OPAQUE;
}

static int reading_keep_name(struct queue *q, const struct backup *b, uint64_t id)
{
	struct item *i = item_find(&q->items, id);

	q->reading.told_by = b->index;
	if (!reading_wants(i)) {
		i->seen |= (uint8_t)(1u << b->index);
		return 0;
	}
	if (array_make_room(&q->reading.told, &q->reading.told_cap, q->reading.told_count, sizeof id))
		return CSSL_E_NO_MEMORY;
	q->reading.told[q->reading.told_count++] = id;
	return 0;
}

bool reading_fetch_told(struct queue *q)
{
	size_t missing = 0;

	for (size_t n = 0; n < q->reading.told_count; n++) {
		struct item *i = item_find(&q->items, q->reading.told[n]);

		if (reading_wants(i))
			q->reading.told[missing++] = q->reading.told[n];
		else
			i->seen |= (uint8_t)(1u << q->reading.told_by);
	}
	q->reading.told_count = 0; /* they are not told again */
	if (!missing)
		return false;
	q->recovery.reads |= 1u << q->reading.told_by;
	backup_read(&q->backups[q->reading.told_by], BACKUP_READS_THESE, q->reading.told, missing);
	return true;
}

void reading_item(
	struct queue *q, struct backup *b, const char *field, size_t field_len, const uint8_t *value, size_t len)
{
	enum item_kind kind;
	uint64_t id;
	uint8_t *copy;
	int r = item_field_parse(field, field_len, &kind, &id);

	if (!r && !value) {
		r = reading_keep_name(q, b, id);
	} else if (!r) {
		copy = malloc(len);
		if (copy)
			memcpy(copy, value, len);
		r = !copy                ? CSSL_E_NO_MEMORY
		    : kind == ITEM_STATE ? reading_keep_state(q, b, id, copy, len)
					 : stock_read(q, b, kind, id, copy, len);
	}
	if (r == CSSL_E_NO_MEMORY)
		backup_give_up(b, "out of memory for its items");
	else if (r)
		reading_unreadable(q, b, field, field_len);
}

/* The item has that state now. */
static void reading_set_note(struct queue *q, struct item *i, struct read_state *s)
{
	item_set_note(&q->items, i, s->sealed, s->len);
	s->sealed = NULL;
}

/* Of two states of one message the later one counts: the servers that are united may differ by what was under way, or
 * by what one of them got alone. One that cannot be opened counts if no other can: queue_open() holds the message. */
static void reading_apply_state(struct queue *q, struct item *i, struct read_state *s)
{
	uint8_t *plain = malloc(s->len + 1);
	const int64_t latest_ms = queue_now_ms(q) + q->conf.defer_most_ms;
	struct content c;
	int r = plain ? content_open(q->shared.seal, ITEM_STATE, s->id, s->sealed, s->len, plain, &c)
		      : CSSL_E_NO_MEMORY;

	if (r) {
		q->stats.unreadable++;
		log_paced(LOG_ERROR, NULL, "the state of a message cannot be opened", "id=%llu",
			(unsigned long long)i->id);
		if (!i->note)
			reading_set_note(q, i, s);
	} else if (!i->note || !content_state_is_earlier(&c, i->attempts, i->steps)) {
		const enum item_state to = c.stops ? ITEM_HELD : ITEM_STORING;

		reading_set_note(q, i, s);
		i->attempts = c.attempts;
		i->steps = c.steps;
		/* The clock of the gateway that wrote it may have been ahead. */
		i->due_ms = c.at_ms < latest_ms ? c.at_ms : latest_ms;
		if (i->state != to) /* the state that was read before may have said otherwise */
			item_move(i, to);
	}
	free(plain);
}

static bool reading_is_apart(const struct queue *q, unsigned at)
{
	return q->shared.marker.apart[at][0] != '\0';
}

/* A server that has not shown @i yet may still do so, with a later state, or show its grave. But nothing waits for one
 * that is absent and has not shown it. */
bool reading_is_half(const struct queue *q, const struct item *i)
{
	for (unsigned n = 0; n < BACKUPS; n++) {
		const bool is_next = q->backups[n].state == BACKUP_CLAIMING; /* it is read next */

		if (q->recovery.reads & 1u << n || (reading_is_apart(q, n) && (is_next || i->seen & 1u << n)))
			return true;
	}
	return false;
}

/* 1: it has to wait. */
static bool reading_apply_one(struct queue *q, struct read_state *s)
{
	struct item *i = item_find(&q->items, s->id);

	if (i ? i->reading == ITEM_FRESH && reading_is_half(q, i) : reading_is_apart(q, s->at))
		return true;
	if (i && i->state == ITEM_OPAQUE)
		reading_set_note(q, i, s);
	else if (i && i->reading == ITEM_FRESH)
		reading_apply_state(q, i, s);
	free(s->sealed);
	return false;
}

static void reading_apply_states(struct queue *q)
{
	size_t waiting = 0;

	/* A server that has the state of a message has the message, which may come later. */
	for (size_t n = 0; n < q->reading.state_count; n++) {
		struct item *i = reading_is_apart(q, q->reading.states[n].at)
					 ? item_find(&q->items, q->reading.states[n].id)
					 : NULL;

		if (i && i->reading == ITEM_FRESH)
			i->seen |= (uint8_t)(1u << q->reading.states[n].at);
	}
	for (size_t n = 0; n < q->reading.state_count; n++)
		if (reading_apply_one(q, &q->reading.states[n]))
			q->reading.states[waiting++] = q->reading.states[n];
	q->reading.state_count = waiting;
	if (waiting)
		return;
	free(q->reading.states);
	q->reading.states = NULL;
	q->reading.state_cap = 0;
}

static int reading_by_id(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* The list of all in the order of ids, which is the order in which they were accepted. Without memory it stays as the
 * servers gave it. */
static void reading_sort(struct item_set *set)
{
	size_t count = 0;
	struct item **all = malloc((set->count + 1) * sizeof(struct item *));

	if (!all)
		return;
	for (struct item *i = set->oldest; i; i = i->newer)
		all[count++] = i;
	qsort(all, count, sizeof(struct item *), reading_by_id);
	for (size_t n = 0; n < count; n++) {
		all[n]->older = n ? all[n - 1] : NULL;
		all[n]->newer = n + 1 < count ? all[n + 1] : NULL;
	}
	set->oldest = count ? all[0] : NULL;
	set->newest = count ? all[count - 1] : NULL;
	free(all);
}

void reading_apply(struct queue *q)
{
	free(q->reading.told);
	q->reading.told = NULL;
	q->reading.told_count = q->reading.told_cap = 0;
	reading_apply_states(q);
	reading_sort(&q->items);
}
