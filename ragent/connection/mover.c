/* mover.c: a sweep consists of passes over the worker's list, and a pass of turns. Nothing is stored for a single
 * connection: if a pass could not move it, the next pass tries again. The first pass of a drain moves connections
 * that can go at once. Later passes ask owners to wait for a checkpoint, until the deadline of the drain.
 */
#include "ragent/connection/mover.h"

#include "net/memory/container_of.h"
#include "net/report/log.h"
#include "ragent/connection/connection_body.h"
#include "ragent/dispatch/dispatch.h"

#define TURN_MS             10u
#define LOOKED_AT_MAX       512u /* connections in a turn */
#define UNDER_WAY_MAX       64u  /* moves that the agents have to answer at once */
#define PASS_GAP_MS         100u
#define REBALANCE_SETTLE_MS 1000u
#define REBALANCE_PASSES    10u /* after these, connections that never reach a checkpoint stay where they are */
#define REBALANCE_GAP_MS    500u
#define PREAMBLE_SPARED_MS  2000u /* a preamble lasts some round trips */

enum visit { VISIT_NEXT, VISIT_FULL };

static uint64_t mover_now_ms(const struct mover *m)
{
	return worker_now_ms(m->home->worker);
}

static struct agents *mover_agents(const struct mover *m)
{
	return m->home->shared->agents;
}

/* --- outcomes --- */

static void note_drained(struct drain *drain, const struct move_result *r)
{
	if (r->to == NO_AGENT)
		drain_note_rested(drain);
	else
		drain_note_moved(drain, r->pause_us);
}

static void mover_on_done(struct move_order *o, const struct move_result *r)
{
	struct mover_order *order = container_of(o, struct mover_order, order);
	struct mover *m = order->mover;
	const enum mover_purpose purpose = (enum mover_purpose)(order - m->orders);

	order->under_way--;
	if (r->outcome != MOVE_DONE)
		return;
	if (purpose == MOVER_DRAIN || purpose == MOVER_DRAIN_PATIENT)
		note_drained(agents_drain_of(mover_agents(m), r->from), r);
	else if (purpose == MOVER_REBALANCE)
		counter_add(&m->home->counters.rebalanced, 1);
}

static void mover_order(struct mover *m, struct connection *c, const struct move_wish *wish, enum mover_purpose purpose)
{
	m->orders[purpose].under_way++;
	connection_order(c, wish, &m->orders[purpose].order);
}

static void mover_order_rest(struct mover *m, struct connection *c, enum mover_purpose purpose)
{
	mover_order(m, c, &(struct move_wish){ .target = NO_AGENT }, purpose);
}

static bool mover_is_full(const struct mover *m)
{
	return m->orders[MOVER_DRAIN].under_way + m->orders[MOVER_REBALANCE].under_way +
		       m->orders[MOVER_REST].under_way >=
	       UNDER_WAY_MAX;
}

/* --- drain --- */

/* The time is over. A connection on its way between agents still arrives somewhere. */
static enum visit mover_end_one(struct connection *c, struct drain *drain)
{
	if (connection_is_in(c, IN(PREAMBLE) | IN(RELAYED) | IN(HANDSHAKING) | IN(OWNED))) {
		drain_note_ended(drain);
		connection_send_finish(c, END_DRAIN_TIMEOUT);
	}
	return VISIT_NEXT;
}

/* A preamble has time to come to STARTTLS, because any agent may make the handshake behind it. What is left then, and
 * mail in clear, gets 421 from its agent between two replies. */
static enum visit mover_drain_clear(struct mover *m, struct connection *c, const struct drain *drain)
{
	if (c->now.state == CONNECTION_RELAYED || drain_spent_ms(drain, mover_now_ms(m)) >= PREAMBLE_SPARED_MS)
		connection_send_finish(c, END_SHUTTING_DOWN);
	return VISIT_NEXT;
}

/* A handshake goes on to its end. Then the connection is handed off to another agent, or a later pass moves it. */
static enum visit mover_drain_one(struct mover *m, struct connection *c, int agent, struct drain *drain)
{
	uint64_t left_ms = drain_left_ms(drain, mover_now_ms(m));
	struct move_wish wish = { .cause = CSSL__CAUSE__CAUSE_DRAIN };

