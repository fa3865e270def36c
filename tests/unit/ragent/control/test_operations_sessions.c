/* test_operations_sessions.c: questions to agents about their sessions, and the answers made of theirs. The control
 * side is a double that notes answers. */
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "ragent/control/operations.h"
#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

static struct control_request *const request = (struct control_request *)&d; /* never looked into */

static struct got {
	unsigned answers;
	size_t rows, holders;
	enum control_more more;
	struct control_session session;
	struct control_holder holder[AGENTS];
	char server_name[64];
	uint64_t sessions;
	enum control_failure failure;
	char reason[200];
} got;

static struct operations o;

void control_answer_sessions(
	struct control_request *r, const struct control_session *at, size_t count, enum control_more more)
{
	got.answers++;
	got.rows = count;
	got.more = more;
	if (count == 0)
		return;
	got.session = at[0];
	snprintf(got.server_name, sizeof got.server_name, "%s", at[0].server_name);
}

void control_answer_session_count(
	struct control_request *r, uint64_t sessions, const struct control_holder *at, size_t count)
{
	got.answers++;
	got.sessions = sessions;
	got.holders = count;
	memcpy(got.holder, at, count * sizeof *at);
}

void control_answer_session(
	struct control_request *r, const struct control_session *s, const struct control_holder *at, size_t count)
{
	control_answer_sessions(r, s, 1, CONTROL_LAST_PAGE);
	got.holders = count;
	memcpy(got.holder, at, count * sizeof *at);
}

void control_fail(struct control_request *r, enum control_failure kind, const char *reason, ...)
{
	va_list args;

	got.answers++;
	got.failure = kind;
	va_start(args, reason);
	vsnprintf(got.reason, sizeof got.reason, reason, args);
	va_end(args);
}

static void begin(void)
{
	dispatcher_start(NULL);
	o = (struct operations){ .main = w, .shared = &d.shared, .workers = &d.rw, .worker_count = 1 };
	memset(&got, 0, sizeof got);
}

static void answered(void)
{
	wait_until(got.answers > 0);
	ck_assert_uint_eq(got.answers, 1);
}

static Cssl__LinkRequest *request_at(int agent, Cssl__LinkResponse *answer)
{
	struct fake_frame *f = frame_at(agent, FRAME_REQUEST);
	Cssl__LinkRequest *m = cssl__link_request__unpack(NULL, f->len, f->payload);

	ck_assert_ptr_nonnull(m);
	free(f);
	cssl__link_response__init(answer);
	answer->token = m->token;
	return m;
}

static void say(int agent, Cssl__LinkResponse *answer)
{
	fake_agent_say(d.agents[agent], 0, FRAME_RESPONSE, &answer->base);
}

/* One session, as an agent tells it. */
static struct {
	Cssl__LinkResponse__Sessions page;
	Cssl__Session session, *rows[1];
} told;

static void session_tell(int agent, Cssl__LinkResponse *answer, uint32_t hits)
{
	static uint8_t id[SESSION_ID_LEN] = { 1, 2, 3 }, family[FAMILY_ID_LEN] = { 4 }, client[4] = { 10, 1, 2, 3 };

	cssl__link_response__sessions__init(&told.page);
	cssl__session__init(&told.session);
	told.rows[0] = &told.session;
	told.page.session = told.rows;
	told.page.n_session = 1;
	told.session.session_id = (ProtobufCBinaryData){ sizeof id, id };
	told.session.family_id = (ProtobufCBinaryData){ sizeof family, family };
	told.session.client_address = (ProtobufCBinaryData){ sizeof client, client };
	told.session.server_name = (ProtobufCBinaryData){ 6, (uint8_t *)"x.test" };
	told.session.origin = (char *)"a1";
	told.session.listener = (char *)"sf";
	told.session.protocol_version = 0x0304;
	told.session.cipher_suite = 0x1301;
	told.session.hits = hits;
	told.session.expires_s = 100;
	answer->what_case = CSSL__LINK_RESPONSE__WHAT_SESSIONS;
	answer->sessions = &told.page;
	say(agent, answer);
}

