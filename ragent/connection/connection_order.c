/* connection_order.c: at most one order is under way for a connection. Its owner freezes it, refuses, or lets the time
 * pass. */
#include "ragent/connection/connection_life.h"
#include "ragent/connection/connection_owner.h"
#include "ragent/connection/connection_states.h"
#include "ragent/connection/connection_stream.h"
#include "ragent/dispatch/dispatch.h"

/* --- who owns it --- */

/* The sum of a cause, and its buckets behind it. The causes stand in the same order. */
#define LATENCY_ROW_COUNT (offsetof(struct ownership_counters, latency_move_sum_us) / sizeof(counter))

/* @first: the first of these rows in ownership_counters. */
static void order_count_pause(counter *first, enum ownership_cause cause, uint64_t pause_us)
{
	counter *const row = first + (cause - OWNERSHIP_HAND_OFF) * LATENCY_ROW_COUNT;

	counter_add(&row[0], pause_us);
	time_counters_add(&row[1], latency_buckets, pause_us);
}

/* The time without an owner is over. */
static uint64_t order_end_pause(struct connection *c, int agent, enum ownership_cause cause)
{
	const uint64_t began_ns = c->busy->move_began_ns;
	const uint64_t pause_us = began_ns ? (uv_hrtime() - began_ns) / 1000 : 0;
	const int whose = agent == NO_AGENT ? c->now.owner : agent;

	order_count_pause(&c->home->counters.latency_hand_off_sum_us, cause, pause_us);
	if (whose != NO_AGENT)
		order_count_pause(&c->home->of_agents[whose].latency_hand_off_sum_us, cause, pause_us);
	return pause_us;
}

uint64_t connection_note_owner(struct connection *c, int agent, enum ownership_cause cause)
{
	const bool was_lost = agent == NO_AGENT && cause == OWNERSHIP_TAKEOVER;
	uint64_t pause_us = 0;

	if (cause != OWNERSHIP_HANDSHAKE && !was_lost)
		pause_us = order_end_pause(c, agent, cause);
	if (c->busy)
		c->busy->move_began_ns = 0;
	ownerships_note(
		c->home->ownerships, &(struct ownership){ .connection = c->id,
					     .since_ms = connection_now_ms(c),
					     .pause_us = pause_us < UINT32_MAX ? (uint32_t)pause_us : UINT32_MAX,
					     .epoch = (uint16_t)c->now.epoch,
					     .agent = (int16_t)agent,
					     .cause = (uint8_t)cause });
	return pause_us;
}

/* --- orders --- */

/* Why its owner cannot be asked to freeze it; NULL: it can. */
static const char *order_cannot_leave(const struct connection *c)
{
	if (!front_moves(c->front))
		return "the connections of this listener do not move";
	if (c->now.state != CONNECTION_OWNED || (c->busy && c->busy->order))
		return "it has no settled owner now";
	if (c->busy && c->busy->move_answer == MOVE_ANSWER_OVERDUE)
		return "its owner has not answered the move before";
	if (!c->now.copies.current)
		return "there is no sealed copy of it";
	if (c->now.epoch >= UINT16_MAX - 1)
		return "its epochs are used up";
	return NULL;
}

bool connection_may_move(const struct connection *c)
{
	return !order_cannot_leave(c);
}

bool connection_may_rest(const struct connection *c)
{
	return connection_may_move(c) && connection_is_answered(c) && c->now.tail == TAIL_NONE &&
	       !c->now.position.now.read_closed && c->now.server_side == SERVER_OPEN &&
	       connection_service(c)->rest == SERVICE_MAY_REST;
}

static const char *order_cannot_go_to(const struct connection *c, int target)
{
	const char *why = order_cannot_leave(c);

	if (!why && target == NO_AGENT && !connection_may_rest(c))
		return "it is not at a checkpoint of its service";
	return !why && target == link_agent(c->now.current.link) ? "the agent owns it already" : why;
}

void connection_report_move(struct connection *c, const struct move_result *r)
{
	struct move_order *o = c->busy ? c->busy->order : NULL;

	if (!o)
		return;
	c->busy->order = NULL;
	c->now.move_target = NO_AGENT;
	counter_add(r->outcome == MOVE_DONE ? &c->home->counters.moves_done : &c->home->counters.moves_refused, 1);
	o->done(o, r);
}

