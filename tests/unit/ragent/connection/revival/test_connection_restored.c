/* test_connection_restored.c: facts of connections whose process dies: in each state that can be saved, the next
 * process goes on with them, and their clients notice nothing. Those that speak in clear are in
 * test_connection_restored_clear.c.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ragent/connection/connection_life.h"
#include "ragent/connection/revival/revival.h"
#include "tests/unit/ragent/next_life.h"
#include "tests/unit/unit.h"

static struct live_connection l;
static const struct dispatcher_wish outlives = { OUTLIVES };

static struct connection *c(void)
{
	return connection_only();
}

static size_t came(void)
{
	return fake_agent_data_len(d.agents[l.agent], l.stream);
}

/* The client's hello comes to an agent, whole. */
static void hello_comes(size_t len)
{
	struct fake_frame *f = frame_anywhere(FRAME_OPEN, &l.agent);

	l.stream = f->stream;
	free(f);
	wait_until(came() == len);
}

/* An owner has a request, and has begun its answer. */
static void begin_answer(void)
{
	dispatcher_start(&outlives);
	connection_keep(&l, "sf", 1);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 60, 9);
	wait_until(came() == RECORD_OF(60));
	server_send(&l, TLS_APPLICATION_DATA, 80, 7, FRAME_RESPONSE_BYTES);
}

/* By members: bytes between them may differ. */
static void check_position(const struct position *was)
{
	const struct position *is = &c()->now.position;

	ck_assert_uint_eq(is->now.client_records, was->now.client_records);
	ck_assert_uint_eq(is->now.read_sequence, was->now.read_sequence);
	ck_assert_uint_eq(is->checkpoint.client_records, was->checkpoint.client_records);
	ck_assert_uint_eq(is->checkpoint.read_sequence, was->checkpoint.read_sequence);
	ck_assert_uint_eq(is->server_records, was->server_records);
	ck_assert_uint_eq(is->write_sequence, was->write_sequence);
	ck_assert_uint_eq(is->stage, was->stage);
	ck_assert_uint_eq(is->response, was->response);
	ck_assert_uint_eq(is->response_records, was->response_records);
	ck_assert_uint_eq(is->response_bytes, was->response_bytes);
}

START_TEST(an_owner_goes_on_with_its_answer)
{
	begin_answer();
	const struct connection was = *c();
	die();
	owner_goes_on(&l, 3, CONNECTION_OWNED);
	ck_assert_uint_eq(c()->now.epoch, was.now.epoch);
	check_position(&was.now.position);
	ck_assert_mem_eq(c()->id.bytes, was.id.bytes, CONNECTION_ID_LEN);
	ck_assert_str_eq(c()->front->conf->name, "sf");
	server_send(&l, TLS_APPLICATION_DATA, 90, 8, FRAME_RESPONSE_BYTES);
	expect_fates(1, 0);
	close(l.fd);
}
END_TEST

START_TEST(a_request_that_the_owner_did_not_get_comes_to_it)
{
	begin_answer();
	die();
	owner_goes_on(&l, 2, CONNECTION_OWNED);
	wait_until(came() == RECORD_OF(60));
	close(l.fd);
}
END_TEST

START_TEST(the_next_process_may_die_too)
{
	begin_answer();
	die();
	free(frame_at(l.agent, FRAME_REATTACH)); /* the agent has not answered it */
	die();
	owner_goes_on(&l, 3, CONNECTION_OWNED);
	server_send(&l, TLS_APPLICATION_DATA, 90, 8, FRAME_RESPONSE_BYTES);
	close(l.fd);
}
END_TEST

START_TEST(what_the_client_says_meanwhile_is_read)
{
	begin_answer();
	life_ends();
	client_send_record(l.fd, TLS_APPLICATION_DATA, 70, 10);
	next_life_begins();
	owner_goes_on(&l, 3, CONNECTION_OWNED);
	wait_until(came() == RECORD_OF(70));
	close(l.fd);
}
END_TEST

/* The dead process had read the client's next record, and not logged it. */
START_TEST(what_was_read_and_not_logged_is_in_the_read_buffer)
{
	static uint8_t buffer[WORKER_READ_BUFFER_LEN];
	int end;

	begin_answer();
	struct connection *dead = c();
	life_ends();
	client_send_record(l.fd, TLS_APPLICATION_DATA, 70, 10);
	ck_assert_int_eq(read_some(dead->slot.fd, buffer, sizeof buffer, &end), RECORD_OF(70));
	d.shared.notes->outliving.read_buffers = buffer;
	next_life_begins();
	owner_goes_on(&l, 3, CONNECTION_OWNED);
	wait_until(came() == RECORD_OF(70));
	close(l.fd);
}
END_TEST

