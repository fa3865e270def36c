/* test_connection_states.c: the states of an agent's connection agree with their drawing, and the table of events says
 * something about every event in every state. */
#include <unistd.h>

#include "tests/unit/moves.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

/* The drawing of connection.h; every state but ENDED may go to ENDED. */
static const struct arrow {
	enum connection_state from, to;
} arrows[] = {
	{ CONNECTION_HANDSHAKING, CONNECTION_PARKED },
	{ CONNECTION_PARKED, CONNECTION_HANDSHAKING },
	{ CONNECTION_HANDSHAKING, CONNECTION_FROZEN },
	{ CONNECTION_HANDSHAKING, CONNECTION_OWNER },
	{ CONNECTION_ADOPTING, CONNECTION_OWNER },
	{ CONNECTION_OWNER, CONNECTION_PASSING },
	{ CONNECTION_PASSING, CONNECTION_OWNER },
	{ CONNECTION_PASSING, CONNECTION_FROZEN },
	{ CONNECTION_OWNER, CONNECTION_FROZEN },
	{ CONNECTION_OWNER, CONNECTION_RECOVERING },
	{ CONNECTION_RECOVERING, CONNECTION_OWNER },
	{ CONNECTION_OWNER, CONNECTION_SETTLING },
	{ CONNECTION_SETTLING, CONNECTION_OWNER },
	{ CONNECTION_SETTLING, CONNECTION_FROZEN },
	{ CONNECTION_OWNER, CONNECTION_ENDING },
	{ CONNECTION_RECOVERING, CONNECTION_ENDING },
	{ CONNECTION_PASSING, CONNECTION_ENDING },
	{ CONNECTION_SETTLING, CONNECTION_ENDING },
};

static int is_drawn(enum connection_state from, enum connection_state to)
{
	for (size_t i = 0; i < SUITE_LEN(arrows); i++)
		if (arrows[i].from == from && arrows[i].to == to)
			return 1;
	return to == CONNECTION_ENDED && from != CONNECTION_ENDED;
}

static void move_connection(int from, int to)
{
	struct connection c = { .state = (uint8_t)from };

	connection_to(&c, (enum connection_state)to);
	if (c.state != to)
		_exit(1);
}

START_TEST(a_connection_goes_where_the_drawing_says_or_ends_the_process)
{
	enum connection_state from = (enum connection_state)_i;

	for (int to = 0; to < CONNECTION_STATE_COUNT; to++)
		ck_assert_msg(move_is_allowed(move_connection, from, to) == is_drawn(from, (enum connection_state)to),
			"%s -> %s", connection_state_name(from), connection_state_name((enum connection_state)to));
}
END_TEST

START_TEST(every_event_has_a_reaction_in_every_state_and_a_reason_if_that_is_not_plain)
{
	for (int event = 0; event < EVENT_COUNT; event++) {
		for (int state = 0; state < CONNECTION_STATE_COUNT; state++) {
			const struct connection_table_cell *cell = &connection_reactions[event][state];
			ck_assert_msg(cell->fn != NULL && (cell->verdict == EVENT_DONE) == (cell->why == NULL),
				"%s in state %s", connection_event_names[event], connection_state_name(state));
		}
	}
}
END_TEST

/* Of what the world outside may do, no event is taken for impossible in a state that the world can see. */
START_TEST(no_carrier_can_say_what_is_taken_for_impossible)
{
	static const enum connection_event_kind carriers[] = { EVENT_RECORDS, EVENT_ACCEPTED, EVENT_FIN,
		EVENT_VIOLATION, EVENT_MOVE, EVENT_GIVE_UP, EVENT_FORGET };

	for (size_t i = 0; i < SUITE_LEN(carriers); i++) {
		for (int state = 0; state < CONNECTION_STATE_COUNT; state++) {
			if (state != CONNECTION_ADOPTING)
				ck_assert_int_ne(connection_reactions[carriers[i]][state].verdict, EVENT_NEVER);
		}
	}
}
END_TEST

START_TEST(an_ended_connection_ignores_its_carrier)
{
	static const struct frame_accepted accepted = { .drained = UINT64_MAX };
	static const struct frame_violation violation = { .type = 1 };
	uint8_t record[] = { TLS_APPLICATION_DATA, 3, 3, 0, 1, 0 };
	struct connection *c;

	keep("http", &a1, TLS13);
	c = fake_owner(&r);
	connection_give_up(c, END_IDLE_TIMEOUT);
	ck_assert_int_eq(c->state, CONNECTION_ENDED);
	fake_records(c, record, sizeof record);
	connection_accepted(c, &accepted);
	connection_fin(c);
	connection_violation(c, &violation);
	connection_give_up(c, END_DONE);
	connection_forget(c, END_DONE);
	ck_assert_int_eq(c->state, CONNECTION_ENDED);
	ck_assert_uint_ne(c->drained, accepted.drained);
	ck_assert_uint_eq(connection_waiting(c), 0);
}
END_TEST

UNIT(connection_states)
{
	const struct connection_fact facts[] = {
		{ a_connection_goes_where_the_drawing_says_or_ends_the_process, CONNECTION_STATE_COUNT },
		{ every_event_has_a_reaction_in_every_state_and_a_reason_if_that_is_not_plain, 1 },
		{ no_carrier_can_say_what_is_taken_for_impossible, 1 },
		{ an_ended_connection_ignores_its_carrier, 1 },
	};

	return connection_suite_run("connection_states", facts, SUITE_LEN(facts));
}
