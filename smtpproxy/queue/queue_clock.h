/* queue_clock.h: the time of day by which messages wait and expire. Restarts have to know these times, so it begins as
 * the wall clock does. But then it goes as CLOCK_BOOTTIME: when the wall clock is set, by a day perhaps, no message
 * waits a day more or expires at once. It follows the wall clock by at most a tenth of the time that passes, so that a
 * wait of five minutes lasts between four and a half and five and a half. All times are milliseconds.
 */
#pragma once

#include <stdint.h>

#define QUEUE_CLOCK_SLOWNESS 10

struct queue_clock {
	int64_t ahead_ms;    /* of CLOCK_BOOTTIME */
	int64_t followed_ms; /* CLOCK_BOOTTIME, when it followed the wall clock last */
};

static inline void queue_clock_begin(struct queue_clock *c, int64_t wall_ms, int64_t boot_ms)
{
	*c = (struct queue_clock){ .ahead_ms = wall_ms - boot_ms, .followed_ms = boot_ms };
}

/* Call it several times a second. */
static inline void queue_clock_follow(struct queue_clock *c, int64_t wall_ms, int64_t boot_ms)
{
	const int64_t most_ms = (boot_ms - c->followed_ms) / QUEUE_CLOCK_SLOWNESS;
	int64_t by_ms = wall_ms - boot_ms - c->ahead_ms;

	if (most_ms <= 0)
		return;
	by_ms = by_ms < most_ms ? by_ms : most_ms;
	c->ahead_ms += by_ms > -most_ms ? by_ms : -most_ms;
	c->followed_ms = boot_ms;
}

static inline int64_t queue_clock_ms(const struct queue_clock *c, int64_t boot_ms)
{
	return boot_ms + c->ahead_ms;
}
