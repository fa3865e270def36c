/* test_replicas.c: agents of one process over real sockets, where each holds a part of the sessions. */
#include <check.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sslagent/cluster/cluster_root.h"
#include "tests/unit/sslagent/revoke_what.h"
#include "tests/unit/sslagent/cluster/cluster_fixture.h"
#include "tests/unit/unit.h"

#define AGENTS   4u
#define REPLICAS 2u
#define SESSIONS 100u /* of each agent */

static struct test_cluster t;
static uint8_t ids[AGENTS][SESSIONS][SESSION_ID_LEN];
static struct placement *members;

static void describe(void)
{
	cluster_describe(&t, AGENTS, LINKS_UNIX);
	t.conf.broadcast.replicas = REPLICAS;
	t.conf.broadcast.live = CONF_LIVE_CARRIED;
	t.conf.broadcast.left_ms = 300;
	members = placement_create(AGENTS);
	for (unsigned i = 0; i < AGENTS; i++)
		placement_name(members, i, t.agent_confs[i].name);
}

struct listening {
	unsigned from, to;
};

static int hears_all(void *ctx)
{
	const struct listening *l = ctx;

	return cluster_counted(&t, l->from, COUNT_PEERS_UP) == l->to &&
	       cluster_counted(&t, l->from, COUNT_SNAPSHOTS_TAKEN) >= l->to;
}

/* And nothing is on its way any more that was given because somebody joined. */
static void wait_joined(unsigned first, unsigned count)
{
	for (unsigned i = first; i < first + count; i++) {
		struct listening l = { i, count - 1 };

		cluster_wait_ready(&t, i);
		wait_until(hears_all, &l, "links to all");
		placement_set(members, i, MEMBER_HERE);
	}
}

static void start(unsigned first, unsigned count)
{
	for (unsigned i = first; i < first + count; i++)
		cluster_start(&t, i);
	wait_joined(first, count);
}

static void four(void)
{
	describe();
	start(0, AGENTS);
}

static void stop_all(void)
{
	cluster_stop_all(&t);
	placement_destroy(members);
}

static void share_all(unsigned from)
{
	for (unsigned i = 0; i < SESSIONS; i++)
		ck_assert_int_eq(cluster_share(&t, from, (struct session_wish){ 0 }, TOLD, ids[from][i]), 0);
}

/* Which agents have it here and now? */
static unsigned standing(const uint8_t *id)
{
	unsigned mask = 0;

	for (unsigned at = 0; at < AGENTS; at++)
		if (t.agents[at].cluster && cluster_find(&t, at, id) == SESSION_FOUND)
			mask |= 1u << at;
	return mask;
}

/* The holders, and who made it if that still runs. */
static unsigned expected(unsigned origin, const uint8_t *id)
{
	struct placement_ranks r = placement_rank(members, id, REPLICAS);
	unsigned mask = t.agents[origin].cluster ? 1u << origin : 0;

	for (unsigned i = 0; i < r.count; i++)
		mask |= 1u << r.agents[i];
	return mask;
}

static int stand_where_expected(void *ctx)
{
	const unsigned *origin = ctx;

	for (unsigned i = 0; i < SESSIONS; i++)
		if (standing(ids[*origin][i]) != expected(*origin, ids[*origin][i]))
			return 0;
	return 1;
}

static void wait_standing(unsigned origin)
{
	wait_until(stand_where_expected, &origin, "sessions to stand at their holders and their origin, nowhere else");
}

START_TEST(a_session_stands_at_its_holders_and_where_it_was_made)
{
	for (unsigned from = 0; from < AGENTS; from++)
		share_all(from);
	for (unsigned from = 0; from < AGENTS; from++)
		wait_standing(from);
}
END_TEST

static uint64_t missed_in_a_round(void)
{
	uint64_t before = cluster_counted(&t, 1, COUNT_OBJECTS_MISSED);

	share_all(0);
	wait_standing(0);
	return cluster_counted(&t, 1, COUNT_OBJECTS_MISSED) - before;
}

