/* test_mover.c: facts of drain, rest and rebalance: the moves that a worker orders by itself. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

static struct live_connection l;

static void drain(int agent, uint64_t timeout_ms)
{
	agents_drain(d.shared.agents, agent, DRAIN_BY_OPERATOR, worker_now_ms(w), timeout_ms);
	mover_look(&d.rw->home.mover);
}

static struct drain_report report(int agent)
{
	struct drain_report r;

	drain_describe(agents_drain_of(d.shared.agents, agent), worker_now_ms(w),
		agents_share(d.shared.agents, agent, AGENT_OWNERSHIPS), &r);
	return r;
}

static int is_drained(int agent)
{
	return drain_state(agents_drain_of(d.shared.agents, agent)) == DRAIN_DONE;
}

/* The MOVE that comes to the owner; the caller frees it. */
static Cssl__LinkMove *move_take(void)
{
	struct fake_frame *f = frame_at(l.agent, FRAME_MOVE);
	Cssl__LinkMove *m = cssl__link_move__unpack(NULL, f->len, f->payload);

	ck_assert_ptr_nonnull(m);
	ck_assert_uint_eq(f->stream, l.stream);
	free(f);
	return m;
}

static void move_of_cause(Cssl__Cause cause)
{
	Cssl__LinkMove *m = move_take();

	ck_assert_int_eq(m->cause, cause);
	ck_assert((m->target[0] == '\0') == (cause == CSSL__CAUSE__CAUSE_REST));
	cssl__link_move__free_unpacked(m, NULL);
}

static void refuse(void)
{
	Cssl__LinkRefused r = CSSL__LINK_REFUSED__INIT;

	r.reason = CSSL__LINK_REFUSED__REASON__CANNOT_MOVE;
	r.detail = (char *)"the test says so";
	fake_agent_say(d.agents[l.agent], l.stream, FRAME_REFUSED, &r.base);
}

static void hand_off(int at_checkpoint)
{
	live_say(&l, FRAME_HANDED_OFF, at_checkpoint, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 2");
}

static void begin_in_mid_answer(const struct dispatcher_wish *wish)
{
	dispatcher_start(wish);
	connection_keep(&l, "sl", 1);
	server_send(&l, TLS_APPLICATION_DATA, 100, 1, FRAME_RESPONSE_BYTES);
}

/* --- drain --- */

START_TEST(a_drain_lets_idle_connections_rest)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	drain(l.agent, 10000);
	move_of_cause(CSSL__CAUSE__CAUSE_REST);
	hand_off(1);
	struct fake_frame *f = frame_at(l.agent, FRAME_DETACH);
	ck_assert_uint_eq(f->stream, l.stream);
	free(f);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_RESTING);
	wait_until(is_drained(l.agent));
	ck_assert_uint_eq(report(l.agent).total, 1);
	ck_assert_uint_eq(report(l.agent).rested, 1);
	ck_assert_uint_eq(report(l.agent).left, 0);
	close(l.fd);
}
END_TEST

START_TEST(a_drain_moves_a_connection_with_an_answer_under_way)
{
	begin_in_mid_answer(NULL);
	int from = l.agent;
	drain(from, 10000);
	Cssl__LinkMove *m = move_take();
	ck_assert_int_eq(m->cause, CSSL__CAUSE__CAUSE_DRAIN);
	ck_assert_int_ne(agents_find(d.shared.agents, m->target), from);
	ck_assert_uint_eq(m->deadline_ms, 0);
	ck_assert_uint_eq(m->next_epoch, 2);
	cssl__link_move__free_unpacked(m, NULL);
	hand_off(0);
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);
	ck_assert_int_ne(l.agent, from);
	ck_assert_int_eq(id->cause, CSSL__CAUSE__CAUSE_DRAIN);
	cssl__link_ssl_id__free_unpacked(id, NULL);
	adopted_say(&l, 2);
	wait_until(is_drained(from));
	ck_assert_uint_eq(report(from).moved, 1);
	ck_assert_uint_gt(report(from).longest_pause_us, 0);
	close(l.fd);
}
END_TEST

START_TEST(a_draining_agent_lost_before_its_successor_has_adopted_has_moved_the_connection)
{
	begin_in_mid_answer(NULL);
	int from = l.agent;
	drain(from, 10000);
	move_of_cause(CSSL__CAUSE__CAUSE_DRAIN);
	hand_off(0);
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);
	cssl__link_ssl_id__free_unpacked(id, NULL);
	fake_agent_die(d.agents[from]);
	wait_until(!connection_only()->busy->frozen.link);
	adopted_say(&l, 2);
	wait_until(connection_only()->now.state == CONNECTION_OWNED);
	ck_assert_uint_eq(report(from).moved, 1);
	close(l.fd);
}
END_TEST

