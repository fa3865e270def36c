/* test_connection_clear_again.c: facts of clients that speak in clear while the link to their agent breaks: the agent
 * goes on with them, and nothing is lost or said twice; or it does not, and the client is told so, or reset.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ragent/connection/revival/revival.h"
#include "tests/unit/ragent/talk.h"
#include "tests/unit/unit.h"

#define REPLY "250 mx.example\r\n"

/* No fact here comes from a time that is over. */
static void begin(void)
{
	dispatcher_start(&(struct dispatcher_wish){ .listener = SLOW,
		.streams = LINK_STREAMS_OUTLIVE,
		.health = "  ping: 20ms\n  suspect: 50s\n  lost: 100s\n" });
}

/* The agent is asked on the next link. */
static void break_link(void)
{
	const unsigned links = fake_agent_links(d.agents[t.agent]);

	fake_agent_cut(d.agents[t.agent]);
	wait_until(fake_agent_links(d.agents[t.agent]) == links + 1);
	struct fake_frame *f = frame_at(t.agent, FRAME_REATTACH);
	struct frame_reattach asked;
	ck_assert_int_eq(frame_reattach_read(&(struct frame){ .len = f->len, .payload = f->payload }, &asked), 0);
	ck_assert_mem_eq(asked.connection_id, connection_only()->id.bytes, sizeof asked.connection_id);
	ck_assert_uint_eq(asked.epoch, 0);
	t.stream = f->stream;
	free(f);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_REATTACHING);
}

/* It holds the frames from number @frame on, with @bytes before them, and got so much of the client. */
static void reattach(uint64_t frame, uint64_t bytes, uint64_t of_client)
{
	const struct frame_reattached told = { .frame = frame, .bytes = bytes, .client_records = of_client };
	uint8_t payload[FRAME_REATTACHED_LEN];

	frame_reattached_write(payload, &told);
	fake_agent_send(d.agents[t.agent], t.stream, FRAME_REATTACHED, 0, payload, sizeof payload);
}

static void refuse(void)
{
	Cssl__LinkRefused r = CSSL__LINK_REFUSED__INIT;

	r.reason = CSSL__LINK_REFUSED__REASON__NO_STREAM;
	fake_agent_say(d.agents[t.agent], t.stream, FRAME_REFUSED, &r.base);
}

START_TEST(the_agent_gets_what_was_lost_on_its_way)
{
	begin();
	talk_greeted();
	client_says("EHLO a\r\nNO");
	agent_hears("EHLO a\r\nNO");
	agent_took(8);
	agent_says(REPLY, WHOLE);
	client_expect(t.fd, REPLY, strlen(REPLY));
	break_link();
	client_says("OP");
	reattach(4, strlen(BANNER REPLY), 9);
	agent_hears("OOP");
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_PREAMBLE);
	ck_assert_uint_eq(handshake_limit_count(d.rw->home.preambles), 1);
	client_says("\r\n");
	agent_hears("\r\n");
	agent_took(14);
	agent_says("250 2.0.0 Ok\r\n", WHOLE);
	client_expect(t.fd, "250 2.0.0 Ok\r\n", 14);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.reattached), 1);
	close(t.fd);
}
END_TEST

/* The agent holds all frames, and the last two had not come. */
START_TEST(the_client_gets_each_reply_once)
{
	begin();
	talk_greeted();
	client_says("EHLO a\r\n");
	agent_hears("EHLO a\r\n");
	break_link();
	reattach(1, 0, 8);
	agent_says(BANNER, WHOLE);
	agent_took(8);
	agent_says(REPLY, WHOLE);
	client_expect(t.fd, REPLY, strlen(REPLY));
	ck_assert_uint_eq(connection_only()->busy->kept.consumed_record, 8);
	ck_assert_uint_eq(connection_only()->now.queued, strlen(BANNER REPLY));
	close(t.fd);
}
END_TEST

START_TEST(the_answer_to_starttls_comes_again)
{
	begin();
	talk_greeted();
	client_says(STARTTLS);
	agent_hears(STARTTLS);
	break_link();
	reattach(2, strlen(BANNER), strlen(STARTTLS));
	agent_took(strlen(STARTTLS));
	agent_says(READY, WHOLE | FRAME_RECORDS_FOLLOW);
	client_expect(t.fd, READY, strlen(READY));
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_HELLO);
	free(frame_at(t.agent, FRAME_CLOSE)); /* it need not hold that any more */
	close(t.fd);
}
END_TEST

/* The agent got @of_client bytes before the break. */
static void inject_behind_starttls(size_t of_client)
{
	begin();
	talk_greeted();
	client_says(STARTTLS "EHLO inj\r\n");
	agent_hears(STARTTLS "EHLO inj\r\n");
	break_link();
	reattach(2, strlen(BANNER), of_client);
	agent_took(strlen(STARTTLS));
	agent_says(READY, WHOLE | FRAME_RECORDS_FOLLOW);
	expect_injection();
}

START_TEST(what_came_with_starttls_is_injected_all_the_same)
{
	inject_behind_starttls(strlen(STARTTLS "EHLO inj\r\n"));
}
END_TEST

START_TEST(so_it_is_if_the_agent_did_not_get_it)
{
	inject_behind_starttls(strlen(STARTTLS));
}
END_TEST

START_TEST(what_comes_amid_the_break_is_injected_too)
{
	begin();
	talk_greeted();
	client_says(STARTTLS);
	agent_hears(STARTTLS);
	break_link();
	client_says("x");
	wait_until(connection_only()->now.client_bytes == strlen(STARTTLS) + 1);
	reattach(2, strlen(BANNER), strlen(STARTTLS));
	agent_took(strlen(STARTTLS));
	agent_says(READY, WHOLE | FRAME_RECORDS_FOLLOW);
	expect_injection();
}
END_TEST

