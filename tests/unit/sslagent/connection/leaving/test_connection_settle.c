/* test_connection_settle.c: facts of a MOVE to where the backend half cannot follow, and which has time: what was asked
 * is answered here, everything later there. */
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "proto/error.h"
#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

#define LONG_MS 60000u

#define POST_HEAD "POST /up HTTP/1.1\r\nHost: www.example.org\r\nContent-Length: 10\r\n\r\n"

static void keep_apart(const struct memory_client_config *config)
{
	a1.cluster.host = a2.cluster.host = PASSES_NOT;
	keep("http", &a1, config);
}

static void ask_move(void)
{
	fake_ragent_ask_move_within(&r, "a2", LONG_MS);
	ck_assert_uint_eq(fake_said(&r, FRAME_REFUSED), 0);
}

/* The answer is the checkpoint; the same request is asked again over there. */
static void expect_hand_off(void)
{
	carry_until(fake_said(&r, FRAME_HANDED_OFF) || fake_said(&r, FRAME_REFUSED) || fake_said(&r, FRAME_END));
	ck_assert_uint_eq(fake_said(&r, FRAME_HANDED_OFF), 1);
	ck_assert(r.frozen->at_checkpoint);
	ck_assert_int_eq(r.frozen->backend, CSSL__BACKEND_HALF__BACKEND_NONE);
	ck_assert_int_eq(backend_end(), 0);
	ck_assert_int_eq(adopt(&a2), 1);
}

static void exchange_over_there(void)
{
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
}