START_TEST(a_connection_that_could_not_go_at_once_is_asked_to_go_at_its_checkpoint)
{
	begin_in_mid_answer(NULL);
	drain(l.agent, 10000);
	move_of_cause(CSSL__CAUSE__CAUSE_DRAIN);
	refuse();
	Cssl__LinkMove *m = move_take();
	ck_assert_int_eq(m->cause, CSSL__CAUSE__CAUSE_DRAIN);
	ck_assert_uint_gt(m->deadline_ms, 1000);
	ck_assert_uint_lt(m->deadline_ms, 10000);
	cssl__link_move__free_unpacked(m, NULL);
	close(l.fd);
}
END_TEST

START_TEST(a_connection_of_tcp_does_not_rest_but_move)
{
	const struct dispatcher_wish wish = { .listener = "    service: tcp\n" };

	dispatcher_start(&wish);
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	adopted_say(&l, 2);
	drain(l.agent, 10000);
	move_of_cause(CSSL__CAUSE__CAUSE_DRAIN);
	close(l.fd);
}
END_TEST

START_TEST(connections_left_at_the_deadline_say_goodbye)
{
	begin_in_mid_answer(NULL);
	drain(l.agent, 150);
	move_of_cause(CSSL__CAUSE__CAUSE_DRAIN);
	refuse();
	move_of_cause(CSSL__CAUSE__CAUSE_DRAIN); /* patiently */
	wait_until(drain_left_ms(agents_drain_of(d.shared.agents, l.agent), worker_now_ms(w)) == 0);
	refuse();
	ck_assert_int_eq(goodbye_say(&l), END_DRAIN_TIMEOUT);
	client_expect_fin(l.fd);
	close(l.fd);
	wait_until(!d.rw->home.connections);
	ck_assert_str_eq(report(l.agent).state, "timed out");
	ck_assert_uint_eq(report(l.agent).ended, 1);
	ck_assert_uint_eq(report(l.agent).left, 0);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.ended[END_DRAIN_TIMEOUT]), 1);
}
END_TEST

START_TEST(connections_that_may_not_move_stay_until_the_deadline)
{
	dispatcher_start(NULL);
	connection_keep(&l, "still", 1);
	drain(l.agent, 150);
	ck_assert_int_eq(goodbye_say(&l), END_DRAIN_TIMEOUT);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.moves_asked), 0);
	client_expect_fin(l.fd);
	close(l.fd);
}
END_TEST

START_TEST(a_handshake_ends_before_its_connection_leaves)
{
	dispatcher_start(NULL);
	hello_send(&l, "sl", NULL);
	drain(l.agent, 10000);
	no_frame(FRAME_MOVE);
	server_send(&l, TLS_HANDSHAKE, 100, 2, 0);
	l.client_records = 1;
	l.write_sequence = 0;
	live_say(&l, FRAME_KEPT, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_move__free_unpacked(move_take(), NULL);
	close(l.fd);
}
END_TEST

START_TEST(one_that_may_not_rest_is_moved)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	drain(l.agent, 10000);
	move_of_cause(CSSL__CAUSE__CAUSE_REST);
	refuse();
	move_of_cause(CSSL__CAUSE__CAUSE_DRAIN);
	close(l.fd);
}
END_TEST

START_TEST(a_handshake_that_outlasts_the_deadline_is_reset)
{
	dispatcher_start(NULL);
	hello_send(&l, "sl", NULL);
	drain(l.agent, 50);
	client_expect_reset(l.fd);
	close(l.fd);
}
END_TEST

START_TEST(a_connection_is_not_handed_off_to_a_draining_agent)
{
	dispatcher_start(NULL);
	connection_hand_off(&l);
	int affinity = connection_only()->now.affinity_agent;
	drain(affinity, 10000);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	ck_assert_int_ne(l.agent, affinity);
	close(l.fd);
}
END_TEST

START_TEST(an_agent_that_says_leaving_is_drained)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	fake_agent_send(d.agents[l.agent], 0, FRAME_LEAVING, 0, NULL, 0);
	move_of_cause(CSSL__CAUSE__CAUSE_REST);
	ck_assert_str_eq(report(l.agent).reason, "leaving");
	hand_off(1);
	wait_until(is_drained(l.agent));
	close(l.fd);
}
END_TEST

START_TEST(after_undrain_nothing_leaves_and_nothing_ends)
{
	begin_in_mid_answer(NULL);
	drain(l.agent, 200);
	move_of_cause(CSSL__CAUSE__CAUSE_DRAIN);
	ck_assert_int_eq(agents_undrain(d.shared.agents, l.agent), 0);
	refuse();
	uint64_t until_ms = now_ms() + 400;
	while (now_ms() < until_ms)
		turn();
	no_frame(FRAME_MOVE);
	no_frame(FRAME_FINISH);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_OWNED);
	close(l.fd);
}
END_TEST

