/* test_cluster_moves.c: the agents' part in moves: live parts, epochs, backend sockets passed on. */
#include <check.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/report/log.h"
#include "proto/error.h"
#include "tests/unit/sslagent/cluster/cluster_fixture.h"
#include "tests/unit/unit.h"

static struct test_cluster t;

static void stop_all(void)
{
	cluster_stop_all(&t);
}

static void three_over_unix(void)
{
	cluster_start_all(&t, 3, LINKS_UNIX);
}

static void two_over_tcp(void)
{
	cluster_start_all(&t, 2, LINKS_TCP);
}

static struct connection_id random_connection(void)
{
	struct connection_id id;

	randombytes_buf(id.bytes, sizeof(id.bytes));
	return id;
}

struct live_call {
	struct made_session made;
	struct connection_id id;
	uint16_t epoch;
	uint32_t generation;
	uint64_t sequence;
	enum seen_doubt doubt;
	enum seen_stop stop;
};

static int claim(struct cluster *c, const struct live_call *call)
{
	const struct seen_claim claim = {
		.at = { call->epoch, call->generation, call->sequence }, .start = CLAIM_IN_DOUBT, .made_ms = INT64_MAX
	};

	return cluster_claim(c, &call->id, &claim);
}

static int is_known(void *ctx)
{
	const struct live_call *call = ctx;

	return cluster_knows(t.agents[1].cluster, &call->id, SEEN_MADE_UNKNOWN);
}

static void share_live(struct test_agent *a, void *arg)
{
	struct live_call *call = arg;

	ck_assert_int_eq(cluster_share_live(a->cluster, a->worker, &call->made.obj), 0);
}

static void tell_adopted(struct test_agent *a, void *arg)
{
	struct live_call *call = arg;

	const struct seen_mark at = { call->epoch, call->generation, call->sequence };

	cluster_tell_adopted(a->cluster, a->worker, &call->id, &at, call->generation, call->doubt);
}

static void tell_gone(struct test_agent *a, void *arg)
{
	const struct live_call *call = arg;
	const struct seen_mark at = { call->epoch, call->generation, call->sequence };

	cluster_tell_stopped(a->cluster, a->worker, &call->id, &at, call->stop);
}

static int live_is_there(void *ctx)
{
	struct live_call *call = ctx;
	struct sess_obj obj;

	if (cluster_find_live(t.agents[1].cluster, &call->id, 2, 0, 0, &obj) != 0)
		return 0;
	sess_obj_destroy(&obj);
	return 1;
}

static int live_is_away(void *ctx)
{
	return !live_is_there(ctx);
}

static struct live_call *shared_live(void)
{
	struct live_call *call = calloc(1, sizeof(*call));

	call->id = random_connection();
	live_make(&call->made, &(struct live_wish){ .connection = call->id, .epoch = 1 });
	cluster_call(&t.agents[0], ON_WORKER, share_live, call);
	wait_until(live_is_there, call, "a live part");
	return call;
}

START_TEST(a_live_part_is_found_under_its_generations_and_a_higher_epoch)
{
	struct live_call *call = shared_live();
	struct sess_obj obj;

	ck_assert_int_eq(cluster_find_live(t.agents[1].cluster, &call->id, 1, 0, 0, &obj), CSSL_E_NOT_FOUND);
	ck_assert_int_eq(cluster_find_live(t.agents[1].cluster, &call->id, 2, 1, 0, &obj), CSSL_E_NOT_FOUND);
	ck_assert_int_eq(cluster_find_live(t.agents[1].cluster, &call->id, 2, 0, 1, &obj), CSSL_E_NOT_FOUND);
	ck_assert_int_eq(cluster_find_live(t.agents[1].cluster, &call->id, 2, 0, 0, &obj), 0);
	ck_assert_mem_eq(obj.live->client_write.secret, call->made.live.client_write.secret, 32);
	sess_obj_destroy(&obj);
	ck_assert_int_eq(cluster_find_live(t.agents[0].cluster, &call->id, 2, 0, 0, &obj), CSSL_E_NOT_FOUND);
	free(call);
}
END_TEST

START_TEST(a_live_part_goes_when_its_connection_ends)
{
	struct live_call *call = shared_live();

	cluster_call(&t.agents[0], ON_WORKER, tell_gone, call);
	wait_until(live_is_away, call, "the live part to go");
	free(call);
}
END_TEST

START_TEST(a_live_part_goes_when_its_connection_has_newer_keys)
{
	struct live_call *call = shared_live();

	call->epoch = 2;
	call->generation = 1;
	cluster_call(&t.agents[2], ON_WORKER, tell_adopted, call);
	wait_until(live_is_away, call, "the live part to go");
	free(call);
}
END_TEST

