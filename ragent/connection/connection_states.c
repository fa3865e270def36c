/* connection_states.c: the states of a connection, how long it may be in each, and what happens when that time is over.
 */
#include <assert.h>

#include "net/memory/container_of.h"
#include "net/report/log.h"
#include "ragent/connection/connection_client.h"
#include "ragent/connection/connection_end.h"
#include "ragent/connection/connection_life.h"
#include "ragent/connection/connection_owner.h"
#include "ragent/connection/connection_preamble.h"
#include "ragent/connection/connection_states.h"

#define ANSWER_LIMIT_FACTOR 2u /* times health.lost_ms: the loss of a link is noticed well before that */
#define REST_RETRY_MS       50u
#define WAIT_RETRY_MS       50u
#define ASKED_GRACE_MS      2000u
#define UNHEARD_MS          2000u /* an owner lets its client wait for up to a second at once */

#define ENDS (IN(LINGERING) | IN(CLOSING))

static const struct {
	const char *name;
	unsigned may_go_to;
} state_rows[CONNECTION_STATE_COUNT] = {
	[CONNECTION_PROXY] = { "proxy", IN(HELLO) | IN(PREAMBLE) | ENDS },
	[CONNECTION_HELLO] = { "hello", IN(HANDSHAKING) | IN(WAITING) | ENDS },
	[CONNECTION_WAITING] = { "waiting", IN(HANDSHAKING) | ENDS },
	[CONNECTION_HANDSHAKING] = { "handshaking", IN(WAITING) | IN(OWNED) | IN(ADOPTING) | IN(REATTACHING) | ENDS },
	[CONNECTION_OWNED] = { "owned",
		IN(MOVING) | IN(ADOPTING) | IN(RESTING) | IN(FINISHING) | IN(REATTACHING) | ENDS },
	[CONNECTION_MOVING] = { "moving", IN(OWNED) | IN(ADOPTING) | IN(RESTING) | ENDS },
	[CONNECTION_ADOPTING] = { "adopting", IN(OWNED) | IN(RESTING) | IN(REATTACHING) | ENDS },
	[CONNECTION_RESTING] = { "resting", IN(ADOPTING) | ENDS },
	[CONNECTION_FINISHING] = { "finishing", IN(REATTACHING) | ENDS },
	[CONNECTION_LINGERING] = { "lingering", IN(CLOSING) },
	[CONNECTION_CLOSING] = { "closing", 0 },
	[CONNECTION_PREAMBLE] = { "preamble", IN(HELLO) | IN(RELAYED) | IN(REATTACHING) | ENDS },
	[CONNECTION_RELAYED] = { "relayed", IN(REATTACHING) | ENDS },
	[CONNECTION_REATTACHING] = { "reattaching", IN(WAITING) | IN(HANDSHAKING) | IN(OWNED) | IN(ADOPTING) |
							    IN(RESTING) | IN(FINISHING) | IN(PREAMBLE) | IN(RELAYED) |
							    ENDS },
};

const char *connection_state_name(enum connection_state s)
{
	return state_rows[s].name;
}

bool connection_may_go(enum connection_state from, enum connection_state to)
{
	return (state_rows[from].may_go_to >> to) & 1;
}

static uint64_t handshake_left_ms(const struct connection *c)
{
	const struct preamble *p = c->busy->preamble;
	const uint64_t began_ms = p && p->now.hello_ms ? p->now.hello_ms : c->now.accepted_ms; /* STARTTLS, or accept */
	uint64_t spent_ms = connection_now_ms(c) - began_ms;
	uint64_t limit_ms = connection_limits(c)->handshake_timeout_ms;

	return spent_ms < limit_ms ? limit_ms - spent_ms : 0;
}

static uint64_t sooner_ms(uint64_t limit_ms, uint64_t other_ms)
{
	return other_ms && (limit_ms == 0 || other_ms < limit_ms) ? other_ms : limit_ms;
}

/* A client that waits cannot be heard, so UNHEARD_MS of its silence do not count. However often its owner lets it wait,
 * they are not counted out again before the client is heard. */
static uint64_t silent_ms(const struct connection *c)
{
	const uint64_t since_ms = connection_now_ms(c) - c->now.active_ms;
	const uint64_t unheard_ms = connection_is_unheard(c) ? UNHEARD_MS : 0;

	return since_ms > unheard_ms ? since_ms - unheard_ms : 0;
}

