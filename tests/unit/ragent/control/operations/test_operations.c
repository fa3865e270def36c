/* test_operations.c: facts of the operations of the control API. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/limits/admission.h"
#include "ragent/control/operations/operations.h"
#include "tests/unit/ragent/control/operations/operations_doubles.h"
#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

static struct operations o;
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
}

#define ASK(name, ...) operations_##name(&o, &(const struct control_input){ __VA_ARGS__ }, request)
/* Only the connection of that id. */
#define ONE(of)        .query = { .ids = QUERY_ONE, .id = (of), .limit = 1 }

START_TEST(status_names_listeners_and_agents)
{
	begin();
	l.fd = client_connect("sf");
	wait_until(admission_total(d.shared.admission) == 1);
	ASK(status, 0);
	answered_with(200);
	ck_assert_uint_eq(told_size(""), 10);
	ck_assert_str_eq(told_text("name"), d.shared.self->name);
	ck_assert_str_eq(told_text("state"), "running");
	ck_assert_uint_eq(told_integer("workers"), 1);
	ck_assert_uint_eq(told_integer("deaths.hung"), 0);
	ck_assert_uint_eq(told_integer("at_deaths.not_restored"), 0);
	ck_assert_uint_eq(told_size("listeners"), 5);
	ck_assert_str_eq(told_text("listeners.0.mode"), "sf");
	ck_assert_uint_eq(told_size("listeners.0.addresses"), 1);
	ck_assert_ptr_nonnull(strstr(told_text("listeners.0.addresses.0"), "127.0.0.1:"));
	ck_assert_ptr_null(strstr(told_text("listeners.0.addresses.0"), "127.0.0.1:0"));
	ck_assert_uint_eq(told_integer("listeners.0.connections"), 1);
	ck_assert_uint_eq(told_size("agents"), AGENTS);
	ck_assert_str_eq(told_text("agents.0.state"), "ready");
	ck_assert_uint_eq(told_integer("agents.0.links"), 1);
	ck_assert_uint_eq(told_integer("agents.0.links_up"), 1);
	ck_assert_uint_eq(told_integer("connections"), 1);
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
	ASK(listeners, 0);
	answered_with(200);
	ck_assert_uint_eq(told_size("listeners"), 5);
	ck_assert_uint_eq(told_size("listeners.0"), 12 + LISTENER_COUNTER_COUNT);
	ck_assert_str_eq(told_text("listeners.0.name"), "sf");
	ck_assert_str_eq(told_text("listeners.0.service"), "http");
	ck_assert(json_is_false(told("listeners.0.may_start_in_clear")));
	ck_assert_str_eq(told_text("listeners.0.state"), "open");
	ck_assert_uint_eq(told_integer("listeners.0.accepted"), 2);
	ck_assert_uint_eq(told_integer("listeners.0.handshakes_full"), 1);
	ck_assert_uint_eq(told_integer("listeners.0.handshakes_resumed"), 0);
	ck_assert_uint_eq(told_integer("listeners.0.refused"), 1);
	ck_assert_uint_gt(told_integer("listeners.0.client_bytes"), 0);
	ck_assert_uint_eq(told_integer("listeners.0.server_bytes"), RECORD_OF(100));
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
	ASK(counters, 0);
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
	answered_with(200);
	ck_assert_uint_eq(told_size("agents"), AGENTS);
	ck_assert_uint_eq(told_size("of_agents"), AGENTS);
	ck_assert_uint_eq(told_integer("ragent.hellos"), 1);
	ck_assert_uint_eq(told_integer("agents.a2.handshakes_full"), 99);
	ck_assert_str_eq(told_text("agents.a1.error"), "not up");
	ck_assert_uint_eq(told_integer("of_agents.a1.latency_move_1ms"), 0);
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
	ASK(certificates, 0);
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
	answered_with(200);
	ck_assert_uint_eq(told_size("certificates"), AGENTS + 1);
	ck_assert_str_eq(told_text("certificates.0.not_after"), "1970-01-01T00:01:39Z");
	ck_assert_uint_eq(told_size("failed"), 0);
}
END_TEST

