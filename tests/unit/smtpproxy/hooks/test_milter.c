/* test_milter.c: facts of the conversation with a milter. The test is the milter. */
#include <stdlib.h>
#include <string.h>

#include "milter_peer.h"
#include "tests/unit/unit.h"

START_TEST(it_is_offered_no_more_than_is_done_here)
{
	static const uint8_t offer[] = { 0, 0, 0, 6, 0, 0, 0, 0x31, 0, 0x1f, 0xf7, 0xff };

	begin_until(MILTER_PART_OPTIONS);
	ck_assert_uint_eq(packet.len, sizeof offer);
	ck_assert_mem_eq(packet.content, offer, sizeof offer);
}
END_TEST

static void hears_client(const char *client, const char *expected, size_t len)
{
	ck_assert_int_eq(address_parse(client, &filter_facts.client), 0);
	begin_until(MILTER_PART_CONNECT);
	ck_assert_uint_eq(packet.len, len);
	ck_assert_mem_eq(packet.content, expected, len);
}

START_TEST(it_hears_the_senders_address_and_not_ours)
{
	static const char v4[] = "[192.0.2.1]\0004\004\322192.0.2.1";
	static const char v6[] = "[2001:db8::1]\0006\000\0312001:db8::1";

	hears_client("192.0.2.1:1234", v4, sizeof v4);
	hears_client("[2001:db8::1]:25", v6, sizeof v6);
}
END_TEST

START_TEST(it_hears_our_name_as_a_macro)
{
	static const char expected[] = "Cj\0mx.example\0{daemon_name}\0mx.example\0v\0CSSL smtpproxy";

	begin_until(MILTER_PART_CONNECT);
	ck_assert_uint_eq(macros.len, sizeof expected);
	ck_assert_mem_eq(macros.content, expected, sizeof expected);
}
END_TEST

START_TEST(it_hears_paths_with_their_parameters)
{
	static const char mail[] = "<s@a.example>\0SIZE=5\0BODY=8BITMIME", rcpt[] = "<r@b.example>\0NOTIFY=NEVER";

	filter_begin("a");
	asks(FILTER_MAIL, "s@a.example", "SIZE=5 BODY=8BITMIME");
	peer_accept(0);
	peer_hears(0, 'O');
	peer_says_options(0, 6, 0, MILTER_NO_CONNECT | MILTER_NO_HELO);
	peer_hears(0, 'M');
	ck_assert_uint_eq(packet.len, sizeof mail);
	ck_assert_mem_eq(packet.content, mail, sizeof mail);
	peer_says(0, 'c', NULL, 0);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	asks(FILTER_RCPT, "r@b.example", "NOTIFY=NEVER");
	peer_hears(0, 'R');
	ck_assert_uint_eq(packet.len, sizeof rcpt);
	ck_assert_mem_eq(packet.content, rcpt, sizeof rcpt);
}
END_TEST

START_TEST(it_hears_the_empty_sender_of_a_notice)
{
	filter_begin("a");
	asks(FILTER_MAIL, "", "");
	peer_accept(0);
	peer_hears(0, 'O');
	peer_says_options(0, 6, 0, MILTER_NO_CONNECT | MILTER_NO_HELO);
	peer_hears(0, 'M');
	ck_assert_uint_eq(packet.len, sizeof "<>");
	ck_assert_str_eq(packet.content, "<>");
}
END_TEST

static void hears_field(const char *name, const char *value)
{
	peer_hears(0, 'L');
	ck_assert_uint_eq(packet.len, strlen(name) + strlen(value) + 2);
	ck_assert_str_eq(packet.content, name);
	ck_assert_str_eq(packet.content + strlen(name) + 1, value);
	peer_says(0, 'c', NULL, 0);
}

static void ask_about(const char *what, uint32_t wishes)
{
	milter_flags = wishes;
	begin_until(MILTER_PART_DATA);
	peer_says(0, 'c', NULL, 0);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	message_is(what, strlen(what));
	asks(FILTER_MESSAGE, NULL, NULL);
}

START_TEST(it_hears_fields_with_lines_that_end_with_lf_and_a_body_as_it_is)
{
	ask_about("A: 1\r\n\t2\r\nB:3\r\n\r\n..x\r\ny\r\n.\r\n", 0);
	hears_field("A", "1\n\t2");
	hears_field("B", "3");
	peer_hears(0, 'N');
	peer_says(0, 'c', NULL, 0);
	peer_hears(0, 'B');
	ck_assert_str_eq(packet.content, ".x\r\ny\r\n");
	peer_says(0, 'c', NULL, 0);
	peer_hears(0, 'E');
	ck_assert_uint_eq(packet.len, 0);
	peer_says(0, 'c', NULL, 0);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
}
END_TEST

START_TEST(it_hears_the_space_behind_the_colon_if_it_wants)
{
	ask_about("A:  1\r\n\r\n.\r\n", 0);
	hears_field("A", " 1");
	ask_about("A:  1\r\n\r\n.\r\n", MILTER_LEADING_SPACE);
	hears_field("A", "  1");
}
END_TEST

