/* test_operations_sessions.c: questions to agents about their sessions, and the answers made of theirs. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/ragent/control/operations/operations_doubles.h"
#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

static struct operations o;

static void begin(void)
{
	dispatcher_start(NULL);
	o = (struct operations){ .main = w, .shared = &d.shared, .workers = &d.rw, .worker_count = 1 };
}

#define ASK(name, ...) operations_##name(&o, &(const struct control_input){ __VA_ARGS__ }, request)

static void say(int agent, Cssl__LinkResponse *answer)
{
	fake_agent_say(d.agents[agent], 0, FRAME_RESPONSE, &answer->base);
}

/* One session, as an agent tells it. */
static struct {
	Cssl__LinkResponse__Sessions page;
	Cssl__Session session, *rows[1];
} one_told;

static ProtobufCBinaryData next_of_page; /* empty: it is the last one */

static void session_tell(int agent, Cssl__LinkResponse *answer, uint32_t hits)
{
	static uint8_t id[SESSION_ID_LEN] = { 1, 2, 3 }, family[FAMILY_ID_LEN] = { 4 }, client[4] = { 10, 1, 2, 3 };

	cssl__link_response__sessions__init(&one_told.page);
	cssl__session__init(&one_told.session);
	one_told.rows[0] = &one_told.session;
	one_told.page.session = one_told.rows;
	one_told.page.n_session = 1;
	one_told.page.next = next_of_page;
	one_told.session.session_id = (ProtobufCBinaryData){ sizeof id, id };
	one_told.session.family_id = (ProtobufCBinaryData){ sizeof family, family };
	one_told.session.client_address = (ProtobufCBinaryData){ sizeof client, client };
	one_told.session.server_name = (ProtobufCBinaryData){ 6, (uint8_t *)"x.test" };
	one_told.session.origin = (char *)"a1";
	one_told.session.listener = (char *)"sf";
	one_told.session.protocol_version = 0x0304;
	one_told.session.cipher_suite = 0x1301;
	one_told.session.hits = hits;
	one_told.session.expires_s = 100;
	answer->what_case = CSSL__LINK_RESPONSE__WHAT_SESSIONS;
	answer->sessions = &one_told.page;
	say(agent, answer);
}

START_TEST(a_page_is_asked_of_one_agent_with_all_that_was_asked)
{
	Cssl__LinkResponse answer;
	static uint8_t client[] = { 10, 1, 0, 0 };
	const struct control_input in = { .session = SESSION_GIVEN,
		.session_id = { 7 },
		.limit = 5,
		FILTER(.server_name = (char *)"x.test", .client_address = { sizeof client, client },
			.client_prefix = 16, .protocol_version = 0x0304, .cipher_suite = 0x1301, .min_age_s = 3,
			.max_age_s = 9) };

	begin();
	operations_sessions(&o, &in, request);
	Cssl__LinkRequest *m = request_at(0, &answer);
	ck_assert_int_eq(m->what_case, CSSL__LINK_REQUEST__WHAT_SESSIONS);
	ck_assert_uint_eq(m->sessions->limit, 5);
	ck_assert_mem_eq(m->sessions->after.data, in.session_id, SESSION_ID_LEN);
	const Cssl__SessionFilter *f = m->sessions->filter;
	ck_assert_str_eq(f->server_name, "x.test");
	ck_assert_mem_eq(f->client_address.data, client, 4);
	ck_assert_uint_eq(f->client_prefix, 16);
	ck_assert_uint_eq(f->protocol_version, 0x0304);
	ck_assert_uint_eq(f->cipher_suite, 0x1301);
	ck_assert_uint_eq(f->min_age_s, 3);
	ck_assert_uint_eq(f->max_age_s, 9);
	cssl__link_request__free_unpacked(m, NULL);
	no_frame(FRAME_REQUEST);
	session_tell(0, &answer, 2);
	answered_with(200);
	ck_assert_uint_eq(told_size("sessions"), 1);
	ck_assert_str_eq(told_text("sessions.0.server_name"), "x.test");
	ck_assert_uint_eq(told_integer("sessions.0.hits"), 2);
	ck_assert_str_eq(told_text("sessions.0.client"), "10.1.2.3");
	ck_assert(json_is_null(told("next")));
}
END_TEST

