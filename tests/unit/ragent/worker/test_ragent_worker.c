/* test_ragent_worker.c: facts of a worker's stop. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/limits/admission.h"
#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

static struct live_connection l;

static void on_closed(struct ragent_worker *rw)
{
}

START_TEST(stopping_has_idle_connections_say_goodbye)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	ragent_worker_stop(d.rw, 10000, on_closed);
	ck_assert_int_eq(goodbye_say(&l), END_SHUTTING_DOWN);
	client_expect_fin(l.fd);
	close(l.fd);
	wait_until(d.rw->state == RAGENT_WORKER_CLOSED);
}
END_TEST

START_TEST(stopping_waits_for_an_answer_under_way)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES);
	ragent_worker_stop(d.rw, 10000, on_closed);
	server_send(&l, TLS_APPLICATION_DATA, 100, 8, FRAME_RESPONSE_BYTES);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_OWNED);
	server_send(&l, TLS_APPLICATION_DATA, 100, 9, FRAME_RESPONSE_BYTES | FRAME_CHECKPOINT);
	ck_assert_int_eq(goodbye_say(&l), END_SHUTTING_DOWN);
	client_expect_fin(l.fd);
	close(l.fd);
	wait_until(d.rw->state == RAGENT_WORKER_CLOSED);
}
END_TEST

START_TEST(stopping_is_bounded)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES);
	ragent_worker_stop(d.rw, 50, on_closed);
	client_expect_reset(l.fd);
	wait_until(d.rw->state == RAGENT_WORKER_CLOSED);
	close(l.fd);
}
END_TEST

START_TEST(stopping_accepts_nobody)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES);
	struct sockaddr_storage to = d.shared.fronts[0].bound[0];
	ragent_worker_stop(d.rw, 10000, on_closed);
	turns(5);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_lt(connect(fd, (struct sockaddr *)&to, sizeof(struct sockaddr_in)), 0);
	close(fd);
	close(l.fd);
}
END_TEST

/* That a stop closes everything is asserted by dispatcher_stop() behind each of these. */

START_TEST(stopping_before_the_hello_closes_everything)
{
	dispatcher_start(NULL);
	int proxied = client_connect("proxied"), waiting = client_connect("sf");
	write_all(waiting, "\x16", 1);
	wait_until(admission_total(d.shared.admission) == 2);
	ragent_worker_stop(d.rw, 10000, on_closed);
	client_expect_fin(proxied);
	client_expect_fin(waiting);
	close(proxied);
	close(waiting);
}
END_TEST

START_TEST(stopping_in_a_handshake_closes_everything)
{
	dispatcher_start(NULL);
	hello_send(&l, "sl", NULL);
}
END_TEST

START_TEST(stopping_while_adopting_closes_everything)
{
	dispatcher_start(NULL);
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
}
END_TEST

START_TEST(stopping_ends_resting_connections)
{
	dispatcher_start(NULL);
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	adopted_say(&l, 2);
	fake_agent_die(d.agents[l.agent]);
	wait_until(connection_only()->now.state == CONNECTION_RESTING);
	ragent_worker_stop(d.rw, 10000, on_closed);
	client_expect_fin(l.fd);
	close(l.fd);
	wait_until(d.rw->state == RAGENT_WORKER_CLOSED);
}
END_TEST

START_TEST(stopping_with_links_half_open_closes_everything)
{
	dispatcher_start(NULL);
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_cut(d.agents[i]);
	turns(3);
}
END_TEST

UNIT(ragent_worker)
{
	const TTest *const facts[] = {
		stopping_has_idle_connections_say_goodbye,
		stopping_waits_for_an_answer_under_way,
		stopping_is_bounded,
		stopping_accepts_nobody,
		stopping_before_the_hello_closes_everything,
		stopping_in_a_handshake_closes_everything,
		stopping_while_adopting_closes_everything,
		stopping_ends_resting_connections,
		stopping_with_links_half_open_closes_everything,
	};

	return dispatcher_suite_run("ragent_worker", facts, sizeof facts / sizeof facts[0]);
}
