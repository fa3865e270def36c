/* test_faults.c: agents of one process while the network between them fails (test builds only). */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/points/fault.h"
#include "net/report/log.h"
#include "tests/unit/sslagent/cluster/cluster_fixture.h"
#include "tests/unit/sslagent/revoke_what.h"
#include "tests/unit/unit.h"

static struct test_cluster t;
static char rules_path[64];

static void write_rules(const char *rules)
{
	char fresh[sizeof(rules_path) + 4];
	FILE *file;

	snprintf(fresh, sizeof(fresh), "%s.new", rules_path);
	file = fopen(fresh, "w");
	ck_assert_ptr_nonnull(file);
	fputs(rules, file);
	fclose(file);
	ck_assert_int_eq(rename(fresh, rules_path), 0);
}

static int are_in_force(void *ctx)
{
	uint64_t offset_s;

	return fault_at("clock", NULL, &offset_s) == FAULT_OFFSET && offset_s == *(uint64_t *)ctx;
}

/* In force when this returns, instead of the ones before. A clock a little further off each time says so, and disturbs
 * nobody. */
static void set_rules(const char *rules)
{
	static uint64_t offset_s;
	char text[256];

	offset_s += 3600;
	snprintf(text, sizeof(text), "clock offset %u\n%s", (unsigned)offset_s, rules);
	write_rules(text);
	wait_until(are_in_force, &offset_s, "the rules to be read");
}

static void setup(void)
{
	snprintf(rules_path, sizeof(rules_path), "/tmp/cssl-faults-%d", (int)getpid());
	write_rules("");
	setenv("CSSL_FAULTS", rules_path, 1);
	fault_start("all");
	cluster_start_all(&t, 3, LINKS_UNIX);
}

static void teardown(void)
{
	set_rules("");
	cluster_stop_all(&t);
	fault_stop();
	unlink(rules_path);
}

/* As a handshake does: look, and wait for the origin if need be. */
static enum session_answer find_or_pull(unsigned agent, const uint8_t *id)
{
	enum session_answer answer = cluster_find(&t, agent, id);

	return answer == SESSION_ELSEWHERE ? cluster_pull(&t, agent, id, NULL) : answer;
}

START_TEST(sessions_are_resumed_at_once_while_20_percent_of_the_datagrams_are_lost)
{
	unsigned missed = 0;

	set_rules("udp.send drop 0.2\n");
	for (unsigned i = 0; i < 1000; i++) {
		uint8_t id[SESSION_ID_LEN];

		cluster_share(&t, i % 3, (struct session_wish){ 0 }, TOLD, id);
		for (unsigned at = 0; at < 3; at++)
			missed += find_or_pull(at, id) != SESSION_FOUND;
	}
	ck_assert_uint_eq(missed, 0);
}
END_TEST

START_TEST(sessions_are_pulled_over_links_while_all_datagrams_are_lost)
{
	set_rules("udp.send drop 1\n");
	for (unsigned i = 0; i < 50; i++) {
		uint8_t id[SESSION_ID_LEN];

		cluster_share(&t, 0, (struct session_wish){ 0 }, TOLD, id);
		ck_assert_int_eq(find_or_pull(1, id), SESSION_FOUND);
	}
}
END_TEST

START_TEST(sessions_are_pulled_by_datagram_while_links_are_stuck)
{
	uint8_t id[SESSION_ID_LEN];
	int64_t ms;

	set_rules("peer.write drop\n");
	cluster_share(&t, 0, (struct session_wish){ 0 }, UNTOLD, id);
	ck_assert_int_eq(cluster_find(&t, 1, id), SESSION_ELSEWHERE);
	ck_assert_int_eq(cluster_pull(&t, 1, id, &ms), SESSION_FOUND);
	ck_assert_int_lt(ms, 500);
}
END_TEST

START_TEST(sessions_beyond_the_ring_come_by_snapshot)
{
	enum { SESSIONS = 3000 };
	uint8_t(*ids)[SESSION_ID_LEN] = malloc(SESSIONS * SESSION_ID_LEN);

	set_rules("udp.send drop 1\n");
	for (unsigned i = 0; i < SESSIONS; i++)
		cluster_share(&t, 0, (struct session_wish){ 0 }, TOLD, ids[i]);
	set_rules("");
	for (unsigned i = 0; i < SESSIONS; i++)
		for (unsigned at = 1; at < 3; at++)
			cluster_wait_found(&t, at, ids[i]);
	ck_assert_uint_gt(cluster_counted(&t, 1, COUNT_OBJECTS_FORGOTTEN), 0);
	ck_assert_uint_eq(cluster_counted(&t, 1, COUNT_PULLS), 0);
	free(ids);
}
END_TEST

START_TEST(links_that_are_cut_come_back)
{
	uint64_t opened = cluster_counted(&t, 0, COUNT_PEER_LINKS_OPENED);
	uint8_t id[SESSION_ID_LEN];

	set_rules("peer.read cut\n"); /* until one of its own is hit */
	cluster_wait_counted(&t, 0, COUNT_PEER_LINKS_LOST, 1);
	set_rules("");
	cluster_wait_counted(&t, 0, COUNT_PEER_LINKS_OPENED, opened + 1);
	cluster_share(&t, 1, (struct session_wish){ .der_len = 20000 }, TOLD, id); /* needs the link */
	cluster_wait_found(&t, 0, id);
	cluster_wait_found(&t, 2, id);
}
END_TEST

