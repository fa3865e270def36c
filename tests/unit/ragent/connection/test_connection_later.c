/* test_connection_later.c: facts of what waits a moment because nobody waits for it. What has to happen before that
 * moment is over is tried until this process was not kept waiting meanwhile. */
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

#define TRIES 50u

static struct live_connection l;

/* A handshake whose agent says a ticket of @len bytes and KEPT in one go. */
static void keep_with_ticket(uint16_t version, uint8_t *ticket, uint16_t len)
{
	hello_send(&l, "sl", NULL);
	handshake_finish(&l);
	l.version = version;
	fake_agent_send(
		d.agents[l.agent], l.stream, FRAME_DATA, 0, ticket, record_make(ticket, TLS_APPLICATION_DATA, len, 5));
	l.server_records++;
	l.write_sequence++;
	live_say(&l, FRAME_KEPT, 0, CSSL__BACKEND_HALF__BACKEND_NONE, "copy of the handshake agent");
	wait_until(connection_only()->now.state == CONNECTION_OWNED);
	turn();
}

static void client_leave(void)
{
	close(l.fd);
	wait_until(connection_only()->now.tail == TAIL_FIN);
	fake_agent_end(d.agents[l.agent], l.stream, END_DONE, 0);
	wait_until(!d.rw->home.connections);
}

START_TEST(tickets_wait_for_the_first_answer)
{
	uint8_t ticket[RECORD_OF(200)];
	size_t held = 0;

	dispatcher_start(NULL);
	for (unsigned i = 0; held == 0 && i < TRIES; i++) {
		keep_with_ticket(TLS13_VERSION_WIRE, ticket, 200);
		held = stream_pending(&connection_only()->busy->client);
		if (held == 0)
			client_leave();
	}
	ck_assert_uint_eq(held, sizeof ticket);
	uint8_t answer[RECORD_OF(300)];
	record_make(answer, TLS_APPLICATION_DATA, 300, 6);
	fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, 0, answer, sizeof answer);
	client_expect(l.fd, ticket, sizeof ticket);
	client_expect(l.fd, answer, sizeof answer);
	client_leave();
}
END_TEST

START_TEST(tickets_come_without_an_answer_too)
{
	uint8_t ticket[RECORD_OF(200)];

	dispatcher_start(NULL);
	keep_with_ticket(TLS13_VERSION_WIRE, ticket, 200);
	client_expect(l.fd, ticket, sizeof ticket);
	client_leave();
}
END_TEST

START_TEST(tickets_come_before_the_end)
{
	uint8_t ticket[RECORD_OF(200)];

	dispatcher_start(NULL);
	keep_with_ticket(TLS13_VERSION_WIRE, ticket, 200);
	fake_agent_end(d.agents[l.agent], l.stream, END_DONE, 0);
	client_expect(l.fd, ticket, sizeof ticket);
	client_expect_fin(l.fd);
	close(l.fd);
}
END_TEST

/* The client says nothing before it has the server's Finished (RFC 5246 7.3). */
START_TEST(the_end_of_a_handshake_of_tls_12_does_not_wait)
{
	uint8_t finished[RECORD_OF(40)];

	dispatcher_start(NULL);
	keep_with_ticket(TLS12_VERSION_WIRE, finished, 40);
	ck_assert_uint_eq(stream_pending(&connection_only()->busy->client), 0);
	client_expect(l.fd, finished, sizeof finished);
	client_leave();
}
END_TEST

START_TEST(an_owner_that_ends_it_by_itself_hears_of_no_fin)
{
	unsigned heard = 1;

	dispatcher_start(NULL);
	for (unsigned i = 0; heard > 0 && i < TRIES; i++) {
		connection_keep(&l, "sl", 1);
		client_leave();
		turns(20);
		heard = 0;
		for (struct fake_frame *f; (f = fake_agent_take(d.agents[l.agent], FRAME_FIN)) != NULL; heard++)
			free(f);
	}
	ck_assert_uint_eq(heard, 0);
}
END_TEST

START_TEST(an_owner_that_goes_on_hears_of_fin)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 0);
	shutdown(l.fd, SHUT_WR);
	free(frame_at(l.agent, FRAME_FIN));
	server_send(&l, TLS_APPLICATION_DATA, 1000, 8, 0);
	client_leave();
}
END_TEST

UNIT(connection_later)
{
	const TTest *const facts[] = {
		tickets_wait_for_the_first_answer,
		tickets_come_without_an_answer_too,
		tickets_come_before_the_end,
		the_end_of_a_handshake_of_tls_12_does_not_wait,
		an_owner_that_ends_it_by_itself_hears_of_no_fin,
		an_owner_that_goes_on_hears_of_fin,
	};

	return dispatcher_suite_run("connection_later", facts, sizeof facts / sizeof facts[0]);
}