START_TEST(a_page_is_asked_of_one_agent_with_all_that_was_asked)
{
	Cssl__LinkResponse answer;
	const uint8_t after[SESSION_ID_LEN] = { 7 };
	const struct control_session_query q = { .after = after,
		.limit = 5,
		.server_name = "x.test",
		.client = { .bytes = { 10, 1 }, .len = 4, .prefix = 16 },
		.protocol_version = 0x0304,
		.cipher_suite = 0x1301,
		.min_age_s = 3,
		.max_age_s = 9 };

	begin();
	operations_sessions(&o, &q, request);
	Cssl__LinkRequest *m = request_at(0, &answer);
	ck_assert_int_eq(m->what_case, CSSL__LINK_REQUEST__WHAT_SESSIONS);
	ck_assert_uint_eq(m->sessions->limit, 5);
	ck_assert_mem_eq(m->sessions->after.data, after, SESSION_ID_LEN);
	const Cssl__SessionFilter *f = m->sessions->filter;
	ck_assert_str_eq(f->server_name, "x.test");
	ck_assert_mem_eq(f->client_address.data, q.client.bytes, 4);
	ck_assert_uint_eq(f->client_prefix, 16);
	ck_assert_uint_eq(f->protocol_version, 0x0304);
	ck_assert_uint_eq(f->cipher_suite, 0x1301);
	ck_assert_uint_eq(f->min_age_s, 3);
	ck_assert_uint_eq(f->max_age_s, 9);
	cssl__link_request__free_unpacked(m, NULL);
	no_frame(FRAME_REQUEST);
	session_tell(0, &answer, 2);
	answered();
	ck_assert_uint_eq(got.rows, 1);
	ck_assert_str_eq(got.server_name, "x.test");
	ck_assert_uint_eq(got.session.hits, 2);
	ck_assert_int_eq(got.session.client.ss_family, AF_INET);
	ck_assert_int_eq(got.more, CONTROL_LAST_PAGE);
}
END_TEST

START_TEST(a_page_comes_from_the_next_agent_when_one_is_lost)
{
	Cssl__LinkResponse answer;

	begin();
	operations_sessions(&o, &(struct control_session_query){ .limit = 1 }, request);
	cssl__link_request__free_unpacked(request_at(0, &answer), NULL);
	fake_agent_die(d.agents[0]);
	cssl__link_request__free_unpacked(request_at(1, &answer), NULL);
	session_tell(1, &answer, 0);
	answered();
	ck_assert_uint_eq(got.rows, 1);
}
END_TEST

START_TEST(a_session_that_is_malformed_is_left_out)
{
	Cssl__LinkResponse answer;

	begin();
	operations_sessions(&o, &(struct control_session_query){ .limit = 1 }, request);
	cssl__link_request__free_unpacked(request_at(0, &answer), NULL);
	Cssl__LinkResponse__Sessions page = CSSL__LINK_RESPONSE__SESSIONS__INIT;
	Cssl__Session bad = CSSL__SESSION__INIT, *rows[] = { &bad };
	page.session = rows;
	page.n_session = 1;
	answer.what_case = CSSL__LINK_RESPONSE__WHAT_SESSIONS;
	answer.sessions = &page;
	say(0, &answer);
	answered();
	ck_assert_uint_eq(got.rows, 0);
	ck_assert_str_eq(got.reason, "");
}
END_TEST

START_TEST(a_strange_answer_is_no_page)
{
	Cssl__LinkResponse answer;

	begin();
	operations_sessions(&o, &(struct control_session_query){ .limit = 1 }, request);
	cssl__link_request__free_unpacked(request_at(0, &answer), NULL);
	say(0, &answer);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_UNAVAILABLE);
}
END_TEST

START_TEST(where_some_agents_hold_each_a_page_is_asked_of_all_and_merged)
{
	Cssl__LinkResponse answer;

	begin();
	d.conf->broadcast.replicas = 2;
	operations_sessions(&o, &(struct control_session_query){ .limit = 5 }, request);
	for (int agent = 0; agent < AGENTS; agent++) {
		cssl__link_request__free_unpacked(request_at(agent, &answer), NULL);
		session_tell(agent, &answer, 3);
	}
	answered();
	ck_assert_uint_eq(got.rows, 1);
	ck_assert_uint_eq(got.session.hits, 3 * AGENTS);
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
	operations_session_count(&o, &(struct control_session_query){ .limit = 0 }, request);
	count_tell(0, 7, 7);
	count_tell(2, 9, 9);
	answered();
	ck_assert_uint_eq(got.sessions, 9);
	ck_assert_uint_eq(got.holders, AGENTS);
	ck_assert_uint_eq(got.holder[0].sessions, 7);
	ck_assert_ptr_null(got.holder[0].error);
	ck_assert_ptr_nonnull(got.holder[1].error);
}
END_TEST

