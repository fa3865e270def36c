/* test_operations.c: facts of the operations of the control API. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ragent/control/operations.h"
#include "tests/unit/ragent/control/operations_doubles.h"
#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

static struct operations o;
static struct control_request *const request = (struct control_request *)&got; /* never looked at */
static struct live_connection l;

static int reload_result;

static int reload_own(void *owner, char *error, size_t error_cap)
{
	snprintf(error, error_cap, "a bad file");
	return reload_result;
}

static void begin(void)
{
	dispatcher_start(NULL);
	o = (struct operations){
		.main = w, .shared = &d.shared, .workers = &d.rw, .worker_count = 1, .reload = reload_own
	};
	memset(&got, 0, sizeof got);
}

static void answered(void)
{
	wait_until(got.answers > 0);
	ck_assert_uint_eq(got.answers, 1);
}

/* The request at @agent, whose answer the caller completes. */
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

START_TEST(status_names_listeners_and_agents)
{
	begin();
	l.fd = client_connect("sf");
	wait_until(admission_total(d.shared.admission) == 1);
	operations_provider.status(&o, request);
	answered();
	ck_assert_uint_eq(got.listeners, 5);
	ck_assert_uint_eq(got.agents, AGENTS);
	ck_assert_uint_eq(got.connections, 1);
	ck_assert_str_eq(got.agent_state, "ready");
	close(l.fd);
}
END_TEST

START_TEST(a_listener_is_told_with_what_its_connections_did)
{
	begin();
	connection_keep(&l, "sf", 1);
	int bad = client_connect("sf");
	write_all(bad, "GET / HTTP/1.0\r\n\r\n", 18);
	wait_until(counter_get(&d.rw->home.of_listeners[0].refused) == 1);
	operations_provider.listeners(&o, request);
	answered();
	ck_assert_uint_eq(got.listeners, 5);
	ck_assert_str_eq(got.listener.name, "sf");
	ck_assert_str_eq(got.listener.service, "http");
	ck_assert_int_eq(got.listener.start, SERVICE_STARTS_WITH_TLS);
	ck_assert_str_eq(got.listener.state, "open");
	ck_assert_uint_eq(got.listener_counts[LISTENER_ROW_accepted], 2);
	ck_assert_uint_eq(got.listener_counts[LISTENER_ROW_handshakes_full], 1);
	ck_assert_uint_eq(got.listener_counts[LISTENER_ROW_handshakes_resumed], 0);
	ck_assert_uint_eq(got.listener_counts[LISTENER_ROW_refused], 1);
	ck_assert_uint_gt(got.listener_counts[LISTENER_ROW_client_bytes], 0);
	ck_assert_uint_eq(got.listener_counts[LISTENER_ROW_server_bytes], RECORD_OF(100));
	ck_assert_uint_eq(counter_get(&d.rw->home.of_listeners[1].accepted), 0);
	close(l.fd);
	close(bad);
}
END_TEST

START_TEST(counters_come_from_every_process_and_say_which_did_not_answer)
{
	Cssl__LinkResponse answer;
	Cssl__LinkResponse__Counters counters = CSSL__LINK_RESPONSE__COUNTERS__INIT;
	Cssl__LinkResponse__Counters__Counter one = CSSL__LINK_RESPONSE__COUNTERS__COUNTER__INIT, *rows[] = { &one };

	begin();
	hello_send(&l, "sl", NULL);
	fake_agent_die(d.agents[1]);
	wait_until(agents_up() == AGENTS - 1);
	operations_provider.counters(&o, request);
	one.name = (char *)"handshakes_full";
	one.value = 99;
	counters.counter = rows;
	counters.n_counter = 1;
	for (int agent = 0; agent < AGENTS; agent += 2) {
		cssl__link_request__free_unpacked(request_at(agent, &answer), NULL);
		answer.what_case = CSSL__LINK_RESPONSE__WHAT_COUNTERS;
		answer.counters = &counters;
		ck_assert_uint_eq(got.answers, 0);
		fake_agent_say(d.agents[agent], 0, FRAME_RESPONSE, &answer.base);
	}
	answered();
	ck_assert_uint_eq(got.counter_sets, AGENTS + 1);
	ck_assert_uint_eq(got.hellos, 1);
	ck_assert_uint_eq(got.agent_counter, 99);
	ck_assert_uint_eq(got.errors, 1);
	close(l.fd);
}
END_TEST

