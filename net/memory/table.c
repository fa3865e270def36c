/* table.c: chains in a power of two of buckets, doubled when there are as many items. Items keep their hash, so that
 * growing calls nobody. */
#include "net/memory/table.h"

#include <stdlib.h>

#include "proto/error.h"

#define BUCKETS_FIRST 16u

static struct table_link **bucket_of(const struct table *t, uint64_t hash)
{
	return &t->buckets[hash & (t->bucket_count - 1)];
}

static void table_enter(struct table *t, struct table_link *link)
{
	struct table_link **bucket = bucket_of(t, link->hash);

	link->next = *bucket;
	*bucket = link;
}

/* Items of one hash keep their order: the newest is first. */
static void table_grow(struct table *t)
{
	struct table bigger = { .bucket_count = t->bucket_count ? t->bucket_count * 2 : BUCKETS_FIRST,
		.count = t->count };

	bigger.buckets = calloc(bigger.bucket_count, sizeof(struct table_link *));
	if (!bigger.buckets)
		return;
	for (size_t b = 0; b < t->bucket_count; b++) {
		struct table_link *turned = NULL;
		for (struct table_link *l = t->buckets[b], *next; l; l = next) {
			next = l->next;
			l->next = turned;
			turned = l;
		}
		for (struct table_link *next; turned; turned = next) {
			next = turned->next;
			table_enter(&bigger, turned);
		}
	}
	free(t->buckets);
	*t = bigger;
}

int table_add(struct table *t, struct table_link *link, uint64_t hash)
{
	if (t->count >= t->bucket_count)
		table_grow(t);
	if (!t->buckets)
		return CSSL_E_NO_MEMORY;
	link->hash = hash;
	table_enter(t, link);
	t->count++;
	return 0;
}

void table_remove(struct table *t, struct table_link *link)
{
	struct table_link **at = bucket_of(t, link->hash);

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	t->count--;
}

static struct table_link *same(struct table_link *l, uint64_t hash)
{
	while (l && l->hash != hash)
		l = l->next;
	return l;
}

struct table_link *table_first(const struct table *t, uint64_t hash)
{
	return t->buckets ? same(*bucket_of(t, hash), hash) : NULL;
}

struct table_link *table_next(const struct table_link *link)
{
	return same(link->next, link->hash);
}

struct table_link *table_walk(const struct table *t, const struct table_link *link)
{
	if (link && link->next)
		return link->next;
	for (size_t b = link ? (link->hash & (t->bucket_count - 1)) + 1 : 0; b < t->bucket_count; b++)
		if (t->buckets[b])
			return t->buckets[b];
	return NULL;
}

void table_clear(struct table *t)
{
	free(t->buckets);
	*t = (struct table){ 0 };
}
