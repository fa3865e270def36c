/* test_connection_end.c: facts of how a connection ends, by whomever. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/socket/discard.h"
#include "net/stream/stream.h"
#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

static struct live_connection l;

static uint64_t ended(enum end_reason reason)
{
	return counter_get(&d.rw->home.counters.ended[reason]);
}

static uint8_t close_reason(int agent)
{
	struct fake_frame *f = frame_at(agent, FRAME_CLOSE);
	uint8_t reason = f->payload[0];

	ck_assert_uint_eq(f->stream, l.stream);
	free(f);
	return reason;
}

START_TEST(an_orderly_end_delivers_every_byte_and_then_fin)
{
	static uint8_t record[RECORD_OF(16000)];

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	record_make(record, TLS_APPLICATION_DATA, 16000, 7);
	for (unsigned i = 0; i < 3; i++)
		fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, 0, record, sizeof record);
	fake_agent_end(d.agents[l.agent], l.stream, END_DONE, 0);
	for (unsigned i = 0; i < 3; i++)
		client_expect(l.fd, record, sizeof record);
	client_expect_fin(l.fd);
	ck_assert_uint_eq(ended(END_DONE), 1);
	close(l.fd);
	wait_until(!d.rw->home.connections);
	ck_assert_uint_eq(close_reason(l.agent), END_DONE); /* the answer to END */
	no_frame(FRAME_CLOSE);
}
END_TEST

START_TEST(a_last_answer_survives_a_client_that_is_still_sending)
{
	static uint8_t record[RECORD_OF(16000)];

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	record_make(record, TLS_APPLICATION_DATA, 16000, 7);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 9000, 1);
	fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, 0, record, sizeof record);
	fake_agent_end(d.agents[l.agent], l.stream, END_DONE, 0);
	wait_until(connection_only()->now.state == CONNECTION_LINGERING);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 9000, 2); /* would make the kernel reset a closed socket */
	client_expect(l.fd, record, sizeof record);
	client_expect_fin(l.fd);
	close(l.fd);
}
END_TEST

/* A client that has got its FIN goes on sending, as if it had not looked yet. */
static void send_on(size_t bytes)
{
	static uint8_t waste[16384];

	for (size_t sent = 0; sent < bytes && d.rw->home.connections;) {
		ssize_t n = write(l.fd, waste, sizeof waste);
		ck_assert(n > 0 || errno == EAGAIN);
		sent += n > 0 ? (size_t)n : 0;
		turn();
	}
}

START_TEST(a_client_may_finish_an_upload_that_is_in_vain)
{
	static uint8_t record[RECORD_OF(16000)];

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	record_make(record, TLS_APPLICATION_DATA, 16000, 7);
	fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, 0, record, sizeof record);
	fake_agent_end(d.agents[l.agent], l.stream, END_DONE, 0);
	wait_until(connection_only()->now.state == CONNECTION_LINGERING);
	send_on(8 << 20);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_LINGERING);
	client_expect(l.fd, record, sizeof record);
	client_expect_fin(l.fd);
	close(l.fd);
	wait_until(!d.rw->home.connections);
}
END_TEST

START_TEST(lingering_is_bounded_in_bytes)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	fake_agent_end(d.agents[l.agent], l.stream, END_DONE, 0);
	client_expect_fin(l.fd);
	connection_only()->now.discarded = DISCARD_CLIENT_MAX - (1u << 20);
	send_on(2 << 20);
	ck_assert_ptr_null(d.rw->home.connections);
	close(l.fd);
}
END_TEST

START_TEST(a_client_that_never_began_a_handshake_has_less_time)
{
	dispatcher_start(NULL);
	l = (struct live_connection){ .fd = client_connect("sl") };
	write_all(l.fd, "GET / HTTP/1.1\r\n\r\n", 18);
	wait_until(d.rw->home.connections && connection_only()->now.state == CONNECTION_LINGERING);
	send_on(1 << 20);
	ck_assert_ptr_null(d.rw->home.connections);
	close(l.fd);
}
END_TEST

START_TEST(a_client_that_never_stops_sending_is_cut_off)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	fake_agent_end(d.agents[l.agent], l.stream, END_DONE, 0);
	client_expect_fin(l.fd);
	send_on(1 << 20);
	connection_only()->busy->discard_began_ms = now_ms() - DISCARD_MS - 1000;
	send_on(1 << 20);
	ck_assert_ptr_null(d.rw->home.connections);
	close(l.fd);
}
END_TEST

