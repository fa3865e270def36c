/* test_connection_move.c: facts of a connection's way from one owner to the next: hand-off, refusal, commanded moves.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

static struct live_connection l;

static struct {
	struct move_order order;
	struct move_result result;
	char reason[128];
	unsigned answers;
} moved;

static void on_moved(struct move_order *o, const struct move_result *r)
{
	moved.result = *r;
	snprintf(moved.reason, sizeof moved.reason, "%s", r->reason ? r->reason : "");
	moved.answers++;
}

static void move_to(int target)
{
	memset(&moved, 0, sizeof moved);
	moved.order.done = on_moved;
	connection_order(connection_only(), &(struct move_wish){ .target = target, .cause = CSSL__CAUSE__CAUSE_MOVE },
		&moved.order);
}

static void refuse(Cssl__LinkRefused__Reason reason)
{
	Cssl__LinkRefused r = CSSL__LINK_REFUSED__INIT;

	r.reason = reason;
	r.detail = (char *)"the test says so";
	fake_agent_say(d.agents[l.agent], l.stream, FRAME_REFUSED, &r.base);
}

/* The affinity agent owns it. */
static void begin_owned_within(const char *limits)
{
	dispatcher_start(&(struct dispatcher_wish){ .limits = limits });
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	adopted_say(&l, 2);
	free(frame_at(l.handshake_agent, FRAME_DETACH));
}

static void begin_owned(void)
{
	begin_owned_within(NULL);
}

START_TEST(a_hand_off_gives_the_affinity_agent_the_next_epoch_and_the_exact_position)
{
	dispatcher_start(NULL);
	connection_hand_off(&l);
	struct connection *c = connection_only();
	const int affinity = c->now.affinity_agent;
	l.write_sequence = 4; /* OpenSSL sealed tickets before */
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);
	ck_assert_int_eq(l.agent, affinity);
	ck_assert_int_ne(l.agent, l.handshake_agent);
	ck_assert_uint_eq(id->epoch, 2);
	ck_assert_int_eq(id->cause, CSSL__CAUSE__CAUSE_HAND_OFF);
	ck_assert_mem_eq(id->connection_id.data, c->id.bytes, CONNECTION_ID_LEN);
	ck_assert_uint_eq(id->position->client_records, 2);
	ck_assert_uint_eq(id->position->server_records, 1);
	ck_assert_uint_eq(id->position->write_sequence, 4);
	ck_assert_uint_eq(id->sealed_copy.len, 6);
	ck_assert_mem_eq(id->sealed_copy.data, "copy 1", 6);
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT);
	ck_assert_str_eq(id->listener, "sf");
	cssl__link_ssl_id__free_unpacked(id, NULL);
	close(l.fd);
}
END_TEST

START_TEST(a_hand_off_replays_exactly_the_unconsumed_records)
{
	uint8_t expected[3 * RECORD_OF(60)], got[4096];

	dispatcher_start(NULL);
	connection_hand_off(&l);
	for (unsigned i = 0; i < 3; i++) {
		record_make(expected + i * RECORD_OF(60), TLS_APPLICATION_DATA, 60, (uint8_t)(10 + i));
		client_send_record(l.fd, TLS_APPLICATION_DATA, 60, (uint8_t)(10 + i));
	}
	wait_until(
		fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(200) + RECORD_OF(50) + sizeof expected);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == sizeof expected);
	ck_assert_uint_eq(fake_agent_take_data(d.agents[l.agent], l.stream, got, sizeof got), sizeof expected);
	ck_assert_mem_eq(got, expected, sizeof expected);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.records_replayed), 3);
	close(l.fd);
}
END_TEST