START_TEST(an_epoch_is_claimed_once_in_the_whole_cluster)
{
	struct live_call *call = calloc(1, sizeof(*call));

	call->id = random_connection();
	call->epoch = 5;
	ck_assert_int_eq(claim(t.agents[0].cluster, call), 0);
	ck_assert_int_eq(claim(t.agents[0].cluster, call), CSSL_E_REPLAY);
	cluster_call(&t.agents[0], ON_WORKER, tell_adopted, call);
	wait_until(is_known, call, "the announced epoch");
	ck_assert_int_eq(claim(t.agents[1].cluster, call), CSSL_E_REPLAY);
	call->epoch = 4;
	ck_assert_int_eq(claim(t.agents[1].cluster, call), CSSL_E_REPLAY);
	call->epoch = 6;
	ck_assert_int_eq(claim(t.agents[1].cluster, call), 0);
	free(call);
}
END_TEST

/* Said when an ownership begins, when it stops to rest, and when it ends. */
START_TEST(how_far_an_owner_sealed_is_known_to_all)
{
	static const struct {
		void (*tell)(struct test_agent *a, void *arg);
		enum seen_stop stop;
	} sayings[] = { { tell_adopted, SEEN_RESTS }, { tell_gone, SEEN_RESTS }, { tell_gone, SEEN_ENDED } };
	struct live_call *call = calloc(1, sizeof(*call));

	call->id = random_connection();
	call->epoch = 2;
	call->generation = 1;
	call->sequence = 50;
	call->stop = sayings[_i].stop;
	cluster_call(&t.agents[0], ON_WORKER, sayings[_i].tell, call);
	wait_until(is_known, call, "what was said");
	call->epoch = 3;
	call->sequence = 49;
	ck_assert_int_eq(claim(t.agents[1].cluster, call), CSSL_E_UNSAFE);
	call->generation = 0;
	call->sequence = 1000;
	ck_assert_int_eq(claim(t.agents[1].cluster, call), CSSL_E_UNSAFE);
	call->generation = 1;
	call->sequence = 50;
	ck_assert_int_eq(claim(t.agents[1].cluster, call), 0);
	free(call);
}
END_TEST

START_TEST(a_live_part_tells_where_its_owner_froze)
{
	struct live_call *call = calloc(1, sizeof(*call));

	call->id = random_connection();
	live_make(&call->made, &(struct live_wish){ .connection = call->id, .epoch = 1 });
	call->made.live.exported = EXPORT_AT_FREEZE;
	call->made.live.write_sequence = 70;
	cluster_call(&t.agents[0], ON_WORKER, share_live, call);
	wait_until(is_known, call, "the live part");
	call->epoch = 2;
	call->sequence = 69;
	ck_assert_int_eq(claim(t.agents[0].cluster, call), CSSL_E_UNSAFE);
	ck_assert_int_eq(claim(t.agents[1].cluster, call), CSSL_E_UNSAFE);
	free(call);
}
END_TEST

/* Its keys stay where they are, but that it exists, and where it froze, is known. */
START_TEST(a_connection_whose_keys_are_carried_is_known_all_the_same)
{
	struct live_call *call = calloc(1, sizeof(*call));

	call->id = random_connection();
	live_make(&call->made, &(struct live_wish){ .connection = call->id, .epoch = 1 });
	call->made.live.exported = _i ? EXPORT_AT_FREEZE : EXPORT_WHILE_OWNED;
	call->made.live.write_sequence = 70;
	t.conf.broadcast.live = CONF_LIVE_CARRIED;
	cluster_call(&t.agents[0], ON_WORKER, share_live, call);
	wait_until(is_known, call, "the connection");
	ck_assert_int_eq(live_is_there(call), 0);
	call->epoch = 2;
	call->sequence = 69;
	ck_assert_int_eq(claim(t.agents[1].cluster, call), _i ? CSSL_E_UNSAFE : 0);
	free(call);
}
END_TEST

/* Also by an agent that joins later, and in a later life of the agent that did it. */
START_TEST(where_an_agent_took_over_in_doubt_is_known_to_all)
{
	struct live_call *call = calloc(1, sizeof(*call));

	call->id = random_connection();
	call->epoch = 2;
	call->sequence = 50;
	call->doubt = SEEN_DOUBT_AT_MARK;
	ck_assert_int_eq(claim(t.agents[0].cluster, call), 0);
	cluster_call(&t.agents[0], ON_WORKER, tell_adopted, call);
	wait_until(is_known, call, "the adoption");
	for (unsigned life = 0; life < 2; life++) {
		call->epoch++;
		call->sequence = 51;
		ck_assert_int_eq(claim(t.agents[1].cluster, call), CSSL_E_UNSAFE);
		call->sequence = 50; /* an honest RAgent asks for that, if the KeyUpdate was lost */
		ck_assert_int_eq(claim(t.agents[1].cluster, call), 0);
		cluster_stop(&t, 1);
		cluster_start(&t, 1);
		cluster_wait_ready(&t, 1);
		cluster_wait_counted(&t, 1, COUNT_CONNECTIONS_SEEN, 1);
	}
	call->epoch++;
	call->generation = 1;
	call->sequence = 3;
	ck_assert_int_eq(claim(t.agents[1].cluster, call), 0);
	free(call);
}
END_TEST

