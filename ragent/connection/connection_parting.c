/* connection_parting.c: goodbye by an owner: at a stop, and for an operator. */
#include "ragent/connection/connection_end.h"
#include "ragent/connection/connection_owner.h"
#include "ragent/connection/connection_preamble.h"
#include "ragent/connection/connection_states.h"

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

/* --- a stop, an operator --- */

static void parting_drain(struct connection *c)
{
	if (connection_speaks_clear(c))
		connection_preamble_finish(c, END_SHUTTING_DOWN);
	else if (c->now.state <= CONNECTION_WAITING)
		connection_end(c, END_SHUTTING_DOWN, END_ORDERLY);
	else
		connection_drain_if_idle(c);
}

void connection_home_drain(struct connection_home *home)
{
	home->state = HOME_DRAINING;
	mover_stop(&home->mover);
	connection_home_each(home, parting_drain);
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
