/* test_preamble.c: facts of what an agent says to a client in clear: up to STARTTLS, and as a relay where mail may
 * begin in clear. The carrier is the test's, the server a socket.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "net/report/log.h"
#include "proto/frame.h"
#include "sslagent/counters.h"
#include "sslagent/preamble/preamble.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

#define LEAVING "421 4.3.2 Service is shutting down, try again\r\n"

static char host[] = "mx.example", backend_name[] = "mail";
static struct conf_listener listeners[2]; /* STARTTLS required; offered */
static struct conf_backend server_conf;
static struct backend_state server_state;
static struct conf conf;
static struct sockaddr_storage anywhere;
static struct backend_home backends;
static struct preamble_home home;
static struct agent_counters *counters;
static struct preamble *p;
static int listening, server;

/* What the carrier was told. */
static struct heard {
	struct preamble_carrier carrier;
	char words[131072];
	size_t len, said; /* since the test looked, and in all */
	enum preamble_words last;
	uint64_t taken;
	unsigned wants, relayed, ends, starttls;
	enum end_reason reason;
	enum preamble_end how;
} heard;

static void say(struct preamble_carrier *c, const void *words, size_t len, enum preamble_words what)
{
	ck_assert_uint_lt(heard.len + len, sizeof heard.words);
	memcpy(heard.words + heard.len, words, len);
	heard.len += len;
	heard.said += len;
	heard.words[heard.len] = 0;
	heard.last = what;
}

static void taken(struct preamble_carrier *c, uint64_t bytes)
{
	heard.taken = bytes;
}

static void wants(struct preamble_carrier *c)
{
	heard.wants++;
}

static void starttls(struct preamble_carrier *c, const void *reply, size_t len, uint64_t bytes)
{
	say(c, reply, len, PREAMBLE_WHOLE);
	heard.taken = bytes;
	heard.starttls++;
}

static void relayed(struct preamble_carrier *c)
{
	heard.relayed++;
}

static void end(struct preamble_carrier *c, enum end_reason reason, enum preamble_end how)
{
	heard.ends++;
	heard.reason = reason;
	heard.how = how;
}

static const struct preamble_carrier_ops ops = {
	.say = say, .taken = taken, .wants = wants, .starttls = starttls, .relayed = relayed, .end = end
};

static void setup(void)
{
	log_set_level(LOG_ERROR);
	setup_worker();
	counters = agent_counters_create(1);
	counters_use(counters_of(counters, 0));
	server_conf = (struct conf_backend){ .name = backend_name };
	server_state = (struct backend_state){ 0 };
	listening = socket_listen(OVER_TCP4, &server_conf.address);
	for (unsigned i = 0; i < 2; i++)
		listeners[i] = (struct conf_listener){ .name = host,
			.service = CONF_SMTP,
			.backend = backend_name,
			.smtp = { .hostname = host,
				.starttls = i ? SMTP_TLS_OFFER : SMTP_TLS_REQUIRE,
				.preamble_timeout_ms = WAIT_LIMIT_MS,
				.refusals_max = 3 } };
	conf = (struct conf){
		.listeners = listeners, .listener_count = 2, .backends = &server_conf, .backend_count = 1
	};
	conf.limits.window_len = 65536;
	conf.limits.preambles = 2;
	conf.limits.backend_connect_timeout_ms = WAIT_LIMIT_MS;
	backend_home_open(&backends, w, &conf, &anywhere, &server_state);
	home = (struct preamble_home){ .worker = w, .conf = &conf, .backends = &backends };
	ck_assert_int_eq(preamble_home_open(&home), 0);
	heard = (struct heard){ .carrier = { &ops } };
	server = -1;
	p = NULL;
}

static void teardown(void)
{
	if (p && heard.ends == 0 && heard.starttls == 0)
		preamble_forget(p);
	turns(4);
	ck_assert_uint_eq(home.count, 0);
	ck_assert_uint_eq(home.talking, 0);
	preamble_home_release(&home);
	if (server >= 0)
		close(server);
	close(listening);
	teardown_worker();
	counters_use(NULL);
	agent_counters_destroy(counters);
}

