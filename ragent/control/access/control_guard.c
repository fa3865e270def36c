/* control_guard.c: a flat table: one look-up for each request of an operator, two for IPv6. */
#include "ragent/control/access/control_guard.h"

#include <string.h>

#include "net/limits/admission.h"
#include "net/socket/address.h"

/* A row says which addresses count together, and how often they may fail within a period. */
static const struct width {
	uint8_t address_len; /* of the addresses to which the row applies */
	uint8_t prefix_len;
	uint32_t failures_max;
} widths[] = {
	{ 4, 4, GUARD_FAILURES_MAX }, { 16, 8, GUARD_FAILURES_MAX }, { 16, 6, GUARD_FAILURES_MAX *ADMISSION_OF_SITE },
	{ 0, 0, GUARD_FAILURES_MAX }, /* all that have no address */
};
#define WIDTHS (sizeof widths / sizeof widths[0])

/* @out: what @source counts as in this width. False: the width is for others. */
static bool guard_key_of(const struct sockaddr *source, const struct width *w, struct guarded_source *out)
{
	uint8_t bytes[16];

	if (address_bytes(source, bytes) != w->address_len)
		return false;
	*out = (struct guarded_source){ .len = w->prefix_len };
	memcpy(out->bytes, bytes, w->prefix_len);
	return true;
}

static const struct guarded_source *guard_find(const struct control_guard *g, const struct guarded_source *key)
{
	for (unsigned i = 0; i < g->count; i++) {
		const struct guarded_source *s = &g->sources[i];
		if (s->len == key->len && memcmp(s->bytes, key->bytes, sizeof s->bytes) == 0)
			return s;
	}
	return NULL;
}

static struct guarded_source *guard_oldest(struct control_guard *g)
{
	struct guarded_source *s = &g->sources[0];

	for (unsigned i = 1; i < g->count; i++)
		s = g->sources[i].since_ms < s->since_ms ? &g->sources[i] : s;
	return s;
}

static struct guarded_source *guard_add(struct control_guard *g, const struct guarded_source *key)
{
	struct guarded_source *s = g->count < GUARD_SOURCES_MAX ? &g->sources[g->count++] : guard_oldest(g);

	*s = *key;
	return s;
}

static unsigned guard_wait_of(const struct guarded_source *s, uint32_t failures_max, uint64_t now_ms)
{
	if (!s || s->failures < failures_max || now_ms - s->since_ms >= GUARD_PERIOD_MS)
		return 0;
	return (unsigned)((s->since_ms + GUARD_PERIOD_MS - now_ms + 999) / 1000);
}

unsigned control_guard_wait_s(const struct control_guard *g, const struct sockaddr *source, uint64_t now_ms)
{
	struct guarded_source key;
	unsigned longest = 0;

	for (size_t i = 0; i < WIDTHS; i++) {
		if (!guard_key_of(source, &widths[i], &key))
			continue;
		const unsigned wait = guard_wait_of(guard_find(g, &key), widths[i].failures_max, now_ms);
		longest = wait > longest ? wait : longest;
	}
	return longest;
}

static void guard_count(struct control_guard *g, const struct guarded_source *key, uint64_t now_ms)
{
	struct guarded_source *s = (struct guarded_source *)guard_find(g, key);

	if (!s)
		s = guard_add(g, key);
	if (s->failures == 0 || now_ms - s->since_ms >= GUARD_PERIOD_MS) {
		s->failures = 0;
		s->since_ms = now_ms;
	}
	s->failures++;
}

void control_guard_failed(struct control_guard *g, const struct sockaddr *source, uint64_t now_ms)
{
	struct guarded_source key;

	for (size_t i = 0; i < WIDTHS; i++)
		if (guard_key_of(source, &widths[i], &key))
			guard_count(g, &key, now_ms);
}
