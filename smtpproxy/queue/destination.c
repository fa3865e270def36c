/* destination.c: lines, heaps, and the table of destinations by name. */
#include "smtpproxy/queue/destination.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

#define BUCKETS     1024u
#define HEAP_FIRST  16u
#define MINUTE_US   60000000
#define CATCH_UP_US 500000

static size_t bucket_of(const char *name, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	return h % BUCKETS;
}

static struct queue_destination *destination_make(struct destination_table *t, const char *name, size_t len)
{
	struct queue_destination *d = calloc(1, sizeof *d + len + 1);

	if (!d)
		return NULL;
	memcpy(d->name, name, len);
	d->next = t->buckets[bucket_of(name, len)];
	t->buckets[bucket_of(name, len)] = d;
	t->count++;
	return d;
}

struct queue_destination *destination_get(struct destination_table *t, const char *name, size_t len, int make)
{
	struct queue_destination *d;

	if (!t->buckets && make) {
		t->buckets = calloc(BUCKETS, sizeof *t->buckets);
		t->cap = t->buckets ? BUCKETS : 0;
	}
	if (!t->buckets)
		return NULL;
	for (d = t->buckets[bucket_of(name, len)]; d; d = d->next)
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

void destination_sweep(struct destination_table *t)
{
	for (size_t b = 0; b < t->cap; b++)
		for (struct queue_destination **at = &t->buckets[b], *d; (d = *at);) {
			if (d->count || d->order || d->due != DUE_NONE) {
				at = &d->next;
				continue;
			}
			*at = d->next;
			free(d->heap);
			free(d);
			t->count--;
		}
}

void destination_table_clear(struct destination_table *t)
{
	for (size_t b = 0; b < t->cap; b++)
		for (struct queue_destination *d = t->buckets[b], *next; d; d = next) {
			next = d->next;
			free(d->heap);
			free(d);
		}
	free(t->buckets);
	memset(t, 0, sizeof *t);
}

void destination_append(struct queue_destination *d, struct item *i)
{
	item_move(i, ITEM_READY);
	i->next = NULL;
	i->previous = d->last;
	*(d->last ? &d->last->next : &d->first) = i;
	d->last = i;
	d->ready++;
}

static void heap_put(struct queue_destination *d, size_t at, struct item *i)
{
	d->heap[at] = i;
	i->heap_at = (uint32_t)at + 1;
}

static void heap_up(struct queue_destination *d, size_t at)
{
	struct item *i = d->heap[at];

	for (; at && d->heap[(at - 1) / 2]->due_ms > i->due_ms; at = (at - 1) / 2)
		heap_put(d, at, d->heap[(at - 1) / 2]);
	heap_put(d, at, i);
}

static void heap_down(struct queue_destination *d, size_t at)
{
	struct item *i = d->heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < d->heap_count && d->heap[child + 1]->due_ms < d->heap[child]->due_ms)
			child++;
		if (child >= d->heap_count || d->heap[child]->due_ms >= i->due_ms)
			break;
		heap_put(d, at, d->heap[child]);
		at = child;
	}
	heap_put(d, at, i);
}

int destination_defer(struct queue_destination *d, struct item *i)
{
	if (d->heap_count == d->heap_cap) {
		size_t cap = d->heap_cap ? 2 * d->heap_cap : HEAP_FIRST;
		struct item **heap = realloc(d->heap, cap * sizeof *heap);

		if (!heap)
			return CSSL_E_NO_MEMORY;
		d->heap = heap;
		d->heap_cap = cap;
	}
	item_move(i, ITEM_DEFERRED);
	d->heap[d->heap_count] = i;
	heap_up(d, d->heap_count++);
	return 0;
}

static void heap_remove(struct queue_destination *d, struct item *i)
{
	size_t at = i->heap_at - 1;
	struct item *last = d->heap[--d->heap_count];

	i->heap_at = 0;
	if (last == i)
		return;
	heap_put(d, at, last);
	heap_up(d, at);
	heap_down(d, last->heap_at - 1);
}

void destination_unlink(struct queue_destination *d, struct item *i)
{
	if (i->heap_at) {
		heap_remove(d, i);
		return;
	}
	if (i->state != ITEM_READY)
		return;
	*(i->previous ? &i->previous->next : &d->first) = i->next;
	*(i->next ? &i->next->previous : &d->last) = i->previous;
	i->next = i->previous = NULL;
	d->ready--;
}

int64_t destination_wake(struct queue_destination *d, int64_t now_ms)
{
	while (d->heap_count && d->heap[0]->due_ms <= now_ms) {
		struct item *i = d->heap[0];

		heap_remove(d, i);
		destination_append(d, i);
	}
	return d->heap_count ? d->heap[0]->due_ms : INT64_MAX;
}

struct item *destination_take(struct queue_destination *d)
{
	struct item *i = d->first;

	if (!i)
		return NULL;
	destination_unlink(d, i);
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