static struct preamble *opened(unsigned listener)
{
	static const struct connection_id id = { { 1 } };
	static const Cssl__Endpoints nowhere = CSSL__ENDPOINTS__INIT;

	return preamble_open(&home, &heard.carrier, &listeners[listener], &id, &nowhere);
}

static void begin(unsigned listener)
{
	p = opened(listener);
	ck_assert_ptr_nonnull(p);
}

/* All of it is used; nothing is said when it comes to that. */
static void client_says(const char *text)
{
	ck_assert_uint_eq(preamble_read(p, (const uint8_t *)text, strlen(text)), strlen(text));
}

static void client_heard(const char *words)
{
	ck_assert_str_eq(heard.words, words);
	heard.len = 0;
	heard.words[0] = 0;
}

static void greeted(unsigned listener)
{
	begin(listener);
	client_heard("220 mx.example ESMTP\r\n");
	client_says("EHLO client.example\r\n");
	client_heard("250-mx.example\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-ENHANCEDSTATUSCODES\r\n250 STARTTLS\r\n");
}

static void server_expects(const char *words)
{
	char got[1024];

	ck_assert_uint_lt(strlen(words), sizeof got);
	read_exactly(server, got, strlen(words));
	ck_assert_mem_eq(got, words, strlen(words));
}

static int server_accepts(void)
{
	server = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	return server >= 0;
}

/* Mail has begun in clear, and the server knows of it. */
static void mail_began(void)
{
	greeted(1);
	client_says("MAIL FROM:<a@x.example>\r\n");
	ck_assert_uint_eq(heard.relayed, 1);
	wait_until(server_accepts());
	write_all(server, "220 server\r\n", 12);
	server_expects("EHLO client.example\r\n");
	write_all(server, "250-server\r\n250 PIPELINING\r\n", 28);
	server_expects("MAIL FROM:<a@x.example>\r\n");
	client_heard("");
	write_all(server, "250 m\r\n", 7);
	wait_until(heard.len);
	client_heard("250 m\r\n");
}

START_TEST(starttls_is_told_with_the_bytes_before_it)
{
	greeted(0);
	client_says("NOOP\r\n");
	client_heard("250 2.0.0 Ok\r\n");
	ck_assert_uint_eq(heard.taken, 27);
	ck_assert_uint_eq(preamble_read(p, (const uint8_t *)"STARTTLS\r\nEHLO evil\r\n", 21), 10);
	ck_assert_uint_eq(heard.starttls, 1);
	ck_assert_uint_eq(heard.taken, 37);
	client_heard("220 2.0.0 Ready to start TLS\r\n");
	ck_assert_uint_eq(heard.ends, 0);
}
END_TEST

START_TEST(mail_needs_tls_where_the_listener_says_so)
{
	greeted(0);
	client_says("MAIL FROM:<a@x.example>\r\nAUTH PLAIN AGEAYg==\r\n");
	client_heard(
		"530 5.7.0 Must issue a STARTTLS command first\r\n530 5.7.0 Must issue a STARTTLS command first\r\n");
	client_says("DATA\r\n");
	ck_assert_uint_eq(heard.ends, 1);
	ck_assert_int_eq(heard.reason, END_PREAMBLE_REFUSED);
	ck_assert_int_eq(heard.how, PREAMBLE_ORDERLY);
}
END_TEST

START_TEST(quit_ends_it)
{
	greeted(0);
	client_says("QUIT\r\n");
	client_heard("221 2.0.0 Bye\r\n");
	ck_assert_uint_eq(heard.ends, 1);
	ck_assert_int_eq(heard.reason, END_DONE);
}
END_TEST

START_TEST(a_finish_says_421_between_two_commands)
{
	greeted(0);
	client_says("NO");
	preamble_finish(p, END_SHUTTING_DOWN);
	client_heard(LEAVING);
	ck_assert_int_eq(heard.last, PREAMBLE_WHOLE);
	ck_assert_int_eq(heard.reason, END_SHUTTING_DOWN);
}
END_TEST

