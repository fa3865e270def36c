/* test_connection_reattach.c: facts of connections whose link to their owner breaks, and that wait for the next one. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ragent/connection/connection_stream.h"
#include "ragent/link/link_internal.h"
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

/* Its owner hears the order. */
static int begin_move(void)
{
	const int target = (l.agent + 1) % AGENTS;

	memset(&moved, 0, sizeof moved);
	moved.order.done = on_moved;
	connection_order(connection_only(),
		&(struct move_wish){ .target = target, .cause = CSSL__CAUSE__CAUSE_MOVE, .deadline_ms = 5000 },
		&moved.order);
	return target;
}

static Cssl__LinkMove *move_taken(void)
{
	struct fake_frame *f = frame_at(l.agent, FRAME_MOVE);
	Cssl__LinkMove *m = cssl__link_move__unpack(NULL, f->len, f->payload);

	ck_assert_ptr_nonnull(m);
	ck_assert_uint_eq(f->stream, l.stream);
	free(f);
	return m;
}

static uint32_t order_taken(uint32_t *deadline_ms)
{
	Cssl__LinkMove *m = move_taken();
	const uint32_t order = m->order;

	*deadline_ms = m->deadline_ms;
	cssl__link_move__free_unpacked(m, NULL);
	return order;
}

static void refuse(Cssl__LinkRefused__Reason reason, uint32_t order)
{
	Cssl__LinkRefused r = CSSL__LINK_REFUSED__INIT;

	r.reason = reason;
	r.detail = (char *)"the test says so";
	r.order = order;
	fake_agent_say(d.agents[l.agent], l.stream, FRAME_REFUSED, &r.base);
}

static enum connection_state state(void)
{
	return connection_only()->now.state;
}

/* No fact here comes from a time that is over. */
static void begin(void)
{
	dispatcher_start(&(struct dispatcher_wish){
		.streams = LINK_STREAMS_OUTLIVE, .health = "  ping: 20ms\n  suspect: 50s\n  lost: 100s\n" });
	connection_keep(&l, "sf", 1);
}

/* @l then names its stream on the next link, which the agent was asked for. */
static void break_link(void)
{
	const unsigned links = fake_agent_links(d.agents[l.agent]);

	fake_agent_cut(d.agents[l.agent]);
	wait_until(fake_agent_links(d.agents[l.agent]) == links + 1);
	struct fake_frame *f = frame_at(l.agent, FRAME_REATTACH);
	l.stream = f->stream;
	free(f);
	ck_assert_int_eq(state(), CONNECTION_REATTACHING);
}

/* It has sent @frames frames until now, and holds none of them. */
static void reattach(void)
{
	const struct connection *c = connection_only();
	const struct frame_reattached told = { .frame = c->now.account.frames + 1,
		.bytes = c->now.queued - c->now.account.base,
		.client_records = l.client_records };
	uint8_t payload[FRAME_REATTACHED_LEN];

	frame_reattached_write(payload, &told);
	fake_agent_send(d.agents[l.agent], l.stream, FRAME_REATTACHED, 0, payload, sizeof payload);
	wait_until(state() != CONNECTION_REATTACHING);
}

/* An order was under way. */
static int lose_an_order(void)
{
	uint32_t deadline_ms;

	begin();
	const int target = begin_move();
	ck_assert_uint_eq(order_taken(&deadline_ms), 1);
	ck_assert_uint_eq(deadline_ms, 5000);
	break_link();
	return target;
}

START_TEST(a_broken_link_costs_a_connection_nothing)
{
	begin();
	break_link();
	reattach();
	ck_assert_int_eq(state(), CONNECTION_OWNED);
	server_send(&l, TLS_APPLICATION_DATA, 80, 77, 0);
	ck_assert_uint_eq(connection_only()->now.epoch, 1);
	close(l.fd);
}
END_TEST

