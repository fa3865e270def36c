/* test_connection_arrival.c: facts of clients that come: a PROXY header in front, limits, and the wait for an agent. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/limits/admission.h"
#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

static struct live_connection l;

START_TEST(a_trusted_proxy_header_says_who_the_client_is)
{
	int agent;

	dispatcher_start(NULL);
	int fd = client_connect("proxied");
	write_all(fd, "PROXY TCP4 192.0.2.7 198.51.100.9 4000 443\r\n", 44);
	client_send_record(fd, TLS_HANDSHAKE, 200, 1);
	struct fake_frame *f = frame_anywhere(FRAME_OPEN, &agent);
	Cssl__LinkOpen *open = cssl__link_open__unpack(NULL, f->len, f->payload);
	ck_assert_mem_eq(open->endpoints->client_address.data, "\xc0\x00\x02\x07", 4);
	ck_assert_uint_eq(open->endpoints->client_port, 4000);
	ck_assert_mem_eq(open->endpoints->server_address.data, "\xc6\x33\x64\x09", 4);
	ck_assert_uint_eq(open->endpoints->server_port, 443);
	cssl__link_open__free_unpacked(open, NULL);
	free(f);
	close(fd);
}
END_TEST

START_TEST(a_proxy_header_from_elsewhere_closes_the_connection)
{
	dispatcher_start(NULL);
	int fd = client_connect("distrusted");
	client_expect_reset(fd);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.proxy_untrusted), 1);
	close(fd);
}
END_TEST

START_TEST(a_malformed_or_missing_proxy_header_closes_the_connection)
{
	dispatcher_start(NULL);
	int fd = client_connect("proxied");
	write_all(fd, "PROXY TCP4 192.0.2.777 198.51.100.9 4000 443\r\n", 46);
	client_expect_reset(fd);
	close(fd);
	fd = client_connect("proxied");
	client_send_record(fd, TLS_HANDSHAKE, 200, 1);
	client_expect_reset(fd);
	close(fd);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.proxy_malformed), 2);
	no_frame(FRAME_OPEN);
}
END_TEST

START_TEST(connections_beyond_the_total_are_refused)
{
	const struct dispatcher_wish wish = { .limits = "  connections: 2\n" };

	dispatcher_start(&wish);
	int a = client_connect("sf"), b = client_connect("sf");
	wait_until(admission_total(d.shared.admission) == 2);
	int c = client_connect("sf");
	client_expect_reset(c);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.ended[END_LIMIT_TOTAL]), 1);
	close(a);
	wait_until(admission_total(d.shared.admission) == 1);
	close(c);
	c = client_connect("sf");
	wait_until(admission_total(d.shared.admission) == 2);
	close(b);
	close(c);
}
END_TEST

START_TEST(connections_of_one_source_are_limited_by_the_address_in_the_proxy_header)
{
	const struct dispatcher_wish wish = { .limits = "  connections_per_source: 1\n" };
	int fds[3];

	dispatcher_start(&wish);
	for (unsigned i = 0; i < 3; i++)
		fds[i] = client_connect("proxied");
	write_all(fds[0], "PROXY TCP4 192.0.2.7 198.51.100.9 4000 443\r\n", 44);
	write_all(fds[1], "PROXY TCP4 192.0.2.8 198.51.100.9 4000 443\r\n", 44);
	turns(10);
	write_all(fds[2], "PROXY TCP4 192.0.2.7 198.51.100.9 4001 443\r\n", 44);
	client_expect_reset(fds[2]);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.ended[END_LIMIT_SOURCE]), 1);
	ck_assert_uint_eq(admission_total(d.shared.admission), 2);
	for (unsigned i = 0; i < 3; i++)
		close(fds[i]);
}
END_TEST

/* --- while no agent takes anything --- */

