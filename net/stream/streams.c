/* streams.c: open addressing with linear probing; removal shifts the followers back, so there are no tombstones. Ids
 * count up, so multiplying by an odd constant spreads them.
 */
#include "net/stream/streams.h"

#include <stdlib.h>

#include "proto/error.h"

#define CAP_MIN 64u

static uint32_t home_of(const struct streams *s, uint32_t id)
{
	return (uint32_t)((id * UINT32_C(2654435769)) >> 7) & (s->cap - 1);
}

static struct stream_slot *slot_of(const struct streams *s, uint32_t id)
{
	uint32_t i = home_of(s, id);

	while (s->slots[i].id != 0 && s->slots[i].id != id)
		i = (i + 1) & (s->cap - 1);
	return &s->slots[i];
}

static int streams_grow(struct streams *s)
{
	struct streams bigger = { .cap = s->cap ? s->cap * 2 : CAP_MIN, .count = s->count };

	bigger.slots = calloc(bigger.cap, sizeof *bigger.slots);
	if (!bigger.slots)
		return CSSL_E_NO_MEMORY;
	for (uint32_t i = 0; i < s->cap; i++)
		if (s->slots[i].id != 0)
			*slot_of(&bigger, s->slots[i].id) = s->slots[i];
	free(s->slots);
	*s = bigger;
	return 0;
}

int streams_add(struct streams *s, uint32_t id, void *holder)
{
	if (4 * (s->count + 1) > 3 * s->cap && streams_grow(s) < 0)
		return CSSL_E_NO_MEMORY;
	*slot_of(s, id) = (struct stream_slot){ id, holder };
	s->count++;
	return 0;
}

void *streams_find(const struct streams *s, uint32_t id)
{
	return s->count && id ? slot_of(s, id)->holder : NULL;
}

void streams_remove(struct streams *s, uint32_t id)
{
	if (!streams_find(s, id))
		return;
	uint32_t mask = s->cap - 1;
	uint32_t hole = (uint32_t)(slot_of(s, id) - s->slots);
	for (uint32_t i = (hole + 1) & mask; s->slots[i].id != 0; i = (i + 1) & mask) {
		/* may this entry move into the hole: is the hole between its home and its slot? */
		if (((i - home_of(s, s->slots[i].id)) & mask) < ((i - hole) & mask))
			continue;
		s->slots[hole] = s->slots[i];
		hole = i;
	}
	s->slots[hole] = (struct stream_slot){ 0, NULL };
	s->count--;
}

void streams_each(const struct streams *s, void (*fn)(void *ctx, uint32_t id, void *holder), void *ctx)
{
	for (uint32_t i = 0; i < s->cap; i++)
		if (s->slots[i].id != 0)
			fn(ctx, s->slots[i].id, s->slots[i].holder);
}

void streams_clear(struct streams *s)
{
	free(s->slots);
	*s = (struct streams){ 0 };
}
