/* test_link.c: facts of a link's opening, health and loss. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ragent/link/link_handover.h"
#include "ragent/link/link_internal.h"
#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

static struct live_connection l;

static struct link *link_to(int agent)
{
	return d.rw->home.links.of[agent].at[0];
}

START_TEST(a_lost_link_is_opened_again)
{
	dispatcher_start(NULL);
	fake_agent_cut(d.agents[1]);
	wait_until(fake_agent_links(d.agents[1]) == 2);
	wait_until(agents_up() == AGENTS);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.links_lost), 1);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.links_up), AGENTS);
}
END_TEST

START_TEST(an_agent_that_is_not_ready_gets_nothing_new)
{
	dispatcher_start(NULL);
	fake_agent_ready(d.agents[0], 0);
	wait_until(agents_up() == AGENTS - 1);
	for (unsigned i = 0; i < 6; i++) {
		hello_send(&l, "sl", NULL);
		ck_assert_int_ne(l.agent, 0);
		close(l.fd);
	}
	fake_agent_ready(d.agents[0], 1);
	wait_until(agents_up() == AGENTS);
}
END_TEST

START_TEST(an_agent_that_leaves_gets_nothing_new_and_keeps_what_it_has)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	fake_agent_send(d.agents[l.agent], 0, FRAME_LEAVING, 0, NULL, 0);
	wait_until(agents_up() == AGENTS - 1);
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, 0);
	struct live_connection other;
	for (unsigned i = 0; i < 6; i++) {
		hello_send(&other, "sl", NULL);
		ck_assert_int_ne(other.agent, l.agent);
		close(other.fd);
	}
	close(l.fd);
}
END_TEST

START_TEST(a_silent_agent_is_suspect_then_lost)
{
	const struct dispatcher_wish wish = { .health = "  ping: 20ms\n  suspect: 200ms\n  lost: 600ms\n" };

	dispatcher_start(&wish);
	connection_keep(&l, "sl", 1);
	struct link *silent = link_to(l.agent);
	fake_agent_silent(d.agents[l.agent]);
	wait_until(link_state(silent) == LINK_SUSPECT);
	ck_assert_uint_eq(agents_up(), AGENTS - 1);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_OWNED);
	wait_until(counter_get(&d.rw->home.counters.links_lost) == 1);
	close(l.fd);
}
END_TEST

START_TEST(any_frame_shows_that_a_suspect_agent_lives)
{
	const struct dispatcher_wish wish = { .health = "  ping: 20ms\n  suspect: 200ms\n  lost: 10s\n" };

	dispatcher_start(&wish);
	fake_agent_silent(d.agents[2]);
	wait_until(link_state(link_to(2)) == LINK_SUSPECT);
	fake_agent_send(d.agents[2], 0, FRAME_PING, 0, "12345678", 8);
	wait_until(link_state(link_to(2)) == LINK_UP);
	free(frame_at(2, FRAME_PONG));
}
END_TEST

START_TEST(a_pause_of_our_own_is_not_the_agents_silence)
{
	const struct dispatcher_wish wish = { .health = "  ping: 20ms\n  suspect: 300ms\n  lost: 600ms\n" };

	dispatcher_start(&wish);
	usleep(1000 * 1000); /* this process does not run; nobody else either */
	turns(3);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.links_lost), 0);
	wait_until(agents_up() == AGENTS);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.links_lost), 0);
}
END_TEST

START_TEST(a_sealed_link_carries_a_connection)
{
	const struct dispatcher_wish wish = { .protection = LINK_SEALED };

	dispatcher_start(&wish);
	connection_keep(&l, "sl", 1);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 15000, 7);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(15000));
	server_send(&l, TLS_APPLICATION_DATA, 15000, 8, 0);
	close(l.fd);
}
END_TEST