START_TEST(a_connection_is_found_by_its_id_and_no_other)
{
	begin();
	connection_keep(&l, "sl", 1);
	struct connection_id id = *connection_identity(connection_only());
	char text[2 * CONNECTION_ID_LEN + 1] = "";
	for (size_t i = 0; i < CONNECTION_ID_LEN; i++)
		snprintf(text + 2 * i, 3, "%02x", id.bytes[i]);
	ASK(connections, ONE(id));
	answered_with(200);
	ck_assert_str_eq(told_text("id"), text);
	ck_assert_uint_gt(told_size("history"), 0);
	ASK(connections, .query = { .limit = 10 });
	answered_with(200);
	ck_assert_uint_eq(told_size("connections"), 1);
	ck_assert_ptr_null(told("connections.0.history"));
	ck_assert(json_is_null(told("next")));
	id.bytes[3] ^= 1;
	ASK(connections, ONE(id));
	answered_with(404);
	close(l.fd);
}
END_TEST

START_TEST(connections_of_an_unknown_agent_or_listener_are_an_error)
{
	begin();
	ASK(connections, .query = { .limit = 10, .agent = "nobody" });
	answered_with(404);
	ck_assert_str_eq(got.reason, "no agent of that name");
	ASK(connections, .query = { .limit = 10, .listener = "nobody" });
	answered_with(404);
	ck_assert_str_eq(got.reason, "no listener of that name");
}
END_TEST

START_TEST(a_page_says_where_the_next_begins)
{
	begin();
	const int fds[] = { client_connect("sf"), client_connect("sf") };
	wait_until(admission_total(d.shared.admission) == 2);
	ASK(connections, .query = { .limit = 1 });
	answered_with(200);
	ck_assert_uint_eq(told_size("connections"), 1);
	ck_assert_str_eq(told_text("next"), told_text("connections.0.id"));
	ck_assert_uint_eq(strlen(told_text("next")), 2 * CONNECTION_ID_LEN);
	close(fds[0]);
	close(fds[1]);
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
	const char *before = agents_name(d.shared.agents, l.agent);
	ASK(move, ONE(*connection_identity(connection_only())), .agent = target);
	free(frame_at(l.agent, FRAME_MOVE));
	ck_assert_uint_eq(got.answers, 0);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 2");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	adopted_say(&l, 3);
	answered_with(200);
	ck_assert_uint_eq(told_size(""), 4);
	ck_assert_str_eq(told_text("from"), before);
	ck_assert_str_eq(told_text("to"), target);
	ck_assert_uint_eq(told_integer("epoch"), 3);
	close(l.fd);
}
END_TEST

START_TEST(a_move_that_cannot_be_says_why)
{
	begin_owned();
	const struct connection_id id = *connection_identity(connection_only());
	ASK(move, ONE(id), .agent = agents_name(d.shared.agents, l.agent));
	answered_with(409);
	ck_assert_str_eq(got.reason, "the agent owns it already");
	ASK(move, ONE(id), .agent = "nobody");
	answered_with(404);
	ASK(move, ONE((struct connection_id){ { 1 } }), .agent = "a0");
	answered_with(404);
	close(l.fd);
}
END_TEST

START_TEST(a_rest_is_answered_when_no_agent_has_it)
{
	begin_owned();
	ASK(rest, ONE(*connection_identity(connection_only())));
	free(frame_at(l.agent, FRAME_MOVE));
	ck_assert_uint_eq(got.answers, 0);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 2");
	answered_with(200);
	ck_assert_uint_eq(told_size(""), 2);
	ck_assert_str_eq(told_text("from"), agents_name(d.shared.agents, l.agent));
	ck_assert_uint_eq(told_integer("epoch"), 2);
	close(l.fd);
}
END_TEST

START_TEST(ragent_is_ready_as_long_as_an_agent_is)
{
	begin();
	ASK(ready, 0);
	answered_with(200);
	ck_assert_uint_eq(told_integer("ready"), AGENTS);
	for (int agent = 0; agent < AGENTS; agent++)
		agents_drain(d.shared.agents, agent, DRAIN_BY_OPERATOR, worker_now_ms(w), 1000);
	ASK(ready, 0);
	answered_with(503);
	agents_undrain(d.shared.agents, 0);
	o.state = OPERATIONS_STOPPING;
	ASK(ready, 0);
	answered_with(503);
}
END_TEST

