/* queue_read.c: an item that a backup held becomes an item in memory. A state may come before its message, so states
 * are applied when all has been read. */
#include "smtpproxy/queue/queue_inside.h"

#include <stdlib.h>
#include <string.h>

#include "net/array.h"
#include "net/log_pace.h"
#include "proto/error.h"

static void unreadable(struct queue *q, const struct backup *b, const char *field, size_t field_len)
{
	q->stats.unreadable++;
	log_paced(LOG_ERROR, NULL, "an item of the backup cannot be opened", "backup=%u field=%.*s", b->index,
		(int)(field_len < 64 ? field_len : 64), field);
}

/* The clock of the gateway that wrote it may have been ahead. */
static int64_t not_after(int64_t ms, int64_t most_ms)
{
	return ms < most_ms ? ms : most_ms;
}

static int enter(struct queue *q, struct item *i, const struct content *c)
{
	struct queue_destination *d;

	i->accepted_ms = not_after(c->at_ms, queue_now_ms(q));
	switch ((enum item_kind)i->kind) {
	case ITEM_MESSAGE:
		d = destination_get(&q->destinations, (const char *)c->name.data, c->name.len, 1);
		if (!d)
			return CSSL_E_NO_MEMORY;
		i->source = queue_source_of(q, c->envelope);
		destination_take_in(d, i);
		return 0;
	case ITEM_DECIDED: return queue_decided_enter(q, i, c->name);
	case ITEM_ORDER: return queue_order_read(q, i, c);
	case ITEM_GRAVE:
		queue_keep_gone(q, c->dead);
		q->stats.graves++;
		return 0;
	case ITEM_STATE: break;
	}
	return CSSL_E_RANGE;
}

static int open_item(struct queue *q, struct item *i)
{
	uint8_t *plain = malloc(i->sealed_len + 1u);
	struct content c;
	int r = plain ? queue_unseal(q, (enum item_kind)i->kind, i->id, i->sealed, i->sealed_len, plain, &c)
		      : CSSL_E_NO_MEMORY;

	if (!r)
		r = enter(q, i, &c);
	free(plain);
	return r;
}

/* These take over the sealed bytes. */

static int keep_state(struct queue *q, const struct backup *b, uint64_t id, uint8_t *sealed, size_t len)
{
	if (array_make_room(&q->read, &q->read_cap, q->read_count, sizeof *q->read)) {
		free(sealed);
		return CSSL_E_NO_MEMORY;
	}
	q->read[q->read_count++] = (struct read_state){ .id = id, .at = b->index, .sealed = sealed, .len = len };
	return 0;
}

/* The copy of another server could not be opened. If this one can, it takes that one's place, also there (complete()):
 * the damaged one is not "seen" any more. */
static int mend(struct queue *q, const struct backup *b, struct item *i, uint8_t *sealed, size_t len)
{
	uint8_t *damaged = i->sealed;
	const size_t damaged_len = i->sealed_len;
	int r;

	item_set_sealed(&q->items, i, sealed, len);
	r = open_item(q, i);
	if (r) {
		item_set_sealed(&q->items, i, damaged, damaged_len);
		free(sealed);
		return r == CSSL_E_NO_MEMORY ? r : 0;
	}
	free(damaged);
	item_move(i, ITEM_STORING);
	q->stats.opaque--;
	i->seen = ITEM_FRESH | ITEM_MENDED;
	log_paced(LOG_WARNING, NULL, "a damaged copy of an item is replaced", "backup=%u id=%llu", b->index,
		(unsigned long long)i->id);
	return 0;
}

static int keep_new(struct queue *q, struct backup *b, enum item_kind kind, uint64_t id, uint8_t *sealed, size_t len)
{
	struct item *i = item_add(&q->items, kind, id, sealed, len);
	char field[ITEM_FIELD_LEN];
	int r;

	if (!i) {
		free(sealed);
		return CSSL_E_NO_MEMORY;
	}
	i->seen = (uint8_t)(ITEM_FRESH | 1u << b->index);
	r = open_item(q, i);
	if (r == CSSL_E_NO_MEMORY)
		item_remove(&q->items, i);
	if (!r || r == CSSL_E_NO_MEMORY)
		return r;
	/* Its key may be missing, or it is damaged: it is never dropped, and only an operator can mend it. */
	item_move(i, ITEM_OPAQUE);
	q->stats.opaque++;
	item_field(kind, id, field);
	unreadable(q, b, field, sizeof field);
	return 0;
}

static int keep_item(struct queue *q, struct backup *b, enum item_kind kind, uint64_t id, uint8_t *sealed, size_t len)
{
	struct item *i = item_find(&q->items, id);
	int r = 0;

	/* At the start queue_bury() deletes it from the servers, too. Later the server is compared, which does that. */
	if (!i && (q->state == QUEUE_READING || !queue_is_gone(q, id)))
		return keep_new(q, b, kind, id, sealed, len);
	/* At the start two servers may show the same item. */
	if (i && q->state == QUEUE_READING && i->state == ITEM_OPAQUE && i->kind == kind)
		r = mend(q, b, i, sealed, len);
	else
		free(sealed);
	if (i && !r)
		i->seen |= (uint8_t)(1u << b->index);
	return r;
}

/* The server that shows the messages themselves has no copy of @i that can be opened, or has not shown it yet. */
static bool is_wanted(const struct item *i)
{
	return !i || i->state == ITEM_OPAQUE;
}

static int keep_name(struct queue *q, const struct backup *b, uint64_t id)
{
	struct item *i = item_find(&q->items, id);

	q->told_by = b->index;
	if (!is_wanted(i)) {
		i->seen |= (uint8_t)(1u << b->index);
		return 0;
	}
	if (array_make_room(&q->told, &q->told_cap, q->told_count, sizeof id))
		return CSSL_E_NO_MEMORY;
	q->told[q->told_count++] = id;
	return 0;
}