START_TEST(without_another_agent_idle_connections_rest_all_the_same)
{
	const struct dispatcher_wish wish = { .agents = 1 };

	dispatcher_start(&wish);
	connection_keep(&l, "sl", 1);
	drain(l.agent, 10000);
	move_of_cause(CSSL__CAUSE__CAUSE_REST);
	hand_off(1);
	wait_until(is_drained(l.agent));
	client_send_record(l.fd, TLS_APPLICATION_DATA, 60, 5);
	wait_until(connection_only()->now.attempts > 0);
	agents_undrain(d.shared.agents, l.agent);
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, 0), NULL);
	close(l.fd);
}
END_TEST

/* --- rest --- */

static const struct dispatcher_wish rests_soon = {
	.listener = "    affinity_bound: off\n    mode: sl\n    rest_after: 100ms\n",
};

static void begin_resting(void)
{
	dispatcher_start(&rests_soon);
	connection_keep(&l, "sf", 1);
	move_of_cause(CSSL__CAUSE__CAUSE_REST);
}

START_TEST(a_silent_connection_rests_and_wakes_with_its_next_record)
{
	uint8_t record[RECORD_OF(60)], got[RECORD_OF(60)];

	begin_resting();
	int agent = l.agent;
	hand_off(1);
	free(frame_at(agent, FRAME_DETACH));
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.rested), 1);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.connections_resting), 1);
	record_make(record, TLS_APPLICATION_DATA, 60, 5);
	write_all(l.fd, record, sizeof record);
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);
	ck_assert_int_eq(l.agent, agent); /* SL: where it was */
	ck_assert_int_eq(id->cause, CSSL__CAUSE__CAUSE_WAKE);
	ck_assert_uint_eq(id->epoch, 2);
	ck_assert_mem_eq(id->sealed_copy.data, "copy 2", 6);
	cssl__link_ssl_id__free_unpacked(id, NULL);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == sizeof record);
	fake_agent_take_data(d.agents[l.agent], l.stream, got, sizeof got);
	ck_assert_mem_eq(got, record, sizeof record);
	adopted_say(&l, 2);
	close(l.fd);
}
END_TEST

START_TEST(a_record_that_comes_while_its_owner_freezes_wakes_it_at_once)
{
	begin_resting();
	client_send_record(l.fd, TLS_APPLICATION_DATA, 60, 5);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(60));
	hand_off(1);
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(60)); /* again */
	close(l.fd);
}
END_TEST

START_TEST(a_client_that_closes_while_its_owner_freezes_gets_fin)
{
	begin_resting();
	shutdown(l.fd, SHUT_WR);
	free(frame_at(l.agent, FRAME_FIN));
	hand_off(1);
	client_expect_fin(l.fd);
	wait_until(!d.rw->home.connections);
	close(l.fd);
}
END_TEST

START_TEST(an_owner_that_refuses_a_rest_is_asked_again_later)
{
	begin_resting();
	refuse();
	wait_until(connection_only()->now.state == CONNECTION_OWNED);
	uint64_t refused_ms = now_ms();
	move_of_cause(CSSL__CAUSE__CAUSE_REST);
	ck_assert_uint_ge(now_ms(), refused_ms + 80);
	close(l.fd);
}
END_TEST

START_TEST(an_owner_lost_while_it_freezes_leaves_a_resting_connection)
{
	begin_resting();
	fake_agent_die(d.agents[l.agent]);
	wait_until(connection_only()->now.state == CONNECTION_RESTING);
	ck_assert_uint_eq(d.rw->home.mover.orders[MOVER_REST].under_way, 0);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 60, 5);
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);
	ck_assert_int_eq(id->cause, CSSL__CAUSE__CAUSE_TAKEOVER);
	cssl__link_ssl_id__free_unpacked(id, NULL);
	close(l.fd);
}
END_TEST

static void stays_owned(void)
{
	uint64_t until_ms = now_ms() + 300;

	while (now_ms() < until_ms)
		turn();
	no_frame(FRAME_MOVE);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_OWNED);
	close(l.fd);
}

START_TEST(a_connection_in_mid_answer_does_not_rest)
{
	begin_in_mid_answer(&rests_soon);
	stays_owned();
}
END_TEST

START_TEST(a_half_closed_connection_does_not_rest)
{
	dispatcher_start(&rests_soon);
	connection_keep(&l, "sf", 1);
	shutdown(l.fd, SHUT_WR);
	stays_owned();
}
END_TEST

START_TEST(a_silent_connection_of_tcp_does_not_rest)
{
	const struct dispatcher_wish wish = {
		.listener = "    mode: sl\n    service: tcp\n    rest_after: 100ms\n",
	};

	dispatcher_start(&wish);
	connection_keep(&l, "sf", 1);
	stays_owned();
}
END_TEST