START_TEST(agents_are_listed_or_told_one_by_one)
{
	begin();
	ASK(agents, 0);
	answered_with(200);
	ck_assert_uint_eq(told_size("agents"), AGENTS);
	ASK(agent, .agent = "a1");
	answered_with(200);
	ck_assert_str_eq(told_text("name"), "a1");
	ck_assert_str_eq(told_text("drain.state"), "none");
	ck_assert(json_is_null(told("drain.reason")));
	ASK(agent, .agent = "nobody");
	answered_with(404);
}
END_TEST

START_TEST(an_agent_is_told_with_its_load_and_its_drain)
{
	const struct agent_load load = { .sessions = UINT64_C(1) << 40,
		.handshake_us = 900,
		.busy_permille = 250,
		.ready = AGENT_READY,
		.version = "1.2",
		.failing_backends = "web at 192.0.2.1:80: connection refused",
		.clock = AGENT_CLOCK_KNOWN,
		.clock_offset_ms = -3 };

	begin();
	struct drain *drain = agents_drain_of(d.shared.agents, 2);
	agents_set_load(d.shared.agents, 2, &load);
	agents_enter(d.shared.agents, 2, AGENT_OWNERSHIPS);
	agents_drain(d.shared.agents, 2, DRAIN_BY_OPERATOR, worker_now_ms(w), 1000);
	drain_note_moved(drain, 1700);
	drain_note_rested(drain);
	drain_note_ended(drain);
	ASK(agent, .agent = "a2");
	answered_with(200);
	ck_assert_uint_eq(told_size(""), 13);
	ck_assert_str_eq(told_text("state"), "draining");
	ck_assert_str_eq(told_text("version"), "1.2");
	ck_assert_int_eq(json_integer_value(told("clock_offset_ms")), -3);
	ck_assert_uint_eq(told_integer("links.up"), 1);
	ck_assert_uint_eq(told_integer("links.suspect"), 0);
	ck_assert_uint_eq(told_integer("links.total"), 1);
	ck_assert_uint_eq(told_integer("sessions"), UINT64_C(1) << 40);
	ck_assert_uint_eq(told_integer("busy_permille"), 250);
	ck_assert_uint_eq(told_integer("handshake_us"), 900);
	ck_assert_str_eq(told_text("failing_backends"), load.failing_backends);
	ck_assert_uint_eq(told_size("drain"), 10);
	ck_assert_str_eq(told_text("drain.reason"), "operator");
	ck_assert_uint_eq(told_integer("drain.total"), 1);
	ck_assert_uint_eq(told_integer("drain.left"), 1);
	ck_assert_uint_eq(told_integer("drain.moved"), 1);
	ck_assert_uint_eq(told_integer("drain.rested"), 1);
	ck_assert_uint_eq(told_integer("drain.ended"), 1);
	ck_assert_uint_eq(told_integer("drain.longest_pause_us"), 1700);
	ck_assert_uint_eq(told_integer("drain.summed_pause_us"), 1700);
	agents_leave(d.shared.agents, 2, AGENT_OWNERSHIPS);
}
END_TEST

START_TEST(a_drain_takes_an_agent_out_until_it_is_taken_back)
{
	begin();
	ASK(drain, .agent = "a1", .timeout_ms = 5000);
	answered_with(202);
	ck_assert_str_eq(told_text("drain.reason"), "operator");
	ck_assert_uint_eq(agents_up(), AGENTS - 1);
	ASK(undrain, .agent = "a1");
	answered_with(200);
	ck_assert_str_eq(told_text("state"), "ready");
	ck_assert_str_eq(told_text("drain.state"), "none");
	ck_assert_uint_eq(agents_up(), AGENTS);
	ASK(undrain, .agent = "a1");
	answered_with(409);
	ASK(drain, .agent = "nobody");
	answered_with(404);
}
END_TEST

START_TEST(a_weight_holds_at_once)
{
	begin();
	ASK(weight, .agent = "a2", .weight = 2.5);
	answered_with(200);
	ck_assert_double_eq(json_real_value(told("weight")), 2.5);
	ck_assert_uint_eq(agents_up(), AGENTS);
	ck_assert_double_eq(d.rw->home.links.candidates[2].node.weight, 2.5);
}
END_TEST

