/* test_marker.c: facts of a gateway's conclusions from the markers of its backups. */
#include <stdio.h>
#include <string.h>

#include "smtpproxy/queue/markers/choice.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define RUN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RUN_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define RUN_C "cccccccccccccccccccccccccccccccccccccccc"
#define BOTH  3u
#define ONE   "11111111111111111111111111111111"
#define OTHER "22222222222222222222222222222222"

static struct sight marked(uint64_t version, unsigned members)
{
	struct sight s = { .state = SIGHT_MARKED, .marker = { .epoch = 1, .version = version } };

	if (members & 1)
		memcpy(s.marker.members[0], RUN_A, sizeof RUN_A);
	if (members & 2)
		memcpy(s.marker.members[1], RUN_B, sizeof RUN_B);
	return s;
}

static const struct sight away = { .state = SIGHT_AWAY };
static const struct sight empty = { .state = SIGHT_EMPTY };

static void runs_as(struct sight *s, const char *run_id)
{
	if (s->state == SIGHT_MARKED && !s->marker.run_id[0])
		memcpy(s->marker.run_id, run_id, RUN_ID_LEN + 1);
}

static void decides(struct sight a, struct sight b, enum recovery_trust trust, enum recovery_step step, unsigned mask)
{
	struct choice_server servers[BACKUPS] = { { .sight = a }, { .sight = b } };
	unsigned is = 99;

	runs_as(&servers[0].sight, RUN_A);
	runs_as(&servers[1].sight, RUN_B);
	ck_assert_int_eq(choice_decide(servers, BACKUPS, (const unsigned[]){ 0, 1 }, trust, &is), step);
	ck_assert_uint_eq(is, mask);
}

START_TEST(server_that_restarted_is_not_believed)
{
	struct marker m = { .version = 3 };

	memcpy(m.run_id, RUN_A, sizeof RUN_A);
	ck_assert_int_eq(marker_judge(&m, RUN_A), SIGHT_MARKED);
	ck_assert_int_eq(marker_judge(&m, RUN_B), SIGHT_EMPTY);
	m.version = 0;
	ck_assert_int_eq(marker_judge(&m, RUN_A), SIGHT_EMPTY);
}
END_TEST

START_TEST(first_start_needs_the_answer_of_both)
{
	decides(empty, empty, TRUST_ANSWERS, RECOVERY_BEGIN, 0);
	decides(empty, away, TRUST_ANSWERS, RECOVERY_WAIT, 0);
	decides(away, empty, TRUST_PRESENT, RECOVERY_WAIT, 0);
	decides(away, away, TRUST_PRESENT, RECOVERY_WAIT, 0);
}
END_TEST

START_TEST(two_of_one_version_are_united)
{
	decides(marked(4, BOTH), marked(4, BOTH), TRUST_ANSWERS, RECOVERY_READ, BOTH);
}
END_TEST

START_TEST(lower_version_is_left_out)
{
	decides(marked(5, 1), marked(4, BOTH), TRUST_ANSWERS, RECOVERY_READ, 1);
	decides(marked(4, BOTH), marked(5, 2), TRUST_ANSWERS, RECOVERY_READ, 2);
}
END_TEST

START_TEST(servers_that_went_on_without_each_other_are_united)
{
	decides(marked(3, 1), marked(2, 2), TRUST_ANSWERS, RECOVERY_READ, BOTH);
	decides(marked(2, 1), marked(9, 2), TRUST_ANSWERS, RECOVERY_READ, BOTH);
}
END_TEST

START_TEST(server_that_went_on_beside_an_earlier_process_of_the_other_is_united)
{
	struct sight a = marked(5, BOTH), b = marked(4, BOTH);

	memcpy(b.marker.members[0], RUN_B, sizeof RUN_B);
	decides(a, b, TRUST_ANSWERS, RECOVERY_READ, BOTH);
}
END_TEST

/* The marker of a, which is another process now, leaves b behind. */
static struct sight leaves_b(uint64_t version, uint64_t left_version)
{
	struct sight s = marked(version, 1);

	memcpy(s.marker.left[1].run_id, RUN_B, sizeof RUN_B);
	s.marker.left[1].version = left_version;
	return s;
}