START_TEST(a_page_says_where_the_next_begins)
{
	Cssl__LinkResponse answer;
	static uint8_t id[SESSION_ID_LEN] = { 1, 2, 3 };

	begin();
	ASK(sessions, FILTER(), .limit = 1);
	cssl__link_request__free_unpacked(request_at(0, &answer), NULL);
	next_of_page = (ProtobufCBinaryData){ sizeof id, id };
	session_tell(0, &answer, 2);
	answered_with(200);
	ck_assert_uint_eq(told_size("sessions"), 1);
	ck_assert_str_eq(told_text("next"), told_text("sessions.0.id"));
}
END_TEST

START_TEST(a_page_comes_from_the_next_agent_when_one_is_lost)
{
	Cssl__LinkResponse answer;

	begin();
	ASK(sessions, FILTER(), .limit = 1);
	cssl__link_request__free_unpacked(request_at(0, &answer), NULL);
	fake_agent_die(d.agents[0]);
	cssl__link_request__free_unpacked(request_at(1, &answer), NULL);
	session_tell(1, &answer, 0);
	answered_with(200);
	ck_assert_uint_eq(told_size("sessions"), 1);
}
END_TEST

START_TEST(a_session_that_is_malformed_is_left_out)
{
	Cssl__LinkResponse answer;

	begin();
	ASK(sessions, FILTER(), .limit = 1);
	cssl__link_request__free_unpacked(request_at(0, &answer), NULL);
	Cssl__LinkResponse__Sessions page = CSSL__LINK_RESPONSE__SESSIONS__INIT;
	Cssl__Session bad = CSSL__SESSION__INIT, *rows[] = { &bad };
	page.session = rows;
	page.n_session = 1;
	answer.what_case = CSSL__LINK_RESPONSE__WHAT_SESSIONS;
	answer.sessions = &page;
	say(0, &answer);
	answered_with(200);
	ck_assert_uint_eq(told_size("sessions"), 0);
	ck_assert(json_is_null(told("next")));
}
END_TEST

START_TEST(a_strange_answer_is_no_page)
{
	Cssl__LinkResponse answer;

	begin();
	ASK(sessions, FILTER(), .limit = 1);
	cssl__link_request__free_unpacked(request_at(0, &answer), NULL);
	say(0, &answer);
	answered_with(503);
}
END_TEST

START_TEST(where_some_agents_hold_each_a_page_is_asked_of_all_and_merged)
{
	Cssl__LinkResponse answer;

	begin();
	d.conf->broadcast.replicas = 2;
	ASK(sessions, FILTER(), .limit = 5);
	for (int agent = 0; agent < AGENTS; agent++) {
		cssl__link_request__free_unpacked(request_at(agent, &answer), NULL);
		session_tell(agent, &answer, 3);
	}
	answered_with(200);
	ck_assert_uint_eq(told_size("sessions"), 1);
	ck_assert_uint_eq(told_integer("sessions.0.hits"), 3 * AGENTS);
}
END_TEST

static void count_tell(int agent, uint64_t sessions, uint64_t counted)
{
	Cssl__LinkResponse answer;
	Cssl__LinkResponse__SessionCount count = CSSL__LINK_RESPONSE__SESSION_COUNT__INIT;

	cssl__link_request__free_unpacked(request_at(agent, &answer), NULL);
	count.sessions = sessions;
	count.counted = counted;
	answer.what_case = CSSL__LINK_RESPONSE__WHAT_SESSION_COUNT;
	answer.session_count = &count;
	say(agent, &answer);
}

START_TEST(the_fullest_agent_counts_and_silent_ones_are_named)
{
	begin();
	fake_agent_die(d.agents[1]);
	wait_until(agents_up() == AGENTS - 1);
	ASK(session_count, FILTER());
	count_tell(0, 7, 7);
	count_tell(2, 9, 9);
	answered_with(200);
	ck_assert_uint_eq(told_integer("sessions"), 9);
	ck_assert_uint_eq(told_size("agents"), AGENTS - 1);
	ck_assert_uint_eq(told_integer("agents.a0"), 7);
	ck_assert_uint_eq(told_size("silent"), 1);
	ck_assert_str_eq(told_text("silent.a1"), "not up");
}
END_TEST

