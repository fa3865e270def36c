/* storm.c: it begins above one number of handshakes and ends below another, so that it does not flicker. */
#include "ragent/connection/limits/storm.h"

#include <stdbool.h>

void storm_sends(struct storm *s, uint64_t accepted_ms, uint64_t now_ms)
{
	if (now_ms - accepted_ms >= STORM_ESTABLISHED_MS)
		s->sent_ms = now_ms;
}

static bool somebody_would_wait(const struct storm *s, uint64_t now_ms)
{
	return s->sent_ms && now_ms - s->sent_ms < STORM_QUIET_MS;
}

enum storm_change storm_look(struct storm *s, uint32_t handshakes, uint64_t now_ms)
{
	const uint32_t many = s->state == STORM_IS ? STORM_ENDS_AT : STORM_BEGINS_AT;
	const enum storm_state now = handshakes >= many && somebody_would_wait(s, now_ms) ? STORM_IS : STORM_IS_NOT;

	if (s->state == now)
		return STORM_GOES_ON;
	s->state = now;
	return now == STORM_IS ? STORM_BEGINS : STORM_ENDS;
}