START_TEST(server_that_was_left_behind_by_an_earlier_process_of_the_other_is_left_out)
{
	struct sight b = marked(6, BOTH);

	memcpy(b.marker.members[0], RUN_C, sizeof RUN_C);
	decides(leaves_b(8, 6), b, TRUST_ANSWERS, RECOVERY_READ, 1);
	b.marker.version = 5;
	decides(leaves_b(8, 6), b, TRUST_ANSWERS, RECOVERY_READ, 1);
}
END_TEST

START_TEST(server_that_went_on_after_it_was_left_behind_is_united)
{
	struct sight b = marked(7, 2);

	decides(leaves_b(8, 6), b, TRUST_ANSWERS, RECOVERY_READ, BOTH);
	b.marker.version = 6;
	memcpy(b.marker.run_id, RUN_C, sizeof RUN_C);
	decides(leaves_b(8, 6), b, TRUST_ANSWERS, RECOVERY_READ, BOTH);
}
END_TEST

/* The gateway ONE sent b the version 9, has heard of 6, and went on with a, which restarted meanwhile. */
static struct sight leaves_b_unheard(void)
{
	struct sight s = leaves_b(11, 6);

	s.marker.left[1].sent = 9;
	memcpy(s.marker.left[1].by, ONE, sizeof ONE);
	return s;
}

static struct sight marked_by(const char *gateway, uint64_t version)
{
	struct sight s = marked(version, BOTH);

	memcpy(s.marker.members[0], RUN_C, sizeof RUN_C);
	snprintf(s.marker.by, sizeof s.marker.by, "%s", gateway);
	return s;
}

START_TEST(server_that_executed_a_marker_whose_answer_was_lost_is_left_out)
{
	decides(leaves_b_unheard(), marked_by(ONE, 9), TRUST_ANSWERS, RECOVERY_READ, 1);
	decides(leaves_b_unheard(), marked_by(ONE, 8), TRUST_ANSWERS, RECOVERY_READ, 1);
}
END_TEST

START_TEST(server_that_another_gateway_marked_with_the_version_of_a_lost_marker_is_united)
{
	decides(leaves_b_unheard(), marked_by(OTHER, 9), TRUST_ANSWERS, RECOVERY_READ, BOTH);
	decides(leaves_b_unheard(), marked_by(ONE, 10), TRUST_ANSWERS, RECOVERY_READ, BOTH);
}
END_TEST

START_TEST(server_that_nobody_is_known_to_have_marked_is_united)
{
	decides(leaves_b_unheard(), marked_by("", 9), TRUST_ANSWERS, RECOVERY_READ, BOTH);
	decides(leaves_b(11, 6), marked_by("", 9), TRUST_ANSWERS, RECOVERY_READ, BOTH);
}
END_TEST

START_TEST(lost_marker_of_a_process_says_nothing_about_the_next_one)
{
	struct sight a = leaves_b_unheard();

	marker_left_of(&a.marker, 1, RUN_B);
	ck_assert_uint_eq(a.marker.left[1].sent, 9);
	marker_left_of(&a.marker, 1, RUN_C);
	ck_assert_str_eq(a.marker.left[1].run_id, RUN_C);
	ck_assert_uint_eq(a.marker.left[1].sent, 0);
	ck_assert_uint_eq(a.marker.left[1].version, 0);
}
END_TEST

START_TEST(absent_member_is_waited_for)
{
	decides(marked(4, BOTH), away, TRUST_ANSWERS, RECOVERY_WAIT, 1);
	decides(marked(4, BOTH), away, TRUST_PRESENT, RECOVERY_READ, 1);
	decides(away, marked(4, BOTH), TRUST_ANSWERS, RECOVERY_WAIT, 2);
}
END_TEST

START_TEST(absent_server_that_is_no_member_is_not_waited_for)
{
	decides(marked(5, 1), away, TRUST_ANSWERS, RECOVERY_READ, 1);
	decides(away, marked(5, 2), TRUST_ANSWERS, RECOVERY_READ, 2);
	decides(away, marked(5, 2), TRUST_NOTHING, RECOVERY_WAIT, 2);
}
END_TEST

START_TEST(empty_server_beside_a_marked_one_is_not_waited_for)
{
	decides(marked(4, BOTH), empty, TRUST_ANSWERS, RECOVERY_READ, 1);
	decides(empty, marked(4, BOTH), TRUST_ANSWERS, RECOVERY_READ, 2);
}
END_TEST

