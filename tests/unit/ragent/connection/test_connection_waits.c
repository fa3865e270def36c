/* test_connection_waits.c: facts of a client whose owner opens no record for a while: nothing of it is read until the
 * owner opens again, or does not own it any more. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/ragent/lost_owner.h"
#include "tests/unit/ragent/successor.h"
#include "tests/unit/unit.h"

static size_t came(void)
{
	return fake_agent_data_len(d.agents[l.agent], l.stream);
}

static void owner_lets_it_wait(void)
{
	consumed(2, 0, FRAME_CHECKPOINT | FRAME_CLIENT_WAITS);
	wait_until(connection_client_waits(connection_only()));
	ck_assert_int_eq(connection_only()->now.reading, CLIENT_PAUSED);
}

/* It has an owner, which lets it wait. */
static void begin_waiting(void)
{
	begin_owned();
	owner_lets_it_wait();
}

/* Its next record is in the kernel. */
static void say_more(void)
{
	client_send_record(l.fd, TLS_APPLICATION_DATA, 60, 5);
	turns(8);
	ck_assert_uint_eq(came(), 0);
	ck_assert_uint_eq(kept_len(&connection_only()->busy->kept), 0);
}

START_TEST(nothing_is_read_until_its_owner_goes_on)
{
	begin_waiting();
	say_more();
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, 0); /* answers do not wait */
	consumed(2, 0, FRAME_CLIENT_WAITS);
	turns(8);
	ck_assert_uint_eq(came(), 0);
	consumed(2, 0, 0);
	wait_until(came() == RECORD_OF(60));
	close(l.fd);
}
END_TEST

START_TEST(its_fin_is_seen_when_it_goes_on)
{
	begin_waiting();
	say_more();
	shutdown(l.fd, SHUT_WR);
	turns(8);
	ck_assert_uint_eq(fake_agent_count(d.agents[l.agent], FRAME_FIN), 0);
	consumed(2, 0, 0);
	free(frame_at(l.agent, FRAME_FIN));
	ck_assert_uint_eq(came(), RECORD_OF(60));
	close(l.fd);
}
END_TEST

START_TEST(its_reset_is_seen_when_it_goes_on)
{
	begin_waiting();
	reset(OVER_TCP4, l.fd);
	turns(8);
	consumed(2, 0, 0);
	struct fake_frame *f = frame_at(l.agent, FRAME_CLOSE);
	ck_assert_uint_eq(f->payload[0], END_CLIENT_RESET);
	free(f);
	wait_until(!d.rw->home.connections);
}
END_TEST

/* Nothing is read of it any more. */
START_TEST(behind_its_fin_it_does_not_wait)
{
	begin_owned();
	shutdown(l.fd, SHUT_WR);
	free(frame_at(l.agent, FRAME_FIN));
	consumed(2, 0, FRAME_CLIENT_WAITS);
	turns(8);
	ck_assert(!connection_client_waits(connection_only()));
	consumed(2, 0, 0);
	turns(8);
	ck_assert_uint_eq(fake_agent_count(d.agents[l.agent], FRAME_FIN), 0);
	close(l.fd);
}
END_TEST

START_TEST(it_ends_in_order_while_it_waits)
{
	begin_waiting();
	say_more();
	fake_agent_end(d.agents[l.agent], l.stream, END_DONE, 0);
	client_expect_fin(l.fd);
	close(l.fd);
	wait_until(!d.rw->home.connections);
}
END_TEST

/* RAgent keeps nothing behind bytes that are no record, but it would read all of it. */
START_TEST(behind_a_bad_record_it_waits_too)
{
	static const uint8_t no_record[] = { 'G', 'E', 'T', ' ', '/' };

	begin_owned();
	ck_assert_int_eq(send(l.fd, no_record, sizeof no_record, 0), sizeof no_record);
	wait_until(connection_only()->now.tail == TAIL_VIOLATION);
	owner_lets_it_wait();
	close(l.fd);
}
END_TEST

/* It cannot finish the record, so it is not ended for it. */
START_TEST(half_a_record_does_not_age_while_it_waits)
{
	static const uint8_t half[] = { TLS_APPLICATION_DATA, 3, 3, 0, 60, 'h', 'a', 'l', 'f' };

	begin_owned();
	ck_assert_int_eq(send(l.fd, half, sizeof half, 0), sizeof half);
	wait_until(d.rw->home.partials.len == sizeof half);
	owner_lets_it_wait();
	ck_assert_uint_eq(d.rw->home.partials.len, 0);
	consumed(2, 0, 0);
	wait_until(d.rw->home.partials.len == sizeof half);
	close(l.fd);
}
END_TEST

/* Its next request may be in the kernel. */
START_TEST(a_stop_waits_until_it_is_heard)
{
	begin_waiting();
	say_more();
	connection_home_drain(&d.rw->home);
	consumed(2, 0, FRAME_CHECKPOINT);
	wait_until(came() == RECORD_OF(60));
	ck_assert_uint_eq(fake_agent_count(d.agents[l.agent], FRAME_FINISH), 0);
	consumed(3, 0, FRAME_CHECKPOINT);
	free(frame_at(l.agent, FRAME_FINISH));
	close(l.fd);
}
END_TEST

/* --- another owner --- */

START_TEST(the_successor_of_a_lost_owner_gets_what_waited)
{
	begin_waiting();
	say_more();
	fake_agent_die(d.agents[l.agent]);
	forget(ssl_id_take(&l, -1));
	adopted_say(&l, 3);
	wait_until(came() == RECORD_OF(60));
	close(l.fd);
}
END_TEST

