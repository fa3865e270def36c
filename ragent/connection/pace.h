/* pace.h: gives each of many the moment at which it may begin, so that they begin at a bounded rate: a few at once, the
 * others one after another. Pure: time is an argument; nobody has to be kept in a queue, for each gets its moment when
 * it asks.
 */
#ifndef CSSL_RAGENT_PACE_H
#define CSSL_RAGENT_PACE_H

#include <stdint.h>

#define PACE_BURST_PER_S 20u /* the burst is what this fraction of a second allows, at least one */

/* Embedded; zero holds nobody back. */
struct pace {
	uint64_t interval_us; /* between two */
	uint64_t burst_us;
	uint64_t next_us; /* when the next one would come, were all evenly spaced */
};

/* @per_s 0: holds nobody back. @among: so many workers share the rate. */
void pace_init(struct pace *p, uint32_t per_s, unsigned among);

/* In how many milliseconds from @now_ms may the one that asks begin? Its place is taken with that. */
uint64_t pace_delay_ms(struct pace *p, uint64_t now_ms);

#endif