START_TEST(lingering_is_bounded_in_time)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	fake_agent_end(d.agents[l.agent], l.stream, END_DONE, 0);
	client_expect_fin(l.fd);
	wait_until(!d.rw->home.connections); /* the client neither sends nor closes */
	close(l.fd);
}
END_TEST

/* A FIN behind half an answer would look like its end (law 8). */
START_TEST(a_lingering_client_that_has_not_taken_all_is_reset)
{
	static uint8_t record[RECORD_OF(16000)];
	static char got[64 * 1024];
	const int small = 4096;
	ssize_t n;

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	struct stream *client = &connection_only()->busy->client;
	setsockopt(l.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	setsockopt(stream_fd(client), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	record_make(record, TLS_APPLICATION_DATA, 16000, 7);
	for (int i = 0; i < 3; i++)
		fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, 0, record, sizeof record);
	fake_agent_end(d.agents[l.agent], l.stream, END_DONE, 0);
	wait_until(connection_only()->now.state == CONNECTION_LINGERING);
	ck_assert_uint_gt(stream_pending(client), 0);
	connection_end_by_operator(connection_only(), END_RESET);
	wait_until(!d.rw->home.connections);
	while ((n = read(l.fd, got, sizeof got)) > 0) {
	}
	ck_assert_int_lt(n, 0);
	ck_assert_int_eq(errno, ECONNRESET);
	close(l.fd);
}
END_TEST

START_TEST(an_end_for_a_reason_of_a_later_release_ends_that_connection_alone)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	fake_agent_end(d.agents[l.agent], l.stream, END_REASON_COUNT + 3, 0);
	client_expect_fin(l.fd);
	ck_assert_uint_eq(ended(END_INTERNAL), 1);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.link_violations), 0);
	close(l.fd);
	wait_until(!d.rw->home.connections);
}
END_TEST

static void say_cause(uint32_t stream, const char *text)
{
	Cssl__LinkResponse response = CSSL__LINK_RESPONSE__INIT;
	Cssl__LinkResponse__Cause cause = CSSL__LINK_RESPONSE__CAUSE__INIT;

	cause.stream = stream;
	cause.text = (char *)text;
	response.what_case = CSSL__LINK_RESPONSE__WHAT_CAUSE;
	response.cause = &cause;
	fake_agent_say(d.agents[l.agent], 0, FRAME_RESPONSE, &response.base);
}

START_TEST(the_line_of_a_failed_handshake_has_the_agents_cause)
{
	static const struct {
		uint32_t of;
		const char *field;
	} rows[] = { { 0, " cause=\"no shared cipher\" " }, { 1, " cause=\"\" " } };
	char path[] = "/tmp/ended.XXXXXX", text[2048];

	close(mkstemp(path));
	ck_assert_int_eq(log_open("ragent", "r1", LOG_TEXT, LOG_INFO, path), 0);
	dispatcher_start(NULL);
	for (size_t i = 0; i < FACTS_LEN(rows); i++) {
		ck_assert_int_eq(truncate(path, 0), 0);
		hello_send(&l, "sl", NULL);
		say_cause(l.stream + rows[i].of, "no shared cipher");
		fake_agent_end(d.agents[l.agent], l.stream, END_HANDSHAKE_FAILED, 0);
		client_expect_fin(l.fd);
		close(l.fd);
		wait_until(!d.rw->home.connections);
		int fd = open(path, O_RDONLY);
		ssize_t len = read(fd, text, sizeof text - 1);
		close(fd);
		text[len > 0 ? len : 0] = '\0';
		ck_assert_msg(strstr(text, rows[i].field) != NULL, "%s", text);
	}
	unlink(path);
}
END_TEST

START_TEST(an_aborted_end_is_a_reset)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	fake_agent_end(d.agents[l.agent], l.stream, END_BACKEND_RESET, FRAME_ABORT);
	client_expect_reset(l.fd);
	ck_assert_uint_eq(ended(END_BACKEND_RESET), 1);
	close(l.fd);
}
END_TEST

START_TEST(a_client_reset_is_told_to_the_owner)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	reset(OVER_TCP4, l.fd);
	ck_assert_uint_eq(close_reason(l.agent), END_CLIENT_RESET);
	wait_until(!d.rw->home.connections);
}
END_TEST

