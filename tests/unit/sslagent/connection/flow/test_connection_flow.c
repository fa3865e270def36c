/* test_connection_flow.c: facts of an owner's records both ways: what counts as consumed and when it is told, credit in
 * both directions, KeyUpdate. */
#include <string.h>
#include <sys/socket.h>

#include "sslagent/tls/live_internal.h"
#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

/* --- bytes --- */

START_TEST(bytes_go_both_ways_in_order)
{
	converse(tls_version(_i));
	say(lots, 60000);
	backend_expect(lots, 60000);
	backend_say(lots, sizeof lots);
	client_expect(lots, sizeof lots);
	ck_assert_uint_eq(r.kept_len, 0);
}
END_TEST

START_TEST(one_record_at_a_time_makes_no_difference)
{
	manners.step = 1;
	converse(tls_version(_i));
	for (size_t at = 0; at < 20000; at += 500)
		say(lots + at, 500);
	backend_expect(lots, 20000);
}
END_TEST

START_TEST(what_came_with_finished_is_opened)
{
	hello("tcp", &a1, CSSL__LINK_OPEN__DISPOSITION__KEEP, tls_version(_i));
	say_text("at once");
	backend_accept();
	backend_expect_text("at once");
}
END_TEST

START_TEST(a_tcp_backend_may_speak_first)
{
	keep("tcp", &a1, tls_version(_i));
	backend_accept();
	backend_say_text("220 hello");
	client_expect_text("220 hello");
}
END_TEST

START_TEST(an_http_backend_is_reached_when_a_request_comes)
{
	keep("http", &a1, TLS13);
	carry_on();
	ck_assert(!backend_waits());
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
}
END_TEST

/* --- consumed --- */

START_TEST(records_are_consumed_when_the_backends_socket_took_them)
{
	converse(TLS13);
	carry_until(r.kept_len == 0);
	uint64_t before = r.position.now.client_records, written = fake_owner(&r)->written;
	for (size_t sent = 0; r.kept_len < WINDOW / 2; sent += 50000) {
		ck_assert_uint_lt(sent, MOST);
		for (unsigned i = 0; i < 10; i++)
			say(lots, 5000);
		carry();
		turn();
		ck_assert_uint_le((r.position.now.client_records - before) * 5000, fake_owner(&r)->written - written);
	}
	carry_on();
	ck_assert_uint_le((r.position.now.client_records - before) * 5000, fake_owner(&r)->written - written);
	ck_assert_uint_gt(r.kept_len, 0);
}
END_TEST

START_TEST(an_upload_to_a_backend_that_does_not_read_is_bounded_and_goes_on_later)
{
	size_t said = 0;

	converse(tls_version(_i));
	while (r.kept_len < WINDOW / 2) {
		ck_assert_uint_lt(said, MOST);
		say(lots, PIECE);
		said += PIECE;
		carry_on();
	}
	ck_assert_uint_le(r.kept_len, WINDOW);
	ck_assert_uint_le(connection_waiting(fake_owner(&r)), WINDOW + TLS_RECORD_MAX);
	ck_assert_uint_le(fake_owner(&r)->to_backend - fake_owner(&r)->written, WINDOW + TLS_PLAINTEXT_MAX);
	for (; said > 0; said -= PIECE)
		backend_expect(lots, PIECE);
	carry_until(r.kept_len == 0);
}
END_TEST

START_TEST(consumption_is_told_soon_even_when_nothing_goes_back)
{
	converse(TLS13);
	carry_until(r.kept_len == 0);
	unsigned before = fake_said(&r, FRAME_CONSUMED);
	say_text("more");
	backend_expect_text("more");
	carry_until(fake_said(&r, FRAME_CONSUMED) == before + 1);
	ck_assert_uint_eq(r.kept_len, 0);
	carry_on();
	ck_assert_uint_eq(fake_said(&r, FRAME_CONSUMED), before + 1);
}
END_TEST

START_TEST(a_record_without_data_is_consumed_too)
{
	converse(TLS13);
	forge_begin();
	carry_until(r.kept_len == 0);
	say_forged(&(struct forged_record){ .type = TLS_APPLICATION_DATA, .content = "", .len = 0 });
	carry();
	ck_assert_uint_gt(r.kept_len, 0);
	carry_until(r.kept_len == 0);
}
END_TEST

START_TEST(an_answer_that_is_whole_is_a_checkpoint)
{
	keep("http", &a1, TLS13);
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	carry_until(r.position.response == POSITION_NOTHING_DELIVERED);
	backend_say(ANSWER, strlen(ANSWER) - 1);
	client_expect(ANSWER, strlen(ANSWER) - 1);
	ck_assert_int_eq(r.position.response, POSITION_PARTLY_DELIVERED);
	ck_assert(r.current->data_flags & FRAME_RESPONSE_BYTES);
	ck_assert(!(r.current->data_flags & FRAME_CHECKPOINT));
	backend_say_text("o");
	client_expect_text("o");
	ck_assert(r.current->data_flags & FRAME_CHECKPOINT);
	ck_assert_int_eq(r.position.response, POSITION_AT_CHECKPOINT);
	ck_assert_uint_eq(r.kept_len, 0); /* told with the answer at the latest */
}
END_TEST

