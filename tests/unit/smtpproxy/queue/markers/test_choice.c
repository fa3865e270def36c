/* test_choice.c: facts of the servers that a starting gateway takes for the places of its queue, if there are spares.
 */
#include <stdio.h>
#include <string.h>

#include "smtpproxy/queue/markers/choice.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

/* The servers of the file: two of `backups`, two spares. */
enum { A, B, Y, Z, SERVERS };

static struct choice_server servers[SERVERS];
static unsigned chosen[BACKUPS];

/* Each process has its own letter. */
static const char *run(char letter)
{
	static char texts[8][RUN_ID_LEN + 1];
	static unsigned next;
	char *text = texts[next++ % 8];

	memset(text, letter, RUN_ID_LEN);
	text[RUN_ID_LEN] = '\0';
	return text;
}

static void name(char out[static RUN_ID_LEN + 1], char letter)
{
	memcpy(out, letter == '-' ? "" : run(letter), letter == '-' ? 1 : RUN_ID_LEN + 1);
}

static void begin(void)
{
	memset(servers, 0, sizeof servers);
	chosen[0] = A;
	chosen[1] = B;
}

static void is_empty(unsigned server, char process)
{
	servers[server].sight = (struct sight){ .state = SIGHT_EMPTY };
	name(servers[server].run_id, process);
}

/* @members: two letters; "-": none. */
static void is_marked(unsigned server, char process, uint64_t version, const char *members)
{
	struct marker *m = &servers[server].sight.marker;

	is_empty(server, process);
	servers[server].sight.state = SIGHT_MARKED;
	m->version = version;
	name(m->run_id, process);
	name(m->members[0], members[0]);
	name(m->members[1], members[1]);
}

static void chooses(unsigned first, unsigned second)
{
	choice_make(servers, SERVERS, chosen);
	ck_assert_uint_eq(chosen[0], first);
	ck_assert_uint_eq(chosen[1], second);
}

static void decides(enum recovery_trust trust, enum recovery_step step)
{
	unsigned mask;

	ck_assert_int_eq(choice_decide(servers, SERVERS, chosen, trust, &mask), step);
}

static void reads(enum recovery_trust trust, unsigned is)
{
	unsigned mask;

	ck_assert_int_eq(choice_decide(servers, SERVERS, chosen, trust, &mask), RECOVERY_READ);
	ck_assert_uint_eq(mask, is);
}

START_TEST(homes_are_chosen_that_the_marker_names)
{
	is_marked(A, 'a', 4, "ab");
	is_marked(B, 'b', 4, "ab");
	is_empty(Y, 'y');
	is_empty(Z, 'z');
	chooses(A, B);
	reads(TRUST_NOTHING, 3);
}
END_TEST

START_TEST(spare_is_chosen_that_the_marker_names)
{
	is_marked(B, 'b', 6, "yb");
	is_marked(Y, 'y', 6, "yb");
	is_empty(Z, 'z');
	chooses(Y, B);
	decides(TRUST_NOTHING, RECOVERY_WAIT);
	reads(TRUST_ANSWERS, 3);
}
END_TEST

START_TEST(spare_is_chosen_for_the_place_that_it_had)
{
	is_empty(A, 'x');
	is_empty(B, 'w');
	is_marked(Y, 'y', 6, "zy");
	is_marked(Z, 'z', 6, "zy");
	chooses(Z, Y);
	reads(TRUST_NOTHING, 3);
}
END_TEST

START_TEST(server_that_was_replaced_and_came_back_is_not_chosen)
{
	is_marked(A, 'a', 4, "ab");
	is_marked(B, 'b', 6, "yb");
	is_marked(Y, 'y', 6, "yb");
	is_empty(Z, 'z');
	chooses(Y, B);
	reads(TRUST_NOTHING, 3);
}
END_TEST

/* It may have the only copy. */
START_TEST(absent_member_is_waited_for_although_the_server_that_it_replaced_is_back)
{
	is_marked(A, 'a', 4, "ab");
	is_marked(B, 'b', 6, "yb");
	is_empty(Z, 'z');
	chooses(Y, B);
	decides(TRUST_ANSWERS, RECOVERY_WAIT);
	reads(TRUST_PRESENT, 2);
}
END_TEST

START_TEST(old_server_alone_is_not_believed_while_a_spare_is_absent)
{
	is_marked(A, 'a', 4, "ab");
	is_empty(B, 'x');
	is_empty(Z, 'z');
	chooses(A, Y);
	decides(TRUST_ANSWERS, RECOVERY_WAIT);
	is_empty(Y, 'y');
	chooses(A, B);
	reads(TRUST_ANSWERS, 1);
}
END_TEST

