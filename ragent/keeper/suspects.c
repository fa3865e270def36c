/* suspects.c: a short list, which is usually empty. */
#include "ragent/keeper/suspects.h"

#include <string.h>

#define SITE_LEN 8u /* bytes of an IPv6 /64 */

static struct client_address source_of(const struct client_address *a)
{
	struct client_address source = { .len = a->len };

	memcpy(source.bytes, a->bytes, a->len == 16 ? SITE_LEN : a->len);
	return source;
}

static int is_address(const struct client_address *a)
{
	return a->len == 4 || a->len == 16;
}

static uint32_t count(const struct suspects *s)
{
	return s->count < SUSPECTS_MAX ? s->count : SUSPECTS_MAX;
}

static int is_same(const struct client_address *a, const struct client_address *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static struct suspect *find(struct suspects *s, const struct client_address *source)
{
	for (uint32_t i = 0; i < count(s); i++)
		if (is_same(&s->at[i].source, source))
			return &s->at[i];
	return NULL;
}

static struct suspect *make(struct suspects *s, const struct client_address *source)
{
	struct suspect *oldest = &s->at[0];

	if (count(s) < SUSPECTS_MAX)
		oldest = &s->at[s->count++];
	else
		for (uint32_t i = 0; i < SUSPECTS_MAX; i++)
			if (s->at[i].last_ms < oldest->last_ms)
				oldest = &s->at[i];
	*oldest = (struct suspect){ .source = *source };
	return oldest;
}

uint32_t suspects_add(struct suspects *s, const struct client_address *address, uint64_t now_ms)
{
	if (!is_address(address))
		return 0;
	const struct client_address source = source_of(address);
	struct suspect *found = find(s, &source);
	if (!found)
		found = make(s, &source);
	else if (now_ms - found->last_ms >= SUSPECT_REFUSED_MS)
		found->crashes = 0;
	found->last_ms = now_ms;
	return ++found->crashes;
}

int suspects_refuse(const struct suspects *s, const struct client_address *address, uint64_t now_ms)
{
	if (!s || s->count == 0 || !is_address(address))
		return 0;
	const struct client_address source = source_of(address);
	for (uint32_t i = 0; i < count(s); i++) {
		const struct suspect *one = &s->at[i];
		if (one->crashes >= SUSPECT_CRASHES && now_ms - one->last_ms < SUSPECT_REFUSED_MS &&
			is_same(&one->source, &source))
			return 1;
	}
	return 0;
}