	if (left_ms == 0)
		return mover_end_one(c, drain);
	if (connection_speaks_clear(c))
		return mover_drain_clear(m, c, drain);
	if (!connection_may_move(c))
		return VISIT_NEXT;
	if (mover_is_full(m))
		return VISIT_FULL;
	if (m->pass % 2 && connection_may_rest(c)) { /* a connection whose rest was refused is moved in the next pass */
		mover_order_rest(m, c, MOVER_DRAIN);
		return VISIT_NEXT;
	}
	wish.target = dispatch_owner(&c->home->links, c->front, &c->endpoints.client, agent);
	if (wish.target == NO_AGENT)
		return VISIT_NEXT;
	if (m->pass > 1)
		wish.deadline_ms = (uint32_t)left_ms;
	mover_order(m, c, &wish, m->pass > 1 ? MOVER_DRAIN_PATIENT : MOVER_DRAIN);
	return VISIT_NEXT;
}

static void mover_count_drain(struct ragent_counters *n, const struct drain *d, uint64_t took_ms)
{
	time_counters_add(&n->drain_time_250ms, drain_buckets, took_ms * 1000);
	counter_add(&n->drain_time_sum_ms, took_ms);
	counter_add(drain_state(d) == DRAIN_DONE ? &n->drains_done : &n->drains_timed_out, 1);
}

/* 1: there may be connections to move or to end. */
static bool mover_drain_goes_on(struct mover *m, int agent)
{
	struct agents *agents = mover_agents(m);
	struct drain *drain = agents_drain_of(agents, agent);
	uint64_t held = agents_share(agents, agent, AGENT_OWNERSHIPS);
	struct drain_report r;

	if (drain_settle(drain, mover_now_ms(m), held)) {
		drain_describe(drain, mover_now_ms(m), held, &r);
		mover_count_drain(&m->home->counters, drain, r.elapsed_ms);
		log_event(LOG_INFO, NULL, r.state,
			"agent=%s elapsed_ms=%llu total=%llu left=%llu moved=%llu rested=%llu longest_pause_us=%llu",
			agents_name(agents, agent), (unsigned long long)r.elapsed_ms, (unsigned long long)r.total,
			(unsigned long long)r.left, (unsigned long long)r.moved, (unsigned long long)r.rested,
			(unsigned long long)r.longest_pause_us);
	}
	return drain_state(drain) == DRAIN_UNDER_WAY || (drain_state(drain) != DRAIN_NONE && held > 0);
}

static bool mover_any_drain_goes_on(struct mover *m)
{
	bool any = false;

	for (int a = 0; a < (int)agents_count(mover_agents(m)); a++)
		any |= mover_drain_goes_on(m, a);
	return any;
}

/* --- rebalance --- */

static void earn_tokens(struct mover *m)
{
	const struct ragent_shared *s = m->home->shared;
	double per_ms = s->self->moves.rebalances_per_s / 1000.0 / s->self->workers;

	m->tokens += per_ms * (double)(mover_now_ms(m) - m->tokens_ms);
	m->tokens_ms = mover_now_ms(m);
	if (m->tokens > 1 + per_ms * TURN_MS)
		m->tokens = 1 + per_ms * TURN_MS;
}

/* The agent of its client's address, for the agents and weights of now; NO_AGENT where connections do not follow the
 * address. */
static int belongs_to(const struct connection *c)
{
	return front_hands_off(c->front)
		       ? dispatch_home(&c->home->links, c->front, &c->endpoints.client, link_agent(c->now.current.link))
		       : NO_AGENT;
}

static enum visit rebalance_one(struct mover *m, struct connection *c, int owner)
{
	int home = belongs_to(c);

	if (home == NO_AGENT || home == owner || !connection_may_move(c))
		return VISIT_NEXT;
	if (m->tokens < 1 || mover_is_full(m))
		return VISIT_FULL;
	m->tokens--;
	m->misplaced++;
	if (connection_may_rest(c)) /* its next record wakes it at its agent */
		home = NO_AGENT;
	mover_order(m, c, &(struct move_wish){ .target = home, .cause = CSSL__CAUSE__CAUSE_MOVE }, MOVER_REBALANCE);
	return VISIT_NEXT;
}

