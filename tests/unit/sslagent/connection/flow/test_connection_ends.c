/* test_connection_ends.c: facts of every way in which one of the two sides ends, and of what the client is told. */
#include <string.h>
#include <sys/socket.h>

#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

/* --- the client ends --- */

START_TEST(close_notify_of_the_client_is_the_backends_fin)
{
	converse(TLS13);
	say(lots, 30000);
	memory_client_close(client);
	backend_expect(lots, 30000);
	ck_assert_int_eq(backend_end(), 0);
	backend_say(lots, 200000); /* RFC 8446 6.1: the other direction goes on */
	client_expect(lots, 200000);
	backend_hang_up();
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

START_TEST(a_tcp_fin_behind_close_notify_changes_nothing)
{
	converse(TLS13);
	say(lots, 30000);
	memory_client_close(client);
	carry();
	connection_fin(fake_owner(&r));
	backend_expect(lots, 30000);
	ck_assert_int_eq(backend_end(), 0);
	backend_say(lots, 200000);
	client_expect(lots, 200000);
	backend_hang_up();
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

START_TEST(a_tcp_fin_waits_its_turn_behind_records_that_are_not_opened_yet)
{
	size_t said = 0;

	manners.generous = RAGENT_HOLDS_TWO;
	converse(TLS13);
	while (connection_waiting(fake_owner(&r)) < 1000) { /* the backend is slow */
		ck_assert_uint_lt(said, MOST);
		say(lots, 8000);
		said += 8000;
		carry();
		turn();
	}
	memory_client_close(client);
	carry();
	ck_assert_uint_eq(r.sent_len, r.kept_len);
	connection_fin(fake_owner(&r));
	for (; said > 0; said -= 8000)
		backend_expect(lots, 8000);
	ck_assert_int_eq(backend_end(), 0);
	backend_hang_up();
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

START_TEST(a_bare_fin_in_mid_conversation_resets_the_backend)
{
	converse(tls_version(_i));
	connection_fin(fake_owner(&r));
	expect_end(END_CLIENT_CLOSED, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_INTERNAL_ERROR);
	ck_assert_int_eq(backend_end(), -1);
}
END_TEST

START_TEST(a_bare_fin_at_a_checkpoint_is_a_quiet_end)
{
	keep("http", &a1, tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	connection_fin(fake_owner(&r));
	expect_end(END_DONE, CARRIER_ORDERLY);
	ck_assert_int_eq(backend_end(), 0);
}
END_TEST

START_TEST(a_request_before_close_notify_is_answered)
{
	keep(_i ? "pooled" : "http", &a1, TLS13);
	say_text(GET);
	memory_client_close(client);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

START_TEST(an_http_client_that_closes_at_a_checkpoint_gets_close_notify)
{
	keep("http", &a1, tls_version(_i));
	memory_client_close(client);
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

START_TEST(what_the_client_said_reaches_a_backend_that_has_ended_its_side)
{
	converse(tls_version(_i));
	shutdown(backend, SHUT_WR);
	carry_until(fake_said(&r, FRAME_FIN));
	ck_assert_uint_eq(r.owners[r.owner_count - 1].data_flags & FRAME_LAST_RECORD, FRAME_LAST_RECORD);
	size_t said = 0;
	while (fake_owner(&r)->to_backend == fake_owner(&r)->written) {
		ck_assert_uint_lt(said, MOST);
		say(lots, PIECE);
		said += PIECE;
		carry_on();
	}
	memory_client_close(client);
	carry_on();
	for (; said > 0; said -= PIECE)
		backend_expect(lots, PIECE);
	ck_assert_int_eq(backend_end(), 0);
	expect_end(END_DONE, CARRIER_ORDERLY);
}
END_TEST

START_TEST(a_backend_that_ends_while_the_last_words_wait_changes_nothing)
{
	keep("http", &a1, TLS13);
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	manners.commits = COMMITS_HELD;
	say_key_update(1);
	carry_until(r.position.write_generation == 1);
	memory_client_close(client);
	carry_until(state() == CONNECTION_ENDING);
	backend_hang_up();
	carry_on();
	manners.commits = COMMITS_TOLD;
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

/* The client is at fault then, not the backend. */
START_TEST(last_words_that_are_never_taken_are_cut_off_at_the_longer_limit)
{
	converse(TLS13);
	manners.commits = COMMITS_HELD;
	say_key_update(1);
	carry_until(r.position.write_generation == 1);
	connection_give_up(fake_owner(&r), END_IDLE_TIMEOUT);
	ck_assert_int_eq(fake_owner(&r)->state, CONNECTION_ENDING);
	connection_give_up(fake_owner(&r), END_SHUTTING_DOWN);
	carry_on();
	ck_assert_uint_eq(fake_said(&r, FRAME_END), 0);
	connection_give_up(fake_owner(&r), END_BACKEND_TIMEOUT);
	expect_end(END_IDLE_TIMEOUT, CARRIER_ABORT);
}
END_TEST

START_TEST(the_backends_fin_waits_for_the_commit_of_a_key_update)
{
	converse(TLS13);
	manners.commits = COMMITS_HELD;
	say_key_update(1);
	carry_until(r.position.write_generation == 1);
	shutdown(backend, SHUT_WR);
	carry_on();
	ck_assert_uint_eq(fake_said(&r, FRAME_FIN), 0);
	manners.commits = COMMITS_TOLD;
	carry_until(fake_said(&r, FRAME_FIN));
	expect_close_notify();
}
END_TEST

/* The rest of the body belongs to the request that was answered already. */
START_TEST(a_request_answered_early_keeps_its_backend)
{
	static const char head[] = "POST / HTTP/1.1\r\nHost: www.example.org\r\nContent-Length: 10\r\n\r\n";

	keep("pooled", &a1, TLS13);
	say_text(head);
	say_text("12345");
	backend_accept();
	backend_expect_text(head);
	backend_expect_text("12345");
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	carry_on();
	ck_assert_int_eq(r.position.response, POSITION_PARTLY_DELIVERED);
	say_text("67890");
	backend_expect_text("67890");
	carry_until(r.position.response == POSITION_AT_CHECKPOINT);
	say_text(GET);
	backend_expect_text(GET); /* through the pool, the only one there is */
}
END_TEST

START_TEST(records_behind_close_notify_are_ignored)
{
	converse(TLS13);
	forge_begin();
	say_forged(&(struct forged_record){ .type = TLS_ALERT, .content = "\1", .len = 2 });
	say_forged(&(struct forged_record){ .type = TLS_APPLICATION_DATA, .content = "late", .len = 4 });
	ck_assert_int_eq(backend_end(), 0);
	backend_say_text("still here");
	client_expect_text("still here");
	ck_assert_uint_eq(fake_said(&r, FRAME_END), 0);
}
END_TEST

START_TEST(a_fatal_alert_of_the_client_ends_both_sides)
{
	converse(tls_version(_i));
	forge_begin();
	say_forged(&(struct forged_record){ .type = TLS_ALERT, .content = "\2\50", .len = 2 });
	expect_end(END_ALERT_RECEIVED, CARRIER_ORDERLY);
	expect_nothing_certified();
	ck_assert_int_eq(backend_end(), -1);
}
END_TEST

START_TEST(last_words_wait_for_the_commit_of_a_key_update)
{
	converse(TLS13);
	manners.commits = COMMITS_HELD;
	say_key_update(1);
	carry_until(r.position.write_generation == 1);
	memory_client_close(client);
	carry_on();
	backend_hang_up();
	carry_on();
	carry_until(state() == CONNECTION_ENDING);
	carry_on();
	ck_assert_uint_eq(fake_said(&r, FRAME_END), 0);
	manners.commits = COMMITS_TOLD;
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

/* --- the backend ends --- */

START_TEST(the_backends_fin_is_close_notify_and_the_client_may_go_on_sending)
{
	converse(tls_version(_i));
	shutdown(backend, SHUT_WR);
	carry_until(fake_said(&r, FRAME_FIN));
	ck_assert(r.current->fin_flags & FRAME_AUTHENTICATED);
	expect_close_notify();
	say(lots, 50000);
	backend_expect(lots, 50000);
	memory_client_close(client);
	expect_end(END_DONE, CARRIER_ORDERLY);
	ck_assert_int_eq(backend_end(), 0);
}
END_TEST

START_TEST(a_reset_of_the_backend_is_a_fatal_alert)
{
	converse(tls_version(_i));
	backend_reset_now();
	expect_end(END_BACKEND_RESET, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_INTERNAL_ERROR);
	ck_assert_uint_eq(counted(COUNT_BACKEND_FAILURES), 1);
}
END_TEST

START_TEST(an_answer_cut_by_the_backends_fin_is_a_fatal_alert)
{
	keep("http", &a1, tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say(ANSWER, strlen(ANSWER) - 1);
	backend_hang_up();
	expect_end(END_BACKEND_CLOSED, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_INTERNAL_ERROR);
	ck_assert_uint_eq(got_len, strlen(ANSWER) - 1);
}
END_TEST

START_TEST(an_answer_that_its_fin_ends_is_whole)
{
	keep("http", &a1, tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text("HTTP/1.1 200 OK\r\n\r\nuntil the end");
	backend_hang_up();
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
	client_expect_text("HTTP/1.1 200 OK\r\n\r\nuntil the end");
}
END_TEST

#define LAST_ANSWER "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlast"

static void only_the_last_answer_came(void)
{
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
	ck_assert_uint_eq(got_len, 0); /* behind it */
	ck_assert_uint_eq(counted(COUNT_BACKEND_FAILURES), 0);
}

/* Pipelined: the second is never answered (RFC 9112 9.6), whether the backend closes, resets or says more. */
START_TEST(a_request_behind_the_last_answer_is_not_answered)
{
	keep(_i & 1 ? "pooled" : "http", &a1, tls_version(_i >> 1 & 1));
	say_text(GET GET);
	backend_accept();
	backend_expect_text(GET GET);
	backend_say_text(LAST_ANSWER);
	client_expect_text(LAST_ANSWER);
	switch (_i >> 2) {
	case 0: backend_hang_up(); break;
	case 1: backend_reset_now(); break;
	default: backend_say_text(ANSWER);
	}
	only_the_last_answer_came();
	ck_assert_int_eq(backend_waits(), 0);
}
END_TEST

START_TEST(a_request_that_comes_behind_the_last_answer_reaches_no_backend)
{
	keep("http", &a1, tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(LAST_ANSWER);
	client_expect_text(LAST_ANSWER);
	say_text(GET);
	carry_on();
	shutdown(backend, SHUT_WR);
	only_the_last_answer_came();
	ck_assert_int_eq(backend_end(), 0); /* nothing in front of it */
	ck_assert_int_eq(backend_waits(), 0);
}
END_TEST

START_TEST(an_upload_that_is_refused_in_its_midst_is_answered_whole)
{
	static const char post[] = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nbegin";

	keep("http", &a1, tls_version(_i));
	say_text(post);
	backend_accept();
	backend_expect_text(post);
	backend_say_text(LAST_ANSWER);
	client_expect_text(LAST_ANSWER);
	backend_reset_now();
	only_the_last_answer_came();
}
END_TEST

START_TEST(a_backend_that_ends_between_answers_ends_nothing)
{
	keep("http", &a1, tls_version(_i & 1));
	for (int i = 0; i < 2; i++) {
		say_text(GET);
		backend_accept();
		backend_expect_text(GET);
		backend_say_text(ANSWER);
		client_expect_text(ANSWER);
		if (_i & 2)
			backend_reset_now();
		else
			backend_hang_up();
		carry_until(!fake_owner(&r)->backend);
	}
	ck_assert_int_eq(state(), CONNECTION_OWNER);
}
END_TEST

START_TEST(a_request_is_answered_502_when_no_backend_can_be_reached)
{
	keep("unreachable", &a1, tls_version(_i));
	say_text(GET);
	expect_end(END_BACKEND_UNREACHABLE, CARRIER_ORDERLY);
	expect_close_notify();
	ck_assert_uint_gt(got_len, 20);
	ck_assert_int_eq(strncmp((char *)got, "HTTP/1.1 502 Bad Gateway\r\n", 26), 0);
}
END_TEST

START_TEST(without_a_backend_there_is_a_fatal_alert)
{
	keep("nowhere", &a1, tls_version(_i));
	expect_end(END_BACKEND_UNREACHABLE, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_INTERNAL_ERROR);
}
END_TEST

START_TEST(a_backend_that_resets_before_it_answers_makes_502)
{
	keep("http", &a1, tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_reset_now();
	expect_end(END_BACKEND_RESET, CARRIER_ORDERLY);
	expect_close_notify();
	ck_assert_int_eq(strncmp((char *)got, "HTTP/1.1 502 Bad Gateway\r\n", 26), 0);
}
END_TEST

/* --- violations --- */

static const struct violation {
	int version; /* 0: both */
	struct forged_record record;
	enum tls_alert alert;
} violations[] = {
	{ 0, { .type = TLS_APPLICATION_DATA, .content = "x", .len = 1, .tag = FORGED_TAG_WRONG },
		TLS_ALERT_BAD_RECORD_MAC },
	{ 0, { .type = TLS_CHANGE_CIPHER_SPEC, .content = "\1", .len = 1 }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ 0, { .type = TLS_ALERT, .content = "", .len = 0 }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ 0, { .type = TLS_HANDSHAKE, .content = "", .len = 0 }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ 0, { .type = TLS_HANDSHAKE, .content = "\2\0\0\0", .len = 4 }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ TLS1_3_VERSION, { .type = 0, .content = "", .len = 0, .padding = 3 }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ TLS1_3_VERSION, { .type = TLS_HANDSHAKE, .content = "\30\0\0\1\2", .len = 5 }, TLS_ALERT_ILLEGAL_PARAMETER },
};

START_TEST(a_violation_is_answered_with_its_alert_and_the_backend_reset)
{
	const struct violation *v = &violations[_i / 2];
	int tls = _i % 2 ? TLS1_3_VERSION : TLS1_2_VERSION;

	if (v->version && v->version != tls)
		return;
	converse(tls_version(_i % 2));
	forge_begin();
	say_text("before");
	say_forged(&v->record);
	expect_end(END_RECORD_VIOLATION, CARRIER_ORDERLY);
	expect_alert(v->alert);
	ck_assert_uint_eq(counted(COUNT_RECORD_VIOLATIONS), 1);
	ck_assert_int_eq(backend_end(), -1);
}
END_TEST

static const struct {
	struct frame_violation seen;
	enum tls_alert alert;
} headers[] = {
	{ { 0x17, 0x0303, TLS12_CIPHERTEXT_MAX + 1 }, TLS_ALERT_RECORD_OVERFLOW },
	{ { 0x47, 0x4554, 0x202f }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ { 0x18, 0x0303, 3 }, TLS_ALERT_UNEXPECTED_MESSAGE },
};

START_TEST(a_header_that_is_none_is_answered_with_its_alert)
{
	converse(tls_version(_i % 2));
	connection_violation(fake_owner(&r), &headers[_i / 2].seen);
	expect_end(END_RECORD_VIOLATION, CARRIER_ORDERLY);
	expect_alert(headers[_i / 2].alert);
	ck_assert_int_eq(backend_end(), -1);
}
END_TEST

START_TEST(no_alert_is_sealed_while_a_key_update_waits_for_its_commit)
{
	converse(TLS13);
	forge_begin();
	manners.commits = COMMITS_HELD;
	say_key_update(1);
	carry_until(r.position.write_generation == 1);
	unsigned frames = fake_said(&r, FRAME_DATA);
	if (_i)
		connection_violation(fake_owner(&r), &headers[0].seen);
	else
		say_forged(&violations[0].record);
	expect_end(END_RECORD_VIOLATION, CARRIER_ABORT);
	ck_assert_uint_eq(fake_said(&r, FRAME_DATA), frames);
}
END_TEST

START_TEST(a_renegotiation_is_refused_with_a_warning_and_the_connection_goes_on)
{
	converse(TLS12);
	forge_begin();
	say_forged(&(struct forged_record){ .type = TLS_HANDSHAKE, .content = "\1\0\0\4abcd", .len = 8 });
	carry_until(memory_client_alert(client) == TLS_ALERT_NO_RENEGOTIATION); /* OpenSSL itself would give up now */
	say_text("goes on");
	backend_expect_text("goes on");
	ck_assert_int_eq(state(), CONNECTION_OWNER);
}
END_TEST

/* --- out of memory for output --- */

START_TEST(without_room_for_records_the_connection_ends)
{
	converse(tls_version(_i % 2));
	r.room = NO_ROOM;
	backend_say_text("no room for this");
	expect_end(END_INTERNAL, CARRIER_ABORT);
	ck_assert_int_eq(backend_end(), -1);
}
END_TEST

/* Its client had to be told that the rest is missing, whatever else was said meanwhile. */
START_TEST(doubt_does_not_certify_half_an_answer)
{
	keep("http", &a1, tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say(ANSWER, strlen(ANSWER) - 2);
	client_expect(ANSWER, strlen(ANSWER) - 2);
	say_text("\1\2 no HTTP");
	backend_expect_text("\1\2 no HTTP");
	ck_assert_int_eq(fake_owner(&r)->service.following, SERVICE_NOT_FOLLOWED);
	backend_hang_up();
	expect_end(END_BACKEND_CLOSED, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_INTERNAL_ERROR);
}
END_TEST

UNIT(connection_ends)
{
	const struct connection_fact facts[] = {
		{ doubt_does_not_certify_half_an_answer, 2 },
		{ last_words_wait_for_the_commit_of_a_key_update, 0 },
		{ close_notify_of_the_client_is_the_backends_fin, 0 },
		{ a_tcp_fin_behind_close_notify_changes_nothing, 0 },
		{ a_tcp_fin_waits_its_turn_behind_records_that_are_not_opened_yet, 0 },
		{ a_bare_fin_in_mid_conversation_resets_the_backend, 2 },
		{ a_bare_fin_at_a_checkpoint_is_a_quiet_end, 2 },
		{ a_request_before_close_notify_is_answered, 2 },
		{ an_http_client_that_closes_at_a_checkpoint_gets_close_notify, 2 },
		{ what_the_client_said_reaches_a_backend_that_has_ended_its_side, 2 },
		{ a_backend_that_ends_while_the_last_words_wait_changes_nothing, 0 },
		{ last_words_that_are_never_taken_are_cut_off_at_the_longer_limit, 0 },
		{ the_backends_fin_waits_for_the_commit_of_a_key_update, 0 },
		{ a_request_answered_early_keeps_its_backend, 0 },
		{ records_behind_close_notify_are_ignored, 0 },
		{ a_fatal_alert_of_the_client_ends_both_sides, 2 },
		{ the_backends_fin_is_close_notify_and_the_client_may_go_on_sending, 2 },
		{ a_reset_of_the_backend_is_a_fatal_alert, 2 },
		{ an_answer_cut_by_the_backends_fin_is_a_fatal_alert, 2 },
		{ an_answer_that_its_fin_ends_is_whole, 2 },
		{ a_request_behind_the_last_answer_is_not_answered, 12 },
		{ a_request_that_comes_behind_the_last_answer_reaches_no_backend, 2 },
		{ an_upload_that_is_refused_in_its_midst_is_answered_whole, 2 },
		{ a_backend_that_ends_between_answers_ends_nothing, 4 },
		{ a_request_is_answered_502_when_no_backend_can_be_reached, 2 },
		{ without_a_backend_there_is_a_fatal_alert, 2 },
		{ a_backend_that_resets_before_it_answers_makes_502, 2 },
		{ a_violation_is_answered_with_its_alert_and_the_backend_reset, 2 * (int)FACTS_LEN(violations) },
		{ a_header_that_is_none_is_answered_with_its_alert, 2 * (int)FACTS_LEN(headers) },
		{ no_alert_is_sealed_while_a_key_update_waits_for_its_commit, 2 },
		{ a_renegotiation_is_refused_with_a_warning_and_the_connection_goes_on, 0 },
		{ without_room_for_records_the_connection_ends, 2 },
	};

	return connection_suite_run("connection_ends", facts, FACTS_LEN(facts));
}