/* Without a table, too, RAgent says which frames came: the others have to come again after a break. */
START_TEST(frames_on_their_way_are_not_confirmed)
{
	struct frame_accepted a;

	begin();
	server_send(&l, TLS_APPLICATION_DATA, 80, 77, 0);
	ck_assert_ptr_null(d.rw->home.table);
	free(fake_agent_take(d.agents[l.agent], FRAME_ACCEPTED));
	while (fake_agent_count(d.agents[l.agent], FRAME_ACCEPTED))
		free(fake_agent_take(d.agents[l.agent], FRAME_ACCEPTED));
	connection_acknowledge(connection_only(), ACCEPTED_NOW);
	struct fake_frame *f = frame_at(l.agent, FRAME_ACCEPTED);
	ck_assert_int_eq(frame_accepted_read(&(struct frame){ .len = f->len, .payload = f->payload }, &a), 0);
	ck_assert_uint_eq(a.received, connection_only()->now.account.frames);
	free(f);
	close(l.fd);
}
END_TEST

/* Its socket failed when it should become busy. */
START_TEST(a_connection_without_a_socket_does_not_wait)
{
	dispatcher_start(
		&(struct dispatcher_wish){ .streams = LINK_STREAMS_OUTLIVE, .limits = "  doze_after: 50ms\n" });
	connection_keep(&l, "sl", 1);
	wait_until(!connection_only()->busy);
	const int null = open("/dev/null", O_RDONLY);
	ck_assert_int_ge(dup2(null, connection_only()->slot.fd), 0);
	fake_agent_cut(d.agents[l.agent]);
	wait_until(!d.rw->home.connections);
	close(null);
	close(l.fd);
}
END_TEST

START_TEST(an_order_that_a_broken_link_cuts_off_is_reported_once)
{
	const int16_t owner = (lose_an_order(), connection_only()->now.owner);

	ck_assert_uint_eq(moved.answers, 1);
	ck_assert_int_eq(moved.result.outcome, MOVE_CONFLICT);
	ck_assert_ptr_nonnull(strstr(moved.reason, "broke"));
	reattach();
	ck_assert_int_eq(state(), CONNECTION_OWNED);
	ck_assert_int_eq(connection_only()->now.owner, owner);
	ck_assert_uint_eq(moved.answers, 1);
	close(l.fd);
}
END_TEST

/* The agent never got it. */
START_TEST(an_order_that_was_lost_is_said_again_and_may_be_refused)
{
	uint32_t deadline_ms;

	lose_an_order();
	reattach();
	ck_assert(!connection_may_move(connection_only()));
	const uint32_t order = order_taken(&deadline_ms);
	ck_assert_uint_eq(deadline_ms, 0);
	refuse(CSSL__LINK_REFUSED__REASON__CANNOT_MOVE, order);
	wait_until(connection_may_move(connection_only()));
	begin_move();
	ck_assert_uint_eq(order_taken(&deadline_ms), order + 1);
	close(l.fd);
}
END_TEST

START_TEST(an_order_that_was_lost_is_said_again_and_may_be_carried_out)
{
	const int target = lose_an_order();

	reattach();
	Cssl__LinkMove *m = move_taken();
	ck_assert_str_eq(m->target, agents_name(d.shared.agents, target));
	ck_assert_uint_eq(m->next_epoch, 2);
	ck_assert_int_eq(m->cause, CSSL__CAUSE__CAUSE_MOVE);
	cssl__link_move__free_unpacked(m, NULL);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_PASSED, "copy 2");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, target), NULL);
	adopted_say(&l, 2);
	ck_assert(connection_may_move(connection_only()));
	ck_assert_uint_eq(moved.answers, 1);
	close(l.fd);
}
END_TEST

/* It was on its way when the link broke. */
START_TEST(the_answer_to_the_first_order_is_none_to_the_second)
{
	uint32_t deadline_ms;

	lose_an_order();
	reattach();
	const uint32_t order = order_taken(&deadline_ms);
	refuse(CSSL__LINK_REFUSED__REASON__CANNOT_MOVE, order - 1);
	turns(8);
	ck_assert(!connection_may_move(connection_only()));
	refuse(CSSL__LINK_REFUSED__REASON__CANNOT_MOVE, order);
	wait_until(connection_may_move(connection_only()));
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.link_violations), 0);
	close(l.fd);
}
END_TEST

