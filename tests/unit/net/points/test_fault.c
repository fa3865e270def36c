/* test_fault.c: facts of fault rules. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/loop/timer.h"
#include "net/points/fault.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/net/rules.h"
#include "tests/unit/unit.h"

START_TEST(nothing_happens_without_rules)
{
	fault_stop();
	unsetenv("CSSL_FAULTS");
	fault_start("a1");
	ck_assert(!fault_active());
	ck_assert_int_eq(fault_at("udp.send", NULL, NULL), FAULT_NONE);
	ck_assert_str_eq(fault_node(), "a1");
	fault_stop();
}
END_TEST

START_TEST(rule_gives_its_action_and_argument)
{
	uint64_t arg = 0;
	rules_set("a1", "# a comment\n\nudp.send drop\nlink.write delay 50 # and another\nlink.read cut\n"
			"handshake.before_finished fail\nudp.receive duplicate\n");
	ck_assert(fault_active());
	ck_assert_int_eq(fault_at("udp.send", NULL, &arg), FAULT_DROP);
	ck_assert_int_eq(fault_at("link.write", NULL, &arg), FAULT_DELAY);
	ck_assert_uint_eq(arg, 50);
	ck_assert_int_eq(fault_at("link.read", NULL, &arg), FAULT_CUT);
	ck_assert_int_eq(fault_at("handshake.before_finished", NULL, NULL), FAULT_FAIL);
	ck_assert_int_eq(fault_at("udp.receive", NULL, NULL), FAULT_DUPLICATE);
	ck_assert_int_eq(fault_at("adopt.before", NULL, NULL), FAULT_NONE);
	fault_stop();
}
END_TEST

START_TEST(a_named_state_that_is_cut_cuts_the_next_write_to_a_link)
{
	rules_set("a1", "adopt.after cut times 1\nclient.write cut times 1\n");
	ck_assert_int_eq(fault_at("client.write", NULL, NULL), FAULT_CUT); /* of a stream: itself */
	ck_assert_int_eq(fault_at("link.write", NULL, NULL), FAULT_NONE);
	ck_assert_int_eq(fault_at("adopt.after", NULL, NULL), FAULT_CUT);
	ck_assert_int_eq(fault_at("peer.write", NULL, NULL), FAULT_NONE);
	ck_assert_int_eq(fault_at("link.read", NULL, NULL), FAULT_NONE);
	ck_assert_int_eq(fault_at("link.write", NULL, NULL), FAULT_CUT);
	ck_assert_int_eq(fault_at("link.write", NULL, NULL), FAULT_NONE);
	fault_stop();
}
END_TEST

START_TEST(rule_holds_on_its_node_and_towards_its_peer_only)
{
	rules_set("a1", "udp.send drop on a2\nudp.receive drop on a1 peer a3\n");
	ck_assert_int_eq(fault_at("udp.send", "a3", NULL), FAULT_NONE);
	ck_assert_int_eq(fault_at("udp.receive", "a3", NULL), FAULT_DROP);
	ck_assert_int_eq(fault_at("udp.receive", "a2", NULL), FAULT_NONE);
	ck_assert_int_eq(fault_at("udp.receive", NULL, NULL), FAULT_NONE);
	fault_stop();
}
END_TEST

START_TEST(probability_is_kept)
{
	unsigned dropped = 0;
	rules_set("a1", "udp.send drop 0.2\nudp.receive drop 0\n");
	for (unsigned i = 0; i < 10000; i++) {
		dropped += fault_at("udp.send", NULL, NULL) == FAULT_DROP;
		ck_assert_int_eq(fault_at("udp.receive", NULL, NULL), FAULT_NONE);
	}
	/* 2000 on average; 300 is 7.5 standard deviations */
	ck_assert_uint_gt(dropped, 1700);
	ck_assert_uint_lt(dropped, 2300);
	fault_stop();
}
END_TEST