START_TEST(half_a_close_from_the_client_leaves_the_other_half_open)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	shutdown(l.fd, SHUT_WR);
	struct fake_frame *f = frame_at(l.agent, FRAME_FIN);
	ck_assert_uint_eq(f->flags, 0);
	free(f);
	server_send(&l, TLS_APPLICATION_DATA, 1000, 8, 0);
	fake_agent_end(d.agents[l.agent], l.stream, END_DONE, 0);
	client_expect_fin(l.fd);
	wait_until(!d.rw->home.connections); /* at once: the client's own end was seen */
	close(l.fd);
}
END_TEST

START_TEST(half_a_close_from_the_agent_leaves_the_other_half_open)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	server_send(&l, TLS_ALERT, 2, 8, 0);
	fake_agent_send(d.agents[l.agent], l.stream, FRAME_FIN, FRAME_AUTHENTICATED, NULL, 0);
	client_expect_fin(l.fd);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 300, 1);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(300));
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_OWNED);
	close(l.fd);
}
END_TEST

START_TEST(records_behind_the_agents_fin_break_the_link)
{
	uint8_t record[RECORD_OF(10)];

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 0);
	fake_agent_send(d.agents[l.agent], l.stream, FRAME_FIN, FRAME_AUTHENTICATED, NULL, 0);
	record_make(record, TLS_APPLICATION_DATA, 10, 1);
	fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, 0, record, sizeof record);
	wait_until(counter_get(&d.rw->home.counters.link_violations) == 1);
	close(l.fd);
}
END_TEST

START_TEST(a_client_that_leaves_before_its_hello_bothers_no_agent)
{
	dispatcher_start(NULL);
	int fd = client_connect("sf");
	write_all(fd, "\x16\x03\x01", 3);
	turns(5);
	close(fd);
	wait_until(ended(END_CLIENT_CLOSED) == 1);
	wait_until(!d.rw->home.connections);
	no_frame(FRAME_OPEN);
}
END_TEST

START_TEST(a_hello_that_takes_too_long_ends)
{
	const struct dispatcher_wish wish = { .limits = "  handshake_timeout: 100ms\n" };

	dispatcher_start(&wish);
	int fd = client_connect("sf");
	write_all(fd, "\x16\x03\x01", 3);
	client_expect_reset(fd);
	ck_assert_uint_eq(ended(END_HANDSHAKE_TIMEOUT), 1);
	close(fd);
}
END_TEST

START_TEST(a_handshake_that_takes_too_long_ends_and_the_agent_hears_of_it)
{
	const struct dispatcher_wish wish = { .limits = "  handshake_timeout: 100ms\n" };

	dispatcher_start(&wish);
	hello_send(&l, "sf", NULL);
	client_expect_reset(l.fd);
	ck_assert_uint_eq(close_reason(l.agent), END_HANDSHAKE_TIMEOUT);
	close(l.fd);
}
END_TEST

START_TEST(an_idle_connection_gets_its_owners_goodbye)
{
	const struct dispatcher_wish wish = { .limits = "  idle_timeout: 1s\n" };

	dispatcher_start(&wish);
	connection_keep(&l, "sl", 1);
	ck_assert_int_eq(goodbye_say(&l), END_IDLE_TIMEOUT);
	client_expect_fin(l.fd);
	ck_assert_uint_eq(ended(END_IDLE_TIMEOUT), 1);
	ck_assert_uint_eq(close_reason(l.agent), END_DONE); /* the answer to END */
	no_frame(FRAME_CLOSE);
	close(l.fd);
}
END_TEST

START_TEST(an_owner_that_says_no_goodbye_is_not_waited_for)
{
	const struct dispatcher_wish wish = {
		.limits = "  idle_timeout: 1s\n",
		.health = "  ping: 20ms\n  suspect: 50ms\n  lost: 100ms\n",
	};

	dispatcher_start(&wish);
	connection_keep(&l, "sl", 1);
	free(frame_at(l.agent, FRAME_FINISH));
	client_expect_reset(l.fd);
	ck_assert_uint_eq(close_reason(l.agent), END_IDLE_TIMEOUT);
	close(l.fd);
}
END_TEST

#define MAIL                                                                                                           \
	"    mode: sl\n    service: smtp\n    smtp: { hostname: mx.example, client_address: hidden, "                  \
	"starttls: implicit, end_timeout: 1500ms }\n"