START_TEST(a_link_through_memory_carries_a_connection)
{
	for (int protection = LINK_TRUSTED; protection <= LINK_SEALED; protection++) {
		const struct dispatcher_wish wish = { .protection = protection, .bytes = LINK_BYTES_IN_MEMORY };

		if (protection == LINK_SEALED)
			dispatcher_stop();
		dispatcher_start(&wish);
		ck_assert_int_ge(link_descriptors(link_to(0)).memory, 0);
		connection_keep(&l, "sl", 1);
		client_send_record(l.fd, TLS_APPLICATION_DATA, 15000, 7);
		wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(15000));
		server_send(&l, TLS_APPLICATION_DATA, 15000, 8, 0);
		close(l.fd);
	}
}
END_TEST

START_TEST(a_lost_link_through_memory_is_opened_again_with_memory_of_its_own)
{
	const struct dispatcher_wish wish = { .bytes = LINK_BYTES_IN_MEMORY };

	dispatcher_start(&wish);
	unsigned before = open_descriptors();
	for (unsigned links = 2; links < 6; links++) {
		fake_agent_cut(d.agents[1]);
		wait_until(fake_agent_links(d.agents[1]) == links);
		wait_until(agents_up() == AGENTS);
	}
	ck_assert_int_ge(link_descriptors(link_to(1)).memory, 0);
	ck_assert_uint_eq(open_descriptors(), before);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.links_lost), 4);
}
END_TEST

START_TEST(an_agent_of_this_host_names_its_process)
{
	for (int bytes = LINK_BYTES_ON_SOCKET; bytes <= LINK_BYTES_IN_MEMORY; bytes++) {
		const struct dispatcher_wish wish = { .bytes = (enum link_bytes)bytes,
			.processes = AGENTS_NAME_THEMSELVES };

		if (bytes != LINK_BYTES_ON_SOCKET)
			dispatcher_stop();
		dispatcher_start(&wish);
		const unsigned before = open_descriptors();
		ck_assert_int_ge(peer_process_fd(&link_to(1)->process), 0);
		ck_assert_int_eq(link_fate(link_to(1)), PEER_FATE_UNKNOWN);
		fake_agent_cut(d.agents[1]);
		wait_until(fake_agent_links(d.agents[1]) == 2);
		wait_until(agents_up() == AGENTS);
		ck_assert_int_ge(peer_process_fd(&link_to(1)->process), 0);
		wait_until(open_descriptors() == before);
	}
}
END_TEST

START_TEST(a_process_that_dies_just_behind_its_link_is_known_dead)
{
	dispatcher_start(NULL);
	struct link *lost = link_to(1);
	const pid_t child = agent_becomes_child(1);
	fake_agent_die(d.agents[1]);
	wait_until(!link_open(lost));
	ck_assert_int_eq(link_state(lost), LINK_UP); /* nothing is decided yet */
	child_dies(child);
	wait_until(link_state(lost) != LINK_UP);
	ck_assert_int_eq(link_fate(lost), PEER_DEAD);
}
END_TEST

START_TEST(a_process_that_ends_its_link_and_lives_on_is_not_known_dead)
{
	dispatcher_start(NULL);
	struct link *lost = link_to(1);
	const pid_t child = agent_becomes_child(1);
	fake_agent_die(d.agents[1]);
	wait_until(link_state(lost) != LINK_UP);
	ck_assert_int_eq(link_fate(lost), PEER_FATE_UNKNOWN);
	child_dies(child);
}
END_TEST

START_TEST(a_link_that_is_parked_awaits_no_death)
{
	dispatcher_start(NULL);
	struct link *lost = link_to(1);
	const pid_t child = agent_becomes_child(1);
	fake_agent_die(d.agents[1]);
	wait_until(!link_open(lost));
	link_leave(lost);
	ck_assert_int_ne(link_state(lost), LINK_UP);
	child_dies(child);
	turns(3);
	ck_assert_int_eq(link_fate(lost), PEER_FATE_UNKNOWN);
}
END_TEST

