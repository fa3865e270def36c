/* receiver_limit.h: how many connections a receiver takes from us, learned from its refusals. Each time that it refuses
 * a connection (421, or a refused connect), the limit falls to the connections that it has taken, or to a half if it
 * has taken none of them back. Every RECEIVER_LIMIT_STEP_MS without a refusal it rises by one. No sockets; the time is
 * an argument.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RECEIVER_LIMIT_STEP_MS     10000u
#define RECEIVER_LIMIT_REST_MIN_MS 500u
#define RECEIVER_LIMIT_REST_MAX_MS 30000u

/* Embedded. */
struct receiver_limit {
	uint32_t limit, ceiling;
	uint32_t rest_ms;    /* the pause after the next refusal while there are no connections */
	uint64_t changed_ms; /* the limit */
	uint64_t resting_till_ms;
};

void receiver_limit_init(struct receiver_limit *l, uint32_t ceiling, uint64_t now_ms);

/* Another ceiling. A limit that was learned stays, as far as it is below. */
void receiver_limit_set_ceiling(struct receiver_limit *l, uint32_t ceiling);

/* May one more be opened beside @open ones? Raises the limit when it is time to. */
bool receiver_limit_allows(struct receiver_limit *l, uint32_t open, uint64_t now_ms);

#define RECEIVER_LIMIT_NEVER UINT64_MAX

/* Milliseconds until receiver_limit_allows() may change its answer by itself. NEVER: only the end of a connection, or
 * another ceiling, changes it. */
uint64_t receiver_limit_wait_ms(const struct receiver_limit *l, uint64_t now_ms);

/* The receiver greeted a connection. Now @taken ones exist, including this one. */
void receiver_limit_taken(struct receiver_limit *l, uint32_t taken);

/* It refused a connection while @taken others existed. */
void receiver_limit_refused(struct receiver_limit *l, uint32_t taken, uint64_t now_ms);
