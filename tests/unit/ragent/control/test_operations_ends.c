/* test_operations_ends.c: facts of operators who end connections, and keep clients out. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ragent/control/operations.h"
#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

static struct {
	unsigned answers;
	uint64_t number;
	enum control_failure failure;
	char unconfirmed[64];
} got;

static struct operations o;
static struct control_request *const request = (struct control_request *)&got; /* never looked at */
static struct live_connection l;

void control_answer_number(struct control_request *r, const char *name, uint64_t n)
{
	ck_assert_str_eq(name, "ended");
	got.answers++;
	got.number = n;
}

void control_answer_block(struct control_request *r, uint64_t ended, const char *const *unconfirmed, size_t count)
{
	got.answers++;
	got.number = ended;
	got.unconfirmed[0] = '\0';
	for (size_t i = 0; i < count; i++)
		strncat(got.unconfirmed, unconfirmed[i], sizeof got.unconfirmed - strlen(got.unconfirmed) - 1);
}

void control_answer_blocks(struct control_request *r, struct blocked *blocked, uint64_t now_ms)
{
	struct blocked_net at[BLOCKED_MAX];

	got.answers++;
	got.number = blocked_list(blocked, now_ms, at);
}

void control_fail(struct control_request *r, enum control_failure kind, const char *reason, ...)
{
	got.answers++;
	got.failure = kind;
}

static void answered(void)
{
	wait_until(got.answers > 0);
	ck_assert_uint_eq(got.answers, 1);
	got.answers = 0;
}

/* The number that is answered. */
static uint64_t number(void)
{
	answered();
	return got.number;
}

/* All agents get it; the first one answers with @error. Returns the number that is answered then. */
static uint64_t blocked(const struct address_net *net, uint32_t for_s, const char *error)
{
	operations_block(&o, net, for_s, request);
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
	struct control_query q = { .id = &(struct connection_id){ { 1 } } };

	begin_owned();
	operations_end(&o, &q, request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_NOT_FOUND);
	q.id = connection_identity(connection_only());
	operations_end(&o, &q, request);
	ck_assert_uint_eq(number(), 1);
	struct fake_frame *f = frame_at(l.agent, FRAME_FINISH);
	ck_assert_uint_eq(f->payload[0], END_OPERATOR);
	free(f);
	operations_end(&o, &q, request); /* it ends already */
	answered();
	ck_assert_int_eq(got.failure, CONTROL_NOT_FOUND);
	q = (struct control_query){ .listener = "sl" };
	operations_end(&o, &q, request);
	ck_assert_uint_eq(number(), 0);
	got.failure = 0;
	q = (struct control_query){ .listener = "typo" };
	operations_end(&o, &q, request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_NOT_FOUND);
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
	ck_assert_str_eq(got.unconfirmed, ""); /* it has no listeners of its own */
	client_expect_reset(l.fd);
	int fd = client_connect("sf");
	client_expect_reset(fd);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.ended[END_OPERATOR]), 2);
	got.number = 0;
	operations_blocks(&o, request);
	ck_assert_uint_eq(number(), 2);
	d.conf->agents[0].direct_count = 1;
	ck_assert_uint_eq(blocked(&here, 0, "no"), 0);
	ck_assert_str_eq(got.unconfirmed, agents_name(d.shared.agents, 0));
	d.conf->agents[0].direct_count = 0;
	operations_block(&o, &here, 0, request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_NOT_FOUND);
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
	operations_block(&o, &here, 60, request);
	answered();
	ck_assert_int_eq(got.failure, CONTROL_UNAVAILABLE);
	operations_blocks(&o, request);
	ck_assert_uint_eq(number(), 0);
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
