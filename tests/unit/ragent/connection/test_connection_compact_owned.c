/* test_connection_compact_owned.c: facts of connections that are silent while an agent owns them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ragent/connection/revival/revival.h"
#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/ragent/successor.h"
#include "tests/unit/unit.h"

#define SOON    "  doze_after: 50ms\n"
#define SOON_MS 50u

static struct live_connection l;

/* Everything is answered, or a request waits for its answer. */
static void begin_owned(const char *limits, int at_checkpoint)
{
	dispatcher_start(&(struct dispatcher_wish){ .limits = limits });
	connection_keep(&l, "sl", at_checkpoint);
}

static void begin_compact(const char *limits)
{
	begin_owned(limits, 1);
	wait_until(!connection_only()->busy);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_OWNED);
}

static void let_pass(uint64_t ms)
{
	const uint64_t until = now_ms() + ms;

	wait_until(now_ms() >= until);
}

START_TEST(it_keeps_one_descriptor_and_its_place)
{
	begin_owned(SOON, 1);
	unsigned before = open_descriptors();
	wait_until(!connection_only()->busy);
	turns(4);
	ck_assert_uint_eq(open_descriptors(), before);
	ck_assert(LIST_EMPTY(&d.rw->home.busy_parts.with_room)); /* its block came back */
	ck_assert_int_eq(connection_place(connection_only()), l.agent);
	close(l.fd);
}
END_TEST

START_TEST(off_keeps_it_busy)
{
	begin_owned("  doze_after: off\n", 1);
	let_pass(3 * SOON_MS);
	ck_assert_ptr_nonnull(connection_only()->busy);
	close(l.fd);
}
END_TEST

START_TEST(an_open_request_keeps_it_busy)
{
	begin_owned(SOON, 1);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 50, 'R');
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(50));
	let_pass(3 * SOON_MS);
	ck_assert_ptr_nonnull(connection_only()->busy);
	close(l.fd);
}
END_TEST

START_TEST(its_next_record_goes_to_its_owner)
{
	begin_compact(SOON);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 50, 'R');
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(50));
	ck_assert_uint_eq(connection_only()->busy->kept.next_record, l.client_records + 1);
	ck_assert_uint_eq(fake_agent_count(d.agents[l.agent], FRAME_SSL_ID), 0);
	close(l.fd);
}
END_TEST

START_TEST(records_of_its_owner_reach_the_client_and_it_is_compact_again)
{
	begin_compact(SOON);
	for (uint8_t i = 0; i < 3; i++) {
		server_send(&l, TLS_APPLICATION_DATA, 60, i, FRAME_RESPONSE_BYTES | FRAME_CHECKPOINT); /* it came */
		wait_until(!connection_only()->busy);
	}
	struct connection *c = connection_only();
	ck_assert_uint_eq(c->now.account.received, c->now.queued - c->now.account.base);
	ck_assert_uint_eq(c->slot.bytes_written, c->now.queued);
	close(l.fd);
}
END_TEST

START_TEST(a_fresh_copy_leaves_it_compact)
{
	Cssl__LinkCopy copy = CSSL__LINK_COPY__INIT;

	begin_compact(SOON);
	const uint64_t before = counter_get(&d.rw->home.counters.copies_current);
	copy.sealed_copy = (ProtobufCBinaryData){ 10, (uint8_t *)"fresh copy" };
	fake_agent_say(d.agents[l.agent], l.stream, FRAME_COPY, &copy.base);
	wait_until(counter_get(&d.rw->home.counters.copies_current) == before + 1);
	ck_assert_ptr_null(connection_only()->busy);
	ck_assert_uint_eq(connection_only()->now.copies.current->len, 10);
	close(l.fd);
}
END_TEST

START_TEST(a_frame_that_its_state_does_not_know_ends_the_link_as_ever)
{
	begin_compact(SOON);
	fake_agent_send(d.agents[l.agent], l.stream, FRAME_ADOPTED, 0, NULL, 0);
	wait_until(connection_only()->now.state == CONNECTION_RESTING);
	close(l.fd);
}
END_TEST

