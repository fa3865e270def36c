/* suspects.c: a short list; most of the time it is empty. */
#include "ragent/keeper/suspects.h"

#include <string.h>

static int is_same(const struct client_address *a, const struct client_address *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static struct suspect *find(struct suspects *s, const struct client_address *address)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (is_same(&s->at[i].address, address))
			return &s->at[i];
	return NULL;
}

static struct suspect *make(struct suspects *s, const struct client_address *address)
{
	struct suspect *oldest = &s->at[0];

	if (s->count < SUSPECTS_MAX)
		oldest = &s->at[s->count++];
	for (uint32_t i = 0; i < SUSPECTS_MAX && s->count == SUSPECTS_MAX; i++)
		if (s->at[i].last_ms < oldest->last_ms)
			oldest = &s->at[i];
	*oldest = (struct suspect){ .address = *address };
	return oldest;
}

uint32_t suspects_add(struct suspects *s, const struct client_address *address, uint64_t now_ms)
{
	if (address->len != 4 && address->len != 16)
		return 0;
	struct suspect *found = find(s, address);
	if (!found)
		found = make(s, address);
	else if (now_ms - found->last_ms >= SUSPECT_REFUSED_MS)
		found->crashes = 0;
	found->last_ms = now_ms;
	return ++found->crashes;
}

int suspects_refuse(const struct suspects *s, const struct client_address *address, uint64_t now_ms)
{
	for (uint32_t i = 0; s && i < s->count; i++) {
		const struct suspect *one = &s->at[i];
		if (one->crashes >= SUSPECT_CRASHES && now_ms - one->last_ms < SUSPECT_REFUSED_MS &&
			is_same(&one->address, address))
			return 1;
	}
	return 0;
}
