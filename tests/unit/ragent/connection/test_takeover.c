/* test_takeover.c: facts of the decision about a lost agent's connection. */
#include "ragent/connection/takeover.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

/* Idle http, at a checkpoint, with a copy: the best case. Each fact spoils one thing. */
static struct takeover_facts resting_case(void)
{
	return (struct takeover_facts){ .stage = POSITION_LIVE,
		.response = POSITION_AT_CHECKPOINT,
		.service = &service_traits[CONF_HTTP],
		.server_records = 10,
		.copy = TAKEOVER_HAS_COPY,
		.from_start = TAKEOVER_SOME_DROPPED };
}

/* Bytes went neither way yet. */
static struct takeover_facts untouched_tcp(void)
{
	struct takeover_facts f = resting_case();

	f.service = &service_traits[CONF_TCP];
	return f;
}

START_TEST(an_idle_connection_at_a_checkpoint_rests)
{
	struct takeover_facts f = resting_case();

	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_REST);
}
END_TEST

START_TEST(a_service_that_never_rests_gets_another_agent_at_once)
{
	struct takeover_facts f = resting_case();
	struct service_traits never_rests = *f.service;

	never_rests.rest = SERVICE_NEVER_RESTS;
	f.service = &never_rests;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_ADOPT);
}
END_TEST

START_TEST(tls13_behind_a_link_that_others_can_read_ends)
{
	struct takeover_facts f = resting_case();

	f.link = TAKEOVER_LINK_READABLE;
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

START_TEST(a_request_that_the_lost_agent_may_have_acted_on_is_for_the_adopter_to_judge)
{
	struct takeover_facts f = resting_case();

	f.sent_records = 1;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_ADOPT);
	f.sent_records = 0;
	f.response = POSITION_NOTHING_DELIVERED;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_ADOPT);
}
END_TEST

START_TEST(half_an_answer_can_only_go_on_as_a_download)
{
	struct takeover_facts f = resting_case();

	f.response = POSITION_PARTLY_DELIVERED;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_ALERT);
	f.download = TAKEOVER_HAS_DOWNLOAD;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_ADOPT);
}
END_TEST

START_TEST(an_untouched_tcp_conversation_begins_anew_where_that_is_wanted)
{
	struct takeover_facts f = untouched_tcp();

	f.on_agent_loss = CONF_RECONNECT;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_ADOPT);
	f.unsent_records = 1; /* no agent saw it */
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_ADOPT);
	f.on_agent_loss = CONF_CLOSE;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_ALERT);
}
END_TEST

START_TEST(a_tcp_conversation_that_has_begun_is_cut_off)
{
	struct takeover_facts f = untouched_tcp();

	f.on_agent_loss = CONF_RECONNECT;
	f.sent_records = 1;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_ALERT);
	f = untouched_tcp();
	f.on_agent_loss = CONF_RECONNECT;
	f.response = POSITION_NOTHING_DELIVERED;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_ALERT);
	f.response = POSITION_PARTLY_DELIVERED;
	f.download = TAKEOVER_HAS_DOWNLOAD;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_ALERT);
}
END_TEST

START_TEST(a_request_is_asked_again_once_then_its_client_is_told_then_it_ends)
{
	struct takeover_facts f = resting_case();

	f.response = POSITION_NOTHING_DELIVERED;
	f.losses = 1;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_ADOPT);
	f.losses = 2;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_ALERT);
	f.losses = 3;
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

START_TEST(a_client_that_heard_the_end_can_hear_nothing_more)
{
	struct takeover_facts f = untouched_tcp();

	f.response = POSITION_PARTLY_DELIVERED;
	f.client = TAKEOVER_CLIENT_TOLD_END;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_END);
}
END_TEST

START_TEST(a_client_that_was_told_all_gets_its_fin)
{
	struct takeover_facts f = untouched_tcp();

	f.client = TAKEOVER_CLIENT_TOLD_LAST;
	f.sent_records = 1;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_END); /* it may have gone on talking */
	f.service = &service_traits[CONF_HTTP];
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_OVER);
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

START_TEST(a_handshake_begins_again_so_often_and_no_more)
{
	struct takeover_facts f = { .stage = POSITION_HANDSHAKE, .sent_records = 1, .from_start = TAKEOVER_ALL_KEPT };

	f.restarts = TAKEOVER_RESTARTS_MAX - 1;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_RESTART);
	f.restarts = TAKEOVER_RESTARTS_MAX;
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_REFUSE);
	f.server_records = 1; /* a client that has seen a server is told nothing in the clear */
	ck_assert_int_eq(takeover_decide(&f), TAKEOVER_END);
}
END_TEST

UNIT(takeover)
{
	const TTest *const facts[] = {
		an_idle_connection_at_a_checkpoint_rests,
		a_service_that_never_rests_gets_another_agent_at_once,
		tls13_behind_a_link_that_others_can_read_ends,
		records_that_no_agent_saw_are_adopted_with_it,
		a_request_that_the_lost_agent_may_have_acted_on_is_for_the_adopter_to_judge,
		half_an_answer_can_only_go_on_as_a_download,
		an_untouched_tcp_conversation_begins_anew_where_that_is_wanted,
		a_tcp_conversation_that_has_begun_is_cut_off,
		a_request_is_asked_again_once_then_its_client_is_told_then_it_ends,
		without_a_copy_it_ends,
		a_client_that_heard_the_end_can_hear_nothing_more,
		a_client_that_was_told_all_gets_its_fin,
		a_handshake_begins_again_while_the_client_has_seen_nothing,
		a_handshake_begins_again_so_often_and_no_more,
	};

	return suite_run("takeover", facts, SUITE_LEN(facts));
}