START_TEST(a_deadline_ends_it)
{
	listeners[0].smtp.preamble_timeout_ms = 1;
	begin(0);
	wait_until(heard.ends);
	client_heard("220 mx.example ESMTP\r\n421 4.4.2 Timed out\r\n");
	ck_assert_int_eq(heard.reason, END_PREAMBLE_TIMEOUT);
}
END_TEST

START_TEST(one_too_many_is_refused)
{
	struct preamble *first = opened(0), *second = opened(0);

	ck_assert_ptr_nonnull(first);
	ck_assert_ptr_nonnull(second);
	ck_assert_ptr_null(opened(0));
	preamble_forget(first);
	preamble_forget(second);
	ck_assert_uint_eq(heard.ends, 0);
}
END_TEST

START_TEST(mail_in_clear_takes_no_place_of_a_preamble)
{
	mail_began();
	struct preamble *first = opened(0), *second = opened(0);
	ck_assert_ptr_nonnull(first);
	ck_assert_ptr_nonnull(second);
	ck_assert_ptr_null(opened(0));
	ck_assert_uint_eq(home.count, 3); /* an agent that leaves waits for all of them */
	preamble_forget(p);
	p = NULL;
	ck_assert_ptr_null(opened(0));
	preamble_forget(first);
	preamble_forget(second);
}
END_TEST

/* It reads on when the client has taken enough. */
START_TEST(a_client_that_takes_nothing_is_not_answered_without_end)
{
	size_t used = 1;

	begin(0);
	while (used)
		used = preamble_read(p, (const uint8_t *)"HELP\r\n", 6);
	ck_assert_uint_eq(heard.wants, 0);
	ck_assert_uint_le(heard.len, FRAME_PREAMBLE_WINDOW);
	preamble_drained(p, heard.len);
	ck_assert_uint_eq(heard.wants, 1);
	client_says("HELP\r\n");
}
END_TEST

START_TEST(mail_in_clear_goes_to_the_server_behind_the_clients_greeting)
{
	mail_began();
	client_says("RCPT TO:<b@x.example>\r\nXCLIENT NAME=x\r\n");
	server_expects("RCPT TO:<b@x.example>\r\n");
	write_all(server, "250 r\r\n", 7);
	wait_until(heard.len >= 30);
	client_heard("250 r\r\n550 5.7.0 Not authorized\r\n");
}
END_TEST

/* Commands that the agent itself refuses. */
START_TEST(a_client_in_clear_that_takes_nothing_is_not_answered_without_end)
{
	static const char group[] = "STARTTLS\r\nSTARTTLS\r\n";
	size_t used;

	listeners[1].smtp.refusals_max = 0;
	mail_began();
	preamble_drained(p, heard.said);
	do {
		used = preamble_read(p, (const uint8_t *)group, strlen(group));
	} while (used == strlen(group));
	ck_assert_uint_le(heard.len, conf.limits.window_len);
	ck_assert_uint_ge(heard.len + 4096, conf.limits.window_len);
	const unsigned before = heard.wants;
	preamble_drained(p, heard.said);
	ck_assert_uint_gt(heard.wants, before);
	ck_assert_uint_gt(preamble_read(p, (const uint8_t *)group, strlen(group)), 0);
}
END_TEST

START_TEST(a_finish_waits_for_the_end_of_the_mail)
{
	mail_began();
	preamble_finish(p, END_SHUTTING_DOWN);
	client_heard("");
	client_says("RSET\r\n");
	server_expects("RSET\r\n");
	write_all(server, "250 x\r\n", 7);
	wait_until(heard.ends);
	client_heard("250 x\r\n" LEAVING);
	ck_assert_int_eq(read_to_end(server), 0);
}
END_TEST

