/* test_takeover.c: facts of the decision about a lost agent's connection. */
#include "ragent/connection/takeover.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define RECORD 23, 3, 3, 0, 1, 'x'

enum from_start { SOME_DROPPED, ALL_KEPT };

/* What differs from case to case. */
struct facts {
	enum position_stage stage;
	enum position_response response;
	enum conf_service service;
	enum conf_agent_loss on_agent_loss;
	uint64_t server_records;
	unsigned sent_records, unsent_records; /* of the client, that are not consumed; two at most */
	unsigned losses, restarts;
	uint16_t protocol_version;
	enum { HAS_NO_COPY, HAS_COPY } copy;
	enum { HAS_NO_NOTE, HAS_NOTE } note;
	enum from_start from_start;
	enum { LINK_IS_PRIVATE, LINK_IS_READABLE } link;
	enum server_side client;
};

static enum takeover decide(const struct facts *f)
{
	static uint8_t records[] = { RECORD, RECORD };
	static struct sealed_blob blob;
	static struct agreed agreed;
	struct conf_listener listener = { .service = f->service, .on_agent_loss = f->on_agent_loss };
	struct front front = { .conf = &listener };
	struct conf_agent lost = { .link_protection = f->link == LINK_IS_READABLE ? LINK_TRUSTED : LINK_SEALED };
	struct busy_part busy = { .exposure.losses = (uint8_t)f->losses };
	struct connection c = { .front = &front,
		.busy = &busy,
		.now.state = CONNECTION_OWNED,
		.now.restarts = (uint8_t)f->restarts,
		.now.server_side = (uint8_t)f->client };
	const uint32_t sent = f->sent_records * (uint32_t)sizeof records / 2;
	const uint64_t first = f->from_start == ALL_KEPT ? 0 : 3;

	((struct sockaddr_in *)&lost.link)->sin_family = AF_INET;
	((struct sockaddr_in *)&lost.link)->sin_addr.s_addr = htonl(0xc0000201);
	agreed.protocol_version = f->protocol_version;
	c.now.agreed = f->protocol_version ? &agreed : NULL;
	c.now.copies.current = f->copy == HAS_COPY ? &blob : NULL;
	busy.note.current = f->note == HAS_NOTE ? &blob : NULL;
	busy.kept = (struct kept){ .data = records,
		.sent = sent,
		.end = sent + f->unsent_records * (uint32_t)sizeof records / 2,
		.first_record = first,
		.consumed_record = first,
		.next_record = first + f->sent_records + f->unsent_records };
	c.now.position.stage = (uint8_t)f->stage;
	c.now.position.response = (uint8_t)f->response;
	c.now.position.server_records = f->server_records;
	return takeover_decide(&c, &lost);
}

/* Idle http, at a checkpoint, with a copy: the best case. Each fact spoils one thing. */
static struct facts resting_case(void)
{
	return (struct facts){ .stage = POSITION_LIVE,
		.response = POSITION_AT_CHECKPOINT,
		.service = CONF_HTTP,
		.server_records = 10,
		.copy = HAS_COPY };
}

/* Bytes went neither way yet. */
static struct facts untouched_tcp(void)
{
	struct facts f = resting_case();

	f.service = CONF_TCP;
	return f;
}

START_TEST(an_idle_connection_at_a_checkpoint_rests)
{
	struct facts f = resting_case();

	ck_assert_int_eq(decide(&f), TAKEOVER_REST);
}
END_TEST

START_TEST(a_service_that_never_rests_gets_another_agent_at_once)
{
	struct facts f = resting_case();

	f.service = CONF_H2;
	ck_assert_int_eq(decide(&f), TAKEOVER_ADOPT);
}
END_TEST

START_TEST(tls13_behind_a_link_that_others_can_read_ends)
{
	struct facts f = resting_case();

	f.link = LINK_IS_READABLE;
	f.protocol_version = 0x0303;
	ck_assert_int_eq(decide(&f), TAKEOVER_REST);
	f.protocol_version = 0x0304;
	ck_assert_int_eq(decide(&f), TAKEOVER_END);
}
END_TEST

START_TEST(records_that_no_agent_saw_are_adopted_with_it)
{
	struct facts f = resting_case();

	f.unsent_records = 1;
	ck_assert_int_eq(decide(&f), TAKEOVER_ADOPT);
}
END_TEST

START_TEST(a_request_that_the_lost_agent_may_have_acted_on_is_for_the_adopter_to_judge)
{
	struct facts f = resting_case();

	f.sent_records = 1;
	ck_assert_int_eq(decide(&f), TAKEOVER_ADOPT);
	f.sent_records = 0;
	f.response = POSITION_NOTHING_DELIVERED;
	ck_assert_int_eq(decide(&f), TAKEOVER_ADOPT);
}
END_TEST