START_TEST(records_that_come_during_the_hand_off_follow_in_order_and_once)
{
	uint8_t expected[4 * RECORD_OF(60)], got[4096];

	dispatcher_start(NULL);
	connection_hand_off(&l);
	for (unsigned i = 0; i < 4; i++)
		record_make(expected + i * RECORD_OF(60), TLS_APPLICATION_DATA, 60, (uint8_t)(20 + i));
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	write_all(l.fd, expected, RECORD_OF(60) + 10); /* one record and a bit of the next */
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	write_all(l.fd, expected + RECORD_OF(60) + 10, sizeof expected / 2 - RECORD_OF(60) - 10);
	turns(10);
	adopted_say(&l, 2);
	write_all(l.fd, expected + sizeof expected / 2, sizeof expected / 2);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == sizeof expected);
	fake_agent_take_data(d.agents[l.agent], l.stream, got, sizeof got);
	ck_assert_mem_eq(got, expected, sizeof expected);
	close(l.fd);
}
END_TEST

START_TEST(the_frozen_agent_is_detached_once_the_successor_has_adopted)
{
	dispatcher_start(NULL);
	connection_hand_off(&l);
	uint32_t frozen = l.stream;
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	no_frame(FRAME_DETACH);
	adopted_say(&l, 2);
	struct fake_frame *f = frame_at(l.handshake_agent, FRAME_DETACH);
	ck_assert_uint_eq(f->stream, frozen);
	free(f);
	close(l.fd);
}
END_TEST

START_TEST(frames_of_an_old_stream_are_dropped_and_counted)
{
	uint8_t record[RECORD_OF(100)], byte;
	int end;

	dispatcher_start(NULL);
	connection_hand_off(&l);
	struct live_connection old = l;
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	record_make(record, TLS_APPLICATION_DATA, 100, 66);
	fake_agent_send(d.agents[old.agent], old.stream, FRAME_DATA, 0, record, sizeof record);
	wait_until(counter_get(&d.rw->home.counters.frames_stale) == 1);
	adopted_say(&l, 2);
	free(frame_at(old.agent, FRAME_DETACH));
	fake_agent_send(d.agents[old.agent], old.stream, FRAME_DATA, 0, record, sizeof record);
	wait_until(counter_get(&d.rw->home.counters.frames_stale) == 2);
	ck_assert_int_lt(read(l.fd, &byte, 1), 0); /* nothing came */
	ck_assert_uint_eq(connection_only()->now.position.server_records, 1);
	server_send(&l, TLS_APPLICATION_DATA, 80, 77, 0); /* and the link lives */
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.link_violations), 0);
	read_some(l.fd, &byte, 1, &end);
	close(l.fd);
}
END_TEST

START_TEST(data_before_adopted_breaks_the_link)
{
	uint8_t record[RECORD_OF(100)];

	dispatcher_start(NULL);
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 0, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	record_make(record, TLS_APPLICATION_DATA, 100, 66);
	fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, 0, record, sizeof record);
	wait_until(counter_get(&d.rw->home.counters.link_violations) == 1);
	client_expect_reset(l.fd);
	close(l.fd);
}
END_TEST

START_TEST(a_refused_adopt_goes_back_to_the_frozen_owner_with_the_next_epoch)
{
	dispatcher_start(NULL);
	connection_hand_off(&l);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 60, 9);
	wait_until(connection_only()->busy->kept.next_record == 3);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	refuse(CSSL__LINK_REFUSED__REASON__BUSY);
	Cssl__LinkSslId *id = ssl_id_take(&l, l.handshake_agent);
	ck_assert_uint_eq(id->epoch, 3);
	ck_assert_int_eq(id->cause, CSSL__CAUSE__CAUSE_HAND_OFF);
	cssl__link_ssl_id__free_unpacked(id, NULL);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(60));
	adopted_say(&l, 3);
	ck_assert_int_eq(connection_only()->now.owner, l.handshake_agent);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.adopts_refused), 1);
	close(l.fd);
}
END_TEST

