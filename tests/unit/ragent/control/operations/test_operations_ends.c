/* test_operations_ends.c: facts of operators who end connections, and keep clients out. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/ragent/control/operations/operations_doubles.h"
#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

static struct operations o;
static struct live_connection l;

static void end(const struct control_query *q)
{
	operations_end(&o, &(const struct control_input){ .query = *q }, request);
}

static void block(const struct address_net *net, uint32_t for_s)
{
	operations_block(&o, &(const struct control_input){ .net = *net, .for_s = for_s }, request);
}

static size_t blocks(void)
{
	operations_blocks(&o, &(const struct control_input){ 0 }, request);
	answered_with(200);
	return told_size("blocks");
}

/* The number that is answered. */
static uint64_t number(void)
{
	answered_with(200);
	return told_integer("ended");
}

/* All agents get it; the first one answers with @error. Returns the number that is answered then. */
static uint64_t blocked(const struct address_net *net, uint32_t for_s, const char *error)
{
	block(net, for_s);
	for (int agent = 0; agent < AGENTS; agent++) {
		struct fake_frame *f = frame_at(agent, FRAME_REQUEST);
		Cssl__LinkRequest *m = cssl__link_request__unpack(NULL, f->len, f->payload);
		Cssl__LinkResponse answer = CSSL__LINK_RESPONSE__INIT;
		ck_assert_int_eq(m->what_case, CSSL__LINK_REQUEST__WHAT_BLOCKED);
		answer.token = m->token;
		answer.error = (char *)(agent == 0 ? error : "");
		ck_assert_int_eq(got.answers, 0);
		fake_agent_say(d.agents[agent], 0, FRAME_RESPONSE, &answer.base);
		cssl__link_request__free_unpacked(m, NULL);
		free(f);
	}
	return number();
}

static void begin_owned(void)
{
	dispatcher_start(NULL);
	o = (struct operations){ .main = w, .shared = &d.shared, .workers = &d.rw, .worker_count = 1 };
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	adopted_say(&l, 2);
}

START_TEST(a_connection_is_ended_by_its_owner)
{
	struct control_query q = { .ids = QUERY_ONE, .id = { { 1 } } };

	begin_owned();
	end(&q);
	answered_with(404);
	q.id = *connection_identity(connection_only());
	end(&q);
	ck_assert_uint_eq(number(), 1);
	struct fake_frame *f = frame_at(l.agent, FRAME_FINISH);
	ck_assert_uint_eq(f->payload[0], END_OPERATOR);
	free(f);
	end(&q); /* it ends already */
	answered_with(404);
	q = (struct control_query){ .listener = "sl" };
	end(&q);
	ck_assert_uint_eq(number(), 0);
	q = (struct control_query){ .listener = "typo" };
	end(&q);
	answered_with(404);
	close(l.fd);
}
END_TEST

START_TEST(who_is_blocked_is_reset_and_gets_no_agent)
{
	static struct blocked list;
	const struct address_net others = { .bytes = { 10 }, .len = 4, .prefix = 8 },
				 here = { .bytes = { 127, 0, 0, 1 }, .len = 4, .prefix = 32 };

	begin_owned();
	d.shared.blocked = &list;
	ck_assert_uint_eq(blocked(&others, UINT32_MAX, ""), 0);
	ck_assert_uint_eq(blocked(&here, 60, "no"), 1);
	ck_assert_uint_eq(told_size("unconfirmed"), 0); /* it has no listeners of its own */
	client_expect_reset(l.fd);
	int fd = client_connect("sf");
	client_expect_reset(fd);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.ended[END_OPERATOR]), 2);
	ck_assert_uint_eq(blocks(), 2);
	ck_assert_str_eq(told_text("blocks.0.network"), "10.0.0.0/8");
	ck_assert(json_is_null(told("blocks.0.ends_in_s")));
	ck_assert_str_eq(told_text("blocks.1.network"), "127.0.0.1/32");
	ck_assert_uint_gt(told_integer("blocks.1.ends_in_s"), 30);
	ck_assert_uint_le(told_integer("blocks.1.ends_in_s"), 60);
	d.conf->agents[0].direct_count = 1;
	ck_assert_uint_eq(blocked(&here, 0, "no"), 0);
	ck_assert_uint_eq(told_size("unconfirmed"), 1);
	ck_assert_str_eq(told_text("unconfirmed.0"), agents_name(d.shared.agents, 0));
	d.conf->agents[0].direct_count = 0;
	block(&here, 0);
	answered_with(404);
	connection_keep(&l, "sf", 1);
	close(l.fd);
	close(fd);
}
END_TEST

START_TEST(no_block_is_lost_while_another_process_takes_over)
{
	static struct blocked list;
	const struct address_net here = { .bytes = { 127, 0, 0, 1 }, .len = 4, .prefix = 32 };

	begin_owned();
	d.shared.blocked = &list;
	d.shared.is_given = 1;
	block(&here, 60);
	answered_with(503);
	ck_assert_uint_eq(blocks(), 0);
	close(l.fd);
}
END_TEST

UNIT(operations_ends)
{
	const TTest *const facts[] = {
		a_connection_is_ended_by_its_owner,
		who_is_blocked_is_reset_and_gets_no_agent,
		no_block_is_lost_while_another_process_takes_over,
	};

	return dispatcher_suite_run("operations_ends", facts, FACTS_LEN(facts));
}