START_TEST(half_an_answer_can_only_go_on_as_a_download)
{
	struct facts f = resting_case();

	f.response = POSITION_PARTLY_DELIVERED;
	ck_assert_int_eq(decide(&f), TAKEOVER_ALERT);
	f.note = HAS_NOTE;
	ck_assert_int_eq(decide(&f), TAKEOVER_ADOPT);
}
END_TEST

START_TEST(an_untouched_tcp_conversation_begins_anew_where_that_is_wanted)
{
	struct facts f = untouched_tcp();

	f.on_agent_loss = CONF_RECONNECT;
	ck_assert_int_eq(decide(&f), TAKEOVER_ADOPT);
	f.unsent_records = 1; /* no agent saw it */
	ck_assert_int_eq(decide(&f), TAKEOVER_ADOPT);
	f.on_agent_loss = CONF_CLOSE;
	ck_assert_int_eq(decide(&f), TAKEOVER_ALERT);
}
END_TEST

START_TEST(a_tcp_conversation_that_has_begun_is_cut_off)
{
	struct facts f = untouched_tcp();

	f.on_agent_loss = CONF_RECONNECT;
	f.sent_records = 1;
	ck_assert_int_eq(decide(&f), TAKEOVER_ALERT);
	f = untouched_tcp();
	f.on_agent_loss = CONF_RECONNECT;
	f.response = POSITION_NOTHING_DELIVERED;
	ck_assert_int_eq(decide(&f), TAKEOVER_ALERT);
	f.response = POSITION_PARTLY_DELIVERED;
	f.note = HAS_NOTE;
	ck_assert_int_eq(decide(&f), TAKEOVER_ALERT);
}
END_TEST

START_TEST(a_request_is_asked_again_once_then_its_client_is_told_then_it_ends)
{
	struct facts f = resting_case();

	f.response = POSITION_NOTHING_DELIVERED;
	f.losses = 1;
	ck_assert_int_eq(decide(&f), TAKEOVER_ADOPT);
	f.losses = 2;
	ck_assert_int_eq(decide(&f), TAKEOVER_ALERT);
	f.losses = 3;
	ck_assert_int_eq(decide(&f), TAKEOVER_END);
}
END_TEST

START_TEST(without_a_copy_it_ends)
{
	struct facts f = resting_case();

	f.copy = HAS_NO_COPY;
	ck_assert_int_eq(decide(&f), TAKEOVER_END);
}
END_TEST

START_TEST(a_client_that_heard_the_end_can_hear_nothing_more)
{
	struct facts f = untouched_tcp();

	f.response = POSITION_PARTLY_DELIVERED;
	f.client = SERVER_FIN;
	ck_assert_int_eq(decide(&f), TAKEOVER_END);
}
END_TEST

START_TEST(a_client_that_was_told_all_gets_its_fin)
{
	struct facts f = untouched_tcp();

	f.client = SERVER_CLOSE_NOTIFY;
	f.sent_records = 1;
	ck_assert_int_eq(decide(&f), TAKEOVER_END); /* it may have gone on talking */
	f.service = CONF_HTTP;
	ck_assert_int_eq(decide(&f), TAKEOVER_OVER);
}
END_TEST

START_TEST(a_handshake_begins_again_while_the_client_has_seen_nothing)
{
	struct facts f = { .stage = POSITION_HANDSHAKE, .sent_records = 1, .from_start = ALL_KEPT };

	ck_assert_int_eq(decide(&f), TAKEOVER_RESTART);
	f.server_records = 1;
	ck_assert_int_eq(decide(&f), TAKEOVER_END);
	f.server_records = 0;
	f.from_start = SOME_DROPPED;
	ck_assert_int_eq(decide(&f), TAKEOVER_END);
}
END_TEST

START_TEST(a_handshake_begins_again_so_often_and_no_more)
{
	struct facts f = { .stage = POSITION_HANDSHAKE, .sent_records = 1, .from_start = ALL_KEPT };

	f.restarts = TAKEOVER_RESTARTS_MAX - 1;
	ck_assert_int_eq(decide(&f), TAKEOVER_RESTART);
	f.restarts = TAKEOVER_RESTARTS_MAX;
	ck_assert_int_eq(decide(&f), TAKEOVER_REFUSE);
	f.server_records = 1; /* a client that has seen a server is told nothing in the clear */
	ck_assert_int_eq(decide(&f), TAKEOVER_END);
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