/* --- credit of the client --- */

START_TEST(a_client_that_does_not_read_costs_one_window)
{
	converse(tls_version(_i));
	manners.client = CLIENT_DOES_NOT_READ;
	ck_assert_int_gt(send(backend, lots, 200000, MSG_DONTWAIT), 100000);
	carry_on();
	ck_assert_uint_le(r.queue_len, WINDOW);
	ck_assert_uint_ge(r.queue_len, WINDOW - TLS_RECORD_MAX);
	manners.client = CLIENT_READS;
	client_expect(lots, 100000);
}
END_TEST

START_TEST(the_last_of_the_credit_makes_no_short_record)
{
	converse(tls_version(_i));
	uint64_t before = counted(COUNT_RECORDS_SEALED);
	size_t unread = r.queue_len;
	manners.client = CLIENT_DOES_NOT_READ;
	ck_assert_int_gt(send(backend, lots, 200000, MSG_DONTWAIT), 100000);
	carry_on();
	size_t record_len = TLS_PLAINTEXT_MAX + live_overhead(fake_owner(&r)->live);
	ck_assert_uint_eq(counted(COUNT_RECORDS_SEALED) - before, WINDOW / record_len);
	ck_assert_uint_eq(r.queue_len - unread, WINDOW / record_len * record_len);
}
END_TEST

START_TEST(half_a_window_is_credit_enough_for_an_answer_to_go_on)
{
	converse(tls_version(_i));
	a1.worker.window_len = 32768; /* less than two full records */
	manners.client = CLIENT_DOES_NOT_READ;
	ck_assert_int_gt(send(backend, lots, 200000, MSG_DONTWAIT), 100000);
	carry_on();
	ck_assert_uint_le(r.queue_len, 32768);
	manners.client = CLIENT_READS;
	client_expect(lots, 100000);
}
END_TEST

START_TEST(credit_is_never_exceeded_by_records_of_any_size)
{
	converse(tls_version(_i));
	manners.client = CLIENT_DOES_NOT_READ;
	for (size_t at = 0, n = 1; at + n < 300000 && r.queue_len + 100 < WINDOW; at += n, n = n * 5 / 3 + 1) {
		(void)!send(backend, lots + at, n, MSG_DONTWAIT);
		carry_on();
		ck_assert_uint_le(r.queue_len, WINDOW);
	}
}
END_TEST

/* --- KeyUpdate --- */

START_TEST(a_key_update_of_the_client_is_followed_and_told_with_a_fresh_copy_before)
{
	converse(TLS13);
	for (unsigned i = 1; i <= 3; i++) {
		say_key_update(0);
		say_text("under the next key");
		backend_expect_text("under the next key");
		carry_until(r.position.now.read_generation == i);
		ck_assert_uint_eq(fake_said(&r, FRAME_COPY), i);
		ck_assert_ptr_null(r.copies.pending);
		ck_assert_uint_eq(r.copies.current->read_generation, i);
	}
	ck_assert_uint_eq(counted(COUNT_KEY_UPDATES_RECEIVED), 3);
	ck_assert_uint_eq(r.position.write_generation, 0);
}
END_TEST

START_TEST(key_updates_refresh_the_copy_and_are_not_broadcast)
{
	converse(TLS13);
	unsigned shared = a1.cluster.shared, adopted = a1.cluster.adopted;
	for (unsigned i = 1; i <= 5; i++) {
		say_key_update(1);
		carry_until(r.position.write_generation == i);
	}
	ck_assert_uint_eq(fake_said(&r, FRAME_COPY), 10);
	ck_assert_uint_eq(a1.cluster.shared, shared);
	ck_assert_uint_eq(a1.cluster.adopted, adopted + 1);
	ck_assert_uint_eq(fake_owner(&r)->keys_told, KEYS_UNTOLD);
	fake_owner(&r)->keys_told_ms -= 10000; /* with an answer that is taken later */
	backend_say_text("later");
	client_expect_text("later");
	fake_ragent_accept(&r);
	ck_assert_uint_eq(a1.cluster.adopted, adopted + 2);
	ck_assert_uint_eq(fake_owner(&r)->keys_told, KEYS_TOLD);
}
END_TEST

START_TEST(several_key_updates_in_one_flight_are_followed)
{
	converse(TLS13);
	for (unsigned i = 0; i < 5; i++) {
		say_key_update(0);
		say_text(".");
	}
	backend_expect_text(".....");
	carry_until(r.position.now.read_generation == 5);
	ck_assert_uint_eq(r.copies.current->read_generation, 5);
}
END_TEST

