/* test_takeover.c: facts of what becomes of a lost agent's connection. */
#include "ragent/takeover.h"
#include "tests/unit/proto/suite.h"

/* Idle, at a checkpoint, with a copy: the best case. Each fact spoils one thing. */
static struct takeover_facts resting_case(void)
{
	return (struct takeover_facts){ .stage = POSITION_LIVE,
		.response = POSITION_AT_CHECKPOINT,
		.server_records = 10,
		.copy = TAKEOVER_HAS_COPY,
		.from_start = TAKEOVER_SOME_DROPPED };
}

START_TEST(an_idle_connection_at_a_checkpoint_rests)
{
	struct takeover_facts f = resting_case();

	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_REST);
}
END_TEST

START_TEST(tls13_behind_a_link_that_others_can_read_ends)
{
	struct takeover_facts f = resting_case();

	f.link = TAKEOVER_LINK_EXPOSED;
	f.protocol_version = 0x0303;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_REST);
	f.protocol_version = 0x0304;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_END);
}
END_TEST

START_TEST(records_that_no_agent_saw_are_adopted_with_it)
{
	struct takeover_facts f = resting_case();

	f.unsent_records = 1;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_ADOPT);
}
END_TEST

START_TEST(a_request_that_the_lost_agent_may_have_acted_on_ends_it)
{
	struct takeover_facts f = resting_case();

	f.sent_records = 1;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_END);
	f.unsent_records = 1;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_END);
}
END_TEST

START_TEST(away_from_a_checkpoint_it_ends)
{
	struct takeover_facts f = resting_case();

	f.response = POSITION_NOTHING_DELIVERED;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_END);
	f.response = POSITION_PARTLY_DELIVERED;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_END);
}
END_TEST

START_TEST(without_a_copy_it_ends)
{
	struct takeover_facts f = resting_case();

	f.copy = TAKEOVER_NO_COPY;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_END);
}
END_TEST

START_TEST(a_handshake_begins_again_while_the_client_has_seen_nothing)
{
	struct takeover_facts f = { .stage = POSITION_HANDSHAKE, .sent_records = 1, .from_start = TAKEOVER_ALL_KEPT };

	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_RESTART);
	f.server_records = 1;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_END);
	f.server_records = 0;
	f.from_start = TAKEOVER_SOME_DROPPED;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_END);
}
END_TEST

int main(void)
{
	const TTest *const facts[] = {
		an_idle_connection_at_a_checkpoint_rests,
		tls13_behind_a_link_that_others_can_read_ends,
		records_that_no_agent_saw_are_adopted_with_it,
		a_request_that_the_lost_agent_may_have_acted_on_ends_it,
		away_from_a_checkpoint_it_ends,
		without_a_copy_it_ends,
		a_handshake_begins_again_while_the_client_has_seen_nothing,
	};

	return suite_run("takeover", facts, SUITE_LEN(facts));
}
