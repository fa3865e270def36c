/* destination.c: lines with turns for their sources, the heap, and the table of destinations by name. */
#include "smtpproxy/queue/items/destination.h"

#include <stdlib.h>
#include <string.h>

#include "net/memory/array.h"
#include "net/memory/container_of.h"
#include "proto/error.h"

#define MINUTE_US   60000000
#define CATCH_UP_US 500000

static uint64_t destination_hash(const char *name, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	return h;
}

static struct queue_destination *destination_of_link(struct table_link *link)
{
	return link ? container_of(link, struct queue_destination, link) : NULL;
}

/* Its last message or its last order went: the next sweep may free it. */
static void destination_note_unused(struct destination_table *t, struct queue_destination *d)
{
	if (d->use == DESTINATION_UNUSED)
		return;
	d->use = DESTINATION_UNUSED;
	STAILQ_INSERT_TAIL(&t->idle, d, idle_next);
}

/* The owner is told at the end of the turn: it may take and delete messages inside, while a caller walks over them. */
static void destination_note_due(struct queue_destination *d)
{
	struct destination_table *t = d->table;

	if (d->due == DUE_UNTOLD)
		return;
	d->due = DUE_UNTOLD;
	STAILQ_INSERT_TAIL(&t->due, d, due_next);
	if (t->on_due)
		t->on_due(t);
}

static struct queue_destination *destination_make(struct destination_table *t, const char *name, size_t len)
{
	struct queue_destination *d = calloc(1, sizeof *d + len + 1);

	if (!d || table_add(&t->names, &d->link, destination_hash(name, len))) {
		free(d);
		return NULL;
	}
	memcpy(d->name, name, len);
	d->table = t;
	TAILQ_INIT(&d->turns);
	if (t->names.count == 1) {
		STAILQ_INIT(&t->idle);
		STAILQ_INIT(&t->due);
	}
	destination_note_unused(t, d); /* until it has a message */
	return d;
}

struct queue_destination *destination_get(struct destination_table *t, const char *name, size_t len, bool make)
{
	for (struct table_link *l = table_first(&t->names, destination_hash(name, len)); l; l = table_next(l)) {
		struct queue_destination *d = destination_of_link(l);

		if (!strncmp(d->name, name, len) && !d->name[len])
			return d;
	}
	return make ? destination_make(t, name, len) : NULL;
}

struct queue_destination *destination_next(const struct destination_table *t, const struct queue_destination *d)
{
	return destination_of_link(table_walk(&t->names, d ? &d->link : NULL));
}

void destination_take_in(struct queue_destination *d, struct item *i)
{
	struct item **at = &d->order;

	i->to = d;
	if (i->kind != ITEM_ORDER) {
		d->count++;
		d->bytes += i->sealed_len;
		return;
	}
	while (*at && (*at)->id > i->id)
		at = &(*at)->next;
	i->next = *at;
	*at = i;
}

static void order_let_go(struct queue_destination *d, struct item *i)
{
	struct item **at = &d->order;

	while (*at != i)
		at = &(*at)->next;
	*at = i->next;
	i->next = NULL;
}

/* The unanswered changes of all backups. */
static uint64_t destination_unanswered(const struct queue_destination *d)
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

	if (!t->names.count)
		return;
	STAILQ_CONCAT(&idle, &t->idle);
	while ((d = STAILQ_FIRST(&idle))) {
		STAILQ_REMOVE_HEAD(&idle, idle_next);
		d->use = DESTINATION_USED;
		if (d->count || d->order)
			continue;
		if (d->due != DUE_NONE || destination_unanswered(d)) {
			destination_note_unused(t, d);
			continue;
		}
		table_remove(&t->names, &d->link);
		free(d);
	}
}

static struct line_share *share_of_link(struct table_link *link)
{
	return link ? container_of(link, struct line_share, link) : NULL;
}

void destination_table_clear(struct destination_table *t)
{
	for (struct table_link *l = table_walk(&t->names, NULL), *next; l; l = next) {
		next = table_walk(&t->names, l);
		free(destination_of_link(l));
	}
	for (struct table_link *l = table_walk(&t->shares, NULL), *next; l; l = next) {
		next = table_walk(&t->shares, l);
		free(share_of_link(l));
	}
	table_clear(&t->names);
	table_clear(&t->shares);
	free(t->heap);
	*t = (struct destination_table){ .on_due = t->on_due };
}

/* Sources */

static uint64_t share_hash(const struct queue_destination *d, uint32_t source)
{
	return (((uint64_t)(uintptr_t)d >> 4 ^ source) * UINT64_C(0x9E3779B97F4A7C15)) >> 32;
}

static struct line_share *share_make(struct queue_destination *d, uint32_t source)
{
	struct line_share *s = calloc(1, sizeof *s);