/* A client that has said hello to nobody. */
static int hello_to_nobody(const char *limits)
{
	dispatcher_start(&(struct dispatcher_wish){ .limits = limits });
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_ready(d.agents[i], 0);
	wait_until(agents_up() == 0);
	int fd = client_connect("sf");
	client_send_record(fd, TLS_HANDSHAKE, 200, 1);
	return fd;
}

START_TEST(a_client_is_told_when_no_agent_comes_up_in_time)
{
	int fd = hello_to_nobody("  agent_wait: 200ms\n");
	wait_until(d.rw->home.connections && connection_only()->now.state == CONNECTION_WAITING);
	uint64_t began_ms = now_ms();
	client_expect_refusal(fd);
	ck_assert_uint_ge(now_ms() + 50, began_ms + 200);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.ended[END_NO_AGENT]), 1);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.hellos_held), 1);
	close(fd);
}
END_TEST

START_TEST(a_client_is_told_at_once_where_nobody_may_wait)
{
	int fd = hello_to_nobody("  agent_wait: off\n");
	client_expect_refusal(fd);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.ended[END_NO_AGENT]), 1);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.hellos_held), 0);
	close(fd);
}
END_TEST

START_TEST(nobody_waits_longer_than_a_handshake_may_take)
{
	int fd = hello_to_nobody("  agent_wait: 60s\n  handshake_timeout: 200ms\n");
	client_expect_refusal(fd);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.ended[END_HANDSHAKE_TIMEOUT]), 1);
	close(fd);
}
END_TEST

START_TEST(a_hello_goes_to_the_first_agent_that_takes_something_again)
{
	int agent, fd = hello_to_nobody(NULL);

	wait_until(d.rw->home.connections && connection_only()->now.state == CONNECTION_WAITING);
	fake_agent_ready(d.agents[1], 1);
	struct fake_frame *open = frame_anywhere(FRAME_OPEN, &agent);
	ck_assert_int_eq(agent, 1);
	wait_until(fake_agent_data_len(d.agents[1], open->stream) == RECORD_OF(200));
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_HANDSHAKING);
	free(open);
	close(fd);
}
END_TEST

START_TEST(a_handshake_that_the_client_has_seen_nothing_of_waits_when_all_agents_are_lost)
{
	int agent;

	dispatcher_start(NULL);
	hello_send(&l, "sf", NULL);
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_ready(d.agents[i], 0);
	wait_until(agents_up() == 0);
	fake_agent_cut(d.agents[l.agent]);
	wait_until(connection_only()->now.state == CONNECTION_WAITING);
	fake_agent_ready(d.agents[2], 1);
	free(frame_anywhere(FRAME_OPEN, &agent));
	ck_assert_int_eq(agent, 2);
	close(l.fd);
}
END_TEST

START_TEST(a_client_that_leaves_while_it_waits_is_gone)
{
	int fd = hello_to_nobody(NULL);

	wait_until(d.rw->home.connections && connection_only()->now.state == CONNECTION_WAITING);
	close(fd);
	wait_until(!d.rw->home.connections);
}
END_TEST

UNIT(connection_arrival)
{
	const TTest *const facts[] = {
		a_trusted_proxy_header_says_who_the_client_is,
		a_proxy_header_from_elsewhere_closes_the_connection,
		a_malformed_or_missing_proxy_header_closes_the_connection,
		connections_beyond_the_total_are_refused,
		connections_of_one_source_are_limited_by_the_address_in_the_proxy_header,
		a_client_is_told_when_no_agent_comes_up_in_time,
		a_client_is_told_at_once_where_nobody_may_wait,
		nobody_waits_longer_than_a_handshake_may_take,
		a_hello_goes_to_the_first_agent_that_takes_something_again,
		a_handshake_that_the_client_has_seen_nothing_of_waits_when_all_agents_are_lost,
		a_client_that_leaves_while_it_waits_is_gone,
	};

	return dispatcher_suite_run("connection_arrival", facts, sizeof facts / sizeof facts[0]);
}