/* --- rebalance --- */

/* An agent that has nothing yet becomes by far the heaviest. */
static int outweigh(void)
{
	int heavy = (l.agent + 1) % AGENTS;

	agents_set_weight(d.shared.agents, heavy, 1000);
	return heavy;
}

static void begin_at_its_affinity_agent(const struct dispatcher_wish *wish)
{
	dispatcher_start(wish);
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	adopted_say(&l, 2);
}

START_TEST(an_idle_connection_rests_when_it_belongs_elsewhere_and_wakes_there)
{
	begin_at_its_affinity_agent(NULL);
	int heavy = outweigh();
	move_of_cause(CSSL__CAUSE__CAUSE_REST);
	hand_off(1);
	wait_until(counter_get(&d.rw->home.counters.rebalanced) == 1);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 60, 5);
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	ck_assert_int_eq(l.agent, heavy);
	close(l.fd);
}
END_TEST

START_TEST(a_busy_connection_moves_where_it_belongs_or_stays)
{
	begin_at_its_affinity_agent(NULL);
	server_send(&l, TLS_APPLICATION_DATA, 100, 1, FRAME_RESPONSE_BYTES);
	int heavy = outweigh();
	Cssl__LinkMove *m = move_take();
	ck_assert_int_eq(m->cause, CSSL__CAUSE__CAUSE_MOVE);
	ck_assert_int_eq(agents_find(d.shared.agents, m->target), heavy);
	ck_assert_uint_eq(m->deadline_ms, 0);
	cssl__link_move__free_unpacked(m, NULL);
	refuse();
	move_of_cause(CSSL__CAUSE__CAUSE_MOVE); /* in a later pass */
	refuse();
	wait_until(connection_only()->now.state == CONNECTION_OWNED);
	close(l.fd);
}
END_TEST

START_TEST(connections_that_do_not_follow_an_address_are_not_rebalanced)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	outweigh();
	mover_look(&d.rw->home.mover);
	wait_until(d.rw->home.mover.rebalance_at_ms == 0);
	no_frame(FRAME_MOVE);
	close(l.fd);
}
END_TEST

START_TEST(rebalancing_can_be_off)
{
	const struct dispatcher_wish wish = { .moves = "  rebalances_per_second: off\n" };

	begin_at_its_affinity_agent(&wish);
	outweigh();
	mover_look(&d.rw->home.mover);
	ck_assert_uint_eq(d.rw->home.mover.rebalance_at_ms, 0);
	close(l.fd);
}
END_TEST

START_TEST(a_connection_where_it_belongs_stays)
{
	begin_at_its_affinity_agent(NULL);
	agents_set_weight(d.shared.agents, l.agent, 1000);
	mover_look(&d.rw->home.mover);
	wait_until(d.rw->home.mover.rebalance_at_ms == 0);
	no_frame(FRAME_MOVE);
	close(l.fd);
}
END_TEST

UNIT(mover)
{
	const TTest *const facts[] = {
		a_drain_lets_idle_connections_rest,
		a_drain_moves_a_connection_with_an_answer_under_way,
		a_draining_agent_lost_before_its_successor_has_adopted_has_moved_the_connection,
		a_connection_that_could_not_go_at_once_is_asked_to_go_at_its_checkpoint,
		a_connection_of_tcp_does_not_rest_but_move,
		connections_left_at_the_deadline_say_goodbye,
		connections_that_may_not_move_stay_until_the_deadline,
		a_handshake_ends_before_its_connection_leaves,
		one_that_may_not_rest_is_moved,
		a_handshake_that_outlasts_the_deadline_is_reset,
		a_connection_is_not_handed_off_to_a_draining_agent,
		an_agent_that_says_leaving_is_drained,
		after_undrain_nothing_leaves_and_nothing_ends,
		without_another_agent_idle_connections_rest_all_the_same,
		a_silent_connection_rests_and_wakes_with_its_next_record,
		a_record_that_comes_while_its_owner_freezes_wakes_it_at_once,
		a_client_that_closes_while_its_owner_freezes_gets_fin,
		an_owner_that_refuses_a_rest_is_asked_again_later,
		an_owner_lost_while_it_freezes_leaves_a_resting_connection,
		a_connection_in_mid_answer_does_not_rest,
		a_half_closed_connection_does_not_rest,
		a_silent_connection_of_tcp_does_not_rest,
		an_idle_connection_rests_when_it_belongs_elsewhere_and_wakes_there,
		a_busy_connection_moves_where_it_belongs_or_stays,
		connections_that_do_not_follow_an_address_are_not_rebalanced,
		rebalancing_can_be_off,
		a_connection_where_it_belongs_stays,
	};

	return dispatcher_suite_run("mover", facts, sizeof facts / sizeof facts[0]);
}
