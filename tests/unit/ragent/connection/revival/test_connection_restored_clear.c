/* test_connection_restored_clear.c: facts of clients that speak in clear, or have just ceased to, when their process
 * dies: the next one goes on with them, and values of the dead process that cannot be are not used.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ragent/connection/revival/revival.h"
#include "tests/unit/ragent/next_life.h"
#include "tests/unit/ragent/talk.h"
#include "tests/unit/unit.h"

#define REPLY "250 mx.example\r\n"

static const struct dispatcher_wish outlives = { OUTLIVES, .listener = SLOW };

static struct connection *c(void)
{
	return connection_only();
}

/* Its agent got @heard bytes of the client. */
static void agent_goes_on(uint64_t heard, enum connection_state state)
{
	struct live_connection l = { .agent = t.agent, .stream = t.stream };

	owner_goes_on(&l, heard, state);
	t.stream = l.stream;
}

static void begin_talk(void)
{
	dispatcher_start(&outlives);
	talk_greeted();
	client_says("EHLO a\r\n");
	agent_hears("EHLO a\r\n");
}

static void begin_mail(void)
{
	dispatcher_start(&outlives);
	talk_greeted();
	fake_agent_send(d.agents[t.agent], t.stream, FRAME_RELAYED, 0, NULL, 0);
	wait_until(c()->now.state == CONNECTION_RELAYED && connection_is_saved(c()));
}

START_TEST(its_agent_goes_on_with_it)
{
	begin_talk();
	die();
	agent_goes_on(8, CONNECTION_PREAMBLE);
	ck_assert_uint_eq(handshake_limit_count(d.rw->home.preambles), 1);
	agent_took(8);
	agent_says(REPLY, WHOLE);
	client_expect(t.fd, REPLY, strlen(REPLY));
	expect_fates(1, 0);
	close(t.fd);
}
END_TEST

START_TEST(what_the_agent_did_not_get_it_gets_again)
{
	begin_talk();
	die();
	agent_goes_on(3, CONNECTION_PREAMBLE);
	agent_hears("O a\r\n");
	close(t.fd);
}
END_TEST

/* The dead process had not passed them on. */
START_TEST(words_before_the_banner_wait_for_it)
{
	dispatcher_start(&outlives);
	talk_begin();
	client_says("EHLO early\r\n");
	wait_until(stream_kept(&c()->busy->client) == 12);
	die();
	agent_goes_on(0, CONNECTION_PREAMBLE);
	turns(8);
	ck_assert_uint_eq(fake_agent_data_len(d.agents[t.agent], t.stream), 0);
	agent_says(BANNER, WHOLE);
	agent_hears("EHLO early\r\n");
	close(t.fd);
}
END_TEST

START_TEST(words_beyond_a_window_wait_in_the_next_process)
{
	static char words[FRAME_PREAMBLE_WINDOW + 10];

	dispatcher_start(&outlives);
	talk_greeted();
	memset(words, 'a', sizeof words);
	write_all(t.fd, words, sizeof words);
	wait_until(fake_agent_data_len(d.agents[t.agent], t.stream) == FRAME_PREAMBLE_WINDOW);
	die();
	agent_goes_on(FRAME_PREAMBLE_WINDOW, CONNECTION_PREAMBLE);
	agent_took(FRAME_PREAMBLE_WINDOW);
	wait_until(fake_agent_data_len(d.agents[t.agent], t.stream) == 10);
	close(t.fd);
}
END_TEST

START_TEST(one_that_waits_for_an_agent_gets_its_banner)
{
	int agent;

	dispatcher_start(&outlives);
	all_agents_are(0);
	t.fd = client_connect("sf");
	wait_until(d.rw->home.connections && c()->now.state == CONNECTION_PREAMBLE && connection_is_saved(c()));
	die();
	ck_assert_int_eq(c()->now.state, CONNECTION_PREAMBLE);
	ck_assert_int_eq(c()->now.account.stream.agent, NO_AGENT);
	all_agents_are(1);
	struct fake_frame *f = frame_anywhere(FRAME_PREAMBLE, &agent);
	talk_taken_by(f, agent);
	agent_says(BANNER, WHOLE);
	client_expect(t.fd, BANNER, strlen(BANNER));
	close(t.fd);
}
END_TEST