/* And it is no move. Without a trace of the order it becomes compact. */
START_TEST(an_order_to_rest_that_was_lost_is_said_again_and_is_one_to_rest)
{
	uint32_t deadline_ms;

	begin();
	memset(&moved, 0, sizeof moved);
	moved.order.done = on_moved;
	connection_order(connection_only(), &(struct move_wish){ .target = NO_AGENT }, &moved.order);
	order_taken(&deadline_ms);
	break_link();
	ck_assert_int_eq(moved.result.outcome, MOVE_CONFLICT);
	reattach();
	Cssl__LinkMove *m = move_taken();
	ck_assert_int_eq(m->cause, CSSL__CAUSE__CAUSE_REST);
	cssl__link_move__free_unpacked(m, NULL);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 2");
	wait_until(state() == CONNECTION_RESTING);
	wait_until(connection_only()->busy == NULL);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.rested), 1);
	ck_assert_uint_eq(moved.answers, 1);
	no_frame(FRAME_SSL_ID);
	close(l.fd);
}
END_TEST

START_TEST(an_owner_that_lost_its_stream_after_an_order_is_lost_at_once)
{
	lose_an_order();
	refuse(CSSL__LINK_REFUSED__REASON__NO_STREAM, 0);
	wait_until(state() != CONNECTION_REATTACHING);
	ck_assert(state() == CONNECTION_RESTING || state() == CONNECTION_ADOPTING);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.reattach_failed), 1);
	close(l.fd);
}
END_TEST

/* So it may become compact. */
START_TEST(a_connection_at_rest_waits_for_no_answer)
{
	lose_an_order();
	refuse(CSSL__LINK_REFUSED__REASON__NO_STREAM, 0);
	wait_until(state() == CONNECTION_RESTING);
	wait_until(connection_only()->busy == NULL);
	close(l.fd);
}
END_TEST

/* It is handed off; the link breaks before its adopter answers, and the adopter does not know of it. The epoch in
 * which it was asked. */
static uint32_t lose_adopter(void)
{
	dispatcher_start(&(struct dispatcher_wish){
		.streams = LINK_STREAMS_OUTLIVE, .health = "  ping: 20ms\n  suspect: 50s\n  lost: 100s\n" });
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);
	const uint32_t epoch = id->epoch;
	cssl__link_ssl_id__free_unpacked(id, NULL);
	break_link();
	refuse(CSSL__LINK_REFUSED__REASON__NO_STREAM, 0);
	return epoch;
}

static void expect_asked(Cssl__Cause cause, uint32_t epoch)
{
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);

	ck_assert_int_eq(id->cause, cause);
	ck_assert_uint_eq(id->epoch, epoch);
	cssl__link_ssl_id__free_unpacked(id, NULL);
}

/* The first question was lost with the link. It is no loss of an owner. */
START_TEST(an_adopter_that_does_not_know_of_it_is_asked_again)
{
	const uint32_t epoch = lose_adopter();
	const int adopter = l.agent;

	expect_asked(CSSL__CAUSE__CAUSE_HAND_OFF, epoch);
	ck_assert_int_eq(l.agent, adopter);
	adopted_say(&l, epoch);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.adopts_repeated), 1);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.reattach_failed), 0);
	close(l.fd);
}
END_TEST

/* It was the owner, and has forgotten the stream, but not the epoch. */
START_TEST(an_adopter_that_knows_of_the_epoch_is_a_lost_owner)
{
	const uint32_t epoch = lose_adopter();

	expect_asked(CSSL__CAUSE__CAUSE_HAND_OFF, epoch);
	refuse(CSSL__LINK_REFUSED__REASON__EPOCH_OLD, 0);
	wait_until(state() == CONNECTION_RESTING);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.reattach_failed), 1);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 50, 3);
	expect_asked(CSSL__CAUSE__CAUSE_TAKEOVER, epoch + 1);
	close(l.fd);
}
END_TEST

