/* decided.c: buckets by the hash of the name, and a list by age. In memory, item.next links a bucket, and item.previous
 * the list. The list holds a reference, because an item may be removed before its turn. item.due_ms is the hash of the
 * name. */
#include "smtpproxy/queue/items/decided.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

#define DECIDED_BUCKETS 65536u

static uint64_t decided_hash(struct content_bytes name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < name.len; i++)
		h = (h ^ name.data[i]) * UINT64_C(0x100000001b3);
	return h;
}

int decided_enter(struct decided *t, struct item *i, struct content_bytes name)
{
	const uint64_t hash = decided_hash(name);
	struct item **bucket;

	if (!t->buckets)
		t->buckets = calloc(DECIDED_BUCKETS, sizeof *t->buckets);
	if (!t->buckets)
		return CSSL_E_NO_MEMORY;
	bucket = &t->buckets[hash % DECIDED_BUCKETS];
	i->due_ms = (int64_t)hash;
	i->next = *bucket;
	*bucket = i;
	*(t->newest ? &t->newest->previous : &t->oldest) = i;
	t->newest = i;
	item_hold(i);
	t->count++;
	t->bytes += item_bytes(i);
	return 0;
}

void decided_leave(struct decided *t, struct item *i)
{
	struct item **at = &t->buckets[(uint64_t)i->due_ms % DECIDED_BUCKETS];

	while (*at != i)
		at = &(*at)->next;
	*at = i->next;
	t->count--;
	t->bytes -= item_bytes(i);
}

/* @i is the transaction of that name, and its reply is in @out. */
static bool decided_is(
	const struct seal *s, const struct item *i, struct content_bytes name, char *out, size_t cap, size_t *len)
{
	uint8_t *plain = malloc(i->sealed_len);
	struct content c;
	const bool is = plain && !content_open(s, ITEM_DECIDED, i->id, i->sealed, i->sealed_len, plain, &c) &&
			c.name.len == name.len && !memcmp(c.name.data, name.data, name.len);

	if (is) {
		*len = c.rest.len < cap ? c.rest.len : cap;
		memcpy(out, c.rest.data, *len);
	}
	free(plain);
	return is;
}

const struct item *decided_find(
	const struct decided *t, const struct seal *s, struct content_bytes name, char *out, size_t cap, size_t *len)
{
	const uint64_t hash = decided_hash(name);
	const struct item *i = t->buckets ? t->buckets[hash % DECIDED_BUCKETS] : NULL;

	while (i && !((uint64_t)i->due_ms == hash && decided_is(s, i, name, out, cap, len)))
		i = i->next;
	return i;
}

struct item *decided_pop(struct decided *t)
{
	struct item *i = t->oldest;

	t->oldest = i->previous;
	if (!t->oldest)
		t->newest = NULL;
	i->previous = NULL;
	return i;
}

void decided_clear(struct decided *t)
{
	while (t->oldest)
		item_drop(decided_pop(t));
	free(t->buckets);
	t->buckets = NULL;
	t->count = t->bytes = 0;
}
