/* peer_clock.h: how far another process's clock is from ours, as far as answers to our questions prove it. Both clocks
 * are monotonic; nothing is asked of the peer's clock but that it runs.
 *
 * A question asked at our time a, answered at the peer's time r: r was not before a. So what the peer did at its time t
 * was done no earlier than a + (t - r) on ours, and that earliest possible time is what peer_clock_local() gives:
 * things are never taken for younger than they are, and for older by at most the way to and fro.
 */
#ifndef CSSL_SSLAGENT_PEER_CLOCK_H
#define CSSL_SSLAGENT_PEER_CLOCK_H

#include <stdint.h>

/* All zero: nothing known. */
struct peer_clock {
	enum { PEER_CLOCK_UNKNOWN, PEER_CLOCK_KNOWN } state;
	int64_t offset_ms; /* ours less the peer's, at least */
	int64_t set_ms;
	int64_t doubt_ms; /* how much earlier than it was a time may be taken for */
};

/* A question of @asked_ms was answered at the peer's @remote_ms; the answer is here now. */
void peer_clock_answered(struct peer_clock *c, int64_t asked_ms, int64_t remote_ms, int64_t now_ms);

/* Our time of the peer's @remote_ms; never after @now_ms. Only when known. */
int64_t peer_clock_local(const struct peer_clock *c, int64_t remote_ms, int64_t now_ms);

#endif
