/* control_guard.c: a flat table: one look-up for each request of an operator. */
#include "ragent/control/control_guard.h"

#include <string.h>

#include "net/address.h"

static struct guarded_source *find(const struct control_guard *g, const struct sockaddr *source)
{
	uint8_t bytes[16];
	size_t len = address_bytes(source, bytes);

	for (unsigned i = 0; i < g->count; i++) {
		const struct guarded_source *s = &g->sources[i];
		if (s->len == len && memcmp(s->bytes, bytes, len) == 0)
			return (struct guarded_source *)s;
	}
	return NULL;
}

static struct guarded_source *oldest(struct control_guard *g)
{
	struct guarded_source *s = &g->sources[0];

	for (unsigned i = 1; i < g->count; i++)
		s = g->sources[i].since_ms < s->since_ms ? &g->sources[i] : s;
	return s;
}

static struct guarded_source *add(struct control_guard *g, const struct sockaddr *source)
{
	struct guarded_source *s = g->count < GUARD_SOURCES_MAX ? &g->sources[g->count++] : oldest(g);

	memset(s, 0, sizeof *s);
	s->len = (uint8_t)address_bytes(source, s->bytes);
	return s;
}

unsigned control_guard_wait_s(const struct control_guard *g, const struct sockaddr *source, uint64_t now_ms)
{
	const struct guarded_source *s = find(g, source);

	if (!s || s->failures < GUARD_FAILURES_MAX || now_ms - s->since_ms >= GUARD_PERIOD_MS)
		return 0;
	return (unsigned)((s->since_ms + GUARD_PERIOD_MS - now_ms + 999) / 1000);
}

void control_guard_failed(struct control_guard *g, const struct sockaddr *source, uint64_t now_ms)
{
	struct guarded_source *s = find(g, source);

	if (!s)
		s = add(g, source);
	if (s->failures == 0 || now_ms - s->since_ms >= GUARD_PERIOD_MS) {
		s->failures = 0;
		s->since_ms = now_ms;
	}
	s->failures++;
}