START_TEST(it_rests_and_stays_compact_when_its_owner_is_lost)
{
	begin_compact(SOON);
	const int fd = connection_only()->slot.fd;
	fake_agent_die(d.agents[l.agent]);
	wait_until(connection_only()->now.state == CONNECTION_RESTING);
	ck_assert_ptr_null(connection_only()->busy);
	ck_assert_int_eq(connection_only()->slot.fd, fd);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 50, 'R');
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);
	ck_assert_uint_eq(id->position->client_records, l.client_records);
	ck_assert_uint_eq(id->epoch, 2);
	cssl__link_ssl_id__free_unpacked(id, NULL);
	close(l.fd);
}
END_TEST

static unsigned moves_answered;

static void on_moved(struct move_order *o, const struct move_result *r)
{
	(void)o;
	moves_answered += r->outcome == MOVE_DONE;
}

START_TEST(it_can_be_moved)
{
	struct move_order order = { .done = on_moved };

	begin_compact(SOON);
	const int target = (l.agent + 1) % AGENTS;
	moves_answered = 0;
	connection_order(
		connection_only(), &(struct move_wish){ .target = target, .cause = CSSL__CAUSE__CAUSE_MOVE }, &order);
	free(frame_at(l.agent, FRAME_MOVE));
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 2");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, target), NULL);
	adopted_say(&l, 2);
	wait_until(moves_answered == 1);
	wait_until(!connection_only()->busy); /* there, too */
	ck_assert_int_eq(connection_place(connection_only()), target);
	close(l.fd);
}
END_TEST

START_TEST(it_can_be_sent_to_rest)
{
	struct move_order order = { .done = on_moved };

	begin_compact(SOON);
	moves_answered = 0;
	ck_assert(connection_may_rest(connection_only()));
	connection_order(connection_only(), &(struct move_wish){ .target = NO_AGENT }, &order);
	free(frame_at(l.agent, FRAME_MOVE));
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 2");
	wait_until(moves_answered == 1 && connection_only()->now.state == CONNECTION_RESTING);
	wait_until(!connection_only()->busy);
	close(l.fd);
}
END_TEST

START_TEST(its_owner_is_told_when_its_client_resets_it)
{
	begin_compact(SOON);
	reset(OVER_TCP4, l.fd);
	wait_until(!d.rw->home.connections);
	free(frame_at(l.agent, FRAME_CLOSE));
}
END_TEST

START_TEST(its_owner_is_told_when_it_is_reset)
{
	begin_compact(SOON);
	connection_kill(connection_only());
	client_expect_reset(l.fd);
	wait_until(!d.rw->home.connections);
	free(frame_at(l.agent, FRAME_CLOSE));
}
END_TEST

START_TEST(its_owner_hears_of_the_clients_fin)
{
	begin_compact(SOON);
	shutdown(l.fd, SHUT_WR);
	free(frame_at(l.agent, FRAME_FIN));
	close(l.fd);
}
END_TEST

START_TEST(its_owner_says_goodbye_after_the_idle_time_out)
{
	begin_compact(SOON "  idle_timeout: 1s\n");
	ck_assert_int_eq(goodbye_say(&l), END_IDLE_TIMEOUT);
	client_expect_fin(l.fd);
	close(l.fd);
}
END_TEST

START_TEST(it_goes_on_with_its_owner_in_another_process)
{
	begin_compact(SOON);
	successor_takes_over();
	wait_until(d.rw->home.connections && !d.rw->home.connections->busy);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_OWNED);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 50, 'R');
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(50));
	server_send(&l, TLS_APPLICATION_DATA, 60, 'A', FRAME_RESPONSE_BYTES);
	close(l.fd);
}
END_TEST

UNIT(connection_compact_owned)
{
	const TTest *const facts[] = {
		it_keeps_one_descriptor_and_its_place,
		off_keeps_it_busy,
		an_open_request_keeps_it_busy,
		its_next_record_goes_to_its_owner,
		records_of_its_owner_reach_the_client_and_it_is_compact_again,
		a_fresh_copy_leaves_it_compact,
		a_frame_that_its_state_does_not_know_ends_the_link_as_ever,
		it_rests_and_stays_compact_when_its_owner_is_lost,
		it_can_be_moved,
		it_can_be_sent_to_rest,
		its_owner_is_told_when_its_client_resets_it,
		its_owner_is_told_when_it_is_reset,
		its_owner_hears_of_the_clients_fin,
		its_owner_says_goodbye_after_the_idle_time_out,
		it_goes_on_with_its_owner_in_another_process,
	};

	return dispatcher_suite_run("connection_compact_owned", facts, sizeof facts / sizeof facts[0]);
}