START_TEST(where_some_agents_hold_each_what_one_agent_counts_is_summed_up)
{
	begin();
	d.conf->broadcast.replicas = 2;
	operations_session_count(&o, &(struct control_session_query){ .limit = 0 }, request);
	for (int agent = 0; agent < AGENTS; agent++)
		count_tell(agent, 10, 4);
	answered();
	ck_assert_uint_eq(got.sessions, 4 * AGENTS);
	ck_assert_uint_eq(got.holder[1].sessions, 10);
}
END_TEST

START_TEST(a_count_of_all_carries_no_filter)
{
	Cssl__LinkResponse answer;

	begin();
	operations_session_count(&o, &(struct control_session_query){ .limit = 0 }, request);
	Cssl__LinkRequest *m = request_at(0, &answer);
	ck_assert_ptr_null(m->session_count->filter);
	cssl__link_request__free_unpacked(m, NULL);
	operations_session_count(&o, &(struct control_session_query){ .protocol_version = 0x0303 }, request);
	m = request_at(0, &answer);
	ck_assert_uint_eq(m->session_count->filter->protocol_version, 0x0303);
	cssl__link_request__free_unpacked(m, NULL);
}
END_TEST

START_TEST(one_session_is_asked_of_all_and_its_hits_are_summed)
{
	Cssl__LinkResponse answer;
	const uint8_t id[SESSION_ID_LEN] = { 1, 2, 3 };
	Cssl__LinkResponse__Sessions none = CSSL__LINK_RESPONSE__SESSIONS__INIT;

	begin();
	operations_session(&o, id, request);
	for (int agent = 0; agent < AGENTS; agent++) {
		Cssl__LinkRequest *m = request_at(agent, &answer);
		ck_assert_mem_eq(m->sessions->filter->session_id.data, id, SESSION_ID_LEN);
		cssl__link_request__free_unpacked(m, NULL);
		if (agent == 1) {
			answer.what_case = CSSL__LINK_RESPONSE__WHAT_SESSIONS;
			answer.sessions = &none;
			say(agent, &answer);
		} else {
			session_tell(agent, &answer, 3);
		}
	}
	answered();
	ck_assert_uint_eq(got.session.hits, 3 * (AGENTS - 1));
	ck_assert_uint_eq(got.holder[0].sessions, 1);
	ck_assert_uint_eq(got.holder[0].expires_s, 100);
	ck_assert_uint_eq(got.holder[1].sessions, 0);
	ck_assert_ptr_null(got.holder[1].error);
}
END_TEST

START_TEST(a_session_that_nobody_holds_is_not_found)
{
	const uint8_t id[SESSION_ID_LEN] = { 1 };

	begin();
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_die(d.agents[i]);
	wait_until(agents_up() == 0);
	operations_session(&o, id, request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_NOT_FOUND);
	got.answers = 0;
	operations_session_count(&o, &(struct control_session_query){ .limit = 0 }, request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_UNAVAILABLE);
}
END_TEST

UNIT(operations_sessions)
{
	const TTest *const facts[] = { a_page_is_asked_of_one_agent_with_all_that_was_asked,
		a_page_comes_from_the_next_agent_when_one_is_lost, a_session_that_is_malformed_is_left_out,
		a_strange_answer_is_no_page, the_fullest_agent_counts_and_silent_ones_are_named,
		a_count_of_all_carries_no_filter, one_session_is_asked_of_all_and_its_hits_are_summed,
		a_session_that_nobody_holds_is_not_found, where_some_agents_hold_each_a_page_is_asked_of_all_and_merged,
		where_some_agents_hold_each_what_one_agent_counts_is_summed_up };

	return dispatcher_suite_run("operations_sessions", facts, sizeof facts / sizeof facts[0]);
}
