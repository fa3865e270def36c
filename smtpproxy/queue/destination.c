/* destination.c: lines with turns for their sources, the heap, and the table of destinations by name. */
#include "smtpproxy/queue/destination.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

#define BUCKETS     1024u /* at first */
#define HEAP_FIRST  16u
#define MINUTE_US   60000000
#define CATCH_UP_US 500000

static struct queue_destination **bucket_of(const struct destination_table *t, const char *name, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	return &t->buckets[h & (t->cap - 1)];
}

static void enter(struct destination_table *t, struct queue_destination *d)
{
	struct queue_destination **bucket = bucket_of(t, d->name, strlen(d->name));

	d->next = *bucket;
	*bucket = d;
}

/* Without memory the chains become longer. */
static void grow(struct destination_table *t)
{
	struct destination_table more = { .cap = 2 * t->cap };

	more.buckets = calloc(more.cap, sizeof(struct queue_destination *));
	if (!more.buckets)
		return;
	for (size_t b = 0; b < t->cap; b++)
		for (struct queue_destination *d = t->buckets[b], *next; d; d = next) {
			next = d->next;
			enter(&more, d);
		}
	free(t->buckets);
	t->buckets = more.buckets;
	t->cap = more.cap;
}

static struct queue_destination *destination_make(struct destination_table *t, const char *name, size_t len)
{
	struct queue_destination *d = calloc(1, sizeof *d + len + 1);

	if (!d)
		return NULL;
	memcpy(d->name, name, len);
	d->table = t;
	TAILQ_INIT(&d->turns);
	if (t->count == t->cap)
		grow(t);
	enter(t, d);
	t->count++;
	destination_note_unused(t, d); /* until it has a message */
	return d;
}

struct queue_destination *destination_get(struct destination_table *t, const char *name, size_t len, int make)
{
	struct queue_destination *d;

	if (!t->buckets && make) {
		t->buckets = calloc(BUCKETS, sizeof *t->buckets);
		t->cap = t->buckets ? BUCKETS : 0;
		STAILQ_INIT(&t->idle);
	}
	if (!t->buckets)
		return NULL;
	for (d = *bucket_of(t, name, len); d; d = d->next)
		if (!strncmp(d->name, name, len) && !d->name[len])
			return d;
	return make ? destination_make(t, name, len) : NULL;
}

void destination_each(
	const struct destination_table *t, int (*fn)(void *ctx, const struct queue_destination *d), void *ctx)
{
	for (size_t b = 0; b < t->cap; b++)
		for (const struct queue_destination *d = t->buckets[b]; d; d = d->next)
			if (fn(ctx, d))
				return;
}

void destination_note_unused(struct destination_table *t, struct queue_destination *d)
{
	if (d->use == DESTINATION_UNUSED)
		return;
	d->use = DESTINATION_UNUSED;
	STAILQ_INSERT_TAIL(&t->idle, d, idle_next);
}

static void forget(struct destination_table *t, struct queue_destination *d)
{
	struct queue_destination **at = bucket_of(t, d->name, strlen(d->name));

	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	free(d);
	t->count--;
}

/* The unanswered changes of all backups. */
static uint64_t unanswered(const struct queue_destination *d)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < BACKUPS; i++)
		n += d->changes[i].unanswered;
	return n;
}

/* One whose owner has to be told of its line, or that a change in the line of a backup names, stays for the next
 * sweep. */
void destination_sweep(struct destination_table *t)
{
	STAILQ_HEAD(, queue_destination) idle = STAILQ_HEAD_INITIALIZER(idle);
	struct queue_destination *d;

	if (!t->buckets)
		return;
	STAILQ_CONCAT(&idle, &t->idle);
	while ((d = STAILQ_FIRST(&idle))) {
		STAILQ_REMOVE_HEAD(&idle, idle_next);
		d->use = DESTINATION_USED;
		if (d->count || d->order)
			continue;
		if (d->due == DUE_NONE && !unanswered(d))
			forget(t, d);
		else
			destination_note_unused(t, d);
	}
}

static void clear_shares(struct line_share_list *list)
{
	struct line_share *s;

	while ((s = LIST_FIRST(list))) {
		LIST_REMOVE(s, next);
		free(s);
	}
}

void destination_table_clear(struct destination_table *t)
{
	for (size_t b = 0; b < t->cap; b++)
		for (struct queue_destination *d = t->buckets[b], *next; d; d = next) {
			next = d->next;
			free(d);
		}
	for (size_t b = 0; t->shares && b < LINE_SHARE_BUCKETS; b++)
		clear_shares(&t->shares[b]);
	free(t->shares);
	free(t->buckets);
	free(t->heap);
	memset(t, 0, sizeof *t);
}

/* Sources */

static size_t share_bucket(const struct queue_destination *d, uint32_t source)
{
	const uint64_t h = ((uint64_t)(uintptr_t)d >> 4 ^ source) * UINT64_C(0x9E3779B97F4A7C15);

	return (size_t)(h >> 40) % LINE_SHARE_BUCKETS;
}

static struct line_share *share_find(const struct queue_destination *d, uint32_t source)
{
	struct line_share *s;

	if (!d->table->shares)
		return NULL;
	LIST_FOREACH(s, &d->table->shares[share_bucket(d, source)], next)
	if (s->of == d && s->source == source)
		return s;
	return NULL;
}

static struct line_share *share_make(struct queue_destination *d, uint32_t source)
{
	struct destination_table *t = d->table;
	struct line_share *s;