START_TEST(a_silent_owned_one_goes_on)
{
	dispatcher_start(&outlives);
	connection_keep(&l, "sf", 1);
	connection_may_compact(c());
	wait_until(!c()->busy);
	ck_assert_int_eq(table_slot_state(&c()->slot), SLOT_SAVED);
	die();
	owner_goes_on(&l, 2, CONNECTION_OWNED);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 60, 9);
	wait_until(came() == RECORD_OF(60));
	close(l.fd);
}
END_TEST

static struct move_order order;

static void on_moved(struct move_order *o, const struct move_result *r)
{
}

static void begin_rest(void)
{
	dispatcher_start(&outlives);
	connection_keep(&l, "sf", 1);
	order.done = on_moved;
	connection_order(c(), &(struct move_wish){ .target = NO_AGENT }, &order);
	free(frame_at(l.agent, FRAME_MOVE));
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy at rest");
	wait_until(c()->now.state == CONNECTION_RESTING && !c()->busy);
}

static void wakes_for_its_request(void)
{
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);

	ck_assert_uint_eq(id->epoch, 2);
	ck_assert_uint_eq(id->sealed_copy.len, strlen("copy at rest"));
	cssl__link_ssl_id__free_unpacked(id, NULL);
	adopted_say(&l, 2);
	wait_until(came() == RECORD_OF(60));
	expect_fates(1, 0);
	close(l.fd);
}

START_TEST(one_at_rest_rests_on)
{
	begin_rest();
	die();
	ck_assert_int_eq(c()->now.state, CONNECTION_RESTING);
	wait_until(!c()->busy);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 60, 9);
	wakes_for_its_request();
}
END_TEST

START_TEST(one_at_rest_whose_client_asks_meanwhile_wakes)
{
	begin_rest();
	life_ends();
	client_send_record(l.fd, TLS_APPLICATION_DATA, 60, 9);
	next_life_begins();
	wakes_for_its_request();
}
END_TEST

START_TEST(one_that_had_to_move_is_told_so_after_each_death)
{
	dispatcher_start(&outlives);
	connection_keep(&l, "sf", 1);
	const int target = (l.agent + 1) % AGENTS;
	order.done = on_moved;
	connection_order(c(),
		&(struct move_wish){ .target = target, .cause = CSSL__CAUSE__CAUSE_MOVE, .deadline_ms = 5000 }, &order);
	for (unsigned deaths = 0; deaths < 2; deaths++) {
		free(frame_at(l.agent, FRAME_MOVE));
		die();
		owner_goes_on(&l, 2, CONNECTION_OWNED);
		ck_assert_uint_eq(c()->busy->move_answer, MOVE_ANSWER_OVERDUE);
	}
	free(frame_at(l.agent, FRAME_MOVE));
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_PASSED, "copy 2");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, target), NULL);
	adopted_say(&l, 2);
	close(l.fd);
}
END_TEST

/* It was asked in the life before, and does not know of it. */
START_TEST(an_adopter_is_asked_again_in_the_same_epoch)
{
	Cssl__LinkRefused r = CSSL__LINK_REFUSED__INIT;

	dispatcher_start(&outlives);
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);
	const uint32_t epoch = id->epoch;
	cssl__link_ssl_id__free_unpacked(id, NULL);
	die();
	asked_to_reattach(&l);
	r.reason = CSSL__LINK_REFUSED__REASON__NO_STREAM;
	fake_agent_say(d.agents[l.agent], l.stream, FRAME_REFUSED, &r.base);
	id = ssl_id_take(&l, l.agent);
	ck_assert_uint_eq(id->epoch, epoch);
	cssl__link_ssl_id__free_unpacked(id, NULL);
	adopted_say(&l, epoch);
	close(l.fd);
}
END_TEST

START_TEST(a_goodbye_that_was_ordered_is_ordered_again)
{
	dispatcher_start(&outlives);
	connection_keep(&l, "sf", 1);
	connection_send_finish(c(), END_IDLE_TIMEOUT);
	free(frame_at(l.agent, FRAME_FINISH));
	connection_save(c());
	die();
	owner_goes_on(&l, 2, CONNECTION_FINISHING);
	ck_assert_int_eq(goodbye_say(&l), END_IDLE_TIMEOUT);
	client_expect_fin(l.fd);
	close(l.fd);
}
END_TEST

/* All that it owes is in RAgent, and the agent has forgotten the stream. */
static unsigned begin_linger(uint8_t *record, size_t *len)
{
	dispatcher_start(&outlives);
	connection_keep(&l, "sf", 1);
	shrink_buffers(l.fd);
	shrink_buffers(connection_fd(c()));
	*len = record_make(record, TLS_APPLICATION_DATA, 15000, 9);
	const unsigned count = (unsigned)(connection_window(c()) / *len);
	for (unsigned i = 0; i < count; i++)
		fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, 0, record, *len);
	fake_agent_end(d.agents[l.agent], l.stream, END_BACKEND_CLOSED, 0);
	wait_until(c()->now.state == CONNECTION_LINGERING);
	ck_assert_uint_gt(stream_pending(&c()->busy->client), 0);
	return count;
}