START_TEST(an_agent_that_says_nothing_of_memory_has_its_bytes_on_the_socket)
{
	dispatcher_start(NULL);
	ck_assert_int_eq(link_descriptors(link_to(0)).memory, -1);
}
END_TEST

START_TEST(an_agent_with_another_key_is_never_up)
{
	struct key_ring other;
	char path[128];

	dispatcher_start(NULL);
	fake_agent_stop(d.agents[0]);
	wait_until(agents_up() == AGENTS - 1);
	other = d.ring;
	other.keys[0].key[0] ^= 1;
	snprintf(path, sizeof path, "%s/a0.link", temp_dir());
	d.agents[0] = fake_agent_start("a0", path, &other, LINK_TRUSTED);
	uint64_t failed = counter_get(&d.rw->home.counters.openings_failed);
	wait_until(counter_get(&d.rw->home.counters.openings_failed) >= failed + 2);
	ck_assert_uint_eq(agents_up(), AGENTS - 1);
}
END_TEST

START_TEST(an_agent_of_another_name_is_never_up)
{
	char path[128];

	dispatcher_start(NULL);
	fake_agent_stop(d.agents[0]);
	snprintf(path, sizeof path, "%s/a0.link", temp_dir());
	d.agents[0] = fake_agent_start("a1", path, &d.ring, LINK_TRUSTED);
	wait_until(counter_get(&d.rw->home.counters.openings_failed) >= 2);
	ck_assert_uint_eq(agents_up(), AGENTS - 1);
}
END_TEST

START_TEST(an_unknown_frame_breaks_the_link)
{
	dispatcher_start(NULL);
	fake_agent_send(d.agents[0], 0, FRAME_REQUEST, 0, "", 0); /* only RAgent says that */
	wait_until(counter_get(&d.rw->home.counters.link_violations) == 1);
	wait_until(fake_agent_links(d.agents[0]) == 2);
}
END_TEST

static struct {
	unsigned answers, errors;
	uint64_t sessions;
} requested;

static void on_answer(void *ctx, int agent, Cssl__LinkResponse *response, const char *error)
{
	requested.answers++;
	requested.errors += error != NULL;
	if (!response)
		return;
	requested.sessions = response->session_count->sessions;
	cssl__link_response__free_unpacked(response, NULL);
}

static void ask(int agent)
{
	Cssl__LinkRequest m = CSSL__LINK_REQUEST__INIT;
	Cssl__LinkRequest__SessionCount count = CSSL__LINK_REQUEST__SESSION_COUNT__INIT;

	m.what_case = CSSL__LINK_REQUEST__WHAT_SESSION_COUNT;
	m.session_count = &count;
	requests_send(&d.rw->requests, link_to(agent), &m, on_answer, NULL);
}

START_TEST(a_request_gets_its_own_answer)
{
	Cssl__LinkResponse answer = CSSL__LINK_RESPONSE__INIT;
	Cssl__LinkResponse__SessionCount count = CSSL__LINK_RESPONSE__SESSION_COUNT__INIT;

	dispatcher_start(NULL);
	memset(&requested, 0, sizeof requested);
	ask(0);
	struct fake_frame *f = frame_at(0, FRAME_REQUEST);
	Cssl__LinkRequest *got = cssl__link_request__unpack(NULL, f->len, f->payload);
	ck_assert_int_eq(got->what_case, CSSL__LINK_REQUEST__WHAT_SESSION_COUNT);
	answer.what_case = CSSL__LINK_RESPONSE__WHAT_SESSION_COUNT;
	answer.session_count = &count;
	count.sessions = 42;
	answer.token = got->token + 1;
	fake_agent_say(d.agents[0], 0, FRAME_RESPONSE, &answer.base); /* nobody's */
	turns(5);
	ck_assert_uint_eq(requested.answers, 0);
	answer.token = got->token;
	fake_agent_say(d.agents[0], 0, FRAME_RESPONSE, &answer.base);
	wait_until(requested.answers == 1);
	ck_assert_uint_eq(requested.sessions, 42);
	cssl__link_request__free_unpacked(got, NULL);
	free(f);
}
END_TEST