START_TEST(where_some_agents_hold_each_what_one_agent_counts_is_summed_up)
{
	begin();
	d.conf->broadcast.replicas = 2;
	ASK(session_count, FILTER());
	for (int agent = 0; agent < AGENTS; agent++)
		count_tell(agent, 10, 4);
	answered_with(200);
	ck_assert_uint_eq(told_integer("sessions"), 4 * AGENTS);
	ck_assert_uint_eq(told_integer("agents.a1"), 10);
}
END_TEST

START_TEST(a_count_of_all_carries_no_filter)
{
	Cssl__LinkResponse answer;

	begin();
	ASK(session_count, FILTER());
	Cssl__LinkRequest *m = request_at(0, &answer);
	ck_assert_ptr_null(m->session_count->filter);
	cssl__link_request__free_unpacked(m, NULL);
	ASK(session_count, FILTER(.protocol_version = 0x0303));
	m = request_at(0, &answer);
	ck_assert_uint_eq(m->session_count->filter->protocol_version, 0x0303);
	cssl__link_request__free_unpacked(m, NULL);
}
END_TEST

START_TEST(one_session_is_asked_of_all_and_its_hits_are_summed)
{
	Cssl__LinkResponse answer;
	const struct control_input in = { .session_id = { 1, 2, 3 } };
	Cssl__LinkResponse__Sessions none = CSSL__LINK_RESPONSE__SESSIONS__INIT;

	begin();
	operations_session(&o, &in, request);
	for (int agent = 0; agent < AGENTS; agent++) {
		Cssl__LinkRequest *m = request_at(agent, &answer);
		ck_assert_mem_eq(m->sessions->filter->session_id.data, in.session_id, SESSION_ID_LEN);
		cssl__link_request__free_unpacked(m, NULL);
		if (agent == 1) {
			answer.what_case = CSSL__LINK_RESPONSE__WHAT_SESSIONS;
			answer.sessions = &none;
			say(agent, &answer);
		} else {
			session_tell(agent, &answer, 3);
		}
	}
	answered_with(200);
	ck_assert_str_eq(told_text("server_name"), "x.test");
	ck_assert_uint_eq(told_integer("hits"), 3 * (AGENTS - 1));
	ck_assert_uint_eq(told_size("holders"), AGENTS - 1);
	ck_assert_str_eq(told_text("holders.0.agent"), "a0");
	ck_assert_uint_eq(told_integer("holders.0.hits"), 3);
	ck_assert_uint_eq(told_integer("holders.0.expires_s"), 100);
	ck_assert_uint_eq(told_size("missing"), 1);
	ck_assert_str_eq(told_text("missing.0"), "a1");
	ck_assert_uint_eq(told_size("silent"), 0);
}
END_TEST

START_TEST(a_session_that_nobody_holds_is_not_found)
{
	begin();
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_die(d.agents[i]);
	wait_until(agents_up() == 0);
	ASK(session, .session_id = { 1 });
	answered_with(404);
	ASK(session_count, FILTER());
	answered_with(503);
}
END_TEST

UNIT(operations_sessions)
{
	const TTest *const facts[] = { a_page_is_asked_of_one_agent_with_all_that_was_asked,
		a_page_says_where_the_next_begins, a_page_comes_from_the_next_agent_when_one_is_lost,
		a_session_that_is_malformed_is_left_out, a_strange_answer_is_no_page,
		the_fullest_agent_counts_and_silent_ones_are_named, a_count_of_all_carries_no_filter,
		one_session_is_asked_of_all_and_its_hits_are_summed, a_session_that_nobody_holds_is_not_found,
		where_some_agents_hold_each_a_page_is_asked_of_all_and_merged,
		where_some_agents_hold_each_what_one_agent_counts_is_summed_up };

	return dispatcher_suite_run("operations_sessions", facts, sizeof facts / sizeof facts[0]);
}
