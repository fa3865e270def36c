/* connection_owner.c: notes for the API and the metrics who owns a connection, why, and how long no agent owned it
 * before. */
#include <assert.h>
#include <uv.h>

#include "proto/link.pb-c.h"
#include "ragent/connection/connection_internal.h"

/* The row of the sum. The rows of its buckets follow. */
#define LATENCY_OF(cause) (offsetof(struct ownership_counters, latency_##cause##_sum_us) / sizeof(counter))

/* @first: the first of these rows in ownership_counters. */
static void count_pause(counter *first, enum ownership_cause cause, uint64_t pause_us)
{
	static const size_t rows[OWNERSHIP_CAUSE_COUNT] = { [OWNERSHIP_HAND_OFF] = LATENCY_OF(hand_off),
		[OWNERSHIP_MOVE] = LATENCY_OF(move),
		[OWNERSHIP_DRAIN] = LATENCY_OF(drain),
		[OWNERSHIP_WAKE] = LATENCY_OF(wake),
		[OWNERSHIP_TAKEOVER] = LATENCY_OF(takeover),
		[OWNERSHIP_REST] = LATENCY_OF(rest) };
	counter *const row = first + rows[cause];
	counter_add(&row[0], pause_us);
	time_counters_add(&row[1], latency_buckets, pause_us);
}

static void note(struct connection *c, int agent, enum ownership_cause cause, uint64_t pause_us)
{
	ownerships_note(
		c->home->ownerships, &(struct ownership){ .connection = c->id,
					     .since_ms = connection_now_ms(c),
					     .pause_us = pause_us < UINT32_MAX ? (uint32_t)pause_us : UINT32_MAX,
					     .epoch = (uint16_t)c->epoch,
					     .agent = (int16_t)agent,
					     .cause = (uint8_t)cause });
}

void connection_owner_goes(struct connection *c)
{
	c->busy->move_began_ns = uv_hrtime();
}

void connection_owner_is_missed(struct connection *c)
{
	if (c->busy->move_began_ns == 0)
		connection_owner_goes(c);
}

void connection_owned_from_start(struct connection *c)
{
	note(c, link_agent(c->current.link), OWNERSHIP_HANDSHAKE, 0);
}

void connection_left_by_a_loss(struct connection *c)
{
	if (c->busy)
		c->busy->move_began_ns = 0;
	note(c, NO_AGENT, OWNERSHIP_TAKEOVER, 0);
}

uint64_t connection_owned_by(struct connection *c, int agent)
{
	static const uint8_t causes[] = { [CSSL__CAUSE__CAUSE_HAND_OFF] = OWNERSHIP_HAND_OFF,
		[CSSL__CAUSE__CAUSE_MOVE] = OWNERSHIP_MOVE,
		[CSSL__CAUSE__CAUSE_DRAIN] = OWNERSHIP_DRAIN,
		[CSSL__CAUSE__CAUSE_WAKE] = OWNERSHIP_WAKE,
		[CSSL__CAUSE__CAUSE_TAKEOVER] = OWNERSHIP_TAKEOVER,
		[CSSL__CAUSE__CAUSE_REST] = OWNERSHIP_REST };
	const uint64_t began_ns = c->busy->move_began_ns;
	const uint64_t pause_us = began_ns ? (uv_hrtime() - began_ns) / 1000 : 0;
	const enum ownership_cause cause = agent == NO_AGENT ? OWNERSHIP_REST : causes[c->cause];

	c->busy->move_began_ns = 0;
	const int whose = agent == NO_AGENT ? c->owner : agent;
	count_pause(&c->home->counters.latency_hand_off_sum_us, cause, pause_us);
	if (whose != NO_AGENT)
		count_pause(&c->home->of_agents[whose].latency_hand_off_sum_us, cause, pause_us);
	note(c, agent, cause, pause_us);
	return pause_us;
}
