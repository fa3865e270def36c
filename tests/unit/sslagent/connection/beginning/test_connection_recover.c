/* test_connection_recover.c: facts of a takeover: what becomes of requests that the lost owner may have given to the
 * backend, and what the client is told where they cannot be asked again. */
#include <string.h>

#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

#define POST "POST /order HTTP/1.1\r\nHost: www.example.org\r\nContent-Length: 3\r\n\r\nbuy"
#define PUT  "PUT /page HTTP/1.1\r\nHost: www.example.org\r\nContent-Length: 3\r\n\r\nnew"
#define NEXT "GET /next HTTP/1.1\r\nHost: www.example.org\r\n\r\n"

static void lose_and_adopt(void)
{
	fake_ragent_lose(&r);
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
}

/* An owner and its backend have got that. */
static void asked(const char *text, const struct memory_client_config *config)
{
	keep("http", &a1, config);
	say_text(text);
	backend_accept();
	backend_expect_text(text);
}

static void served(const char *text)
{
	backend_accept();
	backend_expect_text(text);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	carry_until(r.position.response == POSITION_AT_CHECKPOINT);
}

static void goes_on(void)
{
	say_text(NEXT);
	backend_expect_text(NEXT);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
}

static void expect_502(void)
{
	expect_end(END_AGENT_LOST, CARRIER_ORDERLY);
	carry();
	ck_assert_uint_gt(got_len, 26);
	ck_assert_int_eq(strncmp((char *)got, "HTTP/1.1 502 Bad Gateway\r\n", 26), 0);
	expect_close_notify();
	ck_assert_uint_eq(counted(COUNT_RECOVERED_502), 1);
}

static void expect_cut(enum end_reason reason)
{
	expect_end(reason, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_INTERNAL_ERROR);
	ck_assert_uint_eq(counted(COUNT_RECOVERED_ALERT), 1);
	ck_assert_uint_eq(counted(COUNT_RECOVERED_REPLAYED), 0);
	ck_assert(!backend_waits());
}

START_TEST(a_safe_request_without_an_answer_is_asked_again)
{
	static const char *const requests[] = { GET, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
		"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n" };

	asked(requests[_i / 2], tls_version(_i % 2));
	lose_and_adopt();
	served(requests[_i / 2]);
	goes_on();
	ck_assert_uint_eq(counted(COUNT_RECOVERED_REPLAYED), 1);
}
END_TEST