START_TEST(certificates_come_from_every_agent_with_its_counters)
{
	Cssl__LinkResponse answer;
	Cssl__LinkResponse__Counters counters = CSSL__LINK_RESPONSE__COUNTERS__INIT;
	Cssl__LinkResponse__Counters__Certificate one = CSSL__LINK_RESPONSE__COUNTERS__CERTIFICATE__INIT,
						  *rows[] = { &one, &one };

	begin();
	operations_provider.certificates(&o, request);
	one.name = (char *)"web";
	one.not_after_s = 99;
	counters.certificate = rows;
	for (int agent = 0; agent < AGENTS; agent++) {
		cssl__link_request__free_unpacked(request_at(agent, &answer), NULL);
		answer.what_case = CSSL__LINK_RESPONSE__WHAT_COUNTERS;
		answer.counters = &counters;
		counters.n_certificate = agent == 0 ? 2 : 1;
		fake_agent_say(d.agents[agent], 0, FRAME_RESPONSE, &answer.base);
	}
	answered();
	ck_assert_uint_eq(got.certificates, AGENTS + 1);
	ck_assert_uint_eq(got.errors, 0);
}
END_TEST

START_TEST(a_connection_is_found_by_its_id_and_no_other)
{
	begin();
	connection_keep(&l, "sl", 1);
	struct connection_id id = *connection_identity(connection_only());
	operations_provider.connection(&o, &id, request);
	answered();
	ck_assert_uint_eq(got.connections_count, 1);
	ck_assert_mem_eq(got.id.bytes, id.bytes, CONNECTION_ID_LEN);
	got.answers = 0;
	id.bytes[3] ^= 1;
	operations_provider.connection(&o, &id, request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_NOT_FOUND);
	close(l.fd);
}
END_TEST

START_TEST(connections_of_an_unknown_agent_or_listener_are_an_error)
{
	begin();
	operations_provider.connections(&o, &(struct control_query){ .limit = 10, .agent = "nobody" }, request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_NOT_FOUND);
	got.answers = 0;
	got.failure = 0;
	operations_provider.connections(&o, &(struct control_query){ .limit = 10, .listener = "nobody" }, request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_NOT_FOUND);
}
END_TEST

static void begin_owned(void)
{
	begin();
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	adopted_say(&l, 2);
}

START_TEST(a_move_is_answered_when_it_is_done)
{
	begin_owned();
	const char *target = agents_name(d.shared.agents, l.handshake_agent);
	operations_provider.move(&o, connection_identity(connection_only()), target, request);
	free(frame_at(l.agent, FRAME_MOVE));
	ck_assert_uint_eq(got.answers, 0);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 2");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	adopted_say(&l, 3);
	answered();
	ck_assert_str_eq(got.to, target);
	ck_assert_uint_eq(got.epoch, 3);
	close(l.fd);
}
END_TEST

START_TEST(a_move_that_cannot_be_says_why)
{
	begin_owned();
	operations_provider.move(
		&o, connection_identity(connection_only()), agents_name(d.shared.agents, l.agent), request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_CONFLICT);
	ck_assert_str_eq(got.reason, "the agent owns it already");
	got.answers = 0;
	operations_provider.move(&o, connection_identity(connection_only()), "nobody", request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_NOT_FOUND);
	got.answers = 0;
	operations_provider.move(&o, &(struct connection_id){ { 1 } }, "a0", request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_NOT_FOUND);
	close(l.fd);
}
END_TEST

START_TEST(a_rest_is_answered_when_no_agent_has_it)
{
	begin_owned();
	operations_provider.rest(&o, connection_identity(connection_only()), request);
	free(frame_at(l.agent, FRAME_MOVE));
	ck_assert_uint_eq(got.answers, 0);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 2");
	answered();
	ck_assert_str_eq(got.to, "rest");
	ck_assert_uint_eq(got.epoch, 2);
	close(l.fd);
}
END_TEST

START_TEST(ragent_is_ready_as_long_as_an_agent_is)
{
	begin();
	operations_provider.ready(&o, request);
	answered();
	ck_assert_uint_eq(got.number, AGENTS);
	ck_assert_str_eq(got.to, "ready");
	got.answers = 0;
	for (int agent = 0; agent < AGENTS; agent++)
		agents_drain(d.shared.agents, agent, DRAIN_BY_OPERATOR, worker_now_ms(w), 1000);
	operations_provider.ready(&o, request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_UNAVAILABLE);
	got.answers = 0;
	agents_undrain(d.shared.agents, 0);
	o.state = OPERATIONS_STOPPING;
	operations_provider.ready(&o, request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_UNAVAILABLE);
}
END_TEST