START_TEST(after_and_times_count_hits)
{
	rules_set("a1", "adopt.before fail after 2 times 3\n");
	for (unsigned i = 0; i < 10; i++)
		ck_assert_int_eq(fault_at("adopt.before", NULL, NULL), i >= 2 && i < 5 ? FAULT_FAIL : FAULT_NONE);
	fault_stop();
}
END_TEST

START_TEST(changed_rules_come_into_force_by_themselves)
{
	rules_set("a1", "udp.send drop\n");
	rules_write("udp.receive drop\n");
	wait_until(fault_at("udp.receive", NULL, NULL) == FAULT_DROP);
	ck_assert_int_eq(fault_at("udp.send", NULL, NULL), FAULT_NONE);
	rules_write("");
	wait_until(fault_at("udp.receive", NULL, NULL) == FAULT_NONE);
	fault_stop();
}
END_TEST

START_TEST(clock_offset_moves_the_wall_clock_both_ways)
{
	rules_set("a1", "");
	uint64_t now = worker_wall_s();
	rules_set("a1", "clock offset 3600\n");
	ck_assert_uint_ge(worker_wall_s(), now + 3600);
	ck_assert_uint_le(worker_wall_s(), now + 3660);
	ck_assert_int_ge(worker_wall_ms() / 1000, (int64_t)now + 3600);
	ck_assert_int_le(worker_wall_ms() / 1000, (int64_t)now + 3660);
	rules_set("a1", "clock offset -3600\n");
	ck_assert_uint_ge(worker_wall_s(), now - 3600);
	ck_assert_uint_le(worker_wall_s(), now - 3540);
	ck_assert_int_le(worker_wall_ms() / 1000, (int64_t)now - 3540);
	rules_set("a1", "clock offset -3600 on a2\n");
	ck_assert_uint_ge(worker_wall_s(), now);
	fault_stop();
}
END_TEST

static int child_status(const char *rules, const char *point, int options)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		rules_set("a1", rules);
		fault_at(point, NULL, NULL);
		_exit(7);
	}
	ck_assert_int_eq(waitpid(child, &status, options), child);
	if (WIFSTOPPED(status)) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	return status;
}

START_TEST(kill_kills_the_process_itself)
{
	temp_dir();
	int status = child_status("adopt.after kill\n", "adopt.after", 0);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGKILL);
}
END_TEST

START_TEST(stop_stops_the_process_itself)
{
	temp_dir();
	ck_assert(WIFSTOPPED(child_status("adopt.after stop\n", "adopt.after", WUNTRACED)));
}
END_TEST

START_TEST(bad_rules_are_fatal)
{
	static const char *const bad[] = { "no.such.point drop\n", "udp.send explode\n", "udp.send\n",
		"link.write delay\n", "link.write delay soon\n", "udp.send drop 1.5\n", "udp.send drop on\n",
		"udp.send drop near a2\n" };
	temp_dir();
	ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr)); /* the children print the reason */
	for (size_t i = 0; i < FACTS_LEN(bad); i++) {
		int status = child_status(bad[i], "udp.send", 0);
		ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE, "%s", bad[i]);
	}
	ck_assert_int_eq(WEXITSTATUS(child_status("udp.send drop 0.5 on a2\n", "udp.send", 0)), 7);
}
END_TEST

START_TEST(point_that_no_rule_could_name_is_our_own_mistake)
{
	temp_dir();
	ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
	int status = child_status("udp.send drop\n", "no.such.point", 0);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGABRT);
}
END_TEST

UNIT(fault)
{
	const TTest *facts[] = {
		nothing_happens_without_rules,
		rule_gives_its_action_and_argument,
		a_named_state_that_is_cut_cuts_the_next_write_to_a_link,
		rule_holds_on_its_node_and_towards_its_peer_only,
		probability_is_kept,
		after_and_times_count_hits,
		changed_rules_come_into_force_by_themselves,
		clock_offset_moves_the_wall_clock_both_ways,
		kill_kills_the_process_itself,
		stop_stops_the_process_itself,
		bad_rules_are_fatal,
		point_that_no_rule_could_name_is_our_own_mistake,
	};
	return worker_suite_run("fault", facts, FACTS_LEN(facts));
}