START_TEST(an_adopt_that_everybody_refuses_ends_it)
{
	dispatcher_start(NULL);
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	for (unsigned i = 0; i < 20 && d.rw->home.connections->now.state == CONNECTION_ADOPTING + 0u; i++) {
		cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
		refuse(CSSL__LINK_REFUSED__REASON__COPY_BAD);
		turns(10);
		if (!d.rw->home.connections)
			break;
	}
	client_expect_reset(l.fd);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.ended[END_MOVE_FAILED]), 1);
	close(l.fd);
}
END_TEST

START_TEST(an_adopt_that_would_reuse_a_nonce_ends_it_at_once)
{
	dispatcher_start(NULL);
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	refuse(CSSL__LINK_REFUSED__REASON__NONCE_UNSAFE);
	client_expect_reset(l.fd);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.ended[END_MOVE_UNSAFE]), 1);
	close(l.fd);
}
END_TEST

START_TEST(an_adopted_with_another_epoch_breaks_the_link)
{
	Cssl__LinkAdopted a = CSSL__LINK_ADOPTED__INIT;

	dispatcher_start(NULL);
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 0, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	a.epoch = 1;
	fake_agent_say(d.agents[l.agent], l.stream, FRAME_ADOPTED, &a.base);
	wait_until(counter_get(&d.rw->home.counters.link_violations) == 1);
	close(l.fd);
}
END_TEST

START_TEST(a_commanded_move_reports_the_new_owner_and_its_epoch)
{
	begin_owned();
	int from = l.agent, target = l.handshake_agent;
	move_to(target);
	struct fake_frame *f = frame_at(from, FRAME_MOVE);
	Cssl__LinkMove *m = cssl__link_move__unpack(NULL, f->len, f->payload);
	ck_assert_str_eq(m->target, agents_name(d.shared.agents, target));
	ck_assert_uint_eq(m->next_epoch, 3);
	cssl__link_move__free_unpacked(m, NULL);
	free(f);
	live_say(&l, FRAME_HANDED_OFF, 0, CSSL__BACKEND_HALF__BACKEND_PASSED, "copy 2");
	Cssl__LinkSslId *id = ssl_id_take(&l, target);
	ck_assert_uint_eq(id->epoch, 3);
	ck_assert_int_eq(id->cause, CSSL__CAUSE__CAUSE_MOVE);
	ck_assert_int_eq(id->backend, CSSL__BACKEND_HALF__BACKEND_PASSED);
	ck_assert_mem_eq(id->sealed_copy.data, "copy 2", 6);
	cssl__link_ssl_id__free_unpacked(id, NULL);
	ck_assert_uint_eq(moved.answers, 0);
	adopted_say(&l, 3);
	ck_assert_uint_eq(moved.answers, 1);
	ck_assert_int_eq(moved.result.outcome, MOVE_DONE);
	ck_assert_int_eq(moved.result.from, from);
	ck_assert_int_eq(moved.result.to, target);
	ck_assert_uint_eq(moved.result.epoch, 3);
	ck_assert_uint_gt(moved.result.pause_us, 0);
	close(l.fd);
}
END_TEST

START_TEST(the_pause_of_a_move_begins_behind_what_its_owner_still_said)
{
	begin_owned();
	move_to(l.handshake_agent);
	free(frame_at(l.agent, FRAME_MOVE));
	const uint64_t asked_ns = connection_only()->busy->move_began_ns;
	server_send(&l, TLS_APPLICATION_DATA, 80, 77, 0);
	ck_assert_uint_gt(connection_only()->busy->move_began_ns, asked_ns);
	close(l.fd);
}
END_TEST

START_TEST(a_move_does_not_prolong_the_silence_before_it)
{
	begin_owned_within("  idle_timeout: 1h\n");
	connection_only()->now.active_ms -= 3600 * 1000;
	move_to(l.handshake_agent);
	free(frame_at(l.agent, FRAME_MOVE));
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 2");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	adopted_say(&l, 3);
	ck_assert_int_eq(goodbye_say(&l), END_IDLE_TIMEOUT);
	close(l.fd);
}
END_TEST