START_TEST(member_apart_is_read_although_its_version_is_lower)
{
	struct sight a = marked(9, 1), b = marked(6, 2);

	memcpy(a.marker.apart[1], RUN_B, sizeof RUN_B);
	memcpy(b.marker.run_id, RUN_B, sizeof RUN_B);
	a.marker.apart_version = 6;
	decides(a, b, TRUST_ANSWERS, RECOVERY_READ, BOTH);
	decides(a, away, TRUST_ANSWERS, RECOVERY_WAIT, 1);
	decides(a, away, TRUST_PRESENT, RECOVERY_READ, 1);
	memcpy(b.marker.members[0], RUN_A, sizeof RUN_A);
	decides(a, b, TRUST_ANSWERS, RECOVERY_READ, BOTH);
	a.marker.apart_version = 7;
	decides(a, b, TRUST_ANSWERS, RECOVERY_READ, 1);
	a.marker.apart_version = 6;
	memcpy(b.marker.run_id, RUN_A, sizeof RUN_A);
	decides(a, b, TRUST_ANSWERS, RECOVERY_READ, 1);
}
END_TEST

static void is_read(char *owners, const char *by, uint64_t version)
{
	struct marker m = { .version = version };

	memcpy(m.by, by, strlen(by) + 1);
	memcpy(m.owners, owners, OWNERS_LEN + 1);
	marker_note_owners(owners, &m);
}

static const char *gateway(unsigned n)
{
	static char nonce[NONCE_LEN + 1];

	snprintf(nonce, sizeof nonce, "%032x", n);
	return nonce;
}

START_TEST(owner_whose_marker_was_read_is_known_with_its_highest_version)
{
	char owners[OWNERS_LEN + 1] = "";

	ck_assert_uint_eq(marker_owner_version(owners, gateway(1)), 0);
	is_read(owners, gateway(1), 7);
	is_read(owners, gateway(2), 9);
	is_read(owners, gateway(1), 5);
	ck_assert_uint_eq(marker_owner_version(owners, gateway(1)), 7);
	ck_assert_uint_eq(marker_owner_version(owners, gateway(2)), 9);
	ck_assert_uint_eq(marker_owner_version(owners, gateway(3)), 0);
	ck_assert_uint_eq(marker_owner_version(owners, ""), 0);
}
END_TEST

START_TEST(last_eight_owners_are_known)
{
	char owners[OWNERS_LEN + 1] = "";

	for (unsigned n = 1; n <= OWNERS_KEPT + 1; n++)
		is_read(owners, gateway(n), n);
	ck_assert_uint_eq(strlen(owners), OWNERS_LEN);
	ck_assert_uint_eq(marker_owner_version(owners, gateway(1)), 0);
	for (unsigned n = 2; n <= OWNERS_KEPT + 1; n++)
		ck_assert_uint_eq(marker_owner_version(owners, gateway(n)), n);
}
END_TEST

/* a was replaced when it had version 4; its marker of version 5 may have been executed. */
static void replace_a(char replaced[static REPLACED_MAX + 1])
{
	struct marker_left l = { .version = 4, .sent = 5 };

	memcpy(l.run_id, RUN_A, sizeof RUN_A);
	memcpy(l.by, ONE, sizeof ONE);
	marker_note_replaced(replaced, &l);
}

static struct marker of_a(uint64_t version, const char *by)
{
	struct marker m = marked(version, BOTH).marker;

	memcpy(m.run_id, RUN_A, sizeof RUN_A);
	snprintf(m.by, sizeof m.by, "%s", by);
	return m;
}

START_TEST(server_that_was_replaced_is_known_by_process_and_version)
{
	char replaced[REPLACED_MAX + 1] = "";
	struct marker m = of_a(4, OTHER), other = of_a(4, OTHER);

	ck_assert_int_eq(marker_is_replaced(replaced, &m), 0);
	replace_a(replaced);
	ck_assert_int_eq(marker_is_replaced(replaced, &m), 1);
	memcpy(other.run_id, RUN_B, sizeof RUN_B);
	ck_assert_int_eq(marker_is_replaced(replaced, &other), 0);
}
END_TEST

START_TEST(server_that_went_on_after_it_was_replaced_is_not_replaced)
{
	char replaced[REPLACED_MAX + 1] = "";
	struct marker m = of_a(5, OTHER);

	replace_a(replaced);
	ck_assert_int_eq(marker_is_replaced(replaced, &m), 0);
	m = of_a(5, ONE); /* the marker whose answer was lost */
	ck_assert_int_eq(marker_is_replaced(replaced, &m), 1);
	m = of_a(6, ONE);
	ck_assert_int_eq(marker_is_replaced(replaced, &m), 0);
}
END_TEST