static int backends_pass(void *ctx)
{
	(void)ctx;
	return cluster_can_pass_to(t.agents[0].cluster, "b") && cluster_can_pass_to(t.agents[0].cluster, "c");
}

START_TEST(a_link_by_tcp_gives_way_to_the_socket)
{
	wait_until(backends_pass, NULL, "links by UNIX sockets");
	set_rules("peer.socket fail\n"); /* whenever they look */
	cluster_stop(&t, 2);
	cluster_start(&t, 2);
	cluster_wait_joined(&t);
	ck_assert_int_eq(cluster_can_pass_to(t.agents[0].cluster, "c"), 0);
	set_rules("");
	wait_until(backends_pass, NULL, "links by UNIX sockets again");
	cluster_wait_joined(&t);
}
END_TEST

static int backends_pass_to_c(void *ctx)
{
	(void)ctx;
	return cluster_can_pass_to(t.agents[0].cluster, "c");
}

/* a's first @attempts to reach c end in the opening. b is not there. */
static void meet_after(const char *attempts)
{
	char rules[64];

	snprintf(rules, sizeof(rules), "peer.write cut peer c times %s\n", attempts);
	cluster_stop(&t, 1);
	cluster_stop(&t, 2);
	set_rules(rules);
	cluster_start(&t, 2);
	cluster_wait_joined(&t);
}

START_TEST(an_opening_that_ends_does_not_lead_to_tcp)
{
	uint64_t opened = cluster_counted(&t, 0, COUNT_PEER_LINKS_OPENED);

	meet_after("1");
	ck_assert_int_eq(backends_pass_to_c(NULL), 1);
	ck_assert_uint_eq(cluster_counted(&t, 0, COUNT_PEER_LINKS_OPENED), opened + 1);
}
END_TEST

START_TEST(tcp_that_answers_sends_back_to_the_socket)
{
	uint64_t opened = cluster_counted(&t, 0, COUNT_PEER_LINKS_OPENED);

	meet_after("8"); /* then TCP is tried */
	wait_until(backends_pass_to_c, NULL, "a link by the UNIX socket");
	ck_assert_uint_eq(cluster_counted(&t, 0, COUNT_PEER_LINKS_OPENED), opened + 1);
}
END_TEST

START_TEST(a_revocation_reaches_an_agent_that_could_not_be_told)
{
	uint8_t family[FAMILY_ID_LEN] = { 1, 2, 3 }, id[SESSION_ID_LEN];
	revoke_what what;
	struct test_revocation r;

	cluster_share(&t, 0, (struct session_wish){ .family_id = family }, TOLD, id);
	cluster_wait_found(&t, 1, id);
	cluster_wait_found(&t, 2, id);
	set_rules("peer.write drop\n");
	what = REVOKE(REVOKE_FAMILY, .family_id = bytes_of(family, FAMILY_ID_LEN));
	r = cluster_revoke_and_wait(&t, 0, &what);
	ck_assert_uint_eq(r.confirmed, 1);
	ck_assert_uint_eq(r.unconfirmed, 2);
	ck_assert_int_eq(cluster_find(&t, 0, id), SESSION_ABSENT);
	set_rules("peer.read cut times 20\n"); /* what waited is lost with the links */
	cluster_wait_counted(&t, 0, COUNT_PEER_LINKS_LOST, 2);
	set_rules("");
	cluster_wait_counted(&t, 1, COUNT_SESSIONS_REVOKED, 1);
	cluster_wait_counted(&t, 2, COUNT_SESSIONS_REVOKED, 1);
	ck_assert_int_ne(cluster_find(&t, 1, id), SESSION_FOUND);
	ck_assert_int_ne(cluster_find(&t, 2, id), SESSION_FOUND);
}
END_TEST

UNIT(faults)
{
	TCase *faults = tcase_create("faults");
	Suite *suite = suite_create("faults");
	SRunner *runner;
	int failed;

	log_open("test", "cluster", LOG_TEXT, getenv("TEST_LOG") ? LOG_DEBUG : LOG_ERROR, NULL);
	tcase_add_checked_fixture(faults, setup, teardown);
	tcase_add_test(faults, sessions_are_resumed_at_once_while_20_percent_of_the_datagrams_are_lost);
	tcase_add_test(faults, sessions_are_pulled_over_links_while_all_datagrams_are_lost);
	tcase_add_test(faults, sessions_are_pulled_by_datagram_while_links_are_stuck);
	tcase_add_test(faults, sessions_beyond_the_ring_come_by_snapshot);
	tcase_add_test(faults, links_that_are_cut_come_back);
	tcase_add_test(faults, an_opening_that_ends_does_not_lead_to_tcp);
	tcase_add_test(faults, tcp_that_answers_sends_back_to_the_socket);
	tcase_add_test(faults, a_link_by_tcp_gives_way_to_the_socket);
	tcase_add_test(faults, a_revocation_reaches_an_agent_that_could_not_be_told);
	tcase_set_timeout(faults, 60);
	suite_add_tcase(suite, faults);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