static void order_refuse(struct connection *c, struct move_order *order, const struct move_result *r)
{
	counter_add(&c->home->counters.moves_refused, 1);
	order->done(order, r);
}

static void order_say(struct connection *c, uint32_t deadline_ms)
{
	Cssl__LinkMove m = CSSL__LINK_MOVE__INIT;

	m.target = c->now.move_target == NO_AGENT ? (char *)""
						  : (char *)agents_name(connection_agents(c), c->now.move_target);
	m.next_epoch = c->now.epoch + 1u;
	m.cause = (Cssl__Cause)c->now.cause;
	m.deadline_ms = deadline_ms;
	m.order = ++c->busy->orders;
	connection_save_before_telling(c);
	link_send_message(c->now.current.link, c->now.current.stream, FRAME_MOVE, &m.base);
}

static void order_ask_owner(struct connection *c, const struct move_wish *wish, struct move_order *order)
{
	if (connection_expand_or_end(c) < 0) {
		order_refuse(
			c, order, &(struct move_result){ .outcome = MOVE_CONFLICT, .reason = "the connection ended" });
		return;
	}
	c->busy->order = order;
	c->now.move_target = (int16_t)wish->target;
	connection_owner_goes(c);
	c->busy->move_limit_ms = wish->deadline_ms;
	c->now.cause = (uint8_t)(wish->target == NO_AGENT ? CSSL__CAUSE__CAUSE_REST : wish->cause);
	connection_to(c, CONNECTION_MOVING);
	order_say(c, wish->deadline_ms);
	connection_save_if_changed(c);
}

static bool order_finds(struct connection *c, int target)
{
	return target == NO_AGENT ||
	       (agents_take_new(connection_agents(c), target) && links_choose(&c->home->links, target, &c->id));
}

void connection_order(struct connection *c, const struct move_wish *wish, struct move_order *order)
{
	struct move_result r = { .outcome = MOVE_CONFLICT, .reason = order_cannot_go_to(c, wish->target) };

	counter_add(&c->home->counters.moves_asked, 1);
	if (!r.reason && !order_finds(c, wish->target))
		r = (struct move_result){ .outcome = MOVE_UNAVAILABLE, .reason = "the target agent is not up" };
	if (r.reason)
		order_refuse(c, order, &r);
	else
		order_ask_owner(c, wish, order);
}

/* --- the answer --- */

void connection_to_rest(struct connection *c, enum ownership_cause why, const struct move_result *r)
{
	connection_release_frozen(c, FROZEN_HEARS);
	connection_assign(c, NO_AGENT, NO_AGENT);
	connection_note_owner(c, NO_AGENT, why);
	if (c->busy)
		c->busy->move_answer = MOVE_ANSWER_NOT_DUE;
	c->now.attempts = 0;
	c->now.cause = why == OWNERSHIP_REST ? CSSL__CAUSE__CAUSE_WAKE : CSSL__CAUSE__CAUSE_TAKEOVER;
	c->now.backend = CSSL__BACKEND_HALF__BACKEND_NONE;
	connection_to(c, CONNECTION_RESTING);
	connection_report_move(c, r);
}

void connection_owner_keeps(struct connection *c, const char *why)
{
	const int16_t target = c->now.move_target;

	connection_to(c, CONNECTION_OWNED);
	connection_report_move(c, &(struct move_result){ .outcome = MOVE_CONFLICT, .reason = why });
	c->busy->move_began_ns = 0;
	c->busy->move_answer = MOVE_ANSWER_OVERDUE;
	c->now.move_target = target; /* its backend connection went there; the owner may still freeze it later */
}

/* The owner may never have got the order, and then it would never answer. If it has the order, it answers both at once.
 */
void connection_order_again(struct connection *c)
{
	if (c->now.state == CONNECTION_OWNED && c->busy->move_answer == MOVE_ANSWER_OVERDUE)
		order_say(c, 0);
}

/* The answer to an order before the last one came late: another one follows. */
void connection_order_refused(struct connection *c, uint32_t order, const char *why)
{
	if (order && order != c->busy->orders)
		return;
	if (c->busy->move_answer == MOVE_ANSWER_OVERDUE) {
		c->busy->move_answer = MOVE_ANSWER_NOT_DUE;
		return;
	}
	connection_to(c, CONNECTION_OWNED);
	connection_report_move(c, &(struct move_result){ .outcome = MOVE_CONFLICT, .reason = why });
	connection_drain_if_idle(c);
}