/* What an agent remembers of connections outlives its restart: its peers tell it. */
START_TEST(a_joining_agent_learns_which_connections_there_were)
{
	enum { CONNECTIONS = 2000 };
	static struct live_call calls[CONNECTIONS];

	cluster_stop(&t, 1);
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		calls[i] = (struct live_call){ .id = random_connection(), .epoch = 3, .generation = 1, .sequence = 50 };
		calls[i].stop = i % 2 ? SEEN_ENDED : SEEN_RESTS;
		cluster_call(&t.agents[0], ON_WORKER, tell_gone, &calls[i]);
	}
	cluster_start(&t, 1);
	cluster_wait_ready(&t, 1);
	cluster_wait_counted(&t, 1, COUNT_CONNECTIONS_SEEN, CONNECTIONS); /* they are more than a ring repeats */
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		struct live_call call = calls[i];

		ck_assert_int_eq(claim(t.agents[1].cluster, &call), CSSL_E_REPLAY);
		call.epoch = 4;
		call.sequence = 49;
		ck_assert_int_eq(claim(t.agents[1].cluster, &call), CSSL_E_UNSAFE);
	}
}
END_TEST

/* And what was made before it started is judged as its peer would, who was there. */
START_TEST(a_joining_agent_goes_as_far_back_as_its_peer)
{
	struct live_part part = { .made_ms = cluster_shared_clock_ms(t.agents[0].cluster) };
	struct connection_id id = random_connection();

	cluster_stop(&t, 1);
	cluster_start(&t, 1);
	cluster_wait_joined(&t);
	ck_assert_int_eq(cluster_knows(t.agents[1].cluster, &id, cluster_made_ms(t.agents[1].cluster, &part)), 1);
	ck_assert_int_eq(cluster_knows(t.agents[1].cluster, &id, SEEN_MADE_UNKNOWN), 0);
}
END_TEST

/* Passing a backend */

struct passing {
	struct passed_backend backend;
	const char *target;
	int result;
	_Atomic int done;
};

static void on_passed(void *ctx, int error)
{
	struct passing *p = ctx;

	p->result = error;
	p->done = 1;
}

static void start_pass(struct test_agent *a, void *arg)
{
	struct passing *p = arg;

	cluster_pass_backend(a->cluster, a->worker, p->target, &p->backend, on_passed, p);
}

static int is_passed(void *ctx)
{
	return ((struct passing *)ctx)->done;
}

static uint8_t *text_bytes(const char *text)
{
	uint8_t *bytes = malloc(strlen(text));

	memcpy(bytes, text, strlen(text));
	return bytes;
}

static struct passed_backend backend_of(int fd, const struct connection_id *id)
{
	struct passed_backend b = { .connection = *id,
		.next_epoch = 3,
		.backend = "web",
		.to_backend = text_bytes("to"),
		.to_backend_len = 2,
		.from_backend = text_bytes("from"),
		.from_backend_len = 4,
		.from_state = BACKEND_EOF,
		.to_state = BACKEND_WRITING,
		.fd = fd };

	return b;
}

START_TEST(a_backend_socket_goes_to_another_agent)
{
	struct connection_id id = random_connection();
	struct passing p = { .target = "b" };
	struct passed_backend taken;
	char text[6] = "";
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	p.backend = backend_of(pair[0], &id);
	ck_assert_int_eq(cluster_can_pass_to(t.agents[0].cluster, "b"), 1);
	cluster_call(&t.agents[0], ON_WORKER, start_pass, &p);
	wait_until(is_passed, &p, "the pass");
	ck_assert_int_eq(p.result, 0);
	ck_assert_int_eq(cluster_take_passed(t.agents[1].cluster, &id, 2, &taken), CSSL_E_NOT_FOUND);
	ck_assert_int_eq(cluster_take_passed(t.agents[1].cluster, &id, 3, &taken), 0);
	ck_assert_int_eq(cluster_take_passed(t.agents[1].cluster, &id, 3, &taken), CSSL_E_NOT_FOUND);
	ck_assert_str_eq(taken.backend, "web");
	ck_assert_uint_eq(taken.to_backend_len, 2);
	ck_assert_mem_eq(taken.from_backend, "from", 4);
	ck_assert_int_eq(taken.from_state, BACKEND_EOF);
	ck_assert_int_eq(taken.to_state, BACKEND_WRITING);
	ck_assert_int_eq(write(taken.fd, "hello", 5), 5);
	ck_assert_int_eq(read(pair[1], text, 5), 5);
	ck_assert_str_eq(text, "hello");
	passed_backend_destroy(&taken);
	ck_assert_int_eq(read(pair[1], text, 5), 0); /* no descriptor of it is left anywhere */
	close(pair[1]);
}
END_TEST