/* The limit of a verdict is not below the idle time-out and two seconds. */
START_TEST(an_owner_that_may_await_a_verdict_is_asked_to_end_it_and_told_later)
{
	dispatcher_start(&(struct dispatcher_wish){ .limits = "  idle_timeout: 1s\n", .listener = MAIL });
	connection_keep(&l, "sf", 1);
	server_send(&l, TLS_APPLICATION_DATA, 100, 1, FRAME_RESPONSE_BYTES);
	const uint64_t from_ms = now_ms();
	struct fake_frame *f = frame_at(l.agent, FRAME_FINISH);
	ck_assert_uint_eq(f->payload[0], END_IDLE_TIMEOUT);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_OWNED);
	free(f);
	ck_assert_int_eq(goodbye_say(&l), END_BACKEND_TIMEOUT);
	ck_assert_uint_ge(now_ms() - from_ms, 2900);
	client_expect_fin(l.fd);
	ck_assert_uint_eq(ended(END_BACKEND_TIMEOUT), 1);
	close(l.fd);
}
END_TEST

START_TEST(an_owner_may_say_that_the_client_was_silent)
{
	dispatcher_start(&(struct dispatcher_wish){ .limits = "  idle_timeout: 1s\n", .listener = MAIL });
	connection_keep(&l, "sf", 1);
	server_send(&l, TLS_APPLICATION_DATA, 100, 1, FRAME_RESPONSE_BYTES);
	free(frame_at(l.agent, FRAME_FINISH));
	struct fake_frame *f = frame_at(l.agent, FRAME_FINISH);
	ck_assert_uint_eq(f->payload[0], END_BACKEND_TIMEOUT);
	free(f);
	fake_agent_end(d.agents[l.agent], l.stream, END_IDLE_TIMEOUT, FRAME_ABORT);
	client_expect_reset(l.fd);
	ck_assert_uint_eq(ended(END_IDLE_TIMEOUT), 1);
	ck_assert_uint_eq(ended(END_BACKEND_TIMEOUT), 0);
	close(l.fd);
}
END_TEST

#define LATE                                                                                                           \
	"    mode: sl\n    service: smtp\n    smtp: { hostname: mx.example, client_address: hidden, "                  \
	"starttls: implicit }\n"

/* end_timeout is ten minutes. */
START_TEST(behind_a_verdict_the_next_silence_has_the_usual_limit)
{
	dispatcher_start(&(struct dispatcher_wish){ .limits = "  idle_timeout: 1s\n", .listener = LATE });
	connection_keep(&l, "sf", 1);
	server_send(&l, TLS_APPLICATION_DATA, 100, 1, FRAME_RESPONSE_BYTES);
	free(frame_at(l.agent, FRAME_FINISH));
	const uint64_t from_ms = now_ms();
	server_send(&l, TLS_APPLICATION_DATA, 100, 2, FRAME_RESPONSE_BYTES);
	struct fake_frame *f = frame_at(l.agent, FRAME_FINISH);
	ck_assert_uint_eq(f->payload[0], END_IDLE_TIMEOUT);
	ck_assert_uint_ge(now_ms() - from_ms, 900);
	ck_assert_uint_lt(now_ms() - from_ms, 5000);
	free(f);
	close(l.fd);
}
END_TEST

/* No verdict can reach it. */
START_TEST(a_client_that_takes_nothing_has_no_time_for_a_verdict)
{
	static uint8_t record[RECORD_OF(16000)];
	const struct dispatcher_wish wish = {
		.limits = "  idle_timeout: 1s\n",
		.health = "  ping: 20ms\n  suspect: 50ms\n  lost: 100ms\n",
		.listener = LATE,
	};

	dispatcher_start(&wish);
	connection_keep(&l, "sf", 1);
	record_make(record, TLS_APPLICATION_DATA, 16000, 7);
	while (stream_pending(&connection_only()->busy->client) < 4 * sizeof record) {
		fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, FRAME_RESPONSE_BYTES, record, sizeof record);
		turn();
	}
	free(frame_at(l.agent, FRAME_FINISH));
	ck_assert_uint_eq(close_reason(l.agent), END_IDLE_TIMEOUT);
	ck_assert_uint_eq(ended(END_IDLE_TIMEOUT), 1);
	close(l.fd);
}
END_TEST

START_TEST(an_owner_that_awaits_no_verdict_ends_it_when_it_is_asked)
{
	dispatcher_start(&(struct dispatcher_wish){ .limits = "  idle_timeout: 1s\n", .listener = MAIL });
	connection_keep(&l, "sf", 1);
	server_send(&l, TLS_APPLICATION_DATA, 100, 1, FRAME_RESPONSE_BYTES);
	ck_assert_int_eq(goodbye_say(&l), END_IDLE_TIMEOUT);
	client_expect_fin(l.fd);
	ck_assert_uint_eq(ended(END_IDLE_TIMEOUT), 1);
	close(l.fd);
}
END_TEST