START_TEST(a_revocation_by_criteria_asks_for_what_meets_all)
{
	static uint8_t hash[CONTROL_CERTIFICATE_LEN] = { 5, 6 }, client[] = { 10, 1, 0, 0 };
	Cssl__LinkResponse answer;
	Cssl__LinkResponse__Revoked revoked = CSSL__LINK_RESPONSE__REVOKED__INIT;

	begin();
	ASK(revoke, .revoke_by = CSSL__LINK_REQUEST__REVOKE__WHICH_MATCHING,
		FILTER(.server_name = (char *)"x.test", .client_address = { sizeof client, client },
			.client_prefix = 16, .cipher_suite = 0x1302, .max_age_s = 60,
			.client_certificate = { sizeof hash, hash }));
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
	answered_with(200);
}
END_TEST

/* What the first agent gets. */
static Cssl__LinkRequest *revocation(const struct control_input *in)
{
	Cssl__LinkResponse answer;

	operations_revoke(&o, in, request);
	return request_at(0, &answer);
}

START_TEST(a_revocation_by_one_fact_says_which)
{
	static uint8_t client[] = { 10, 1, 2, 3 };
	const struct control_input one = { .revoke_by = CSSL__LINK_REQUEST__REVOKE__WHICH_SESSION_ID,
		.session_id = { 7, 8, 9 } };
	struct control_input by_client = { .revoke_by = CSSL__LINK_REQUEST__REVOKE__WHICH_CLIENT_ADDRESS,
		FILTER(.client_address = { sizeof client, client }, .client_prefix = 32) };

	begin();
	Cssl__LinkRequest *m = revocation(&one);
	ck_assert_int_eq(m->revoke->which_case, CSSL__LINK_REQUEST__REVOKE__WHICH_SESSION_ID);
	ck_assert_uint_eq(m->revoke->session_id.len, SESSION_ID_LEN);
	ck_assert_mem_eq(m->revoke->session_id.data, one.session_id, SESSION_ID_LEN);
	cssl__link_request__free_unpacked(m, NULL);
	m = revocation(&by_client);
	ck_assert_int_eq(m->revoke->which_case, CSSL__LINK_REQUEST__REVOKE__WHICH_CLIENT_ADDRESS);
	ck_assert_mem_eq(m->revoke->client_address.data, client, 4);
	cssl__link_request__free_unpacked(m, NULL);
	by_client.filter.client_prefix = 16; /* more than one address is a criterion */
	m = revocation(&by_client);
	ck_assert_int_eq(m->revoke->which_case, CSSL__LINK_REQUEST__REVOKE__WHICH_MATCHING);
	ck_assert_uint_eq(m->revoke->matching->client_prefix, 16);
	cssl__link_request__free_unpacked(m, NULL);
	m = revocation(&(const struct control_input){
		.revoke_by = CSSL__LINK_REQUEST__REVOKE__WHICH_SERVER_NAME, FILTER(.server_name = (char *)"x.test") });
	ck_assert_int_eq(m->revoke->which_case, CSSL__LINK_REQUEST__REVOKE__WHICH_SERVER_NAME);
	ck_assert_str_eq(m->revoke->server_name, "x.test");
	cssl__link_request__free_unpacked(m, NULL);
	m = revocation(&(const struct control_input){ .revoke_by = CSSL__LINK_REQUEST__REVOKE__WHICH_ALL });
	ck_assert_int_eq(m->revoke->which_case, CSSL__LINK_REQUEST__REVOKE__WHICH_ALL);
	ck_assert(m->revoke->all);
	cssl__link_request__free_unpacked(m, NULL);
}
END_TEST

START_TEST(a_revocation_asks_one_agent_and_names_those_that_confirmed)
{
	Cssl__LinkResponse answer;
	Cssl__LinkResponse__Revoked revoked = CSSL__LINK_RESPONSE__REVOKED__INIT;
	char *confirmed[] = { (char *)"a0", (char *)"a1" }, *unconfirmed[] = { (char *)"a2" };
	static uint8_t family[FAMILY_ID_LEN] = { 7, 8, 9 };

	begin();
	ASK(revoke, .revoke_by = CSSL__LINK_REQUEST__REVOKE__WHICH_FAMILY_ID,
		FILTER(.family_id = { sizeof family, family }));
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
	answered_with(200);
	ck_assert_uint_eq(told_integer("sessions"), 5);
	ck_assert_uint_eq(told_size("confirmed"), 2);
	ck_assert_str_eq(told_text("confirmed.1"), "a1");
	ck_assert_uint_eq(told_size("unconfirmed"), 1);
	ck_assert_str_eq(told_text("unconfirmed.0"), "a2");
}
END_TEST