	if (!s || table_add(&d->table->shares, &s->link, share_hash(d, source))) {
		free(s);
		return NULL;
	}
	s->of = d;
	s->source = source;
	return s;
}

/* Most lines have one source only, and need no further memory. */
static struct line_share *share_of(struct queue_destination *d, uint32_t source)
{
	struct line_share *s = d->own.first && d->own.source == source ? &d->own : NULL;

	if (!s)
		s = share_of_link(table_first(&d->table->shares, share_hash(d, source)));
	while (s && s != &d->own && (s->of != d || s->source != source))
		s = share_of_link(table_next(&s->link));
	if (!s && !d->own.first) {
		d->own.source = source;
		s = &d->own;
	}
	/* most destinations have one source, whose share is embedded; without memory others are served with it */
	s = s ? s : share_make(d, source);
	return s ? s : &d->own;
}

/* Its state is another one in a moment. */
static void destination_uncount(struct queue_destination *d, const struct item *i)
{
	d->taken -= i->state == ITEM_TAKEN;
	d->held -= i->state == ITEM_HELD;
}

void destination_append(struct queue_destination *d, struct item *i)
{
	struct line_share *s = share_of(d, i->source);

	destination_uncount(d, i);
	item_move(i, ITEM_READY);
	if (!s->first)
		TAILQ_INSERT_TAIL(&d->turns, s, turn);
	i->share = s;
	i->next = NULL;
	i->previous = s->last;
	*(s->last ? &s->last->next : &s->first) = i;
	s->last = i;
	if (!d->ready++)
		destination_note_due(d);
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

/* 0 or CSSL_E_NO_MEMORY: nothing changed. */
static int heap_add(struct destination_table *t, struct item *i)
{
	if (array_make_room(&t->heap, &t->heap_cap, t->heap_count, sizeof(struct item *)))
		return CSSL_E_NO_MEMORY;
	destination_uncount(i->to, i);
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

static void share_leave(struct queue_destination *d, struct item *i)
{
	struct line_share *s = i->share;

	*(i->previous ? &i->previous->next : &s->first) = i->next;
	*(i->next ? &i->next->previous : &s->last) = i->previous;
	i->next = i->previous = NULL;
	i->share = NULL;
	d->ready--;
	if (s->first)
		return;
	TAILQ_REMOVE(&d->turns, s, turn);
	if (s == &d->own)
		return;
	table_remove(&d->table->shares, &s->link);
	free(s);
}

/* Out of the line or the heap, whichever has it; the state does not change. */
static void destination_unlink(struct destination_table *t, struct item *i)
{
	if (i->heap_at)
		heap_remove(t, i);
	else if (i->state == ITEM_READY)
		share_leave(i->to, i);
}

void destination_let_go(struct destination_table *t, struct item *i)
{
	struct queue_destination *d = i->to;

	if (i->kind == ITEM_ORDER) {
		order_let_go(d, i);
	} else {
		destination_unlink(t, i);
		destination_uncount(d, i);
		d->count--;
		d->bytes -= i->sealed_len;
	}
	if (i->kind == ITEM_ORDER ? !d->order : !d->count)
		destination_note_unused(t, d);
}

void destination_settle(struct destination_table *t, struct item *i, int64_t now_ms)
{
	destination_unlink(t, i);
	if (i->state == ITEM_HELD)
		i->to->held++;
	else if (i->due_ms <= now_ms || heap_add(t, i))
		destination_append(i->to, i);
}

void destination_hold(struct destination_table *t, struct item *i)
{
	destination_unlink(t, i);
	destination_uncount(i->to, i);
	item_move(i, ITEM_HELD);
	i->to->held++;
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

void destination_pace(struct queue_destination *d, enum destination_flow flow, uint32_t rate)
{
	d->flow = flow;
	d->rate = rate;
	d->next_us = 0;
	if (d->ready)
		destination_note_due(d);
}

/* Flow and rate allow to take a message: it counts as taken. */
static bool destination_may_take(struct queue_destination *d, int64_t now_us)
{
	const int64_t each_us = d->rate ? MINUTE_US / d->rate : 0;
	const int64_t earliest_us = now_us - (each_us < CATCH_UP_US ? CATCH_UP_US : 0);

	if (d->flow == DESTINATION_STOPPED || (d->rate && now_us < d->next_us))
		return false;
	d->next_us = (d->next_us > earliest_us ? d->next_us : earliest_us) + each_us;
	return true;
}

struct item *destination_take(struct queue_destination *d, int64_t now_us)
{
	struct line_share *s = TAILQ_FIRST(&d->turns);
	struct item *i = s ? s->first : NULL;

	if (!i || !destination_may_take(d, now_us))
		return NULL;
	TAILQ_REMOVE(&d->turns, s, turn);
	TAILQ_INSERT_TAIL(&d->turns, s, turn);
	share_leave(d, i);
	item_move(i, ITEM_TAKEN);
	d->taken++;
	return i;
}
