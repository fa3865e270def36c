/* test_states.c: the state tables of connections, links and the handover agree with the drawings in their headers. */
#include "ragent/connection/connection.h"
#include "ragent/handover/handover_giver.h"
#include "ragent/link/link.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

struct arrow {
	unsigned from, to;
};

static int drawn(const struct arrow *arrows, size_t count, unsigned from, unsigned to)
{
	for (size_t i = 0; i < count; i++)
		if (arrows[i].from == from && arrows[i].to == to)
			return 1;
	return 0;
}

START_TEST(a_connection_goes_where_the_drawing_says)
{
	static const struct arrow arrows[] = {
		{ CONNECTION_PROXY, CONNECTION_HELLO },
		{ CONNECTION_PROXY, CONNECTION_PREAMBLE },
		{ CONNECTION_PREAMBLE, CONNECTION_HELLO },
		{ CONNECTION_PREAMBLE, CONNECTION_RELAYED },
		{ CONNECTION_PREAMBLE, CONNECTION_REATTACHING },
		{ CONNECTION_RELAYED, CONNECTION_REATTACHING },
		{ CONNECTION_REATTACHING, CONNECTION_PREAMBLE },
		{ CONNECTION_REATTACHING, CONNECTION_RELAYED },
		{ CONNECTION_HELLO, CONNECTION_HANDSHAKING },
		{ CONNECTION_HELLO, CONNECTION_WAITING },
		{ CONNECTION_WAITING, CONNECTION_HANDSHAKING },
		{ CONNECTION_HANDSHAKING, CONNECTION_WAITING },
		{ CONNECTION_HANDSHAKING, CONNECTION_OWNED },
		{ CONNECTION_HANDSHAKING, CONNECTION_ADOPTING },
		{ CONNECTION_OWNED, CONNECTION_MOVING },
		{ CONNECTION_OWNED, CONNECTION_ADOPTING },
		{ CONNECTION_OWNED, CONNECTION_RESTING },
		{ CONNECTION_OWNED, CONNECTION_FINISHING },
		{ CONNECTION_MOVING, CONNECTION_OWNED },
		{ CONNECTION_MOVING, CONNECTION_ADOPTING },
		{ CONNECTION_MOVING, CONNECTION_RESTING },
		{ CONNECTION_ADOPTING, CONNECTION_OWNED },
		{ CONNECTION_ADOPTING, CONNECTION_RESTING },
		{ CONNECTION_RESTING, CONNECTION_ADOPTING },
		{ CONNECTION_OWNED, CONNECTION_REATTACHING },
		{ CONNECTION_HANDSHAKING, CONNECTION_REATTACHING },
		{ CONNECTION_ADOPTING, CONNECTION_REATTACHING },
		{ CONNECTION_FINISHING, CONNECTION_REATTACHING },
		{ CONNECTION_REATTACHING, CONNECTION_WAITING },
		{ CONNECTION_REATTACHING, CONNECTION_HANDSHAKING },
		{ CONNECTION_REATTACHING, CONNECTION_OWNED },
		{ CONNECTION_REATTACHING, CONNECTION_ADOPTING },
		{ CONNECTION_REATTACHING, CONNECTION_RESTING },
		{ CONNECTION_REATTACHING, CONNECTION_FINISHING },
	};

	for (unsigned from = 0; from < CONNECTION_STATE_COUNT; from++) {
		for (unsigned to = 0; to < CONNECTION_STATE_COUNT; to++) {
			int lives = from != CONNECTION_LINGERING && from != CONNECTION_CLOSING;
			int ends = (to == CONNECTION_LINGERING && lives) ||
				   (to == CONNECTION_CLOSING && from != CONNECTION_CLOSING);
			ck_assert_msg(
				connection_may_go(from, to) == (ends || drawn(arrows, SUITE_LEN(arrows), from, to)),
				"%s to %s", connection_state_name(from), connection_state_name(to));
		}
	}
}
END_TEST

START_TEST(a_link_goes_where_the_drawing_says)
{
	static const struct arrow arrows[] = {
		{ LINK_WAITING, LINK_OPENING },
		{ LINK_WAITING, LINK_UP },
		{ LINK_OPENING, LINK_UP },
		{ LINK_UP, LINK_SUSPECT },
		{ LINK_SUSPECT, LINK_UP },
		{ LINK_WAITING, LINK_LOSING },
		{ LINK_OPENING, LINK_LOSING },
		{ LINK_UP, LINK_LOSING },
		{ LINK_SUSPECT, LINK_LOSING },
		{ LINK_LOSING, LINK_WAITING },
		{ LINK_LOSING, LINK_CLOSED },
	};

	for (unsigned from = 0; from < LINK_STATE_COUNT; from++)
		for (unsigned to = 0; to < LINK_STATE_COUNT; to++)
			ck_assert_msg(link_may_go(from, to) == drawn(arrows, SUITE_LEN(arrows), from, to), "%u to %u",
				from, to);
}
END_TEST

START_TEST(a_handover_goes_where_the_drawing_says)
{
	static const struct arrow arrows[] = {
		{ GIVER_ALONE, GIVER_GREETED },
		{ GIVER_GREETED, GIVER_OFFERED },
		{ GIVER_OFFERED, GIVER_GIVING },
		{ GIVER_GIVING, GIVER_OFFERED },
		{ GIVER_OFFERED, GIVER_REPLACED },
		{ GIVER_GREETED, GIVER_ALONE },
		{ GIVER_OFFERED, GIVER_ALONE },
		{ GIVER_GIVING, GIVER_ALONE },
	};

	for (unsigned from = 0; from < GIVER_STATE_COUNT; from++)
		for (unsigned to = 0; to < GIVER_STATE_COUNT; to++)
			ck_assert_msg(handover_giver_may_go(from, to) == drawn(arrows, SUITE_LEN(arrows), from, to),
				"%u to %u", from, to);
}
END_TEST

UNIT(states)
{
	const TTest *const facts[] = {
		a_connection_goes_where_the_drawing_says,
		a_link_goes_where_the_drawing_says,
		a_handover_goes_where_the_drawing_says,
	};

	return suite_run("states", facts, SUITE_LEN(facts));
}