START_TEST(agents_are_listed_or_told_one_by_one)
{
	begin();
	operations_provider.agents(&o, NULL, request);
	answered();
	ck_assert_uint_eq(got.agents, AGENTS);
	got.answers = 0;
	operations_provider.agents(&o, "a1", request);
	answered();
	ck_assert_uint_eq(got.agents, 1);
	ck_assert_str_eq(got.agent.name, "a1");
	ck_assert_str_eq(got.agent.drain.state, "none");
	got.answers = 0;
	operations_provider.agents(&o, "nobody", request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_NOT_FOUND);
}
END_TEST

START_TEST(a_drain_takes_an_agent_out_until_it_is_taken_back)
{
	begin();
	operations_provider.drain(&o, "a1", 5000, request);
	answered();
	ck_assert_str_eq(got.agent.drain.reason, "operator");
	ck_assert_uint_eq(agents_up(), AGENTS - 1);
	got.answers = 0;
	operations_provider.undrain(&o, "a1", request);
	answered();
	ck_assert_str_eq(got.agent.state, "ready");
	ck_assert_str_eq(got.agent.drain.state, "none");
	ck_assert_uint_eq(agents_up(), AGENTS);
	got.answers = 0;
	operations_provider.undrain(&o, "a1", request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_CONFLICT);
}
END_TEST

START_TEST(a_weight_holds_at_once)
{
	begin();
	operations_provider.weight(&o, "a2", 2.5, request);
	answered();
	ck_assert_double_eq(got.agent.weight, 2.5);
	ck_assert_uint_eq(agents_up(), AGENTS);
	ck_assert_double_eq(d.rw->home.links.candidates[2].node.weight, 2.5);
}
END_TEST

START_TEST(a_revocation_by_criteria_asks_for_what_meets_all)
{
	static const uint8_t hash[CONTROL_CERTIFICATE_LEN] = { 5, 6 };
	Cssl__LinkResponse answer;
	Cssl__LinkResponse__Revoked revoked = CSSL__LINK_RESPONSE__REVOKED__INIT;
	const struct control_revocation what = { .which = CONTROL_REVOKE_MATCHING,
		.matching = { .server_name = "x.test",
			.client = { { 10, 1 }, 4, 16 },
			.cipher_suite = 0x1302,
			.max_age_s = 60,
			.client_certificate = hash } };

	begin();
	operations_provider.revoke(&o, &what, request);
	Cssl__LinkRequest *m = request_at(0, &answer);
	ck_assert_int_eq(m->revoke->which_case, CSSL__LINK_REQUEST__REVOKE__WHICH_MATCHING);
	const Cssl__SessionFilter *f = m->revoke->matching;
	ck_assert_str_eq(f->server_name, "x.test");
	ck_assert_uint_eq(f->client_address.len, 4);
	ck_assert_uint_eq(f->client_prefix, 16);
	ck_assert_uint_eq(f->cipher_suite, 0x1302);
	ck_assert_uint_eq(f->max_age_s, 60);
	ck_assert_uint_eq(f->family_id.len, 0);
	ck_assert_uint_eq(f->client_certificate.len, CONTROL_CERTIFICATE_LEN);
	ck_assert_mem_eq(f->client_certificate.data, hash, CONTROL_CERTIFICATE_LEN);
	cssl__link_request__free_unpacked(m, NULL);
	answer.what_case = CSSL__LINK_RESPONSE__WHAT_REVOKED;
	answer.revoked = &revoked;
	fake_agent_say(d.agents[0], 0, FRAME_RESPONSE, &answer.base);
	answered();
}
END_TEST

