/* queue_core.c: the states of a queue, and its clock. */
#include "smtpproxy/queue/queue_core.h"

#include <assert.h>

#include "net/report/log.h"

#define TO(state) (1u << QUEUE_##state)

static const struct {
	const char *name;
	unsigned may_move_to;
} states[] = {
	[QUEUE_LOOKING] = { "looking", TO(WATCHING) | TO(CLAIMING) | TO(DEPOSED) | TO(STOPPING) },
	[QUEUE_WATCHING] = { "watching", TO(CLAIMING) | TO(STOPPING) },
	[QUEUE_CLAIMING] = { "claiming", TO(LOOKING) | TO(READING) | TO(DEPOSED) | TO(STOPPING) },
	[QUEUE_READING] = { "reading", TO(LOOKING) | TO(ACTIVE) | TO(DEPOSED) | TO(STOPPING) },
	[QUEUE_ACTIVE] = { "active", TO(FLUSHING) | TO(DEPOSED) | TO(STOPPING) },
	[QUEUE_FLUSHING] = { "flushing", TO(STOPPING) },
	[QUEUE_DEPOSED] = { "deposed", TO(STOPPING) },
	[QUEUE_STOPPING] = { "stopping", 0 },
};

const char *queue_state_name(enum queue_state s)
{
	return states[s].name;
}

void queue_move(struct queue *q, enum queue_state to)
{
	assert(states[q->state].may_move_to & 1u << to);
	log_event(LOG_INFO, NULL, "queue", "was=%s is=%s epoch=%llu", states[q->state].name, states[to].name,
		(unsigned long long)q->shared.epoch);
	q->state = to;
	if (to == QUEUE_ACTIVE)
		q->active_ms = queue_now_ms(q);
}

int64_t queue_now_ms(const struct queue *q)
{
	return queue_clock_ms(&q->clock, redis_link_clock_ms());
}

unsigned queue_backups_in(const struct queue *q, unsigned states_in)
{
	unsigned mask = 0;

	for (unsigned i = 0; i < BACKUPS; i++)
		mask |= states_in & 1u << q->backups[i].state ? 1u << i : 0;
	return mask;
}