START_TEST(a_message_without_a_body_has_no_piece_of_it)
{
	ask_about("A: 1\r\n.\r\n", MILTER_NO_HEADER | MILTER_NO_END_OF_HEADER);
	peer_hears(0, 'E');
}
END_TEST

static char *big_message(size_t body_len)
{
	char *big = malloc(body_len + 64);

	ck_assert_ptr_nonnull(big);
	strcpy(big, "\r\n");
	for (size_t i = 0; i < body_len; i++)
		big[2 + i] = i % 64 == 62 ? '\r' : i % 64 == 63 ? '\n' : (char)('a' + i / 64 % 26);
	strcpy(big + 2 + body_len, ".\r\n");
	return big;
}

/* The rest behind @len bytes. */
static size_t hear_body(size_t len, size_t max, int answers)
{
	while (len < max) {
		peer_hears(0, 'B');
		ck_assert_mem_eq(packet.content, message.body.at + len, packet.len);
		len += packet.len;
		if (answers)
			peer_says(0, 'c', NULL, 0);
	}
	return len;
}

START_TEST(a_long_body_comes_in_pieces_that_fit_the_protocol)
{
	char *big = big_message(200000 / 64 * 64);

	ask_about(big, MILTER_NO_HEADER | MILTER_NO_END_OF_HEADER);
	peer_hears(0, 'B');
	ck_assert_uint_eq(packet.len, MILTER_CHUNK_MAX);
	peer_says(0, 'c', NULL, 0);
	ck_assert_uint_eq(hear_body(MILTER_CHUNK_MAX, 200000 / 64 * 64, 1), 200000 / 64 * 64);
	free(big);
}
END_TEST

START_TEST(a_body_for_which_it_does_not_reply_waits_until_it_reads)
{
	const size_t len = 4u << 20;
	char *big = big_message(len);

	ask_about(big, MILTER_NO_HEADER | MILTER_NO_END_OF_HEADER | MILTER_SILENT_BODY);
	turns(20);
	ck_assert_uint_eq(verdicts, 0);
	ck_assert_uint_eq(hear_body(0, len, 0), len);
	peer_hears(0, 'E');
	peer_says(0, 'c', NULL, 0);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	free(big);
}
END_TEST

START_TEST(it_may_skip_the_rest_of_the_body)
{
	char *big = big_message(200000 / 64 * 64);

	ask_about(big, MILTER_NO_HEADER | MILTER_NO_END_OF_HEADER | MILTER_MAY_SKIP);
	peer_hears(0, 'B');
	peer_says(0, 's', NULL, 0);
	peer_hears(0, 'E');
	free(big);
}
END_TEST

START_TEST(it_does_not_hear_what_it_does_not_want)
{
	for (unsigned i = MILTER_PART_CONNECT; i < MILTER_PART_END; i++) {
		milter_flags = milter_parts[i].no;
		begin_until(MILTER_PART_END);
	}
}
END_TEST

START_TEST(parts_to_which_it_is_silent_wait_for_no_reply)
{
	for (unsigned i = MILTER_PART_CONNECT; i < MILTER_PART_END; i++) {
		milter_flags = milter_parts[i].silent;
		begin_until(MILTER_PART_END);
	}
}
END_TEST

START_TEST(an_old_one_does_not_hear_of_data)
{
	begin_until(MILTER_PART_OPTIONS);
	peer_says_options(0, 2, 0, MILTER_NO_CONNECT | MILTER_NO_HELO | MILTER_NO_MAIL | MILTER_NO_RCPT);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	ask_step(FILTER_RCPT);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	ask_step(FILTER_DATA);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	ask_step(FILTER_MESSAGE);
	peer_hears(0, 'L');
}
END_TEST

START_TEST(it_hears_the_end_between_two_questions)
{
	begin_until(MILTER_PART_MAIL);
	peer_says(0, 'c', NULL, 0);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	filter_leave(filter);
	filter = NULL;
	peer_hears(0, 'Q');
	ck_assert_int_eq(read_to_end(peer_fd(0)), 0);
}
END_TEST

UNIT(milter)
{
	const TTest *const facts[] = {
		it_is_offered_no_more_than_is_done_here,
		it_hears_the_senders_address_and_not_ours,
		it_hears_our_name_as_a_macro,
		it_hears_paths_with_their_parameters,
		it_hears_the_empty_sender_of_a_notice,
		it_hears_fields_with_lines_that_end_with_lf_and_a_body_as_it_is,
		it_hears_the_space_behind_the_colon_if_it_wants,
		a_message_without_a_body_has_no_piece_of_it,
		a_long_body_comes_in_pieces_that_fit_the_protocol,
		a_body_for_which_it_does_not_reply_waits_until_it_reads,
		it_may_skip_the_rest_of_the_body,
		it_does_not_hear_what_it_does_not_want,
		parts_to_which_it_is_silent_wait_for_no_reply,
		an_old_one_does_not_hear_of_data,
		it_hears_the_end_between_two_questions,
	};
	TCase *all = tcase_create("milter");

	tcase_add_checked_fixture(all, milter_setup, hooks_teardown);
	return suite_run_case("milter", all, facts, FACTS_LEN(facts));
}