bool queue_fetch_told(struct queue *q)
{
	size_t missing = 0;

	for (size_t n = 0; n < q->told_count; n++) {
		struct item *i = item_find(&q->items, q->told[n]);

		if (is_wanted(i))
			q->told[missing++] = q->told[n];
		else
			i->seen |= (uint8_t)(1u << q->told_by);
	}
	q->told_count = 0; /* they are not told again */
	if (!missing)
		return false;
	q->reads |= 1u << q->told_by;
	backup_fetch(&q->backups[q->told_by], q->told, missing);
	return true;
}

void queue_told_clear(struct queue *q)
{
	free(q->told);
	q->told = NULL;
	q->told_count = q->told_cap = 0;
}

void queue_read_item(
	struct queue *q, struct backup *b, const char *field, size_t field_len, const uint8_t *value, size_t len)
{
	enum item_kind kind;
	uint64_t id;
	uint8_t *copy;
	int r = item_field_parse(field, field_len, &kind, &id);

	if (!r && !value) {
		r = keep_name(q, b, id);
	} else if (!r) {
		copy = malloc(len);
		if (copy)
			memcpy(copy, value, len);
		r = !copy                ? CSSL_E_NO_MEMORY
		    : kind == ITEM_STATE ? keep_state(q, b, id, copy, len)
					 : keep_item(q, b, kind, id, copy, len);
	}
	if (r == CSSL_E_NO_MEMORY)
		backup_give_up(b, "out of memory for its items");
	else if (r)
		unreadable(q, b, field, field_len);
}

/* The item has that state now. */
static void set_note(struct queue *q, struct item *i, struct read_state *s)
{
	item_set_note(&q->items, i, s->sealed, s->len);
	s->sealed = NULL;
}

/* Of two states of one message the later one counts: the servers that are united may differ by what was under way, or
 * by what one of them got alone. One that cannot be opened counts if no other can: queue_open() holds the message. */
static void apply(struct queue *q, struct item *i, struct read_state *s)
{
	uint8_t *plain = malloc(s->len + 1);
	struct content c;
	int r = plain ? queue_unseal(q, ITEM_STATE, s->id, s->sealed, s->len, plain, &c) : CSSL_E_NO_MEMORY;

	if (r) {
		q->stats.unreadable++;
		log_paced(LOG_ERROR, NULL, "the state of a message cannot be opened", "id=%llu",
			(unsigned long long)i->id);
		if (!i->note)
			set_note(q, i, s);
	} else if (!i->note || !content_state_is_earlier(&c, i->attempts, i->steps)) {
		const enum item_state to = c.stops ? ITEM_HELD : ITEM_STORING;

		set_note(q, i, s);
		i->attempts = c.attempts;
		i->steps = c.steps;
		i->due_ms = not_after(c.at_ms, queue_now_ms(q) + q->conf.defer_most_ms);
		if (i->state != to) /* the state that was read before may have said otherwise */
			item_move(i, to);
	}
	free(plain);
}

static bool is_apart(const struct queue *q, unsigned at)
{
	return q->shared.marker.apart[at][0] != '\0';
}

/* A server that has not shown @i yet may still do so, with a later state, or show its grave. But nothing waits for one
 * that is absent and has not shown it. */
bool queue_is_half_read(const struct queue *q, const struct item *i)
{
	for (unsigned n = 0; n < BACKUPS; n++) {
		const bool is_next = q->backups[n].state == BACKUP_CLAIMING; /* it is read next */

		if (q->reads & 1u << n || (is_apart(q, n) && (is_next || i->seen & 1u << n)))
			return true;
	}
	return false;
}

/* 1: it has to wait. */
static bool apply_one(struct queue *q, struct read_state *s)
{
	struct item *i = item_find(&q->items, s->id);

	if (i ? i->seen & ITEM_FRESH && queue_is_half_read(q, i) : is_apart(q, s->at))
		return true;
	if (i && i->state == ITEM_OPAQUE)
		set_note(q, i, s);
	else if (i && i->seen & ITEM_FRESH)
		apply(q, i, s);
	free(s->sealed);
	return false;
}

void queue_apply_states(struct queue *q)
{
	size_t waiting = 0;

	/* A server that has the state of a message has the message, which may come later. */
	for (size_t n = 0; n < q->read_count; n++) {
		struct item *i = is_apart(q, q->read[n].at) ? item_find(&q->items, q->read[n].id) : NULL;

		if (i && i->seen & ITEM_FRESH)
			i->seen |= (uint8_t)(1u << q->read[n].at);
	}
	for (size_t n = 0; n < q->read_count; n++)
		if (apply_one(q, &q->read[n]))
			q->read[waiting++] = q->read[n];
	q->read_count = waiting;
	if (waiting)
		return;
	free(q->read);
	q->read = NULL;
	q->read_cap = 0;
}

static int by_id(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* The list of all in the order of ids, which is the order in which they were accepted. Without memory it stays as the
 * servers gave it. */
void queue_sort(struct queue *q)
{
	size_t count = 0;
	struct item **all = malloc((q->items.count + 1) * sizeof(struct item *));

	if (!all)
		return;
	for (struct item *i = q->items.oldest; i; i = i->newer)
		all[count++] = i;
	qsort(all, count, sizeof(struct item *), by_id);
	for (size_t n = 0; n < count; n++) {
		all[n]->older = n ? all[n - 1] : NULL;
		all[n]->newer = n + 1 < count ? all[n + 1] : NULL;
	}
	q->items.oldest = count ? all[0] : NULL;
	q->items.newest = count ? all[count - 1] : NULL;
	free(all);
}