/* Place 0 went back to its home, which does not answer, and the member of place 1 is gone. */
START_TEST(old_spare_alone_is_not_believed_while_a_home_is_absent)
{
	is_marked(Y, 'y', 6, "yb");
	is_empty(B, 'x');
	is_empty(Z, 'z');
	chooses(Y, B);
	decides(TRUST_ANSWERS, RECOVERY_WAIT);
	reads(TRUST_PRESENT, 1);
}
END_TEST

START_TEST(members_that_all_answer_are_enough)
{
	is_marked(A, 'a', 4, "ab");
	is_marked(B, 'b', 4, "ab");
	chooses(A, B);
	decides(TRUST_NOTHING, RECOVERY_WAIT);
	reads(TRUST_ANSWERS, 3);
}
END_TEST

START_TEST(member_that_is_another_process_now_is_gone_if_every_server_answers)
{
	is_empty(A, 'x');
	is_marked(B, 'b', 6, "yb");
	is_empty(Y, 'w');
	chooses(Z, B); /* which may be that process */
	decides(TRUST_ANSWERS, RECOVERY_WAIT);
	is_empty(Z, 'z');
	chooses(A, B);
	reads(TRUST_ANSWERS, 2);
}
END_TEST

START_TEST(empty_queue_begins_only_if_every_server_answers)
{
	is_empty(A, 'a');
	is_empty(B, 'b');
	is_empty(Y, 'y');
	chooses(A, B);
	decides(TRUST_ANSWERS, RECOVERY_WAIT);
	decides(TRUST_PRESENT, RECOVERY_WAIT);
	is_empty(Z, 'z');
	chooses(A, B);
	decides(TRUST_NOTHING, RECOVERY_BEGIN);
}
END_TEST

START_TEST(place_keeps_the_absent_server_that_it_waits_for)
{
	is_marked(B, 'b', 6, "yb");
	chosen[0] = Z;
	chooses(Z, B);
	is_marked(Y, 'y', 6, "yb");
	chooses(Y, B);
}
END_TEST

START_TEST(places_never_share_a_spare)
{
	is_marked(Y, 'y', 6, "yz");
	is_empty(Z, 'w');
	chosen[0] = Y;
	chosen[1] = Z;
	choice_make(servers, SERVERS, chosen);
	ck_assert_uint_ne(chosen[0], chosen[1]);
	ck_assert_uint_eq(chosen[0], Y);
	begin();
	is_marked(Y, 'y', 6, "by");
	choice_make(servers, SERVERS, chosen);
	ck_assert_uint_eq(chosen[1], Y);
	ck_assert_uint_eq(chosen[0], A);
}
END_TEST

START_TEST(branch_beside_a_replaced_server_is_read_too)
{
	is_marked(A, 'a', 9, "a-");
	is_marked(B, 'b', 6, "yb");
	is_marked(Y, 'y', 6, "yb");
	is_empty(Z, 'z');
	chooses(A, B);
	reads(TRUST_NOTHING, 3);
}
END_TEST

START_TEST(next_server_is_the_one_behind_the_present_one)
{
	const unsigned all = 1u << A | 1u << B | 1u << Y | 1u << Z;

	ck_assert_uint_eq(choice_next(SERVERS, chosen, 0, all), Y);
	ck_assert_uint_eq(choice_next(SERVERS, chosen, 0, 1u << Z | 1u << A), Z);
	ck_assert_uint_eq(choice_next(SERVERS, chosen, 0, 1u << B), SERVERS); /* the home of the other place */
	chosen[0] = Y;
	ck_assert_uint_eq(choice_next(SERVERS, chosen, 0, all), Z);
	ck_assert_uint_eq(choice_next(SERVERS, chosen, 1, all), Z); /* the other place has Y */
	chosen[0] = Z;
	ck_assert_uint_eq(choice_next(SERVERS, chosen, 0, all), A);
	ck_assert_uint_eq(choice_next(SERVERS, chosen, 0, 1u << Z), SERVERS);
}
END_TEST

UNIT(choice)
{
	const TTest *facts[] = {
		homes_are_chosen_that_the_marker_names,
		spare_is_chosen_that_the_marker_names,
		spare_is_chosen_for_the_place_that_it_had,
		server_that_was_replaced_and_came_back_is_not_chosen,
		absent_member_is_waited_for_although_the_server_that_it_replaced_is_back,
		old_server_alone_is_not_believed_while_a_spare_is_absent,
		old_spare_alone_is_not_believed_while_a_home_is_absent,
		members_that_all_answer_are_enough,
		member_that_is_another_process_now_is_gone_if_every_server_answers,
		empty_queue_begins_only_if_every_server_answers,
		place_keeps_the_absent_server_that_it_waits_for,
		places_never_share_a_spare,
		branch_beside_a_replaced_server_is_read_too,
		next_server_is_the_one_behind_the_present_one,
	};
	return suite_run_with("choice", begin, facts, SUITE_LEN(facts));
}