/* After any change the next pass is a first pass. A rebalance begins when nothing has changed for a while, because
 * agents come and go in groups. */
static void look_at_generation(struct mover *m)
{
	uint64_t generation = agents_generation(mover_agents(m));

	if (generation == m->generation)
		return;
	m->generation = generation;
	m->next = NULL;
	m->pass = 0;
	m->pass_began_ms = 0;
	m->rebalance_passes = 0;
	m->rebalance_at_ms = m->home->shared->self->moves.rebalances_per_s ? mover_now_ms(m) + REBALANCE_SETTLE_MS : 0;
}

static bool rebalance_is_due(const struct mover *m)
{
	return m->rebalance_at_ms && mover_now_ms(m) >= m->rebalance_at_ms;
}

/* --- sweep --- */

static enum visit mover_visit(struct mover *m, struct connection *c)
{
	int agent = connection_place(c);

	if (agent == NO_AGENT)
		return VISIT_NEXT;
	struct drain *drain = agents_drain_of(mover_agents(m), agent);
	if (drain_state(drain) != DRAIN_NONE)
		return mover_drain_one(m, c, agent, drain);
	return m->pass_kind == PASS_REBALANCES ? rebalance_one(m, c, agent) : VISIT_NEXT;
}

static void mover_begin_pass(struct mover *m)
{
	m->pass++;
	m->pass_began_ms = mover_now_ms(m);
	m->pass_kind = rebalance_is_due(m) ? PASS_REBALANCES : PASS_DRAINS;
	m->misplaced = 0;
	m->next = m->home->connections;
}

static void mover_sweep(struct mover *m)
{
	for (unsigned n = 0; m->next && n < LOOKED_AT_MAX; n++) {
		struct connection *c = m->next;
		m->next = connection_next(c);
		if (mover_visit(m, c) == VISIT_FULL) {
			m->next = c;
			return;
		}
	}
	if (m->next || m->pass_kind != PASS_REBALANCES)
		return;
	const bool again = m->misplaced > 0 && ++m->rebalance_passes < REBALANCE_PASSES;
	m->rebalance_at_ms = again ? mover_now_ms(m) + REBALANCE_GAP_MS : 0;
}

static void mover_on_turn(struct deadline *d)
{
	struct mover *m = container_of(d, struct mover, turn);

	look_at_generation(m);
	earn_tokens(m);
	bool drains = mover_any_drain_goes_on(m);
	if (!m->next && (drains || rebalance_is_due(m)) && mover_now_ms(m) >= m->pass_began_ms + PASS_GAP_MS)
		mover_begin_pass(m);
	if (m->next)
		mover_sweep(m);
	if (drains || m->rebalance_at_ms)
		deadline_set(m->home->worker, &m->turn, TURN_MS);
}

void mover_look(struct mover *m)
{
	if (deadline_is_set(&m->turn) || m->home->state != HOME_RUNNING)
		return;
	look_at_generation(m);
	if (m->rebalance_at_ms || mover_any_drain_goes_on(m))
		deadline_set(m->home->worker, &m->turn, 0);
}

bool mover_rest(struct mover *m, struct connection *c)
{
	if (mover_is_full(m))
		return true;
	mover_order_rest(m, c, MOVER_REST);
	return false;
}

void mover_forget(struct mover *m, const struct connection *c)
{
	if (m->next == c)
		m->next = connection_next(c);
}

void mover_init(struct mover *m, struct connection_home *home)
{
	*m = (struct mover){ .home = home, .turn.fn = mover_on_turn };
	for (unsigned p = 0; p < MOVER_PURPOSE_COUNT; p++)
		m->orders[p] = (struct mover_order){ .order.done = mover_on_done, .mover = m };
}

void mover_stop(struct mover *m)
{
	deadline_cancel(&m->turn);
	m->next = NULL;
}
