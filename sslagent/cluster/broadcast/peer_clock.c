/* peer_clock.c: keeps the best bound, and loosens it with its age, because clocks drift. */
#include "sslagent/cluster/broadcast/peer_clock.h"

#include <assert.h>

#define DRIFT_MS_PER_S 1 /* far above any quartz: 1,000 ppm */

/* The peer gives its clock, so no arithmetic on it may overflow. */
#define CLOCK_MAX_MS (INT64_MAX / 4)

static int64_t bounded(int64_t ms)
{
	if (ms > CLOCK_MAX_MS)
		return CLOCK_MAX_MS;
	return ms < -CLOCK_MAX_MS ? -CLOCK_MAX_MS : ms;
}

static int64_t offset_now(const struct peer_clock *c, int64_t now_ms)
{
	return c->offset_ms - (now_ms - c->set_ms) * DRIFT_MS_PER_S / 1000;
}

void peer_clock_answered(struct peer_clock *c, int64_t asked_ms, int64_t remote_ms, int64_t now_ms)
{
	int64_t at_least = asked_ms - bounded(remote_ms), at_most = now_ms - bounded(remote_ms);
	int64_t known = offset_now(c, now_ms);

	/* Keep a known bound that is better. One above at_most is impossible: one of the machines slept. */
	if (c->state == PEER_CLOCK_KNOWN && known <= at_most && at_least < known)
		return;
	c->state = PEER_CLOCK_KNOWN;
	c->offset_ms = at_least;
	c->set_ms = now_ms;
	c->doubt_ms = now_ms - asked_ms;
}

int64_t peer_clock_local(const struct peer_clock *c, int64_t remote_ms, int64_t now_ms)
{
	int64_t local;

	assert(c->state == PEER_CLOCK_KNOWN);
	local = bounded(remote_ms) + offset_now(c, now_ms);
	return local < now_ms ? local : now_ms;
}