START_TEST(a_move_that_the_owner_refuses_changes_nothing)
{
	begin_owned();
	uint32_t stream = l.stream;
	move_to(l.handshake_agent);
	free(frame_at(l.agent, FRAME_MOVE));
	client_send_record(l.fd, TLS_APPLICATION_DATA, 60, 9);
	wait_until(fake_agent_data_len(d.agents[l.agent], stream) == RECORD_OF(60));
	refuse(CSSL__LINK_REFUSED__REASON__CANNOT_MOVE);
	wait_until(moved.answers == 1);
	ck_assert_int_eq(moved.result.outcome, MOVE_CONFLICT);
	ck_assert_str_eq(moved.reason, "the test says so");
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_OWNED);
	ck_assert_uint_eq(connection_only()->now.epoch, 2);
	server_send(&l, TLS_APPLICATION_DATA, 80, 77, 0);
	close(l.fd);
}
END_TEST

/* Its owner gets 200 ms to answer a move. */
static int begin_unanswered(void)
{
	dispatcher_start(&(struct dispatcher_wish){ .health = "  ping: 20ms\n  suspect: 50ms\n  lost: 100ms\n" });
	connection_keep(&l, "sf", 1);
	int target = (l.agent + 1) % AGENTS;
	move_to(target);
	free(frame_at(l.agent, FRAME_MOVE));
	wait_until(moved.answers == 1);
	return target;
}

START_TEST(a_move_that_is_not_answered_in_time_leaves_it_with_its_owner)
{
	begin_unanswered();
	ck_assert_int_eq(moved.result.outcome, MOVE_CONFLICT);
	ck_assert_ptr_nonnull(strstr(moved.reason, "in time"));
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.moves_overdue), 1);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_OWNED);
	ck_assert(!connection_may_move(connection_only()));
	server_send(&l, TLS_APPLICATION_DATA, 80, 77, 0);
	close(l.fd);
}
END_TEST

START_TEST(a_refusal_that_comes_late_makes_it_movable_again)
{
	begin_unanswered();
	refuse(CSSL__LINK_REFUSED__REASON__CANNOT_MOVE);
	wait_until(connection_may_move(connection_only()));
	ck_assert_uint_eq(moved.answers, 1);
	close(l.fd);
}
END_TEST

START_TEST(a_hand_off_that_comes_late_still_goes_where_it_was_sent)
{
	int target = begin_unanswered();

	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_PASSED, "copy 2");
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);
	ck_assert_int_eq(l.agent, target);
	ck_assert_int_eq(id->backend, CSSL__BACKEND_HALF__BACKEND_PASSED);
	cssl__link_ssl_id__free_unpacked(id, NULL);
	adopted_say(&l, 2);
	ck_assert_uint_eq(moved.answers, 1);
	ck_assert(connection_may_move(connection_only()));
	close(l.fd);
}
END_TEST

START_TEST(a_refusal_that_nobody_asked_for_breaks_the_link)
{
	begin_owned();
	refuse(CSSL__LINK_REFUSED__REASON__CANNOT_MOVE);
	wait_until(counter_get(&d.rw->home.counters.link_violations) == 1);
	close(l.fd);
}
END_TEST

START_TEST(a_move_whose_target_refuses_ends_where_it_began_and_says_so)
{
	begin_owned();
	int from = l.agent;
	move_to(l.handshake_agent);
	free(frame_at(from, FRAME_MOVE));
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 2");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	refuse(CSSL__LINK_REFUSED__REASON__BUSY);
	Cssl__LinkSslId *id = ssl_id_take(&l, from);
	ck_assert_uint_eq(id->epoch, 4);
	cssl__link_ssl_id__free_unpacked(id, NULL);
	adopted_say(&l, 4);
	ck_assert_uint_eq(moved.answers, 1);
	ck_assert_int_eq(moved.result.outcome, MOVE_CONFLICT);
	close(l.fd);
}
END_TEST