START_TEST(the_next_owner_of_a_move_gets_what_waited)
{
	begin_waiting();
	say_more();
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 2");
	forget(ssl_id_take(&l, -1));
	adopted_say(&l, 3);
	wait_until(came() == RECORD_OF(60));
	close(l.fd);
}
END_TEST

static void on_rested(struct move_order *o, const struct move_result *result)
{
	ck_assert_int_eq(result->outcome, MOVE_DONE);
}

START_TEST(what_waited_wakes_it)
{
	struct move_order order = { .done = on_rested };

	begin_waiting();
	connection_order(connection_only(), &(struct move_wish){ .target = NO_AGENT }, &order);
	free(frame_at(l.agent, FRAME_MOVE));
	say_more();
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 2");
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);
	ck_assert_int_eq(id->cause, CSSL__CAUSE__CAUSE_WAKE);
	forget(id);
	adopted_say(&l, 3);
	wait_until(came() == RECORD_OF(60));
	close(l.fd);
}
END_TEST

/* Its owner says so again only with its next report. */
START_TEST(a_broken_link_does_not_let_it_wait)
{
	begin_owned_with(&(struct dispatcher_wish){
		.streams = LINK_STREAMS_OUTLIVE, .health = "  ping: 20ms\n  suspect: 50s\n  lost: 100s\n" });
	owner_lets_it_wait();
	say_more();
	fake_agent_cut(d.agents[l.agent]);
	wait_until(connection_only()->now.state == CONNECTION_REATTACHING);
	wait_until(kept_len(&connection_only()->busy->kept) == RECORD_OF(60));
	close(l.fd);
}
END_TEST

START_TEST(another_process_reads_it)
{
	begin_waiting();
	say_more();
	successor_takes_over();
	wait_until(came() == RECORD_OF(60));
	close(l.fd);
}
END_TEST

/* --- time --- */

START_TEST(it_is_not_idle_while_it_waits)
{
	begin_owned_with(&(struct dispatcher_wish){ .limits = "  idle_timeout: 1s\n" });
	owner_lets_it_wait();
	const uint64_t since_ms = now_ms();
	wait_until(now_ms() > since_ms + 1300);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_OWNED);
	consumed(2, 0, 0);
	wait_until(!connection_client_waits(connection_only()));
	const uint64_t again_ms = now_ms();
	free(frame_at(l.agent, FRAME_FINISH));
	ck_assert_uint_ge(now_ms(), again_ms + 900);
	close(l.fd);
}
END_TEST

START_TEST(an_owner_that_never_goes_on_leaves_it_no_longer_than_another)
{
	begin_owned_with(&(struct dispatcher_wish){ .limits = "  idle_timeout: 1s\n" });
	owner_lets_it_wait();
	const uint64_t since_ms = now_ms();
	free(frame_at(l.agent, FRAME_FINISH));
	ck_assert_uint_ge(now_ms(), since_ms + 2900);
	close(l.fd);
}
END_TEST

START_TEST(an_owner_that_says_so_again_and_again_gets_no_more_time_for_it)
{
	begin_owned_with(&(struct dispatcher_wish){ .limits = "  idle_timeout: 1s\n" });
	owner_lets_it_wait();
	const uint64_t since_ms = now_ms();
	for (uint64_t next_ms = 0; fake_agent_count(d.agents[l.agent], FRAME_FINISH) == 0; next_ms += 200) {
		ck_assert_uint_lt(now_ms(), since_ms + 5000);
		consumed(2, 0, next_ms % 400 ? 0 : FRAME_CLIENT_WAITS);
		consumed(2, 0, FRAME_CLIENT_WAITS);
		wait_until(now_ms() >= since_ms + next_ms || fake_agent_count(d.agents[l.agent], FRAME_FINISH) > 0);
	}
	close(l.fd);
}
END_TEST

START_TEST(it_keeps_its_busy_part_while_it_waits)
{
	begin_owned_with(&(struct dispatcher_wish){ .limits = "  doze_after: 50ms\n" });
	owner_lets_it_wait();
	const uint64_t since_ms = now_ms();
	wait_until(now_ms() > since_ms + 200);
	ck_assert_ptr_nonnull(connection_only()->busy);
	consumed(2, 0, 0);
	wait_until(!connection_only()->busy);
	close(l.fd);
}
END_TEST

UNIT(connection_waits)
{
	const TTest *const facts[] = {
		nothing_is_read_until_its_owner_goes_on,
		its_fin_is_seen_when_it_goes_on,
		its_reset_is_seen_when_it_goes_on,
		behind_its_fin_it_does_not_wait,
		behind_a_bad_record_it_waits_too,
		half_a_record_does_not_age_while_it_waits,
		a_stop_waits_until_it_is_heard,
		it_ends_in_order_while_it_waits,
		the_successor_of_a_lost_owner_gets_what_waited,
		the_next_owner_of_a_move_gets_what_waited,
		what_waited_wakes_it,
		a_broken_link_does_not_let_it_wait,
		another_process_reads_it,
		it_is_not_idle_while_it_waits,
		an_owner_that_never_goes_on_leaves_it_no_longer_than_another,
		an_owner_that_says_so_again_and_again_gets_no_more_time_for_it,
		it_keeps_its_busy_part_while_it_waits,
	};

	return dispatcher_suite_run("connection_waits", facts, sizeof facts / sizeof facts[0]);
}