START_TEST(an_owner_lost_before_its_goodbye_leaves_a_fin_at_a_checkpoint)
{
	const struct dispatcher_wish wish = { .limits = "  idle_timeout: 1s\n" };

	dispatcher_start(&wish);
	connection_keep(&l, "sl", 1);
	free(frame_at(l.agent, FRAME_FINISH));
	fake_agent_die(d.agents[l.agent]);
	client_expect_fin(l.fd);
	ck_assert_uint_eq(ended(END_IDLE_TIMEOUT), 1);
	close(l.fd);
}
END_TEST

START_TEST(an_owner_lost_before_its_goodbye_leaves_a_reset_in_mid_answer)
{
	const struct dispatcher_wish wish = { .limits = "  idle_timeout: 1s\n" };

	dispatcher_start(&wish);
	connection_keep(&l, "sl", 1);
	server_send(&l, TLS_APPLICATION_DATA, 100, 1, FRAME_RESPONSE_BYTES);
	free(frame_at(l.agent, FRAME_FINISH));
	fake_agent_die(d.agents[l.agent]);
	client_expect_reset(l.fd);
	ck_assert_uint_eq(ended(END_IDLE_TIMEOUT), 1);
	close(l.fd);
}
END_TEST

START_TEST(an_owner_that_froze_it_before_finish_came_leaves_a_fin)
{
	const struct dispatcher_wish wish = { .limits = "  idle_timeout: 1s\n" };

	dispatcher_start(&wish);
	connection_keep(&l, "sl", 1);
	free(frame_at(l.agent, FRAME_FINISH));
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 2");
	client_expect_fin(l.fd);
	ck_assert_uint_eq(close_reason(l.agent), END_IDLE_TIMEOUT);
	close(l.fd);
}
END_TEST

START_TEST(bytes_either_way_keep_it_from_being_idle)
{
	const struct dispatcher_wish wish = { .limits = "  idle_timeout: 1s\n" };

	dispatcher_start(&wish);
	connection_keep(&l, "sl", 1);
	uint64_t until_ms = now_ms() + 1500;
	while (now_ms() < until_ms) {
		server_send(&l, TLS_APPLICATION_DATA, 10, 1, 0);
		turns(1);
	}
	ck_assert_uint_eq(ended(END_IDLE_TIMEOUT), 0);
	close(l.fd);
}
END_TEST

UNIT(connection_end)
{
	const TTest *const facts[] = {
		an_orderly_end_delivers_every_byte_and_then_fin,
		a_last_answer_survives_a_client_that_is_still_sending,
		a_client_may_finish_an_upload_that_is_in_vain,
		lingering_is_bounded_in_bytes,
		a_client_that_never_began_a_handshake_has_less_time,
		a_client_that_never_stops_sending_is_cut_off,
		lingering_is_bounded_in_time,
		a_lingering_client_that_has_not_taken_all_is_reset,
		an_end_for_a_reason_of_a_later_release_ends_that_connection_alone,
		the_line_of_a_failed_handshake_has_the_agents_cause,
		an_aborted_end_is_a_reset,
		a_client_reset_is_told_to_the_owner,
		half_a_close_from_the_client_leaves_the_other_half_open,
		half_a_close_from_the_agent_leaves_the_other_half_open,
		records_behind_the_agents_fin_break_the_link,
		a_client_that_leaves_before_its_hello_bothers_no_agent,
		a_hello_that_takes_too_long_ends,
		a_handshake_that_takes_too_long_ends_and_the_agent_hears_of_it,
		an_idle_connection_gets_its_owners_goodbye,
		an_owner_that_says_no_goodbye_is_not_waited_for,
		an_owner_that_may_await_a_verdict_is_asked_to_end_it_and_told_later,
		an_owner_may_say_that_the_client_was_silent,
		behind_a_verdict_the_next_silence_has_the_usual_limit,
		a_client_that_takes_nothing_has_no_time_for_a_verdict,
		an_owner_that_awaits_no_verdict_ends_it_when_it_is_asked,
		an_owner_lost_before_its_goodbye_leaves_a_fin_at_a_checkpoint,
		an_owner_lost_before_its_goodbye_leaves_a_reset_in_mid_answer,
		an_owner_that_froze_it_before_finish_came_leaves_a_fin,
		bytes_either_way_keep_it_from_being_idle,
	};

	return dispatcher_suite_run("connection_end", facts, sizeof facts / sizeof facts[0]);
}