START_TEST(mail_in_clear_that_is_paused_reads_no_server_and_tells_it_nothing)
{
	mail_began();
	preamble_pause(p);
	write_all(server, "250 r\r\n", 7);
	turns(20);
	client_heard("");
	preamble_finish(p, END_SHUTTING_DOWN);
	turns(20);
	ck_assert_uint_eq(heard.ends, 0);
	const unsigned before = heard.wants;
	preamble_go_on(p);
	client_says("RCPT TO:<b@x.example>\r\n");
	server_expects("RCPT TO:<b@x.example>\r\n");
	wait_until(heard.len);
	client_heard("250 r\r\n");
	ck_assert_uint_gt(heard.wants, before);
}
END_TEST

START_TEST(a_server_that_is_lost_meanwhile_is_told_when_it_goes_on)
{
	mail_began();
	preamble_pause(p);
	close(server);
	server = -1;
	turns(20);
	ck_assert_uint_eq(heard.ends, 0);
	preamble_go_on(p);
	wait_until(heard.ends);
	ck_assert_int_eq(strncmp(heard.words, "421 ", 4), 0);
}
END_TEST

START_TEST(silence_in_the_midst_of_a_mail_is_told_421)
{
	mail_began();
	if (_i) /* RAgent stops, too */
		preamble_finish(p, END_SHUTTING_DOWN);
	preamble_finish(p, END_IDLE_TIMEOUT);
	ck_assert_int_eq(heard.ends, 1);
	ck_assert_int_eq(heard.reason, END_IDLE_TIMEOUT);
	ck_assert_int_eq(heard.how, PREAMBLE_ORDERLY);
	client_heard("421 4.4.2 Timed out\r\n");
	ck_assert_int_eq(read_to_end(server), -1); /* it must not take a part for a mail */
}
END_TEST

START_TEST(an_operator_ends_a_mail_at_once)
{
	mail_began();
	preamble_finish(p, END_OPERATOR);
	ck_assert_int_eq(heard.ends, 1);
	ck_assert_int_eq(heard.reason, END_OPERATOR);
	ck_assert_int_eq(heard.how, PREAMBLE_ORDERLY);
	ck_assert_int_eq(read_to_end(server), -1);
}
END_TEST

START_TEST(an_agent_without_descriptors_does_not_blame_the_server)
{
	struct rlimit before, files;

	greeted(1);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	files = before;
	files.rlim_cur = 3;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	client_says("MAIL FROM:<a@x.example>\r\n");
	wait_until(heard.ends);
	ck_assert_int_eq(heard.reason, END_OVERLOADED);
	ck_assert_int_eq(server_state.failure, 0);
	ck_assert_int_eq(strncmp(heard.words, "421 4.3.2 Service is overloaded", 31), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0); /* a search for leaks needs some */
}
END_TEST

START_TEST(silence_in_the_midst_of_a_reply_is_a_reset)
{
	mail_began();
	client_says("RCPT TO:<b@x.example>\r\n");
	server_expects("RCPT TO:<b@x.example>\r\n");
	write_all(server, "250-r\r\n", 7);
	wait_until(heard.len);
	client_heard("250-r\r\n");
	preamble_finish(p, END_IDLE_TIMEOUT);
	ck_assert_int_eq(heard.how, PREAMBLE_ABORT);
	client_heard("");
}
END_TEST

START_TEST(the_reply_to_the_end_of_a_mail_has_a_longer_limit)
{
	mail_began();
	client_says("RCPT TO:<b@x.example>\r\nDATA\r\n");
	server_expects("RCPT TO:<b@x.example>\r\nDATA\r\n");
	write_all(server, "250 r\r\n354 go\r\n", 15);
	wait_until(heard.len >= 15);
	client_heard("250 r\r\n354 go\r\n");
	client_says("x\r\n.\r\n");
	server_expects("x\r\n.\r\n");
	if (_i) /* RAgent stops, too */
		preamble_finish(p, END_SHUTTING_DOWN);
	preamble_finish(p, END_IDLE_TIMEOUT);
	ck_assert_int_eq(heard.ends, 0);
	preamble_finish(p, END_BACKEND_TIMEOUT);
	ck_assert_int_eq(heard.reason, END_BACKEND_TIMEOUT);
	client_heard("421 4.4.2 Timed out\r\n");
}
END_TEST

