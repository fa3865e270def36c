/* test_connection_rest.c: facts of rest: a connection that leaves its agent at a checkpoint and is adopted when its
 * client's next record comes. */
#include <string.h>

#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

static void ask(void)
{
	say_text(GET);
	if (backend < 0)
		backend_accept();
	backend_expect_text(GET);
}

static void answer(void)
{
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
}

static void rest(void)
{
	fake_ragent_ask_rest(&r);
	ck_assert_uint_eq(fake_said(&r, FRAME_HANDED_OFF), 1);
	ck_assert(r.frozen->at_checkpoint);
	ck_assert_int_eq(r.frozen->backend, CSSL__BACKEND_HALF__BACKEND_NONE);
	fake_ragent_detach(&r);
}

static void wake(struct home *home)
{
	ck_assert_int_eq(fake_ragent_adopt(&r, &home->worker, CSSL__CAUSE__CAUSE_WAKE), 1);
}

static void expect_refused(void)
{
	fake_ragent_ask_rest(&r);
	ck_assert_uint_eq(fake_said(&r, FRAME_REFUSED), 1);
	ck_assert_int_eq(r.current->refused, CSSL__LINK_REFUSED__REASON__CANNOT_MOVE);
	ck_assert_int_eq(state(), CONNECTION_OWNER);
}

START_TEST(at_a_checkpoint_it_rests_and_leaves_nothing)
{
	keep("http", &a1, tls_version(_i));
	ask();
	answer();
	unsigned shared = a1.cluster.shared;
	rest();
	ck_assert_uint_eq(a1.worker.table.count, 0);
	ck_assert_int_eq(backend_end(), 0);
	ck_assert_uint_eq(a1.cluster.shared, shared);
	ck_assert_uint_eq(a1.cluster.rested, 1);
	ck_assert_uint_eq(counted(COUNT_RESTED), 1);
}
END_TEST

START_TEST(it_rests_before_its_first_request)
{
	keep("http", &a1, tls_version(_i));
	rest();
	wake(&a2);
	ask();
	answer();
}
END_TEST

/* Only the sealed copy is left of it. */
START_TEST(any_agent_wakes_it_from_the_copy)
{
	keep("http", &a1, tls_version(_i));
	for (int i = 0; i < 4; i++) {
		ask();
		answer();
		rest();
		a2.cluster.heard_count = 0; /* GONE */
		close(backend);
		backend = -1;
		wake(i % 2 ? &a1 : &a2);
		ck_assert_int_eq(r.current->source, CSSL__LINK_ADOPTED__SOURCE__FROM_COPY);
	}
	ask();
	answer();
	ck_assert_uint_eq(fake_owner(&r)->epoch, 5);
}
END_TEST

START_TEST(its_backend_connection_serves_others_meanwhile)
{
	keep("pooled", &a1, TLS13);
	ask();
	answer();
	rest();
	wake(&a1);
	ask(); /* on the same one: no other was made */
	answer();
	ck_assert_uint_eq(counted(COUNT_BACKEND_CONNECTS), 1);
}
END_TEST

START_TEST(a_key_update_that_is_owed_is_said_on_waking)
{
	keep("http", &a1, TLS13);
	manners.commits = COMMITS_HELD;
	say_key_update(1);
	carry_until(r.position.write_generation == 1 && r.position.now.read_generation == 1);
	rest();
	manners.commits = COMMITS_TOLD;
	wake(&a2);
	ask();
	answer();
}
END_TEST

START_TEST(a_request_without_its_answer_does_not_rest)
{
	keep("http", &a1, tls_version(_i));
	ask();
	expect_refused();
	answer();
}
END_TEST

START_TEST(half_a_request_does_not_rest)
{
	keep("http", &a1, tls_version(_i));
	say_text("GET / HT");
	carry_on();
	expect_refused();
	say_text(&GET[8]);
	backend_accept();
	backend_expect_text(GET);
	answer();
}
END_TEST

START_TEST(half_an_answer_does_not_rest)
{
	keep("http", &a1, tls_version(_i));
	ask();
	backend_say(ANSWER, 10);
	client_expect(ANSWER, 10);
	expect_refused();
	backend_say_text(&ANSWER[10]);
	client_expect_text(&ANSWER[10]);
}
END_TEST

/* Its backend may speak whenever it likes. */
START_TEST(a_tcp_conversation_does_not_rest)
{
	keep("tcp", &a1, tls_version(_i));
	backend_accept();
	expect_refused();
	backend_say_text("hello");
	client_expect_text("hello");
}
END_TEST

START_TEST(a_backend_that_is_about_to_close_keeps_it_awake)
{
	keep("http", &a1, tls_version(_i));
	ask();
	backend_say_text("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
	carry_until(r.position.response == POSITION_AT_CHECKPOINT);
	expect_refused();
	backend_hang_up();
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

START_TEST(a_connection_that_cannot_move_does_not_rest)
{
	keep("still", &a1, TLS13);
	expect_refused();
}
END_TEST

START_TEST(a_client_that_comes_back_at_once_finds_the_frozen_owner)
{
	keep("http", &a1, tls_version(_i));
	fake_ragent_ask_rest(&r);
	wake(&a1);
	ck_assert_int_eq(r.current->source, CSSL__LINK_ADOPTED__SOURCE__FROM_FROZEN);
	ask();
	answer();
}
END_TEST

UNIT(connection_rest)
{
	const struct connection_fact facts[] = {
		{ at_a_checkpoint_it_rests_and_leaves_nothing, 2 },
		{ it_rests_before_its_first_request, 2 },
		{ any_agent_wakes_it_from_the_copy, 2 },
		{ its_backend_connection_serves_others_meanwhile, 0 },
		{ a_key_update_that_is_owed_is_said_on_waking, 0 },
		{ a_request_without_its_answer_does_not_rest, 2 },
		{ half_a_request_does_not_rest, 2 },
		{ half_an_answer_does_not_rest, 2 },
		{ a_tcp_conversation_does_not_rest, 2 },
		{ a_backend_that_is_about_to_close_keeps_it_awake, 2 },
		{ a_connection_that_cannot_move_does_not_rest, 0 },
		{ a_client_that_comes_back_at_once_finds_the_frozen_owner, 2 },
	};

	return connection_suite_run("connection_rest", facts, FACTS_LEN(facts));
}