START_TEST(a_connection_that_cannot_move_says_why_at_once)
{
	dispatcher_start(NULL);
	connection_keep(&l, "still", 1);
	move_to((l.agent + 1) % AGENTS);
	ck_assert_uint_eq(moved.answers, 1);
	ck_assert_int_eq(moved.result.outcome, MOVE_CONFLICT);
	no_frame(FRAME_MOVE);
	close(l.fd);
}
END_TEST

/* Its owner may die later. */
START_TEST(the_last_epoch_is_kept_for_a_takeover)
{
	begin_owned();
	connection_only()->now.epoch = UINT16_MAX - 1;
	move_to(l.handshake_agent);
	ck_assert_int_eq(moved.result.outcome, MOVE_CONFLICT);
	ck_assert_str_eq(moved.reason, "its epochs are used up");
	no_frame(FRAME_MOVE);
	connection_only()->now.epoch = UINT16_MAX - 2;
	move_to(l.handshake_agent);
	free(frame_at(l.agent, FRAME_MOVE));
	close(l.fd);
}
END_TEST

START_TEST(a_connection_of_mode_sl_moves_when_it_is_told_to)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	int target = (l.agent + 1) % AGENTS;
	move_to(target);
	free(frame_at(l.agent, FRAME_MOVE));
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 2");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, target), NULL);
	adopted_say(&l, 2);
	ck_assert_int_eq(moved.result.outcome, MOVE_DONE);
	close(l.fd);
}
END_TEST

START_TEST(a_move_to_a_lost_agent_is_not_begun)
{
	begin_owned();
	fake_agent_die(d.agents[l.handshake_agent]);
	wait_until(agents_up() == AGENTS - 1);
	move_to(l.handshake_agent);
	ck_assert_int_eq(moved.result.outcome, MOVE_UNAVAILABLE);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_OWNED);
	close(l.fd);
}
END_TEST

START_TEST(a_connection_that_ends_during_its_move_answers_the_requester)
{
	begin_owned();
	move_to(l.handshake_agent);
	free(frame_at(l.agent, FRAME_MOVE));
	reset(OVER_TCP4, l.fd);
	wait_until(moved.answers == 1);
	ck_assert_int_eq(moved.result.outcome, MOVE_CONFLICT);
	free(frame_at(l.agent, FRAME_CLOSE));
}
END_TEST

START_TEST(a_copy_becomes_current_with_the_key_update_and_travels_with_the_next_move)
{
	Cssl__LinkCopy copy = CSSL__LINK_COPY__INIT;

	begin_owned();
	copy.write_generation = 1;
	copy.sealed_copy = (ProtobufCBinaryData){ 6, (uint8_t *)"copy 2" };
	fake_agent_say(d.agents[l.agent], l.stream, FRAME_COPY, &copy.base);
	server_send(&l, TLS_APPLICATION_DATA, 50, 1, 0);
	ck_assert_mem_eq(connection_only()->now.copies.current->data, "copy 1", 6);
	ck_assert_ptr_nonnull(connection_only()->now.copies.pending);
	server_send(&l, TLS_APPLICATION_DATA, 22, 1, FRAME_LAST_OF_WRITE_GENERATION);
	ck_assert_mem_eq(connection_only()->now.copies.current->data, "copy 2", 6);
	ck_assert_ptr_null(connection_only()->now.copies.pending);
	close(l.fd);
}
END_TEST

START_TEST(a_client_fin_is_told_again_to_every_owner_behind_its_records)
{
	dispatcher_start(NULL);
	connection_hand_off(&l);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 60, 9);
	shutdown(l.fd, SHUT_WR);
	free(frame_at(l.agent, FRAME_FIN));
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	struct fake_frame *fin = frame_at(l.agent, FRAME_FIN);
	ck_assert_uint_eq(fin->stream, l.stream);
	ck_assert_uint_eq(fin->flags, 0);
	ck_assert_uint_eq(fake_agent_data_len(d.agents[l.agent], l.stream), RECORD_OF(60)); /* came before */
	free(fin);
	close(l.fd);
}
END_TEST