START_TEST(a_requested_key_update_is_answered_and_what_follows_waits_for_its_commit)
{
	converse(TLS13);
	manners.commits = COMMITS_HELD;
	say_key_update(1);
	carry_until(r.position.write_generation == 1);
	ck_assert_uint_eq(fake_said(&r, FRAME_COPY), 2); /* one for the client's, one for ours */
	ck_assert_uint_eq(r.copies.current ? r.copies.current->read_generation : 9, 1);
	unsigned frames = fake_said(&r, FRAME_DATA);
	backend_say_text("under the next key");
	carry_on();
	ck_assert_uint_eq(fake_said(&r, FRAME_DATA), frames);
	manners.commits = COMMITS_TOLD;
	client_expect_text("under the next key");
	ck_assert_uint_eq(counted(COUNT_KEY_UPDATES_SENT), 1);
	ck_assert_uint_eq(r.copies.current->write_generation, 1);
}
END_TEST

START_TEST(a_key_update_of_ours_comes_well_before_the_limit)
{
	a1.worker.live_pool->limit = 8;
	converse(TLS13);
	backend_say(lots, 1u << 20);
	client_expect(lots, 1u << 20);
	ck_assert_uint_ge(r.position.write_generation, 7);
	ck_assert_uint_le(r.position.write_sequence, 8);
}
END_TEST

/* tcp has no checkpoint: the end of its bytes must not look like the protocol's. */
START_TEST(tls_1_2_ends_at_the_limit_and_certifies_nothing)
{
	a1.worker.live_pool->limit = 4;
	keep("tcp", &a1, TLS12);
	backend_accept();
	for (unsigned i = 0; i < 8 && !fake_said(&r, FRAME_END); i++) {
		backend_say_text("x");
		carry_until(got_len > i || fake_said(&r, FRAME_END));
	}
	expect_end(END_KEY_LIMIT, CARRIER_ORDERLY);
	expect_alert(TLS_ALERT_INTERNAL_ERROR);
}
END_TEST

/* The last record of the client's key is empty: the limit comes between two mails. */
START_TEST(mail_ends_at_the_limit_between_two_mails)
{
	a1.worker.live_pool->limit = 6;
	keep("smtp", &a1, TLS12);
	backend_accept();
	backend_say_text("220 inner.example ESMTP\r\n");
	carry_on();
	forge_begin();
	for (unsigned i = 0; i < 8 && !fake_said(&r, FRAME_END); i++) {
		say_forged(&(struct forged_record){ .type = TLS_APPLICATION_DATA, .content = "", .len = 0 });
		carry_on();
	}
	expect_end(END_KEY_LIMIT, CARRIER_ORDERLY);
}
END_TEST

/* --- beside handshakes --- */

/* Turns with handshakes are short while established clients would wait; clients of mail may wait. */
static const struct {
	const char *listener, *says;
	int is_in_haste;
} talks[] = { { "http", GET, 1 }, { "smtp", "NOOP\r\n", 0 } };

START_TEST(records_of_mail_make_no_turn_shorter)
{
	const uint64_t since_ms = now_ms();

	keep(talks[_i].listener, &a1, TLS13);
	carry_until(now_ms() > since_ms + 2 * ESTABLISHED_MS);
	ck_assert_uint_eq(a1.worker.handshake_share.small_until_ms, 0);
	say_text(talks[_i].says);
	carry_on();
	ck_assert_int_eq(a1.worker.handshake_share.small_until_ms > 0, talks[_i].is_in_haste);
}
END_TEST

UNIT(connection_flow)
{
	const struct connection_fact facts[] = {
		{ bytes_go_both_ways_in_order, 2 },
		{ one_record_at_a_time_makes_no_difference, 2 },
		{ what_came_with_finished_is_opened, 2 },
		{ a_tcp_backend_may_speak_first, 2 },
		{ an_http_backend_is_reached_when_a_request_comes, 0 },
		{ records_are_consumed_when_the_backends_socket_took_them, 0 },
		{ an_upload_to_a_backend_that_does_not_read_is_bounded_and_goes_on_later, 2 },
		{ consumption_is_told_soon_even_when_nothing_goes_back, 0 },
		{ a_record_without_data_is_consumed_too, 0 },
		{ an_answer_that_is_whole_is_a_checkpoint, 0 },
		{ a_client_that_does_not_read_costs_one_window, 2 },
		{ the_last_of_the_credit_makes_no_short_record, 2 },
		{ half_a_window_is_credit_enough_for_an_answer_to_go_on, 2 },
		{ credit_is_never_exceeded_by_records_of_any_size, 2 },
		{ a_key_update_of_the_client_is_followed_and_told_with_a_fresh_copy_before, 0 },
		{ key_updates_refresh_the_copy_and_are_not_broadcast, 0 },
		{ several_key_updates_in_one_flight_are_followed, 0 },
		{ a_requested_key_update_is_answered_and_what_follows_waits_for_its_commit, 0 },
		{ a_key_update_of_ours_comes_well_before_the_limit, 0 },
		{ tls_1_2_ends_at_the_limit_and_certifies_nothing, 0 },
		{ mail_ends_at_the_limit_between_two_mails, 0 },
		{ records_of_mail_make_no_turn_shorter, FACTS_LEN(talks) },
	};

	return connection_suite_run("connection_flow", facts, FACTS_LEN(facts));
}