START_TEST(a_revocation_asks_one_agent_and_names_those_that_confirmed)
{
	Cssl__LinkResponse answer;
	Cssl__LinkResponse__Revoked revoked = CSSL__LINK_RESPONSE__REVOKED__INIT;
	char *confirmed[] = { (char *)"a0", (char *)"a1" }, *unconfirmed[] = { (char *)"a2" };
	const struct control_revocation what = { .which = CONTROL_REVOKE_FAMILY, .id = { 7, 8, 9 } };

	begin();
	operations_provider.revoke(&o, &what, request);
	Cssl__LinkRequest *m = request_at(0, &answer);
	ck_assert_int_eq(m->what_case, CSSL__LINK_REQUEST__WHAT_REVOKE);
	ck_assert_int_eq(m->revoke->which_case, CSSL__LINK_REQUEST__REVOKE__WHICH_FAMILY_ID);
	ck_assert_uint_eq(m->revoke->family_id.len, FAMILY_ID_LEN);
	ck_assert_mem_eq(m->revoke->family_id.data, "\x07\x08\x09", 3);
	cssl__link_request__free_unpacked(m, NULL);
	no_frame(FRAME_REQUEST);
	revoked.sessions = 5;
	revoked.confirmed = confirmed;
	revoked.n_confirmed = 2;
	revoked.unconfirmed = unconfirmed;
	revoked.n_unconfirmed = 1;
	answer.what_case = CSSL__LINK_RESPONSE__WHAT_REVOKED;
	answer.revoked = &revoked;
	fake_agent_say(d.agents[0], 0, FRAME_RESPONSE, &answer.base);
	answered();
	ck_assert_uint_eq(got.sessions, 5);
	ck_assert_uint_eq(got.confirmed, 2);
	ck_assert_uint_eq(got.unconfirmed, 1);
}
END_TEST

START_TEST(a_rotation_asks_every_agent_and_reports_each)
{
	Cssl__LinkResponse answer;

	begin();
	operations_provider.rotate(&o, request);
	for (int agent = 0; agent < AGENTS; agent++) {
		Cssl__LinkRequest *m = request_at(agent, &answer);
		ck_assert_int_eq(m->what_case, CSSL__LINK_REQUEST__WHAT_ROTATE);
		cssl__link_request__free_unpacked(m, NULL);
		if (agent == 1)
			answer.error = (char *)"not today";
		fake_agent_say(d.agents[agent], 0, FRAME_RESPONSE, &answer.base);
	}
	answered();
	ck_assert_uint_eq(got.nodes, AGENTS);
	ck_assert_uint_eq(got.errors, 1);
}
END_TEST

START_TEST(without_agents_a_revocation_is_unavailable)
{
	begin();
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_die(d.agents[i]);
	wait_until(agents_up() == 0);
	operations_provider.revoke(&o, &(struct control_revocation){ .which = CONTROL_REVOKE_ALL }, request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_UNAVAILABLE);
}
END_TEST

START_TEST(a_failed_reload_of_ragent_is_told_beside_those_of_agents)
{
	Cssl__LinkResponse answer;

	begin();
	reload_result = -1;
	operations_provider.reload(&o, request);
	for (int agent = 0; agent < AGENTS; agent++) {
		Cssl__LinkRequest *m = request_at(agent, &answer);
		ck_assert_int_eq(m->what_case, CSSL__LINK_REQUEST__WHAT_RELOAD);
		cssl__link_request__free_unpacked(m, NULL);
		fake_agent_say(d.agents[agent], 0, FRAME_RESPONSE, &answer.base);
	}
	answered();
	ck_assert_uint_eq(got.nodes, AGENTS + 1);
	ck_assert_uint_eq(got.errors, 1);
}
END_TEST

UNIT(operations)
{
	const TTest *const facts[] = {
		status_names_listeners_and_agents,
		a_listener_is_told_with_what_its_connections_did,
		counters_come_from_every_process_and_say_which_did_not_answer,
		certificates_come_from_every_agent_with_its_counters,
		a_connection_is_found_by_its_id_and_no_other,
		connections_of_an_unknown_agent_or_listener_are_an_error,
		a_move_is_answered_when_it_is_done,
		a_move_that_cannot_be_says_why,
		a_rest_is_answered_when_no_agent_has_it,
		ragent_is_ready_as_long_as_an_agent_is,
		agents_are_listed_or_told_one_by_one,
		a_drain_takes_an_agent_out_until_it_is_taken_back,
		a_weight_holds_at_once,
		a_revocation_by_criteria_asks_for_what_meets_all,
		a_revocation_asks_one_agent_and_names_those_that_confirmed,
		a_rotation_asks_every_agent_and_reports_each,
		without_agents_a_revocation_is_unavailable,
		a_failed_reload_of_ragent_is_told_beside_those_of_agents,
	};

	return dispatcher_suite_run("operations", facts, sizeof facts / sizeof facts[0]);
}