START_TEST(many_backend_sockets_arrive_each_with_its_connection)
{
	enum { MANY = 40 };
	struct connection_id ids[MANY];
	struct passing *p = calloc(MANY, sizeof(*p));
	int pairs[MANY][2];

	for (unsigned i = 0; i < MANY; i++) {
		ids[i] = random_connection();
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
		p[i].target = "b";
		p[i].backend = backend_of(pairs[i][0], &ids[i]);
		cluster_call(&t.agents[0], ON_WORKER, start_pass, &p[i]);
	}
	for (unsigned i = 0; i < MANY; i++) {
		struct passed_backend taken;
		uint8_t mark = 0;

		wait_until(is_passed, &p[i], "a pass");
		ck_assert_int_eq(p[i].result, 0);
		ck_assert_int_eq(cluster_take_passed(t.agents[1].cluster, &ids[i], 3, &taken), 0);
		ck_assert_int_eq(write(taken.fd, &(uint8_t){ (uint8_t)i }, 1), 1);
		ck_assert_int_eq(read(pairs[i][1], &mark, 1), 1);
		ck_assert_uint_eq(mark, i);
		passed_backend_destroy(&taken);
		close(pairs[i][1]);
	}
	free(p);
}
END_TEST

static void check_not_passed(const char *target)
{
	struct connection_id id = random_connection();
	struct passing p = { .target = target };
	int pair[2];
	char byte;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	p.backend = backend_of(pair[0], &id);
	ck_assert_int_eq(cluster_can_pass_to(t.agents[0].cluster, target), 0);
	cluster_call(&t.agents[0], ON_WORKER, start_pass, &p);
	wait_until(is_passed, &p, "the pass");
	ck_assert_int_lt(p.result, 0);
	ck_assert_int_eq(read(pair[1], &byte, 1), 0);
	close(pair[1]);
}

START_TEST(a_backend_socket_cannot_go_over_tcp)
{
	check_not_passed("b");
}
END_TEST

START_TEST(a_backend_socket_cannot_go_to_nobody_or_to_oneself)
{
	check_not_passed("nobody");
	check_not_passed("a");
}
END_TEST

UNIT(cluster_moves)
{
	TCase *over_unix = tcase_create("unix"), *over_tcp = tcase_create("tcp");
	Suite *suite = suite_create("cluster_moves");
	SRunner *runner;
	int failed;

	log_open("test", "cluster", LOG_TEXT, getenv("TEST_LOG") ? LOG_DEBUG : LOG_ERROR, NULL);
	tcase_add_checked_fixture(over_unix, three_over_unix, stop_all);
	tcase_add_test(over_unix, a_live_part_is_found_under_its_generations_and_a_higher_epoch);
	tcase_add_test(over_unix, a_live_part_goes_when_its_connection_ends);
	tcase_add_test(over_unix, a_live_part_goes_when_its_connection_has_newer_keys);
	tcase_add_test(over_unix, an_epoch_is_claimed_once_in_the_whole_cluster);
	tcase_add_loop_test(over_unix, how_far_an_owner_sealed_is_known_to_all, 0, 3);
	tcase_add_test(over_unix, a_live_part_tells_where_its_owner_froze);
	tcase_add_test(over_unix, a_joining_agent_learns_which_connections_there_were);
	tcase_add_test(over_unix, where_an_agent_took_over_in_doubt_is_known_to_all);
	tcase_add_test(over_unix, a_joining_agent_goes_as_far_back_as_its_peer);
	tcase_add_loop_test(over_unix, a_connection_whose_keys_are_carried_is_known_all_the_same, 0, 2);
	tcase_add_test(over_unix, a_backend_socket_goes_to_another_agent);
	tcase_add_test(over_unix, many_backend_sockets_arrive_each_with_its_connection);
	tcase_add_test(over_unix, a_backend_socket_cannot_go_to_nobody_or_to_oneself);
	tcase_add_checked_fixture(over_tcp, two_over_tcp, stop_all);
	tcase_add_test(over_tcp, a_backend_socket_cannot_go_over_tcp);
	tcase_set_timeout(over_unix, 30);
	tcase_set_timeout(over_tcp, 30);
	suite_add_tcase(suite, over_unix);
	suite_add_tcase(suite, over_tcp);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