START_TEST(the_answer_comes_first)
{
	keep_apart(tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	ask_move();
	ck_assert_int_eq(state(), CONNECTION_SETTLING);
	backend_say(ANSWER, 10);
	client_expect(ANSWER, 10);
	ck_assert_int_eq(state(), CONNECTION_SETTLING);
	backend_say_text(&ANSWER[10]);
	client_expect_text(&ANSWER[10]);
	expect_hand_off();
	exchange_over_there();
}
END_TEST

START_TEST(a_request_that_comes_meanwhile_is_asked_over_there)
{
	keep_apart(tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	ask_move();
	say_text(GET);
	carry_on();
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	expect_hand_off();
	ck_assert_uint_eq(r.kept_records, 1);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
}
END_TEST

START_TEST(an_upload_is_finished_and_answered)
{
	keep_apart(tls_version(_i));
	say_text(POST_HEAD "01234");
	backend_accept();
	backend_expect_text(POST_HEAD "01234");
	ask_move();
	say_text("56789");
	backend_expect_text("56789");
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	expect_hand_off();
	exchange_over_there();
}
END_TEST

/* The record that has both is cut at the request's end; the successor gets it again, and skips what was used. */
START_TEST(a_record_with_the_next_request_in_it_is_cut)
{
	keep_apart(tls_version(_i));
	say_text(POST_HEAD "01234");
	backend_accept();
	backend_expect_text(POST_HEAD "01234");
	ask_move();
	say_text("56789" GET);
	backend_expect_text("56789");
	carry_until(r.position.now.offset == 5);
	ck_assert(connection_holds(fake_owner(&r)));
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	expect_hand_off();
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	carry_until(r.kept_len == 0);
}
END_TEST

/* RAgent has to know it before the answer makes a checkpoint, or a takeover would ask the first request again. */
START_TEST(the_cut_is_told_before_the_answer)
{
	keep_apart(TLS13);
	say_text(POST_HEAD "01234");
	backend_accept();
	backend_expect_text(POST_HEAD "01234");
	ask_move();
	say_text("56789" GET);
	while (connection_holds(fake_owner(&r)) == 0)
		carry();
	backend_say(ANSWER, 10); /* at once: no time for a report of its own */
	carry_until(got_len > 0);
	ck_assert_uint_eq(r.position.now.offset, 5);
	ck_assert_uint_eq(r.position.now.client_records, r.first_record);
}
END_TEST

START_TEST(pipelined_requests_that_were_passed_on_are_all_answered)
{
	keep_apart(tls_version(_i));
	say_text(GET GET GET);
	backend_accept();
	backend_expect_text(GET GET GET);
	ask_move();
	backend_say_text(ANSWER ANSWER);
	client_expect_text(ANSWER ANSWER);
	carry_on();
	ck_assert_int_eq(state(), CONNECTION_SETTLING);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	expect_hand_off();
	exchange_over_there();
}
END_TEST

START_TEST(without_an_answer_in_time_it_stays_and_goes_on)
{
	keep_apart(tls_version(_i));
	say_text(POST_HEAD "01234");
	backend_accept();
	backend_expect_text(POST_HEAD "01234");
	fake_ragent_ask_move_within(&r, "a2", 50);
	say_text("56789" GET);
	say_text(GET);
	backend_expect_text("56789");
	carry_until(fake_said(&r, FRAME_REFUSED));
	ck_assert_int_eq(state(), CONNECTION_OWNER);
	backend_expect_text(GET GET);
	backend_say_text(ANSWER ANSWER ANSWER);
	client_expect_text(ANSWER ANSWER ANSWER);
	carry_until(r.kept_len == 0);
	ck_assert_uint_eq(r.position.now.offset, 0);
	ck_assert_int_eq(r.position.response, POSITION_AT_CHECKPOINT);
	hand_off_to(&a2);
	ck_assert_int_eq(adopt(&a2), 1);
	backend_end();
	exchange_over_there();
}
END_TEST

START_TEST(what_becomes_opaque_stays)
{
	keep_apart(TLS13);
	say_text("GET / HTTP/1.1\r\nHost: a\r\n");
	carry_on();
	ask_move();
	backend_accept();
	backend_expect_text("GET / HTTP/1.1\r\nHost: a\r\n");
	say_text("Upgrade: websocket\r\nConnection: upgrade\r\n\r\n");
	backend_expect_text("Upgrade: websocket\r\nConnection: upgrade\r\n\r\n");
	carry_until(fake_said(&r, FRAME_REFUSED));
	ck_assert_int_eq(state(), CONNECTION_OWNER);
	backend_say_text("HTTP/1.1 101 Switching Protocols\r\n\r\nhello");
	client_expect_text("HTTP/1.1 101 Switching Protocols\r\n\r\nhello");
}
END_TEST

/* Nobody knows where its checkpoint would be. */
START_TEST(a_tcp_conversation_is_not_stopped_for_nothing)
{
	a1.cluster.host = PASSES_NOT;
	converse(tls_version(_i));
	fake_ragent_ask_move_within(&r, "a2", LONG_MS);
	ck_assert_uint_eq(fake_said(&r, FRAME_REFUSED), 1);
	ping_pong();
}
END_TEST

START_TEST(a_pass_that_fails_waits_for_the_checkpoint)
{
	keep("http", &a1, tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	manners.passes = PASSES_HELD;
	ask_move();
	ck_assert_int_eq(state(), CONNECTION_PASSING);
	say_text(GET);
	fake_cluster_finish_passes(&a1.cluster, CSSL_E_NOT_FOUND);
	ck_assert_int_eq(state(), CONNECTION_SETTLING);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	expect_hand_off();
	backend_accept();
	backend_expect_text(GET);
}
END_TEST

START_TEST(a_client_that_closes_meanwhile_gets_its_answer_and_the_end)
{
	keep_apart(tls_version(_i));
	say_text(POST_HEAD "01234");
	backend_accept();
	backend_expect_text(POST_HEAD "01234");
	ask_move();
	say_text("56789");
	memory_client_close(client);
	backend_expect_text("56789");
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	carry_until(fake_said(&r, FRAME_END) || fake_said(&r, FRAME_HANDED_OFF));
	if (fake_said(&r, FRAME_HANDED_OFF))
		ck_assert_int_eq(adopt(&a2), 1);
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

START_TEST(half_an_upload_whose_client_goes_ends_here)
{
	keep_apart(tls_version(_i));
	say_text(POST_HEAD "01234");
	backend_accept();
	backend_expect_text(POST_HEAD "01234");
	ask_move();
	connection_fin(fake_owner(&r));
	expect_end(END_CLIENT_CLOSED, CARRIER_ORDERLY);
	ck_assert_int_eq(backend_end(), -1);
}
END_TEST

START_TEST(a_backend_that_dies_meanwhile_gets_its_502)
{
	keep_apart(tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	ask_move();
	backend_reset_now();
	expect_end(END_BACKEND_RESET, CARRIER_ORDERLY);
	ck_assert_uint_ge(got_len, 12);
	ck_assert_mem_eq(got, "HTTP/1.1 502", 12);
}
END_TEST

START_TEST(a_backend_that_closes_with_its_answer_is_waited_for)
{
	keep_apart(tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	ask_move();
	backend_say_text("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
	carry_on();
	ck_assert_int_eq(state(), CONNECTION_SETTLING);
	backend_hang_up();
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

START_TEST(giving_up_meanwhile_is_an_alert_away_from_a_checkpoint)
{
	keep_apart(tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	ask_move();
	connection_give_up(fake_owner(&r), END_DRAIN_TIMEOUT);
	expect_end(END_DRAIN_TIMEOUT, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_INTERNAL_ERROR);
}
END_TEST

/* Wherever a request of three is cut into records, and whenever MOVE comes, each is asked once. */
#define THREE POST_HEAD "0123456789" GET GET
START_TEST(each_request_is_asked_once_wherever_the_records_are_cut)
{
	static const size_t cuts[] = { 1, 7, 40, 73, 80, 85, 100 };
	size_t len = strlen(THREE), cut = cuts[_i], heard = 0, answered = 0;
	unsigned asked = 0;

	keep_apart(TLS13);
	say(THREE, cut);
	carry_on();
	if (cut < strlen(POST_HEAD)) { /* the backend gets the beginning of a head with MOVE */
		ck_assert(!backend_waits());
		ask_move();
	}
	backend_accept();
	backend_expect(THREE, cut);
	if (cut >= strlen(POST_HEAD))
		ask_move();
	say(&THREE[cut], len - cut);
	heard = cut;
	while (answered < 3) {
		char buffer[512];
		carry();
		if (fake_said(&r, FRAME_HANDED_OFF)) {
			ck_assert_int_eq(adopt(&a2), 1);
			backend_accept();
		}
		ssize_t n = recv(backend, buffer, sizeof buffer, MSG_DONTWAIT);
		if (n > 0) {
			ck_assert_mem_eq(buffer, &THREE[heard], (size_t)n);
			heard += (size_t)n;
		}
		asked = heard >= strlen(POST_HEAD) + 10 ? 1 + (unsigned)((heard - strlen(POST_HEAD) - 10) / strlen(GET))
							: 0;
		if (answered < asked) {
			answered++;
			backend_say_text(ANSWER);
			client_expect_text(ANSWER);
		}
		turn();
	}
	ck_assert_uint_eq(heard, len);
	ck_assert_uint_eq(counted(COUNT_ADOPTED), 1);
	carry_until(r.kept_len == 0);
}
END_TEST

UNIT(connection_settle)
{
	const struct connection_fact facts[] = {
		{ the_answer_comes_first, 2 },
		{ a_request_that_comes_meanwhile_is_asked_over_there, 2 },
		{ an_upload_is_finished_and_answered, 2 },
		{ a_record_with_the_next_request_in_it_is_cut, 2 },
		{ the_cut_is_told_before_the_answer, 0 },
		{ pipelined_requests_that_were_passed_on_are_all_answered, 2 },
		{ without_an_answer_in_time_it_stays_and_goes_on, 2 },
		{ what_becomes_opaque_stays, 0 },
		{ a_tcp_conversation_is_not_stopped_for_nothing, 2 },
		{ a_pass_that_fails_waits_for_the_checkpoint, 2 },
		{ a_client_that_closes_meanwhile_gets_its_answer_and_the_end, 2 },
		{ half_an_upload_whose_client_goes_ends_here, 2 },
		{ a_backend_that_dies_meanwhile_gets_its_502, 2 },
		{ a_backend_that_closes_with_its_answer_is_waited_for, 2 },
		{ giving_up_meanwhile_is_an_alert_away_from_a_checkpoint, 2 },
		{ each_request_is_asked_once_wherever_the_records_are_cut, 7 },
	};

	return connection_suite_run("connection_settle", facts, FACTS_LEN(facts));
}