	if (!t->shares)
		t->shares = calloc(LINE_SHARE_BUCKETS, sizeof *t->shares);
	s = t->shares ? calloc(1, sizeof *s) : NULL;
	if (!s)
		return NULL;
	s->of = d;
	s->source = source;
	LIST_INSERT_HEAD(&t->shares[share_bucket(d, source)], s, next);
	return s;
}

/* Most lines have one source only, and need no further memory. */
static struct line_share *share_of(struct queue_destination *d, uint32_t source)
{
	struct line_share *s = d->own.first && d->own.source == source ? &d->own : share_find(d, source);

	if (!s && !d->own.first) {
		d->own.source = source;
		s = &d->own;
	}
	s = s ? s : share_make(d, source);
	return s ? s : &d->own;
}

static void share_leave(struct queue_destination *d, struct line_share *s)
{
	TAILQ_REMOVE(&d->turns, s, turn);
	if (s == &d->own)
		return;
	LIST_REMOVE(s, next);
	free(s);
}

void destination_append(struct queue_destination *d, struct item *i)
{
	struct line_share *s = share_of(d, i->source);

	item_move(i, ITEM_READY);
	if (!s->first)
		TAILQ_INSERT_TAIL(&d->turns, s, turn);
	i->share = s;
	i->next = NULL;
	i->previous = s->last;
	*(s->last ? &s->last->next : &s->first) = i;
	s->last = i;
	d->ready++;
}

static void heap_put(struct destination_table *t, size_t at, struct item *i)
{
	t->heap[at] = i;
	i->heap_at = (uint32_t)at + 1;
}

static void heap_up(struct destination_table *t, size_t at)
{
	struct item *i = t->heap[at];

	for (; at && t->heap[(at - 1) / 2]->due_ms > i->due_ms; at = (at - 1) / 2)
		heap_put(t, at, t->heap[(at - 1) / 2]);
	heap_put(t, at, i);
}

static void heap_down(struct destination_table *t, size_t at)
{
	struct item *i = t->heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < t->heap_count && t->heap[child + 1]->due_ms < t->heap[child]->due_ms)
			child++;
		if (child >= t->heap_count || t->heap[child]->due_ms >= i->due_ms)
			break;
		heap_put(t, at, t->heap[child]);
		at = child;
	}
	heap_put(t, at, i);
}

int destination_defer(struct destination_table *t, struct item *i)
{
	if (t->heap_count == t->heap_cap) {
		size_t cap = t->heap_cap ? 2 * t->heap_cap : HEAP_FIRST;
		struct item **heap = realloc(t->heap, cap * sizeof *heap);

		if (!heap)
			return CSSL_E_NO_MEMORY;
		t->heap = heap;
		t->heap_cap = cap;
	}
	item_move(i, ITEM_DEFERRED);
	i->to->deferred++;
	t->heap[t->heap_count] = i;
	heap_up(t, t->heap_count++);
	return 0;
}

static void heap_remove(struct destination_table *t, struct item *i)
{
	size_t at = i->heap_at - 1;
	struct item *last = t->heap[--t->heap_count];

	i->heap_at = 0;
	i->to->deferred--;
	if (last == i)
		return;
	heap_put(t, at, last);
	heap_up(t, at);
	heap_down(t, last->heap_at - 1);
}

static void leave_line(struct queue_destination *d, struct item *i)
{
	struct line_share *s = i->share;

	*(i->previous ? &i->previous->next : &s->first) = i->next;
	*(i->next ? &i->next->previous : &s->last) = i->previous;
	i->next = i->previous = NULL;
	i->share = NULL;
	if (!s->first)
		share_leave(d, s);
	d->ready--;
}

void destination_unlink(struct destination_table *t, struct item *i)
{
	if (i->heap_at)
		heap_remove(t, i);
	else if (i->state == ITEM_READY)
		leave_line(i->to, i);
}

struct item *destination_wake(struct destination_table *t, int64_t now_ms)
{
	struct item *i = t->heap_count ? t->heap[0] : NULL;

	if (!i || i->due_ms > now_ms)
		return NULL;
	heap_remove(t, i);
	destination_append(i->to, i);
	return i;
}

struct item *destination_take(struct queue_destination *d)
{
	struct line_share *s = TAILQ_FIRST(&d->turns);
	struct item *i = s ? s->first : NULL;

	if (!i)
		return NULL;
	TAILQ_REMOVE(&d->turns, s, turn);
	TAILQ_INSERT_TAIL(&d->turns, s, turn);
	leave_line(d, i);
	item_move(i, ITEM_TAKEN);
	d->taken++;
	return i;
}

void destination_pace(struct queue_destination *d, enum destination_flow flow, uint32_t rate)
{
	d->flow = flow;
	d->rate = rate;
	d->next_us = 0;
}

int destination_may_take(struct queue_destination *d, int64_t now_us)
{
	const int64_t each_us = d->rate ? MINUTE_US / d->rate : 0;
	const int64_t earliest_us = now_us - (each_us < CATCH_UP_US ? CATCH_UP_US : 0);

	if (d->flow == DESTINATION_STOPPED || (d->rate && now_us < d->next_us))
		return 0;
	d->next_us = (d->next_us > earliest_us ? d->next_us : earliest_us) + each_us;
	return 1;
}

const char *destination_flow_name(enum destination_flow flow)
{
	static const char *const names[] = { [DESTINATION_FLOWS] = "flows", [DESTINATION_STOPPED] = "stopped" };

	return names[flow];
}