static bool is_silent_too_long(const struct connection *c)
{
	uint64_t idle_ms = connection_limits(c)->idle_timeout_ms;

	return idle_ms && silent_ms(c) >= idle_ms;
}

/* Set the deadline for the next action on a silent connection: its idle time-out, or @other_ms if that is sooner (0:
 * there is nothing else). A move or a rest does not end the silence, so the idle time-out stays as it was. */
static void watch_silence(struct connection *c, uint64_t other_ms)
{
	uint64_t idle_ms = connection_limits(c)->idle_timeout_ms, left_ms = 0;

	if (is_silent_too_long(c))
		left_ms = 1;
	else if (idle_ms)
		left_ms = idle_ms - silent_ms(c);
	if (left_ms || other_ms)
		connection_set_deadline(c, sooner_ms(left_ms, other_ms));
	else
		deadline_cancel(&c->deadline);
}

static uint64_t answer_limit_ms(const struct connection *c)
{
	return ANSWER_LIMIT_FACTOR * (uint64_t)c->home->shared->self->health.lost_ms;
}

/* Set the longest time that the connection may wait in its state. */
void connection_arm_deadline(struct connection *c)
{
	switch ((enum connection_state)c->now.state) {
	case CONNECTION_PROXY:
	case CONNECTION_HELLO:
	case CONNECTION_HANDSHAKING: connection_set_deadline(c, handshake_left_ms(c)); break;
	case CONNECTION_WAITING: connection_set_deadline(c, sooner_ms(WAIT_RETRY_MS, handshake_left_ms(c))); break;
	case CONNECTION_ADOPTING:
	case CONNECTION_FINISHING: connection_set_deadline(c, answer_limit_ms(c)); break;
	case CONNECTION_MOVING: connection_set_deadline(c, c->busy->move_limit_ms + answer_limit_ms(c)); break;
	case CONNECTION_OWNED:
		watch_silence(c, sooner_ms(c->front->conf->rest_after_ms, connection_limits(c)->doze_after_ms));
		break;
	case CONNECTION_RELAYED:
	case CONNECTION_RESTING: watch_silence(c, 0); break;
	case CONNECTION_PREAMBLE: connection_set_deadline(c, connection_preamble_left_ms(c)); break;
	case CONNECTION_REATTACHING:
		/* an agent keeps the stream for a shorter time (sslagent/carrier/link_parked.c), so there are never two
		 * owners */
		connection_set_deadline(c, c->home->shared->self->health.lost_ms);
		break;
	case CONNECTION_LINGERING: /* connection_linger() sets it */
	case CONNECTION_CLOSING: deadline_cancel(&c->deadline); break;
	}
}

bool connection_shakes_hands(const struct connection *c)
{
	if (c->now.state == CONNECTION_REATTACHING)
		return c->now.position.stage == POSITION_HANDSHAKE && !connection_is_in_clear(c);
	return c->now.state == CONNECTION_WAITING || c->now.state == CONNECTION_HANDSHAKING;
}

static bool is_beyond_handshake(const struct connection *c)
{
	if (c->now.state == CONNECTION_REATTACHING)
		return c->now.position.stage != POSITION_HANDSHAKE;
	return c->now.state > CONNECTION_HANDSHAKING && !connection_speaks_clear(c);
}

/* Only an owner has a reason to let its client wait, so the wait ends with the owner. (If an agent says so amid the
 * handshake, the client waits until the agent takes it back or the handshake's time is over.) When CLOSING, nothing is
 * read anyway. */
#define MAY_WAIT (IN(OWNED) | IN(MOVING) | IN(FINISHING) | IN(CLOSING))

void connection_count_state(struct connection *c, enum connection_state state, int by)
{
	struct ragent_counters *n = &c->home->counters;

	if (state == CONNECTION_RESTING)
		counter_add(&n->connections_resting, (uint64_t)by);
	if (state == CONNECTION_WAITING)
		counter_add(&n->connections_waiting, (uint64_t)by);
	if (state == CONNECTION_REATTACHING)
		c->home->reattaching += (unsigned)by;
	if (state == CONNECTION_PREAMBLE)
		counter_add(&n->preambles_under_way, (uint64_t)by);
	if (state == CONNECTION_RELAYED)
		counter_add(&n->connections_relayed, (uint64_t)by);
}