START_TEST(a_last_answer_and_fin_come_from_the_next_process)
{
	static uint8_t record[TLS_RECORD_MAX];
	size_t len;

	const unsigned count = begin_linger(record, &len);
	die();
	ck_assert_int_eq(c()->now.state, CONNECTION_LINGERING);
	ck_assert(connection_owes(c()));
	for (unsigned i = 0; i < count; i++)
		client_expect(l.fd, record, len);
	client_expect_fin(l.fd);
	expect_fates(1, 0);
	close(l.fd);
}
END_TEST

START_TEST(a_handshake_goes_on)
{
	dispatcher_start(&outlives);
	hello_send(&l, "sf", NULL);
	server_send(&l, TLS_HANDSHAKE, 100, 2, 0);
	die();
	owner_goes_on(&l, 1, CONNECTION_HANDSHAKING);
	ck_assert_uint_eq(handshake_limit_count(d.rw->home.handshakes), 1);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 50, 3);
	wait_until(came() == RECORD_OF(50));
	l.client_records = 2;
	l.write_sequence = 0;
	live_say(&l, FRAME_KEPT, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy");
	wait_until(c()->now.state == CONNECTION_OWNED);
	close(l.fd);
}
END_TEST

START_TEST(a_part_of_a_hello_is_whole_in_the_next_process)
{
	uint8_t hello[RECORD_OF(200)];

	dispatcher_start(&outlives);
	record_make(hello, TLS_HANDSHAKE, 200, 1);
	l = (struct live_connection){ .fd = client_connect("sf") };
	write_all(l.fd, hello, 50);
	wait_until(d.rw->home.connections && stream_kept(&c()->busy->client) == 50);
	ck_assert_int_eq(c()->now.state, CONNECTION_HELLO);
	die();
	ck_assert_int_eq(c()->now.state, CONNECTION_HELLO);
	write_all(l.fd, hello + 50, sizeof hello - 50);
	hello_comes(sizeof hello);
	close(l.fd);
}
END_TEST

/* What it says of the client goes along, too. */
START_TEST(a_part_of_a_header_is_whole_in_the_next_process)
{
	static const uint8_t header[] = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x13\xc0\0\2\7\xc6\x33\x64\x09\x0f\xa0\1\xbb"
					"\5\0\4abcd";

	dispatcher_start(&outlives);
	l = (struct live_connection){ .fd = client_connect("proxied") };
	write_all(l.fd, header, 20);
	wait_until(d.rw->home.connections && stream_kept(&c()->busy->client) == 20);
	die();
	ck_assert_int_eq(c()->now.state, CONNECTION_PROXY);
	write_all(l.fd, header + 20, sizeof header - 1 - 20);
	client_send_record(l.fd, TLS_HANDSHAKE, 200, 1);
	hello_comes(RECORD_OF(200));
	die();
	owner_goes_on(&l, 1, CONNECTION_HANDSHAKING);
	ck_assert_uint_eq(c()->endpoints.client_port, 4000);
	ck_assert_uint_eq(c()->endpoints.unique_id_len, 4);
	ck_assert_mem_eq(c()->endpoints.unique_id, "abcd", 4);
	close(l.fd);
}
END_TEST

START_TEST(one_that_waits_for_an_agent_gets_it_from_the_next_process)
{
	dispatcher_start(&outlives);
	all_agents_are(0);
	l = (struct live_connection){ .fd = client_connect("sf") };
	client_send_record(l.fd, TLS_HANDSHAKE, 200, 1);
	wait_until(d.rw->home.connections && c()->now.state == CONNECTION_WAITING);
	wait_until(connection_is_saved(c()));
	die();
	ck_assert_int_eq(c()->now.state, CONNECTION_WAITING);
	all_agents_are(1);
	hello_comes(RECORD_OF(200));
	close(l.fd);
}
END_TEST

UNIT(connection_restored)
{
	const TTest *const facts[] = {
		an_owner_goes_on_with_its_answer,
		a_request_that_the_owner_did_not_get_comes_to_it,
		the_next_process_may_die_too,
		what_the_client_says_meanwhile_is_read,
		what_was_read_and_not_logged_is_in_the_read_buffer,
		a_silent_owned_one_goes_on,
		one_at_rest_rests_on,
		one_at_rest_whose_client_asks_meanwhile_wakes,
		one_that_had_to_move_is_told_so_after_each_death,
		an_adopter_is_asked_again_in_the_same_epoch,
		a_goodbye_that_was_ordered_is_ordered_again,
		a_last_answer_and_fin_come_from_the_next_process,
		a_handshake_goes_on,
		a_part_of_a_hello_is_whole_in_the_next_process,
		a_part_of_a_header_is_whole_in_the_next_process,
		one_that_waits_for_an_agent_gets_it_from_the_next_process,
	};

	return dispatcher_suite_run("connection_restored", facts, FACTS_LEN(facts));
}
