/* peer_clock.h: the offset of another process's clock from ours, as proven by answers to our questions. Both clocks are
 * monotonic. The peer's clock must only run.
 *
 * We ask at our time a, and the peer answers at its time r: r was not before a. So an event at the peer's time t was no
 * earlier than a + (t - r) on our clock. peer_clock_local() returns this earliest possible time. An event never seems
 * younger than it is, and seems older by at most one round trip. It is a part of its own because law 17 rests on it.
 */
#pragma once

#include <stdint.h>
#include <uv.h>

/* Our clock, for every thread of the cluster. It is precise, so that a later event never has a lower time. */
static inline int64_t cluster_now_ms(void)
{
	return (int64_t)(uv_hrtime() / 1000000);
}

/* All zero: nothing known. */
struct peer_clock {
	enum { PEER_CLOCK_UNKNOWN, PEER_CLOCK_KNOWN } state;
	int64_t offset_ms; /* ours less the peer's, at least */
	int64_t set_ms;
	int64_t doubt_ms; /* a time may come out earlier than the truth by this much */
};

/* We asked at @asked_ms, the peer answered at its @remote_ms, and the answer came at @now_ms. */
void peer_clock_answered(struct peer_clock *c, int64_t asked_ms, int64_t remote_ms, int64_t now_ms);

/* Our time of the peer's @remote_ms; never after @now_ms. Only when known. */
int64_t peer_clock_local(const struct peer_clock *c, int64_t remote_ms, int64_t now_ms);