START_TEST(drained_bytes_count_per_stream)
{
	static uint8_t record[RECORD_OF(16000)];
	struct frame_accepted a = { 0 };

	begin_owned();
	record_make(record, TLS_APPLICATION_DATA, 16000, 7);
	for (unsigned i = 0; i < 3; i++) {
		fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, 0, record, sizeof record);
		client_expect(l.fd, record, sizeof record);
	}
	while (a.drained < 3 * sizeof record) {
		server_send(&l, TLS_APPLICATION_DATA, 22, 1, FRAME_LAST_OF_WRITE_GENERATION);
		struct fake_frame *f = frame_at(l.agent, FRAME_ACCEPTED);
		frame_accepted_read(&(struct frame){ .len = f->len, .payload = f->payload }, &a);
		free(f);
	}
	/* the handshake agent's records are not among them */
	ck_assert_uint_le(a.drained, connection_only()->now.queued - RECORD_OF(100));
	close(l.fd);
}
END_TEST

START_TEST(an_open_that_is_refused_goes_to_another_agent)
{
	dispatcher_start(NULL);
	hello_send(&l, "sl", NULL);
	int first = l.agent;
	refuse(CSSL__LINK_REFUSED__REASON__BUSY);
	struct fake_frame *f = frame_anywhere(FRAME_OPEN, &l.agent);
	ck_assert_int_ne(l.agent, first);
	l.stream = f->stream;
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(200));
	free(f);
	close(l.fd);
}
END_TEST

UNIT(connection_move)
{
	const TTest *const facts[] = {
		a_hand_off_gives_the_affinity_agent_the_next_epoch_and_the_exact_position,
		a_hand_off_replays_exactly_the_unconsumed_records,
		records_that_come_during_the_hand_off_follow_in_order_and_once,
		the_frozen_agent_is_detached_once_the_successor_has_adopted,
		frames_of_an_old_stream_are_dropped_and_counted,
		data_before_adopted_breaks_the_link,
		a_refused_adopt_goes_back_to_the_frozen_owner_with_the_next_epoch,
		an_adopt_that_everybody_refuses_ends_it,
		an_adopt_that_would_reuse_a_nonce_ends_it_at_once,
		an_adopted_with_another_epoch_breaks_the_link,
		a_commanded_move_reports_the_new_owner_and_its_epoch,
		the_pause_of_a_move_begins_behind_what_its_owner_still_said,
		a_move_does_not_prolong_the_silence_before_it,
		a_move_that_the_owner_refuses_changes_nothing,
		a_move_that_is_not_answered_in_time_leaves_it_with_its_owner,
		a_refusal_that_comes_late_makes_it_movable_again,
		a_hand_off_that_comes_late_still_goes_where_it_was_sent,
		a_refusal_that_nobody_asked_for_breaks_the_link,
		a_move_whose_target_refuses_ends_where_it_began_and_says_so,
		a_connection_that_cannot_move_says_why_at_once,
		the_last_epoch_is_kept_for_a_takeover,
		a_connection_of_mode_sl_moves_when_it_is_told_to,
		a_move_to_a_lost_agent_is_not_begun,
		a_connection_that_ends_during_its_move_answers_the_requester,
		a_copy_becomes_current_with_the_key_update_and_travels_with_the_next_move,
		a_client_fin_is_told_again_to_every_owner_behind_its_records,
		drained_bytes_count_per_stream,
		an_open_that_is_refused_goes_to_another_agent,
	};

	return dispatcher_suite_run("connection_move", facts, sizeof facts / sizeof facts[0]);
}
