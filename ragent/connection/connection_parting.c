/* connection_parting.c: goodbye to a silent connection, at a stop, and for an operator. */
#include "ragent/connection/connection_end.h"
#include "ragent/connection/connection_owner.h"
#include "ragent/connection/connection_preamble.h"
#include "ragent/connection/connection_states.h"

#define ASKED_GRACE_MS 2000u

bool connection_is_answered(const struct connection *c)
{
	return c->now.position.stage == POSITION_LIVE && c->now.position.response == POSITION_AT_CHECKPOINT &&
	       (!c->busy || kept_len(&c->busy->kept) == 0);
}

void connection_send_finish(struct connection *c, enum end_reason reason)
{
	uint8_t byte = (uint8_t)reason;

	if (connection_speaks_clear(c)) {
		connection_preamble_finish(c, reason);
		return;
	}
	if (c->now.state != CONNECTION_OWNED) {
		bool all_said = connection_is_answered(c) || c->now.server_side == SERVER_SAID_LAST;
		connection_end(c, reason, all_said ? END_ORDERLY : END_RESET);
		return;
	}
	c->now.end_reason = byte;
	connection_to(c, CONNECTION_FINISHING);
	link_send(c->now.current.link, c->now.current.stream, FRAME_FINISH, 0, &byte, 1);
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
	uint64_t next_ms = limits->idle_timeout_ms;

	if (c->busy && limits->doze_after_ms && limits->doze_after_ms < next_ms)
		next_ms = limits->doze_after_ms;
	return left_ms < next_ms ? left_ms : next_ms;
}

/* Only the agent knows whether a verdict is due. So it is asked to end the connection first, and does so unless one
 * is; behind the longer limit it is told to. */
void connection_end_silence(struct connection *c, uint64_t silent_ms)
{
	const uint64_t limit_ms = silence_limit_ms(c);

	if (!silence_may_await_verdict(c)) {
		connection_send_finish(c, END_IDLE_TIMEOUT);
	} else if (silent_ms >= limit_ms) {
		connection_send_finish(c, END_BACKEND_TIMEOUT);
	} else {
		silence_ask_to_end(c);
		connection_set_deadline(c, silence_next_look_ms(c, limit_ms - silent_ms));
	}
}

/* --- a stop, an operator --- */

void connection_drain(struct connection *c)
{
	if (connection_speaks_clear(c))
		connection_preamble_finish(c, END_SHUTTING_DOWN);
	else if (c->now.state <= CONNECTION_WAITING)
		connection_end(c, END_SHUTTING_DOWN, END_ORDERLY);
	else
		connection_drain_if_idle(c);
}

void connection_drain_if_idle(struct connection *c)
{
	if (c->home->state != HOME_DRAINING || connection_is_unheard(c))
		return;
	if ((c->now.state == CONNECTION_RESTING && !connection_needs_owner(c)) ||
		(c->now.state == CONNECTION_OWNED && connection_is_answered(c)))
		connection_send_finish(c, END_SHUTTING_DOWN);
}

void connection_kill(struct connection *c)
{
	connection_end_at_once(c, END_SHUTTING_DOWN);
}

bool connection_end_by_operator(struct connection *c, enum connection_end_how how)
{
	const bool is_over = connection_is_over(c);

	if (how == END_RESET)
		connection_end_at_once(c, END_OPERATOR);
	else if (is_over || c->now.state == CONNECTION_FINISHING)
		return false;
	else
		connection_send_finish(c, END_OPERATOR);
	connection_save_if_changed(c);
	return !is_over;
}