START_TEST(it_is_asked_again_and_again_when_adopters_are_lost_too)
{
	asked(GET, tls_version(_i));
	for (int i = 0; i < 3; i++) {
		fake_ragent_lose(&r);
		ck_assert_int_eq(
			fake_ragent_adopt(&r, i % 2 ? &a1.worker : &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
		backend_accept();
		backend_expect_text(GET);
	}
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	ck_assert_uint_eq(counted(COUNT_RECOVERED_REPLAYED), 3);
}
END_TEST

START_TEST(an_adopter_that_is_lost_while_it_hears_changes_nothing)
{
	asked(GET, TLS13);
	say_text(GET);
	backend_expect_text(GET);
	lose_and_adopt();
	ck_assert_uint_gt(fake_ragent_forward(&r, 0), 0); /* the first of two records */
	ck_assert_int_eq(state(), CONNECTION_RECOVERING);
	fake_ragent_lose(&r);
	ck_assert_int_eq(fake_ragent_adopt(&r, &a1.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	backend_accept();
	backend_expect_text(GET GET);
	backend_say_text(ANSWER ANSWER);
	client_expect_text(ANSWER ANSWER);
}
END_TEST

START_TEST(a_request_that_may_have_been_done_is_answered_502)
{
	asked(POST, tls_version(_i));
	lose_and_adopt();
	expect_502();
	ck_assert(!backend_waits()); /* it is not asked again */
}
END_TEST

START_TEST(an_idempotent_request_is_asked_again_only_of_a_dead_agent)
{
	r.fate = CSSL__FATE__FATE_UNKNOWN;
	asked(PUT, tls_version(_i % 2));
	r.fate = _i / 2 ? CSSL__FATE__FATE_DEAD : CSSL__FATE__FATE_UNKNOWN;
	lose_and_adopt();
	if (_i / 2)
		served(PUT);
	else
		expect_502();
}
END_TEST

START_TEST(half_an_upload_is_answered_502)
{
	static const char half[] = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\nhalf";

	asked(half, tls_version(_i));
	lose_and_adopt();
	expect_502();
}
END_TEST

START_TEST(half_a_head_is_no_request_yet)
{
	static const char half[] = "POST /order HTTP/1.1\r\nHost: a\r\n", rest[] = "Content-Length: 3\r\n\r\nbuy";

	keep("http", &a1, tls_version(_i));
	say_text(half);
	carry_on();
	lose_and_adopt();
	carry_on();
	ck_assert(!backend_waits());
	say_text(rest);
	backend_accept();
	backend_expect_text(half);
	backend_expect_text(rest);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
}
END_TEST

START_TEST(several_safe_requests_are_all_asked_again)
{
	asked(GET NEXT, tls_version(_i));
	lose_and_adopt();
	backend_accept();
	backend_expect_text(GET NEXT);
	backend_say_text(ANSWER ANSWER);
	client_expect_text(ANSWER ANSWER);
	goes_on();
}
END_TEST

START_TEST(several_requests_one_of_which_may_have_been_done_end_with_the_alert)
{
	asked(GET POST, tls_version(_i));
	lose_and_adopt();
	expect_cut(END_AGENT_LOST);
}
END_TEST

START_TEST(a_half_delivered_answer_ends_with_the_alert_and_never_with_close_notify)
{
	asked(GET, tls_version(_i));
	backend_say_text("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
	client_expect_text("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
	lose_and_adopt();
	expect_cut(END_AGENT_LOST);
}
END_TEST

START_TEST(interim_answers_do_not_keep_a_request_from_being_asked_again)
{
	static const char hints[] = "HTTP/1.1 103 Early Hints\r\n\r\n";

	asked(GET, tls_version(_i));
	backend_say_text(hints);
	client_expect_text(hints);
	ck_assert_int_eq(r.position.response, POSITION_NOTHING_DELIVERED);
	lose_and_adopt();
	served(GET);
}
END_TEST

START_TEST(half_an_interim_answer_is_half_an_answer)
{
	static const char half[] = "HTTP/1.1 103 Early Hi";

	asked(GET, tls_version(_i));
	backend_say_text(half);
	client_expect_text(half);
	lose_and_adopt();
	expect_cut(END_AGENT_LOST);
}
END_TEST

START_TEST(records_that_the_lost_owner_never_got_are_served_as_ever)
{
	keep("http", &a1, tls_version(_i));
	fake_ragent_lose(&r);
	say_text(POST);
	carry(); /* to RAgent only */
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	served(POST);
	ck_assert_uint_eq(counted(COUNT_RECOVERED_REPLAYED), 0);
}
END_TEST

START_TEST(what_follows_the_exposed_records_is_served_behind_them)
{
	asked(GET, tls_version(_i));
	fake_ragent_lose(&r);
	say_text(NEXT);
	carry();
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	backend_accept();
	backend_expect_text(GET NEXT);
	backend_say_text(ANSWER ANSWER);
	client_expect_text(ANSWER ANSWER);
}
END_TEST

START_TEST(what_nobody_kept_is_answered_502)
{
	static const char head[] = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";

	asked(head, tls_version(_i));
	say(lots, 300000);
	backend_expect(lots, 300000);
	carry_until(r.kept_len == 0);
	lose_and_adopt();
	expect_502();
}
END_TEST

START_TEST(poison_ends_with_the_alert)
{
	asked(GET, tls_version(_i));
	r.response = RESPONSE_FORCED;
	r.forced = CSSL__RESPONSE_STATE__RESPONSE_POISONED;
	lose_and_adopt();
	expect_cut(END_POISON);
}
END_TEST

START_TEST(what_became_tcp_ends_with_the_alert)
{
	asked("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", tls_version(_i));
	lose_and_adopt();
	expect_cut(END_AGENT_LOST);
}
END_TEST

START_TEST(a_tcp_conversation_ends_with_the_alert)
{
	converse(tls_version(_i));
	lose_and_adopt();
	expect_cut(END_AGENT_LOST);
}
END_TEST

START_TEST(an_untouched_tcp_conversation_begins_anew_where_the_listener_says_so)
{
	keep(_i / 2 ? "anew" : "tcp", &a1, tls_version(_i % 2));
	backend_accept();
	lose_and_adopt();
	if (!(_i / 2)) {
		expect_cut(END_AGENT_LOST);
		return;
	}
	backend_accept();
	backend_say_text("220 ready");
	client_expect_text("220 ready");
	say_text("EHLO");
	backend_expect_text("EHLO");
}
END_TEST

START_TEST(a_client_that_had_closed_behind_its_request_gets_its_answer)
{
	keep("http", &a1, tls_version(_i));
	say_text(GET);
	memory_client_close(client);
	backend_accept();
	backend_expect_text(GET);
	ck_assert_int_eq(backend_end(), 0);
	lose_and_adopt();
	backend_accept();
	backend_expect_text(GET);
	ck_assert_int_eq(backend_end(), 0);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

START_TEST(a_key_update_among_the_exposed_records_is_followed)
{
	asked(GET, TLS13);
	fake_ragent_lose(&r);
	say_key_update(0);
	say_text(NEXT);
	carry();
	r.exposed = r.first_record + r.kept_records; /* they had been on their way, too */
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	backend_accept();
	backend_expect_text(GET NEXT);
	backend_say_text(ANSWER ANSWER);
	client_expect_text(ANSWER ANSWER);
	ck_assert_uint_eq(r.position.now.read_generation, 1);
}
END_TEST

START_TEST(a_key_update_that_was_consumed_since_leaves_only_502)
{
	asked(GET, TLS13);
	say_key_update(0);
	carry_until(r.position.now.read_generation == 1);
	lose_and_adopt();
	expect_502();
}
END_TEST

START_TEST(bad_gateway_waits_for_the_commit_of_the_new_keys)
{
	asked(POST, TLS13);
	manners.commits = COMMITS_HELD;
	lose_and_adopt();
	carry_on();
	ck_assert_int_eq(state(), CONNECTION_ENDING);
	ck_assert_uint_eq(fake_said(&r, FRAME_DATA), 1);
	ck_assert(r.current->data_flags & FRAME_LAST_OF_WRITE_GENERATION);
	ck_assert_uint_eq(got_len, 0);
	manners.commits = COMMITS_TOLD;
	expect_502();
}
END_TEST

START_TEST(the_alert_needs_no_new_keys)
{
	converse(TLS13);
	manners.commits = COMMITS_HELD;
	lose_and_adopt();
	expect_cut(END_AGENT_LOST);
	ck_assert_uint_eq(fake_said(&r, FRAME_DATA), 1);
	ck_assert_uint_eq(r.position.write_generation, 0);
}
END_TEST

START_TEST(a_backend_out_of_reach_for_the_replay_is_answered_502)
{
	keep("http", &a1, tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	fake_ragent_lose(&r);
	backend_stop_listening();
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	expect_end(END_BACKEND_UNREACHABLE, CARRIER_ORDERLY);
	carry();
	ck_assert_int_eq(strncmp((char *)got, "HTTP/1.1 502 Bad Gateway\r\n", 26), 0);
	expect_close_notify();
}
END_TEST

START_TEST(an_owner_that_finds_out_does_not_move)
{
	asked(GET, TLS13);
	fake_ragent_lose(&r);
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	ck_assert_int_eq(state(), CONNECTION_RECOVERING);
	fake_ragent_ask_move(&r, "a1");
	ck_assert_uint_eq(fake_said(&r, FRAME_REFUSED), 1);
	served(GET);
}
END_TEST

START_TEST(a_broken_record_among_the_exposed_ones_is_a_violation)
{
	asked(GET, tls_version(_i));
	fake_ragent_lose(&r);
	r.kept[r.kept_len - 1] ^= 1;
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	expect_end(END_RECORD_VIOLATION, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_BAD_RECORD_MAC);
	ck_assert(!backend_waits());
}
END_TEST

START_TEST(an_operator_ends_it_while_it_hears)
{
	asked(GET, tls_version(_i));
	fake_ragent_lose(&r);
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_TAKEOVER), 1);
	connection_give_up(fake_owner(&r), END_OPERATOR);
	expect_end(END_OPERATOR, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_INTERNAL_ERROR);
}
END_TEST

UNIT(connection_recover)
{
	const struct connection_fact facts[] = {
		{ a_safe_request_without_an_answer_is_asked_again, 6 },
		{ it_is_asked_again_and_again_when_adopters_are_lost_too, 2 },
		{ an_adopter_that_is_lost_while_it_hears_changes_nothing, 0 },
		{ a_request_that_may_have_been_done_is_answered_502, 2 },
		{ an_idempotent_request_is_asked_again_only_of_a_dead_agent, 4 },
		{ half_an_upload_is_answered_502, 2 },
		{ half_a_head_is_no_request_yet, 2 },
		{ several_safe_requests_are_all_asked_again, 2 },
		{ several_requests_one_of_which_may_have_been_done_end_with_the_alert, 2 },
		{ a_half_delivered_answer_ends_with_the_alert_and_never_with_close_notify, 2 },
		{ interim_answers_do_not_keep_a_request_from_being_asked_again, 2 },
		{ half_an_interim_answer_is_half_an_answer, 2 },
		{ records_that_the_lost_owner_never_got_are_served_as_ever, 2 },
		{ what_follows_the_exposed_records_is_served_behind_them, 2 },
		{ what_nobody_kept_is_answered_502, 2 },
		{ poison_ends_with_the_alert, 2 },
		{ what_became_tcp_ends_with_the_alert, 2 },
		{ a_tcp_conversation_ends_with_the_alert, 2 },
		{ an_untouched_tcp_conversation_begins_anew_where_the_listener_says_so, 4 },
		{ a_client_that_had_closed_behind_its_request_gets_its_answer, 2 },
		{ a_key_update_among_the_exposed_records_is_followed, 0 },
		{ a_key_update_that_was_consumed_since_leaves_only_502, 0 },
		{ bad_gateway_waits_for_the_commit_of_the_new_keys, 0 },
		{ the_alert_needs_no_new_keys, 0 },
		{ a_backend_out_of_reach_for_the_replay_is_answered_502, 2 },
		{ an_owner_that_finds_out_does_not_move, 0 },
		{ a_broken_record_among_the_exposed_ones_is_a_violation, 2 },
		{ an_operator_ends_it_while_it_hears, 2 },
	};

	return connection_suite_run("connection_recover", facts, FACTS_LEN(facts));
}