START_TEST(a_rotation_asks_every_agent_and_reports_each)
{
	Cssl__LinkResponse answer;

	begin();
	ASK(rotate, 0);
	for (int agent = 0; agent < AGENTS; agent++) {
		Cssl__LinkRequest *m = request_at(agent, &answer);
		ck_assert_int_eq(m->what_case, CSSL__LINK_REQUEST__WHAT_ROTATE);
		cssl__link_request__free_unpacked(m, NULL);
		if (agent == 1)
			answer.error = (char *)"not today";
		fake_agent_say(d.agents[agent], 0, FRAME_RESPONSE, &answer.base);
	}
	answered_with(503);
	ck_assert_str_eq(told_text("error"), "not done by a1");
	ck_assert_uint_eq(told_size("done"), AGENTS - 1);
	ck_assert_str_eq(told_text("failed.a1"), "not today");
}
END_TEST

START_TEST(without_agents_a_revocation_is_unavailable)
{
	begin();
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_die(d.agents[i]);
	wait_until(agents_up() == 0);
	ASK(revoke, .revoke_by = CSSL__LINK_REQUEST__REVOKE__WHICH_ALL);
	answered_with(503);
}
END_TEST

START_TEST(a_failed_reload_of_ragent_is_told_beside_those_of_agents)
{
	Cssl__LinkResponse answer;

	begin();
	reload_result = -1;
	ASK(reload, 0);
	for (int agent = 0; agent < AGENTS; agent++) {
		Cssl__LinkRequest *m = request_at(agent, &answer);
		ck_assert_int_eq(m->what_case, CSSL__LINK_REQUEST__WHAT_RELOAD);
		cssl__link_request__free_unpacked(m, NULL);
		fake_agent_say(d.agents[agent], 0, FRAME_RESPONSE, &answer.base);
	}
	answered_with(503);
	ck_assert_uint_eq(told_size("done"), AGENTS);
	ck_assert_uint_eq(told_size("failed"), 1);
	ck_assert_str_eq(json_string_value(json_object_get(told("failed"), d.shared.self->name)), "a bad file");
}
END_TEST

START_TEST(a_reload_of_all_is_done_and_names_who_did_it)
{
	Cssl__LinkResponse answer;

	begin();
	reload_result = 0;
	ASK(reload, 0);
	for (int agent = 0; agent < AGENTS; agent++) {
		cssl__link_request__free_unpacked(request_at(agent, &answer), NULL);
		fake_agent_say(d.agents[agent], 0, FRAME_RESPONSE, &answer.base);
	}
	answered_with(200);
	ck_assert_uint_eq(told_size(""), 2);
	ck_assert_uint_eq(told_size("done"), AGENTS);
	ck_assert_uint_eq(told_size("failed"), 0);
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
		a_page_says_where_the_next_begins,
		a_move_is_answered_when_it_is_done,
		a_move_that_cannot_be_says_why,
		a_rest_is_answered_when_no_agent_has_it,
		ragent_is_ready_as_long_as_an_agent_is,
		agents_are_listed_or_told_one_by_one,
		an_agent_is_told_with_its_load_and_its_drain,
		a_drain_takes_an_agent_out_until_it_is_taken_back,
		a_weight_holds_at_once,
		a_revocation_by_criteria_asks_for_what_meets_all,
		a_revocation_by_one_fact_says_which,
		a_revocation_asks_one_agent_and_names_those_that_confirmed,
		a_rotation_asks_every_agent_and_reports_each,
		without_agents_a_revocation_is_unavailable,
		a_failed_reload_of_ragent_is_told_beside_those_of_agents,
		a_reload_of_all_is_done_and_names_who_did_it,
	};

	return dispatcher_suite_run("operations", facts, sizeof facts / sizeof facts[0]);
}