void connection_to(struct connection *c, enum connection_state to)
{
	enum connection_state from = c->now.state;

	assert(connection_may_go(from, to));
	if (log_enabled(LOG_DEBUG))
		log_event(LOG_DEBUG, &c->id, "state", "from=%s to=%s", state_rows[from].name, state_rows[to].name);
	connection_count_state(c, from, -1);
	connection_count_state(c, to, 1);
	/* before the state changes: after a death from here on, the image of the state before counts, or none */
	if (to == CONNECTION_LINGERING || to == CONNECTION_CLOSING)
		connection_void(c);
	else
		connection_touch(c);
	c->now.state = (uint8_t)to;
	if (c->busy && !connection_shakes_hands(c))
		handshake_limit_leave(c->home->handshakes, &c->busy->place);
	if (c->busy && is_beyond_handshake(c))
		connection_preamble_drop(c);
	if (connection_client_waits(c) && !connection_is_in(c, MAY_WAIT))
		connection_set_pace(c, CLIENT_GOES_ON);
	connection_arm_deadline(c);
	if (to == CONNECTION_RESTING)
		connection_may_compact(c);
}

static void states_reassign(struct connection *c, int16_t *place, int agent, enum agent_share share)
{
	struct agents *agents = c->home->shared->agents;

	if (*place == agent)
		return;
	if (*place != NO_AGENT)
		agents_leave(agents, *place, share);
	if (agent != NO_AGENT)
		agents_enter(agents, agent, share);
	*place = (int16_t)agent;
}

void connection_assign(struct connection *c, int affinity, int handshake)
{
	if (handshake != NO_AGENT)
		c->now.handshake_agent = (int16_t)handshake;
	states_reassign(c, &c->now.affinity_agent, affinity, AGENT_CONNECTIONS);
	states_reassign(c, &c->now.handshaking_at, handshake, AGENT_HANDSHAKES);
}

/* --- silence --- */

/* The longest silence while a verdict may be due. An owner that was asked to end has some time for it. */
static uint64_t silence_limit_ms(const struct connection *c)
{
	const uint64_t asked_ms = (uint64_t)connection_limits(c)->idle_timeout_ms + ASKED_GRACE_MS;
	const uint64_t end_ms = c->front->conf->smtp.end_timeout_ms;

	return end_ms > asked_ms ? end_ms : asked_ms;
}

static bool silence_may_await_verdict(const struct connection *c)
{
	const bool under_way =
		c->now.state == CONNECTION_RELAYED || (c->now.state == CONNECTION_OWNED && !connection_is_answered(c));

	/* one that takes nothing is the silent one itself, and no verdict can reach it */
	const bool takes_nothing = c->busy && stream_pending(&c->busy->client) > 0;

	return under_way && !takes_nothing && c->now.current.link &&
	       connection_service(c)->silence == SERVICE_MAY_AWAIT_VERDICT;
}

/* Once for each silence, as far as a compact connection can remember it. */
static void silence_ask_to_end(struct connection *c)
{
	const uint8_t reason = END_IDLE_TIMEOUT;

	if (c->busy && c->busy->asked_ms == c->now.active_ms)
		return;
	if (c->busy)
		c->busy->asked_ms = c->now.active_ms;
	link_send(c->now.current.link, c->now.current.stream, FRAME_FINISH, 0, &reason, 1);
}

/* A byte that comes meanwhile sets no deadline. So the next look is not later than any that it would have set. */
static uint64_t silence_next_look_ms(const struct connection *c, uint64_t left_ms)
{
	const struct conf_limits *limits = connection_limits(c);

	return sooner_ms(sooner_ms(limits->idle_timeout_ms, c->busy ? limits->doze_after_ms : 0), left_ms);
}

/* Only the agent knows whether a verdict is due. So it is asked to end the connection first, and does so unless one
 * is; behind the longer limit it is told to. */
static void silence_end(struct connection *c)
{
	const uint64_t limit_ms = silence_limit_ms(c);

	if (!silence_may_await_verdict(c)) {
		connection_send_finish(c, END_IDLE_TIMEOUT);
	} else if (silent_ms(c) >= limit_ms) {
		connection_send_finish(c, END_BACKEND_TIMEOUT);
	} else {
		silence_ask_to_end(c);
		connection_set_deadline(c, silence_next_look_ms(c, limit_ms - silent_ms(c)));
	}
}