START_TEST(a_server_that_is_lost_in_the_midst_is_told)
{
	mail_began();
	close(server);
	server = -1;
	wait_until(heard.ends);
	client_heard("421 4.4.2 The mail server behind was lost, try again\r\n");
	ck_assert_int_eq(heard.reason, END_BACKEND_CLOSED);
}
END_TEST

START_TEST(a_client_that_is_lost_in_the_midst_resets_the_server)
{
	mail_began();
	preamble_forget(p);
	p = NULL;
	ck_assert_int_eq(read_to_end(server), -1);
}
END_TEST

START_TEST(what_is_hidden_is_hidden_in_clear_too)
{
	static char chunking[] = "CHUNKING", *hidden[] = { chunking };

	listeners[1].smtp.hide = hidden;
	listeners[1].smtp.hide_count = 1;
	mail_began();
	client_says("EHLO client.example\r\n");
	server_expects("EHLO client.example\r\n");
	write_all(server, "250-server\r\n250-CHUNKING\r\n250-STARTTLS\r\n250 SIZE 9\r\n", 52);
	wait_until(heard.len > 20);
	client_heard("250-mx.example\r\n250 SIZE 9\r\n");
}
END_TEST

START_TEST(requiretls_is_for_clients_with_tls)
{
	mail_began();
	client_says("RSET\r\n");
	server_expects("RSET\r\n");
	write_all(server, "250 r\r\n", 7);
	wait_until(heard.len);
	client_heard("250 r\r\n");
	client_says("EHLO client.example\r\n");
	server_expects("EHLO client.example\r\n");
	write_all(server, "250-server\r\n250-REQUIRETLS\r\n250 SIZE 9\r\n", 40);
	wait_until(heard.len > 20);
	client_heard("250-mx.example\r\n250 SIZE 9\r\n");
	client_says("MAIL FROM:<a@x.example> requiretls\r\n");
	client_heard("555 5.5.4 Parameter is not known\r\n");
}
END_TEST

UNIT(preamble)
{
	const TTest *const facts[] = {
		starttls_is_told_with_the_bytes_before_it,
		mail_needs_tls_where_the_listener_says_so,
		quit_ends_it,
		a_finish_says_421_between_two_commands,
		a_deadline_ends_it,
		one_too_many_is_refused,
		mail_in_clear_takes_no_place_of_a_preamble,
		a_client_that_takes_nothing_is_not_answered_without_end,
		mail_in_clear_goes_to_the_server_behind_the_clients_greeting,
		a_client_in_clear_that_takes_nothing_is_not_answered_without_end,
		a_finish_waits_for_the_end_of_the_mail,
		mail_in_clear_that_is_paused_reads_no_server_and_tells_it_nothing,
		a_server_that_is_lost_meanwhile_is_told_when_it_goes_on,
		an_operator_ends_a_mail_at_once,
		an_agent_without_descriptors_does_not_blame_the_server,
		silence_in_the_midst_of_a_reply_is_a_reset,
		a_server_that_is_lost_in_the_midst_is_told,
		a_client_that_is_lost_in_the_midst_resets_the_server,
		what_is_hidden_is_hidden_in_clear_too,
		requiretls_is_for_clients_with_tls,
	};
	TCase *tcase = tcase_create("preamble");
	Suite *suite = suite_create("preamble");

	tcase_add_checked_fixture(tcase, setup, teardown);
	for (size_t i = 0; i < FACTS_LEN(facts); i++)
		tcase_add_test(tcase, facts[i]);
	tcase_add_loop_test(tcase, silence_in_the_midst_of_a_mail_is_told_421, 0, 2);
	tcase_add_loop_test(tcase, the_reply_to_the_end_of_a_mail_has_a_longer_limit, 0, 2);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	const int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
