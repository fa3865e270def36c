/* pace.h: tells each of many callers when it may begin, so that they begin at a bounded rate: a few at once, the
 * others one after another. Pure: time is an argument. There is no queue, because each caller gets its time when it
 * asks.
 */
#pragma once

#include <stdint.h>

#define PACE_BURST_PER_S 20u /* the burst is this fraction of a second's rate, at least one */

/* Embedded; zero delays no caller. */
struct pace {
	uint64_t interval_us; /* between two callers */
	uint64_t burst_us;
	uint64_t next_us; /* when the next one would begin, if all were evenly spaced */
};

/* @per_s 0: delays no caller. @among: so many workers share the rate. */
void pace_init(struct pace *p, uint32_t per_s, unsigned among);

/* The caller may begin so many milliseconds after @now_ms. This counts as its turn. */
uint64_t pace_delay_ms(struct pace *p, uint64_t now_ms);