/* The rest of a silence of @limit_ms; if it is over, the whole limit again. */
static uint64_t silence_left_ms(const struct connection *c, uint64_t limit_ms)
{
	return silent_ms(c) < limit_ms ? limit_ms - silent_ms(c) : limit_ms;
}

static void check_silence(struct connection *c)
{
	uint64_t rest_ms = c->now.state == CONNECTION_OWNED ? c->front->conf->rest_after_ms : 0;
	uint64_t compact_ms = c->now.state == CONNECTION_OWNED && c->busy ? connection_limits(c)->doze_after_ms : 0;
	uint64_t next_ms = silence_left_ms(c, rest_ms);

	if (is_silent_too_long(c)) {
		silence_end(c);
		return;
	}
	if (rest_ms && silent_ms(c) >= rest_ms && connection_may_rest(c)) {
		if (!mover_rest(&c->home->mover, c))
			return;
		next_ms = REST_RETRY_MS; /* refused for now */
	}
	if (compact_ms && silent_ms(c) >= compact_ms)
		connection_may_compact(c);
	watch_silence(c, sooner_ms(next_ms, silence_left_ms(c, compact_ms)));
}

/* --- deadlines --- */

/* A request that crossed the goodbye of its owner (RFC 9113 6.8) has as much time as any other. */
static bool is_still_served(const struct connection *c)
{
	const bool is_parting = c->now.end_reason == END_IDLE_TIMEOUT || c->now.end_reason == END_SHUTTING_DOWN ||
				c->now.end_reason == END_OPERATOR;

	return is_parting && !connection_is_answered(c) && !is_silent_too_long(c);
}

static void check_goodbye(struct connection *c)
{
	if (is_still_served(c))
		watch_silence(c, answer_limit_ms(c));
	else
		connection_end(c, (enum end_reason)c->now.end_reason, END_RESET);
}

static void check_order(struct connection *c)
{
	log_event(LOG_WARNING, &c->id, "owner did not answer an order to move",
		"agent=%s effect=\"the agent keeps the connection\"",
		agents_name(connection_agents(c), link_agent(c->now.current.link)));
	counter_add(&c->home->counters.moves_overdue, 1);
	connection_owner_keeps(c, "its owner did not answer in time, so the connection stays there");
}

/* It has waited for its owner for long. While connections of the process before are left, agents keep their streams, so
 * it waits on. */
static void check_owner(struct connection *c)
{
	if (c->home->restoring)
		connection_arm_deadline(c);
	else
		connection_reattach_failed(c);
}

static void act_on_deadline(struct connection *c)
{
	/* each state sets the one deadline anew (connection_arm_deadline()), so the state says what is over */
	switch ((enum connection_state)c->now.state) {
	case CONNECTION_PROXY:
	case CONNECTION_HELLO:
	case CONNECTION_HANDSHAKING: connection_end(c, END_HANDSHAKE_TIMEOUT, END_RESET); break;
	case CONNECTION_WAITING: connection_open_again(c, handshake_left_ms(c)); break;
	case CONNECTION_ADOPTING: connection_end(c, END_MOVE_FAILED, END_RESET); break;
	case CONNECTION_RESTING:
		if (connection_needs_owner(c))
			connection_wake(c, NO_AGENT);
		else
			check_silence(c);
		break;
	case CONNECTION_RELAYED:
	case CONNECTION_OWNED: check_silence(c); break;
	case CONNECTION_PREAMBLE: connection_preamble_on_deadline(c); break;
	case CONNECTION_MOVING: check_order(c); break;
	case CONNECTION_REATTACHING: check_owner(c); break;
	case CONNECTION_FINISHING: check_goodbye(c); break;
	case CONNECTION_LINGERING: connection_end_at_once(c, (enum end_reason)c->now.end_reason); break;
	case CONNECTION_CLOSING: break;
	}
}

void connection_deadline_is_over(struct deadline *d)
{
	struct connection *c = container_of(d, struct connection, deadline);

	if (c->now.state == CONNECTION_CLOSING) { /* it had no stream to close */
		connection_free(c);
		return;
	}
	connection_work_begins(c);
	act_on_deadline(c);
	connection_work_ends(c->home);
	connection_save_if_changed(c);
}