/* A round may miss an object for another reason: a heartbeat may tell a number whose datagram is still on its way. So
 * one of five rounds has to miss nothing. If an object that others hold counted as a gap, every round would miss one.
 */
START_TEST(what_others_hold_is_no_gap)
{
	uint64_t missed = 1;

	share_all(0);
	wait_standing(0); /* now they hear each other */
	for (unsigned round = 0; round < 5 && missed > 0; round++)
		missed = missed_in_a_round();
	ck_assert_uint_eq(missed, 0);
}
END_TEST

START_TEST(who_holds_it_not_pulls_it)
{
	share_all(0);
	wait_standing(0);
	for (unsigned i = 0; i < SESSIONS; i++)
		for (unsigned at = 1; at < AGENTS; at++) {
			if (cluster_find(&t, at, ids[0][i]) == SESSION_FOUND)
				continue;
			ck_assert_int_eq(cluster_find(&t, at, ids[0][i]), SESSION_ELSEWHERE);
			ck_assert_int_eq(cluster_pull(&t, at, ids[0][i], NULL), SESSION_FOUND);
		}
}
END_TEST

struct displacement {
	const uint8_t *id;
	struct test_agent *at;
	_Atomic int walked, over;
	enum session_answer answer, then;
};

static enum session_answer look(struct test_agent *a, const uint8_t *id)
{
	struct sess_obj obj;
	enum session_answer answer = a->source->find(a->source, id, SESSION_ID_LEN, &obj);

	if (answer == SESSION_FOUND)
		sess_obj_destroy(&obj);
	return answer;
}

/* As two seconds after a member came or left. */
static void resettle(struct worker *w, void *arg)
{
	struct displacement *d = arg;
	struct resettling *r = &d->at->cluster->joining.resettling;

	placement_copy(r->after, d->at->cluster->peers.placement);
	r->cursor = 0;
	r->state = RESETTLING;
	while (r->state == RESETTLING)
		resettling_tick(&d->at->cluster->joining, cluster_now_ms());
	d->walked = 1;
}

static void on_pulled(void *ctx, enum session_answer answer)
{
	struct displacement *d = ctx;

	d->answer = answer;
	d->then = look(d->at, d->id);
	d->over = 1;
}

/* The worker is busy until the session has come and was displaced. */
static void pull_and_displace(struct test_agent *a, void *arg)
{
	struct displacement *d = arg;

	d->at = a;
	ck_assert_ptr_nonnull(a->source->pull(a->source, a->worker, d->id, on_pulled, d));
	while (look(a, d->id) != SESSION_FOUND)
		usleep(1000);
	worker_post(a->main, resettle, d);
	while (!d->walked)
		usleep(1000);
}

static int is_over(void *ctx)
{
	return ((struct displacement *)ctx)->over;
}

/* So its handshake asks for it once more. */
START_TEST(a_session_that_came_may_go_before_its_handshake_looks)
{
	struct displacement d = { 0 };
	unsigned i = 0;

	share_all(0);
	wait_standing(0);
	while (expected(0, ids[0][i]) & 1u << 1)
		i++;
	d.id = ids[0][i];
	cluster_call(&t.agents[1], ON_WORKER, pull_and_displace, &d);
	wait_until(is_over, &d, "the end of a pull");
	ck_assert_int_eq(d.answer, SESSION_FOUND);
	ck_assert_int_eq(d.then, SESSION_ELSEWHERE);
	ck_assert_int_eq(cluster_pull(&t, 1, d.id, NULL), SESSION_FOUND);
}
END_TEST

START_TEST(what_its_holders_have_not_is_pulled_from_its_origin)
{
	uint8_t id[SESSION_ID_LEN];

	for (unsigned at = 1; at < AGENTS; at++) {
		cluster_share(&t, 0, (struct session_wish){ 0 }, UNTOLD, id);
		ck_assert_int_eq(cluster_pull(&t, at, id, NULL), SESSION_FOUND);
	}
}
END_TEST