/* The agent's time for the order and RAgent's time for the drain end together. */
START_TEST(a_refusal_that_crosses_finish_breaks_no_link)
{
	uint32_t deadline_ms;

	lose_an_order();
	reattach();
	const uint32_t order = order_taken(&deadline_ms);
	connection_send_finish(connection_only(), END_DRAIN_TIMEOUT);
	ck_assert_int_eq(state(), CONNECTION_FINISHING);
	refuse(CSSL__LINK_REFUSED__REASON__CANNOT_MOVE, order);
	turns(8);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.link_violations), 0);
	ck_assert_int_eq(goodbye_say(&l), END_DRAIN_TIMEOUT);
	close(l.fd);
}
END_TEST

START_TEST(a_refusal_of_nothing_breaks_the_link_also_while_it_finishes)
{
	begin();
	connection_send_finish(connection_only(), END_DRAIN_TIMEOUT);
	refuse(CSSL__LINK_REFUSED__REASON__CANNOT_MOVE, 0);
	wait_until(counter_get(&d.rw->home.counters.link_violations) == 1);
	close(l.fd);
}
END_TEST

static void expect_answer_to_end(void)
{
	fake_agent_end(d.agents[l.agent], l.stream, END_DONE, 0);
	struct fake_frame *f = frame_at(l.agent, FRAME_CLOSE);
	ck_assert_uint_eq(f->stream, l.stream);
	free(f);
	close(l.fd);
}

START_TEST(an_end_is_answered)
{
	begin();
	expect_answer_to_end();
}
END_TEST

/* The process before said that it does. */
START_TEST(an_end_is_answered_without_a_keeper_too)
{
	begin();
	for (int i = 0; i < AGENTS; i++)
		d.rw->home.links.of[i].at[0]->p.secret = NULL;
	expect_answer_to_end();
}
END_TEST

START_TEST(an_end_of_a_stream_that_nobody_knows_is_answered)
{
	begin();
	const int fd = l.fd;
	l.stream += 1000;
	expect_answer_to_end();
	ck_assert_int_eq(fd, l.fd);
}
END_TEST

START_TEST(an_end_is_answered_also_without_a_next_process)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sf", 1);
	fake_agent_end(d.agents[l.agent], l.stream, END_DONE, 0);
	wait_until(d.rw->home.connections == NULL || state() == CONNECTION_LINGERING);
	free(frame_at(l.agent, FRAME_CLOSE));
	no_frame(FRAME_CLOSE);
	close(l.fd);
}
END_TEST

UNIT(connection_reattach)
{
	const TTest *const facts[] = {
		a_broken_link_costs_a_connection_nothing,
		frames_on_their_way_are_not_confirmed,
		a_connection_without_a_socket_does_not_wait,
		an_order_that_a_broken_link_cuts_off_is_reported_once,
		an_order_that_was_lost_is_said_again_and_may_be_refused,
		an_order_that_was_lost_is_said_again_and_may_be_carried_out,
		the_answer_to_the_first_order_is_none_to_the_second,
		an_order_to_rest_that_was_lost_is_said_again_and_is_one_to_rest,
		an_owner_that_lost_its_stream_after_an_order_is_lost_at_once,
		a_connection_at_rest_waits_for_no_answer,
		an_adopter_that_does_not_know_of_it_is_asked_again,
		an_adopter_that_knows_of_the_epoch_is_a_lost_owner,
		a_refusal_that_crosses_finish_breaks_no_link,
		a_refusal_of_nothing_breaks_the_link_also_while_it_finishes,
		an_end_is_answered,
		an_end_is_answered_without_a_keeper_too,
		an_end_of_a_stream_that_nobody_knows_is_answered,
		an_end_is_answered_also_without_a_next_process,
	};

	return dispatcher_suite_run("connection_reattach", facts, sizeof facts / sizeof facts[0]);
}
