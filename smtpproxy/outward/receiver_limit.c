/* receiver_limit.c: the limit rises by one, and falls to the number that the receiver has taken. While the receiver
 * takes none at all, it gets no connections for a time that doubles with each refusal. */
#include "smtpproxy/outward/receiver_limit.h"

void receiver_limit_init(struct receiver_limit *l, uint32_t ceiling, uint64_t now_ms)
{
	*l = (struct receiver_limit){
		.limit = ceiling, .ceiling = ceiling, .rest_ms = RECEIVER_LIMIT_REST_MIN_MS, .changed_ms = now_ms
	};
}

void receiver_limit_set_ceiling(struct receiver_limit *l, uint32_t ceiling)
{
	if (l->limit == l->ceiling || l->limit > ceiling)
		l->limit = ceiling;
	l->ceiling = ceiling;
}

bool receiver_limit_allows(struct receiver_limit *l, uint32_t open, uint64_t now_ms)
{
	if (now_ms < l->resting_till_ms)
		return false;
	if (open >= l->limit && l->limit < l->ceiling && now_ms - l->changed_ms >= RECEIVER_LIMIT_STEP_MS) {
		l->limit++;
		l->changed_ms = now_ms;
	}
	return open < l->limit;
}

uint64_t receiver_limit_wait_ms(const struct receiver_limit *l, uint64_t now_ms)
{
	const uint64_t step_ms = l->changed_ms + RECEIVER_LIMIT_STEP_MS;
	const uint64_t due_ms = now_ms < l->resting_till_ms ? l->resting_till_ms : step_ms;
	if (now_ms >= l->resting_till_ms && l->limit >= l->ceiling)
		return RECEIVER_LIMIT_NEVER;
	return due_ms > now_ms ? due_ms - now_ms : 1;
}

void receiver_limit_taken(struct receiver_limit *l, uint32_t taken)
{
	l->rest_ms = RECEIVER_LIMIT_REST_MIN_MS;
	l->resting_till_ms = 0;
	if (taken > l->limit)
		l->limit = taken < l->ceiling ? taken : l->ceiling;
}

void receiver_limit_refused(struct receiver_limit *l, uint32_t taken, uint64_t now_ms)
{
	const uint32_t half = l->limit > 1 ? l->limit / 2 : 1;
	l->limit = taken == 0 ? half : taken < l->limit ? taken : l->limit;
	l->changed_ms = now_ms;
	if (taken > 0)
		return;
	l->resting_till_ms = now_ms + l->rest_ms;
	l->rest_ms = 2 * l->rest_ms < RECEIVER_LIMIT_REST_MAX_MS ? 2 * l->rest_ms : RECEIVER_LIMIT_REST_MAX_MS;
}