START_TEST(mail_in_clear_goes_on)
{
	static char words[2 * FRAME_PREAMBLE_WINDOW];

	begin_mail();
	memset(words, 'a', sizeof words);
	write_all(t.fd, words, sizeof words);
	wait_until(fake_agent_data_len(d.agents[t.agent], t.stream) == sizeof words);
	die();
	agent_goes_on(0, CONNECTION_RELAYED);
	wait_until(fake_agent_data_len(d.agents[t.agent], t.stream) == sizeof words);
	ck_assert_uint_eq(handshake_limit_count(d.rw->home.preambles), 0);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.connections_relayed), 1);
	close(t.fd);
}
END_TEST

START_TEST(an_end_that_was_ordered_is_ordered_again)
{
	begin_talk();
	connection_send_finish(c(), END_SHUTTING_DOWN);
	free(frame_at(t.agent, FRAME_FINISH));
	connection_save(c());
	die();
	agent_goes_on(8, CONNECTION_PREAMBLE);
	struct fake_frame *f = frame_at(t.agent, FRAME_FINISH);
	ck_assert_uint_eq(f->payload[0], END_SHUTTING_DOWN);
	free(f);
	close(t.fd);
}
END_TEST

/* The time for the handshake began at STARTTLS. */
START_TEST(a_handshake_after_starttls_goes_on)
{
	int agent;

	dispatcher_start(&outlives);
	talk_greeted();
	starttls();
	client_expect(t.fd, READY, strlen(READY));
	wait_until(c()->now.state == CONNECTION_HELLO && connection_is_saved(c()));
	const uint64_t began_ms = c()->busy->preamble->now.hello_ms;
	die();
	ck_assert_int_eq(c()->now.state, CONNECTION_HELLO);
	ck_assert_uint_eq(c()->busy->preamble->now.hello_ms, began_ms);
	client_send_record(t.fd, TLS_HANDSHAKE, 200, 1);
	free(frame_anywhere(FRAME_OPEN, &agent));
	close(t.fd);
}
END_TEST

/* The client cannot have heard the answer to STARTTLS: it fills the kernel's buffers up and more. */
START_TEST(what_a_client_says_before_it_hears_of_tls_was_injected)
{
	static char reply[15000];

	dispatcher_start(&outlives);
	talk_greeted();
	shrink_buffers(t.fd);
	shrink_buffers(connection_fd(c()));
	memset(reply, 'a', sizeof reply);
	client_says(STARTTLS);
	agent_hears(STARTTLS);
	agent_took(strlen(STARTTLS));
	for (unsigned i = 0; i < 4; i++)
		fake_agent_send(d.agents[t.agent], t.stream, FRAME_DATA, WHOLE, reply, sizeof reply);
	agent_says(READY, WHOLE | FRAME_RECORDS_FOLLOW);
	wait_until(c()->now.state == CONNECTION_HELLO && connection_is_saved(c()));
	ck_assert(connection_owes(c()));
	life_ends();
	client_says("EHLO inj\r\n");
	next_life_begins();
	expect_fates(0, 1);
	expect_injection();
}
END_TEST

/* --- wrong values --- */

/* What the dead process left of a talk is wrong in one value. */
struct wrong {
	const char *what;
	void (*write)(struct connection *dead, struct trail_image *image);
};

static void an_epoch(struct connection *dead, struct trail_image *image)
{
	left_by(dead)->epoch = 1;
}
static void records_of_a_server(struct connection *dead, struct trail_image *image)
{
	left_by(dead)->position.server_records = 1;
}
static void keys(struct connection *dead, struct trail_image *image)
{
	left_by(dead)->position.stage = POSITION_LIVE;
}
static void no_agent_behind_the_banner(struct connection *dead, struct trail_image *image)
{
	left_by(dead)->current.link = NULL;
}
static void no_agent_and_bytes_for_the_client(struct connection *dead, struct trail_image *image)
{
	left_by(dead)->current.link = NULL;
	image->preamble.said = PREAMBLE_NOTHING;
}
static void no_agent_for_mail(struct connection *dead, struct trail_image *image)
{
	left_by(dead)->current.link = NULL;
	left_by(dead)->state = CONNECTION_RELAYED;
}
static void an_agent_that_is_none(struct connection *dead, struct trail_image *image)
{
	left_by(dead)->account.stream.agent = AGENTS;
}
static void told_of_more_frames_than_came(struct connection *dead, struct trail_image *image)
{
	left_by(dead)->account.frames_told = left_by(dead)->account.frames + 1;
}
static void no_trail(struct connection *dead, struct trail_image *image)
{
	dead->now = *left_by(dead);
	table_slot_to(&dead->slot, SLOT_SAVED);
}
static void more_bytes_than_can_be_counted(struct connection *dead, struct trail_image *image)
{
	image->first_record = UINT64_MAX - 7;
}
static void no_bytes_in_its_log(struct connection *dead, struct trail_image *image)
{
	trail_of(dead)->log.first = NULL;
}

