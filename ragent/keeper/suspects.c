/* suspects.c: a short list, which is usually empty. */
#include "ragent/keeper/suspects.h"

#include <stddef.h>
#include <string.h>

#include "net/limits/admission.h"

#define SUBNET_LEN 8u /* bytes of an IPv6 /64 */
#define SITE_LEN   6u /* and of a /48 */

static struct client_address prefix_of(const struct client_address *a, uint8_t len, size_t bytes)
{
	struct client_address prefix = { .len = len };

	memcpy(prefix.bytes, a->bytes, bytes);
	return prefix;
}

static struct client_address suspect_source_of(const struct client_address *a)
{
	return prefix_of(a, a->len, a->len == 16 ? SUBNET_LEN : a->len);
}

/* Its length tells it from a source. */
static struct client_address site_of(const struct client_address *a)
{
	return prefix_of(a, SITE_LEN, SITE_LEN);
}

static bool is_address(const struct client_address *a)
{
	return a->len == 4 || a->len == 16;
}

static uint32_t suspect_count(const struct suspects *s)
{
	return s->count < SUSPECTS_MAX ? s->count : SUSPECTS_MAX;
}

static bool suspect_is_same(const struct client_address *a, const struct client_address *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static struct suspect *suspect_find(const struct suspects *s, const struct client_address *source)
{
	for (uint32_t i = 0; i < suspect_count(s); i++)
		if (suspect_is_same(&s->at[i].source, source))
			return (struct suspect *)&s->at[i];
	return NULL;
}

static struct suspect *suspect_make(struct suspects *s, const struct client_address *source)
{
	struct suspect *oldest = &s->at[0];

	if (suspect_count(s) < SUSPECTS_MAX)
		oldest = &s->at[s->count++];
	else
		for (uint32_t i = 0; i < SUSPECTS_MAX; i++)
			if (s->at[i].last_ms < oldest->last_ms)
				oldest = &s->at[i];
	*oldest = (struct suspect){ .source = *source };
	return oldest;
}

static uint32_t suspect_add(struct suspects *s, const struct client_address *source, uint64_t now_ms)
{
	struct suspect *found = suspect_find(s, source);

	if (!found)
		found = suspect_make(s, source);
	else if (now_ms - found->last_ms >= SUSPECT_REFUSED_MS)
		found->crashes = 0;
	found->last_ms = now_ms;
	return ++found->crashes;
}

uint32_t suspects_add(struct suspects *s, const struct client_address *address, uint64_t now_ms)
{
	if (!is_address(address))
		return 0;
	if (address->len == 16) {
		const struct client_address site = site_of(address);
		suspect_add(s, &site, now_ms);
	}
	const struct client_address source = suspect_source_of(address);
	return suspect_add(s, &source, now_ms);
}

static bool suspect_is_refused(
	const struct suspects *s, const struct client_address *source, uint32_t crashes_max, uint64_t now_ms)
{
	const struct suspect *found = suspect_find(s, source);

	return found && found->crashes >= crashes_max && now_ms - found->last_ms < SUSPECT_REFUSED_MS;
}

bool suspects_refuse(const struct suspects *s, const struct client_address *address, uint64_t now_ms)
{
	if (!s || s->count == 0 || !is_address(address))
		return false;
	const struct client_address source = suspect_source_of(address), site = site_of(address);
	return suspect_is_refused(s, &source, SUSPECT_CRASHES, now_ms) ||
	       (address->len == 16 && suspect_is_refused(s, &site, SUSPECT_CRASHES * ADMISSION_OF_SITE, now_ms));
}