/* Both processes that its marker names are gone from the servers that are read. */
START_TEST(server_that_was_replaced_is_behind_when_all_others_are_new_processes)
{
	struct marker read[BACKUPS] = { 0 }, m = of_a(4, ONE);

	read[1] = marked(9, 2).marker;
	memcpy(read[1].run_id, RUN_C, sizeof RUN_C);
	ck_assert_int_eq(marker_is_behind(&m, read), 0);
	replace_a(read[1].replaced);
	ck_assert_int_eq(marker_is_behind(&m, read), 1);
}
END_TEST

static void replace_number(char replaced[static REPLACED_MAX + 1], unsigned n)
{
	struct marker_left l = { .version = n };

	snprintf(l.run_id, sizeof l.run_id, "%040u", n);
	marker_note_replaced(replaced, &l);
}

static int is_replaced_number(const char *replaced, unsigned n)
{
	struct marker m = { .version = n };

	snprintf(m.run_id, sizeof m.run_id, "%040u", n);
	return marker_is_replaced(replaced, &m);
}

START_TEST(latest_replaced_servers_are_kept_and_none_twice)
{
	char replaced[REPLACED_MAX + 1] = "";

	for (unsigned n = 1; n <= REPLACED_KEPT + 2; n++)
		replace_number(replaced, n);
	replace_number(replaced, 5);
	ck_assert_uint_eq(strlen(replaced), REPLACED_MAX);
	for (unsigned n = 1; n <= REPLACED_KEPT + 2; n++)
		ck_assert_int_eq(is_replaced_number(replaced, n), n > 2);
}
END_TEST

START_TEST(replaced_servers_of_two_markers_are_all_known)
{
	char one[REPLACED_MAX + 1] = "", other[REPLACED_MAX + 1] = "";

	replace_number(one, 1);
	replace_number(other, 2);
	replace_number(other, 3);
	marker_merge_replaced(one, other);
	for (unsigned n = 1; n <= 3; n++)
		ck_assert_int_eq(is_replaced_number(one, n), 1);
	ck_assert_uint_eq(strlen(one), 3 * REPLACED_LEN);
	marker_merge_replaced(one, "");
	ck_assert_uint_eq(strlen(one), 3 * REPLACED_LEN);
}
END_TEST

START_TEST(damaged_list_of_replaced_servers_names_none)
{
	struct marker m = of_a(1, ONE);

	ck_assert_int_eq(marker_is_replaced(RUN_A, &m), 0);
	ck_assert_int_eq(marker_is_replaced("x", &m), 0);
}
END_TEST

UNIT(marker)
{
	const TTest *facts[] = {
		server_that_restarted_is_not_believed,
		first_start_needs_the_answer_of_both,
		two_of_one_version_are_united,
		lower_version_is_left_out,
		servers_that_went_on_without_each_other_are_united,
		server_that_went_on_beside_an_earlier_process_of_the_other_is_united,
		server_that_was_left_behind_by_an_earlier_process_of_the_other_is_left_out,
		server_that_went_on_after_it_was_left_behind_is_united,
		server_that_executed_a_marker_whose_answer_was_lost_is_left_out,
		server_that_another_gateway_marked_with_the_version_of_a_lost_marker_is_united,
		server_that_nobody_is_known_to_have_marked_is_united,
		lost_marker_of_a_process_says_nothing_about_the_next_one,
		absent_member_is_waited_for,
		absent_server_that_is_no_member_is_not_waited_for,
		empty_server_beside_a_marked_one_is_not_waited_for,
		member_apart_is_read_although_its_version_is_lower,
		owner_whose_marker_was_read_is_known_with_its_highest_version,
		last_eight_owners_are_known,
		server_that_was_replaced_is_known_by_process_and_version,
		server_that_went_on_after_it_was_replaced_is_not_replaced,
		server_that_was_replaced_is_behind_when_all_others_are_new_processes,
		latest_replaced_servers_are_kept_and_none_twice,
		replaced_servers_of_two_markers_are_all_known,
		damaged_list_of_replaced_servers_names_none,
	};
	return suite_run("marker", facts, SUITE_LEN(facts));
}