START_TEST(a_session_of_a_lost_agent_is_pulled_from_a_holder)
{
	share_all(0);
	wait_standing(0);
	cluster_stop(&t, 0);
	for (unsigned i = 0; i < SESSIONS; i++)
		for (unsigned at = 1; at < AGENTS; at++)
			if (cluster_find(&t, at, ids[0][i]) != SESSION_FOUND)
				ck_assert_int_eq(cluster_pull(&t, at, ids[0][i], NULL), SESSION_FOUND);
}
END_TEST

START_TEST(what_nobody_has_is_absent_and_remembered_to_be)
{
	uint8_t id[SESSION_ID_LEN];

	t.agents[0].source->make_id(t.agents[0].source, id);
	ck_assert_int_eq(cluster_find(&t, 1, id), SESSION_ELSEWHERE);
	ck_assert_int_eq(cluster_pull(&t, 1, id, NULL), SESSION_ABSENT);
	ck_assert_int_eq(cluster_find(&t, 1, id), SESSION_ABSENT);
}
END_TEST

START_TEST(one_that_leaves_is_replaced)
{
	share_all(0);
	share_all(3);
	wait_standing(0);
	wait_standing(3);
	cluster_stop(&t, 3);
	placement_set(members, 3, MEMBER_AWAY);
	wait_standing(0);
	wait_standing(3); /* also what it had made itself */
}
END_TEST

START_TEST(one_that_enters_takes_its_part_and_others_drop_it)
{
	describe();
	start(0, AGENTS - 1);
	share_all(0);
	share_all(1);
	wait_standing(0);
	wait_standing(1);
	cluster_start(&t, AGENTS - 1);
	wait_joined(0, AGENTS);
	wait_standing(0);
	wait_standing(1);
	ck_assert_uint_gt(cluster_counted(&t, 2, COUNT_SESSIONS_DISPLACED), 0);
	stop_all();
}
END_TEST

START_TEST(a_session_revoked_where_it_is_not_takes_its_family_with_it_everywhere)
{
	uint8_t family[FAMILY_ID_LEN], id[2][SESSION_ID_LEN];
	unsigned asked = 1;

	randombytes_buf(family, sizeof(family));
	for (unsigned i = 0; i < 2; i++)
		cluster_share(&t, 0, (struct session_wish){ .family_id = family }, TOLD, id[i]);
	for (unsigned i = 0; i < 2; i++)
		for (unsigned at = 0; at < AGENTS; at++)
			if (expected(0, id[i]) & 1u << at)
				cluster_wait_found(&t, at, id[i]);
	while (expected(0, id[0]) & 1u << asked)
		asked = asked % (AGENTS - 1) + 1;
	const revoke_what what = REVOKE(REVOKE_SESSION, .session_id = bytes_of(id[0], SESSION_ID_LEN));
	ck_assert_uint_eq(cluster_revoke_and_wait(&t, asked, &what).confirmed, AGENTS);
	ck_assert_uint_eq(standing(id[0]), 0);
	ck_assert_uint_eq(standing(id[1]), 0);
}
END_TEST

UNIT(replicas)
{
	Suite *suite = suite_create("replicas");
	TCase *all = tcase_create("four agents"), *growing = tcase_create("one more");
	int failed;

	tcase_set_timeout(all, 60);
	tcase_set_timeout(growing, 60);
	tcase_add_checked_fixture(all, four, stop_all);
	tcase_add_test(all, a_session_stands_at_its_holders_and_where_it_was_made);
	tcase_add_test(all, what_others_hold_is_no_gap);
	tcase_add_test(all, who_holds_it_not_pulls_it);
	tcase_add_test(all, a_session_that_came_may_go_before_its_handshake_looks);
	tcase_add_test(all, what_its_holders_have_not_is_pulled_from_its_origin);
	tcase_add_test(all, a_session_of_a_lost_agent_is_pulled_from_a_holder);
	tcase_add_test(all, what_nobody_has_is_absent_and_remembered_to_be);
	tcase_add_test(all, one_that_leaves_is_replaced);
	tcase_add_test(all, a_session_revoked_where_it_is_not_takes_its_family_with_it_everywhere);
	tcase_add_test(growing, one_that_enters_takes_its_part_and_others_drop_it);
	suite_add_tcase(suite, all);
	suite_add_tcase(suite, growing);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