START_TEST(an_agent_that_does_not_go_on_is_excused_by_421)
{
	begin();
	talk_greeted();
	break_link();
	refuse();
	client_expect(t.fd, LEAVING, strlen(LEAVING));
	client_expect_fin(t.fd);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.preambles_lost), 1);
	close(t.fd);
}
END_TEST

START_TEST(amid_a_reply_it_costs_a_reset)
{
	begin();
	talk_greeted();
	agent_says("250-mx.example\r\n", FRAME_PLAINTEXT);
	client_expect(t.fd, "250-mx.example\r\n", 16);
	break_link();
	refuse();
	client_expect_reset(t.fd);
	close(t.fd);
}
END_TEST

START_TEST(before_the_banner_another_agent_begins_it_again)
{
	int agent;

	begin();
	talk_begin();
	break_link();
	const int first = t.agent;
	refuse();
	struct fake_frame *f = frame_anywhere(FRAME_PREAMBLE, &agent);
	ck_assert_int_ne(agent, first);
	talk_taken_by(f, agent);
	agent_says(BANNER, WHOLE);
	client_expect(t.fd, BANNER, strlen(BANNER));
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.preambles_restarted), 1);
	close(t.fd);
}
END_TEST

/* As before a handover. */
START_TEST(one_whose_frames_are_still_coming_again_may_be_given_up)
{
	begin();
	talk_greeted();
	fake_agent_send(d.agents[t.agent], t.stream, FRAME_RELAYED, 0, NULL, 0);
	wait_until(connection_only()->now.state == CONNECTION_RELAYED);
	break_link();
	reattach(1, 0, 0);
	wait_until(connection_only()->now.state == CONNECTION_RELAYED);
	connection_only()->busy->resumes = CONNECTION_PREAMBLE; /* of a break before */
	connection_stop_reattaching(connection_only());
	client_expect(t.fd, LEAVING, strlen(LEAVING));
	client_expect_fin(t.fd);
	close(t.fd);
}
END_TEST

START_TEST(an_agent_cannot_have_what_the_client_did_not_say)
{
	begin();
	talk_greeted();
	client_says("NO");
	agent_hears("NO");
	break_link();
	reattach(2, strlen(BANNER), 3);
	client_expect(t.fd, LEAVING, strlen(LEAVING));
	client_expect_fin(t.fd);
	close(t.fd);
}
END_TEST

START_TEST(an_end_that_was_ordered_is_ordered_again)
{
	begin();
	talk_greeted();
	connection_send_finish(connection_only(), END_SHUTTING_DOWN);
	free(frame_at(t.agent, FRAME_FINISH));
	break_link();
	reattach(2, strlen(BANNER), 0);
	struct fake_frame *f = frame_at(t.agent, FRAME_FINISH);
	ck_assert_uint_eq(f->payload[0], END_SHUTTING_DOWN);
	free(f);
	agent_says(LEAVING, WHOLE);
	fake_agent_end(d.agents[t.agent], t.stream, END_SHUTTING_DOWN, 0);
	client_expect(t.fd, LEAVING, strlen(LEAVING));
	client_expect_fin(t.fd);
	close(t.fd);
}
END_TEST

START_TEST(mail_in_clear_goes_on)
{
	static char words[2 * FRAME_PREAMBLE_WINDOW];

	begin();
	talk_greeted();
	fake_agent_send(d.agents[t.agent], t.stream, FRAME_RELAYED, 0, NULL, 0);
	wait_until(connection_only()->now.state == CONNECTION_RELAYED);
	break_link();
	memset(words, 'a', sizeof words);
	write_all(t.fd, words, sizeof words);
	wait_until(connection_only()->now.client_bytes == sizeof words);
	reattach(3, strlen(BANNER), 0);
	wait_until(fake_agent_data_len(d.agents[t.agent], t.stream) == sizeof words);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_RELAYED);
	ck_assert_uint_eq(handshake_limit_count(d.rw->home.preambles), 0);
	ck_assert_uint_eq(handshake_limit_count(d.rw->home.handshakes), 0);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.connections_relayed), 1);
	close(t.fd);
}
END_TEST

/* It is told behind all its words. */
START_TEST(the_end_of_a_client_amid_the_break_is_told)
{
	begin();
	talk_greeted();
	client_says("QUIT\r\n");
	agent_hears("QUIT\r\n");
	break_link();
	shutdown(t.fd, SHUT_WR);
	wait_until(connection_only()->now.tail == TAIL_FIN);
	reattach(2, strlen(BANNER), 2);
	agent_hears("IT\r\n");
	free(frame_at(t.agent, FRAME_FIN));
	close(t.fd);
}
END_TEST

UNIT(connection_clear_again)
{
	const TTest *const facts[] = {
		the_agent_gets_what_was_lost_on_its_way,
		the_client_gets_each_reply_once,
		the_answer_to_starttls_comes_again,
		what_came_with_starttls_is_injected_all_the_same,
		so_it_is_if_the_agent_did_not_get_it,
		what_comes_amid_the_break_is_injected_too,
		an_agent_that_does_not_go_on_is_excused_by_421,
		amid_a_reply_it_costs_a_reset,
		before_the_banner_another_agent_begins_it_again,
		one_whose_frames_are_still_coming_again_may_be_given_up,
		an_agent_cannot_have_what_the_client_did_not_say,
		an_end_that_was_ordered_is_ordered_again,
		mail_in_clear_goes_on,
		the_end_of_a_client_amid_the_break_is_told,
	};

	return dispatcher_suite_run("connection_clear_again", facts, sizeof facts / sizeof facts[0]);
}