START_TEST(one_that_is_wrong_is_reset)
{
	static const struct wrong rows[] = {
		{ "an epoch", an_epoch },
		{ "records of a server", records_of_a_server },
		{ "keys", keys },
		{ "no agent behind the banner", no_agent_behind_the_banner },
		{ "no agent and bytes for the client", no_agent_and_bytes_for_the_client },
		{ "no agent for mail", no_agent_for_mail },
		{ "an agent that is none", an_agent_that_is_none },
		{ "told of more frames than came", told_of_more_frames_than_came },
		{ "no trail", no_trail },
		{ "more bytes than can be counted", more_bytes_than_can_be_counted },
		{ "no bytes in its log", no_bytes_in_its_log },
	};
	struct connection *dead[FACTS_LEN(rows)];
	int clients[FACTS_LEN(rows)];

	begin_talk();
	struct talk beside = t;
	for (size_t i = 0; i < FACTS_LEN(rows); i++) {
		talk_greeted();
		client_says("EHLO a\r\n");
		agent_hears("EHLO a\r\n");
		clients[i] = t.fd;
		dead[i] = connection_newest();
	}
	life_ends();
	for (size_t i = 0; i < FACTS_LEN(rows); i++)
		rows[i].write(dead[i], image_left_by(dead[i]));
	next_life_begins();
	for (size_t i = 0; i < FACTS_LEN(rows); i++) {
		ck_assert_msg(read_to_end(clients[i]) == -1, "%s", rows[i].what);
		close(clients[i]);
	}
	expect_fates(1, FACTS_LEN(rows));
	t = beside;
	agent_goes_on(8, CONNECTION_PREAMBLE);
	close(t.fd);
}
END_TEST

/* RAgent says nothing of its own amid a reply, so a value that cannot be means that. */
START_TEST(an_unknown_state_of_the_replies_is_amid_one)
{
	begin_talk();
	struct connection *dead = c();
	life_ends();
	image_left_by(dead)->preamble.said = PREAMBLE_PART_OF_REPLY + 1;
	image_left_by(dead)->preamble.finishing = PREAMBLE_FINISHING + 1;
	image_left_by(dead)->preamble.told = END_REASON_COUNT;
	next_life_begins();
	ck_assert_uint_eq(c()->busy->preamble->now.said, PREAMBLE_PART_OF_REPLY);
	ck_assert_uint_eq(c()->busy->preamble->now.finishing, PREAMBLE_GOES_ON);
	ck_assert_uint_eq(c()->busy->preamble->now.told, END_DONE);
	agent_goes_on(8, CONNECTION_PREAMBLE);
	expect_fates(1, 0);
	close(t.fd);
}
END_TEST

UNIT(connection_restored_clear)
{
	const TTest *const facts[] = {
		its_agent_goes_on_with_it,
		what_the_agent_did_not_get_it_gets_again,
		words_before_the_banner_wait_for_it,
		words_beyond_a_window_wait_in_the_next_process,
		one_that_waits_for_an_agent_gets_its_banner,
		mail_in_clear_goes_on,
		an_end_that_was_ordered_is_ordered_again,
		a_handshake_after_starttls_goes_on,
		what_a_client_says_before_it_hears_of_tls_was_injected,
		one_that_is_wrong_is_reset,
		an_unknown_state_of_the_replies_is_amid_one,
	};

	return dispatcher_suite_run("connection_restored_clear", facts, FACTS_LEN(facts));
}