#define WAITERS 20000u

static struct {
	struct link_waiter at[WAITERS];
	unsigned called, out_of_order;
} waiting;

static void on_room(struct link_waiter *waiter)
{
	waiting.out_of_order += waiter != &waiting.at[waiting.called];
	waiting.called++;
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

START_TEST(thousands_wait_at_no_cost_and_are_woken_in_their_order)
{
	dispatcher_start(NULL);
	memset(&waiting, 0, sizeof waiting);
	const double before = cpu_ms();
	for (unsigned i = 0; i < WAITERS; i++) {
		waiting.at[i].fn = on_room;
		link_wait(link_to(0), &waiting.at[i]);
		link_wait(link_to(0), &waiting.at[i]);
	}
	const double took = cpu_ms() - before;
	ck_assert_msg(took < 50, "%u waiters took %.1f ms of CPU", WAITERS, took);
	wait_until(waiting.called == WAITERS);
	ck_assert_uint_eq(waiting.out_of_order, 0);
}
END_TEST

START_TEST(a_waiter_that_left_is_not_woken)
{
	dispatcher_start(NULL);
	memset(&waiting, 0, sizeof waiting);
	for (unsigned i = 0; i < 4; i++) {
		waiting.at[i].fn = on_room;
		link_wait(link_to(0), &waiting.at[i]);
	}
	link_wait_cancel(&waiting.at[3]);
	link_wait_cancel(&waiting.at[2]);
	link_wait_cancel(&waiting.at[2]);
	link_wait(link_to(0), &waiting.at[2]);
	wait_until(waiting.called == 3);
	turns(3);
	ck_assert_uint_eq(waiting.called, 3);
	ck_assert_uint_eq(waiting.out_of_order, 0);
}
END_TEST

START_TEST(a_request_fails_with_its_link)
{
	dispatcher_start(NULL);
	memset(&requested, 0, sizeof requested);
	ask(0);
	ask(1);
	fake_agent_cut(d.agents[0]);
	wait_until(requested.answers == 1);
	ck_assert_uint_eq(requested.errors, 1);
	fake_agent_cut(d.agents[1]);
	wait_until(requested.answers == 2);
}
END_TEST

UNIT(link)
{
	const TTest *const facts[] = {
		a_lost_link_is_opened_again,
		an_agent_that_is_not_ready_gets_nothing_new,
		an_agent_that_leaves_gets_nothing_new_and_keeps_what_it_has,
		a_silent_agent_is_suspect_then_lost,
		any_frame_shows_that_a_suspect_agent_lives,
		a_pause_of_our_own_is_not_the_agents_silence,
		a_sealed_link_carries_a_connection,
		a_link_through_memory_carries_a_connection,
		a_lost_link_through_memory_is_opened_again_with_memory_of_its_own,
		an_agent_of_this_host_names_its_process,
		a_process_that_dies_just_behind_its_link_is_known_dead,
		a_process_that_ends_its_link_and_lives_on_is_not_known_dead,
		a_link_that_is_parked_awaits_no_death,
		an_agent_that_says_nothing_of_memory_has_its_bytes_on_the_socket,
		an_agent_with_another_key_is_never_up,
		an_agent_of_another_name_is_never_up,
		an_unknown_frame_breaks_the_link,
		a_request_gets_its_own_answer,
		a_request_fails_with_its_link,
		thousands_wait_at_no_cost_and_are_woken_in_their_order,
		a_waiter_that_left_is_not_woken,
	};

	return dispatcher_suite_run("link", facts, sizeof facts / sizeof facts[0]);
}
