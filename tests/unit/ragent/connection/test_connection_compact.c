/* test_connection_compact.c: facts of connections that rest with nothing but their descriptor. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ragent/connection/revival/revival.h"
#include "ragent/connection/connection_life.h"
#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/ragent/successor.h"
#include "tests/unit/unit.h"

static struct live_connection l;

/* At a checkpoint, its owner is lost. */
static void begin_resting(const char *limits)
{
	dispatcher_start(&(struct dispatcher_wish){ .limits = limits });
	connection_keep(&l, "sl", 1);
	fake_agent_die(d.agents[l.agent]);
	wait_until(connection_only()->now.state == CONNECTION_RESTING);
}

static void begin_compact(const char *limits)
{
	begin_resting(limits);
	wait_until(!connection_only()->busy);
}

START_TEST(it_keeps_one_descriptor_and_no_stream)
{
	begin_resting(NULL);
	unsigned before = open_descriptors();
	wait_until(!connection_only()->busy);
	turns(4);
	ck_assert_uint_eq(open_descriptors(), before);
	ck_assert_int_ge(connection_only()->slot.fd, 0);
	ck_assert(LIST_EMPTY(&d.rw->home.busy_parts.with_room)); /* its block came back */
	close(l.fd);
}
END_TEST

START_TEST(the_next_record_finds_an_owner_and_counts_on)
{
	begin_compact(NULL);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 50, 'R');
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);
	ck_assert_uint_eq(id->position->client_records, l.client_records);
	cssl__link_ssl_id__free_unpacked(id, NULL);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(50));
	ck_assert_uint_eq(connection_only()->busy->kept.next_record, l.client_records + 1);
	close(l.fd);
}
END_TEST

START_TEST(a_piece_of_a_record_keeps_it_busy_but_resting)
{
	uint8_t record[RECORD_OF(50)];

	begin_compact(NULL);
	record_make(record, TLS_APPLICATION_DATA, 50, 'R');
	write_all(l.fd, record, 20);
	wait_until(connection_only()->busy && connection_only()->busy->partial.len == 20);
	turns(4);
	ck_assert_ptr_nonnull(connection_only()->busy);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_RESTING);
	write_all(l.fd, record + 20, sizeof record - 20);
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	close(l.fd);
}
END_TEST

START_TEST(it_ends_when_its_client_leaves)
{
	begin_compact(NULL);
	close(l.fd);
	wait_until(!d.rw->home.connections);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.ended[END_CLIENT_CLOSED]), 1);
}
END_TEST

START_TEST(it_ends_when_its_client_resets_it)
{
	begin_compact(NULL);
	reset(OVER_TCP4, l.fd);
	wait_until(!d.rw->home.connections);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.ended[END_CLIENT_RESET]), 1);
}
END_TEST

START_TEST(its_idle_time_out_ends_it_in_order)
{
	begin_compact("  idle_timeout: 1s\n");
	client_expect_fin(l.fd);
	wait_until(!d.rw->home.connections || connection_only()->now.state == CONNECTION_LINGERING);
	close(l.fd);
	wait_until(!d.rw->home.connections);
}
END_TEST

START_TEST(its_idle_time_out_began_before_its_rest)
{
	dispatcher_start(&(struct dispatcher_wish){ .limits = "  idle_timeout: 1h\n" });
	connection_keep(&l, "sl", 1);
	connection_only()->now.active_ms -= 3600 * 1000;
	fake_agent_die(d.agents[l.agent]);
	client_expect_fin(l.fd);
	close(l.fd);
}
END_TEST

START_TEST(it_can_be_reset)
{
	begin_compact(NULL);
	connection_kill(connection_only());
	client_expect_reset(l.fd);
	wait_until(!d.rw->home.connections);
}
END_TEST

START_TEST(bytes_that_the_client_has_not_taken_keep_it_busy)
{
	static uint8_t record[TLS_RECORD_MAX];
	size_t len = record_make(record, TLS_APPLICATION_DATA, 16000, 9);

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	struct connection *c = connection_only();
	shrink_buffers(l.fd);
	shrink_buffers(connection_fd(c));
	unsigned count = (unsigned)(connection_window(c) / len);
	for (unsigned i = 0; i < count; i++)
		fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, FRAME_CHECKPOINT, record, len);
	wait_until(c->now.queued >= count * len);
	fake_agent_die(d.agents[l.agent]);
	wait_until(c->now.state == CONNECTION_RESTING);
	turns(4);
	ck_assert_ptr_nonnull(c->busy);
	for (unsigned i = 0; i < count; i++)
		client_expect(l.fd, record, len);
	wait_until(!c->busy);
	ck_assert_uint_eq(c->slot.bytes_written, c->now.queued);
	close(l.fd);
}
END_TEST

/* So many bytes are written at once, and the stream tells that at the end of the turn. With links through shared
 * memory, an owner's last records and its loss can come in one turn. */
START_TEST(it_waits_until_the_stream_has_told_what_it_wrote)
{
	static const uint8_t bytes[40000];

	dispatcher_start(&(struct dispatcher_wish){ 0 });
	connection_keep(&l, "sl", 1);
	struct connection *c = connection_only();
	wait_until(connection_leaves_nothing_over(c));
	ck_assert_int_eq(stream_write(&c->busy->client, bytes, sizeof bytes), 0);
	c->now.queued += sizeof bytes;
	ck_assert_uint_eq(stream_pending(&c->busy->client), 0);
	ck_assert(!connection_leaves_nothing_over(c));
	client_expect(l.fd, bytes, sizeof bytes);
	wait_until(connection_leaves_nothing_over(c));
	ck_assert_uint_eq(c->slot.bytes_written, c->now.queued);
	close(l.fd);
}
END_TEST

START_TEST(it_goes_on_in_another_process_and_is_compact_there)
{
	begin_compact(NULL);
	successor_takes_over();
	wait_until(d.rw->home.connections && !d.rw->home.connections->busy);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 50, 'R');
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);
	ck_assert_uint_eq(id->position->client_records, l.client_records);
	cssl__link_ssl_id__free_unpacked(id, NULL);
	close(l.fd);
}
END_TEST

UNIT(connection_compact)
{
	const TTest *const facts[] = {
		it_keeps_one_descriptor_and_no_stream,
		the_next_record_finds_an_owner_and_counts_on,
		a_piece_of_a_record_keeps_it_busy_but_resting,
		it_ends_when_its_client_leaves,
		it_ends_when_its_client_resets_it,
		its_idle_time_out_ends_it_in_order,
		its_idle_time_out_began_before_its_rest,
		it_can_be_reset,
		bytes_that_the_client_has_not_taken_keep_it_busy,
		it_waits_until_the_stream_has_told_what_it_wrote,
		it_goes_on_in_another_process_and_is_compact_there,
	};

	return dispatcher_suite_run("connection_compact", facts, sizeof facts / sizeof facts[0]);
}
