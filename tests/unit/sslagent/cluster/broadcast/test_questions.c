/* test_questions.c: when a sender is asked again. */
#include <string.h>

#include "sslagent/cluster/broadcast/questions.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

static unsigned probes, gaps;
static uint8_t challenge[CHALLENGE_LEN];
static uint64_t gap_first, gap_last;

static void on_say(void *ctx, unsigned sender, Cssl__BroadcastMessage *m)
{
	ck_assert_uint_eq(sender, 7);
	if (m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_PROBE) {
		memcpy(challenge, m->probe.data, CHALLENGE_LEN);
		probes++;
		return;
	}
	ck_assert_int_eq(m->what_case, CSSL__BROADCAST_MESSAGE__WHAT_GAP);
	gap_first = m->gap->first;
	gap_last = m->gap->last;
	gaps++;
}

static struct questioned sender_with(enum sender_belief belief, const struct heard_numbers *numbers)
{
	probes = gaps = 0;
	return (struct questioned){
		.sender = 7, .belief = belief, .heard_ms = 1000, .numbers = numbers, .say = on_say
	};
}

/* Tick when it is due, until @until_ms. */
static void run_until(struct questions *q, const struct questioned *of, int64_t now_ms, int64_t until_ms)
{
	while (now_ms < until_ms)
		now_ms = questions_tick(q, of, now_ms);
}

START_TEST(a_sender_without_a_key_is_asked_for_no_proof)
{
	const struct questioned of = sender_with(BELIEF_NO_KEY, NULL);
	struct questions q = QUESTIONS_NONE;

	ck_assert(questions_probe(&q, of.belief, 1000) == INT64_MAX);
	ck_assert(questions_tick(&q, &of, 1000) == INT64_MAX);
	ck_assert_uint_eq(probes, 0);
}
END_TEST

START_TEST(a_proof_is_asked_for_more_and_more_slowly)
{
	const struct questioned of = sender_with(BELIEF_UNPROVEN, NULL);
	struct questions q = QUESTIONS_NONE;

	ck_assert_int_eq(questions_probe(&q, of.belief, 1000), 1000);
	ck_assert_int_eq(questions_tick(&q, &of, 1000), 1020);
	ck_assert_int_eq(questions_tick(&q, &of, 1010), 1020); /* not yet */
	ck_assert_int_eq(questions_tick(&q, &of, 1020), 1060);
	ck_assert_uint_eq(probes, 2);
	run_until(&q, &of, 1060, 9000);
	ck_assert_int_le(q.probe_every_ms, 500);
	ck_assert_uint_gt(probes, 16);
	ck_assert_uint_lt(probes, 24);
}
END_TEST

START_TEST(a_challenge_is_a_new_one_after_its_life)
{
	const struct questioned of = sender_with(BELIEF_UNPROVEN, NULL);
	struct questions q = QUESTIONS_NONE;
	uint8_t first[CHALLENGE_LEN];

	questions_probe(&q, of.belief, 1000);
	questions_tick(&q, &of, 1000);
	memcpy(first, challenge, sizeof(first));
	questions_tick(&q, &of, 1000 + CHALLENGE_LIFE_MS);
	ck_assert_mem_eq(first, challenge, sizeof(first));
	questions_tick(&q, &of, 1000 + 2 * CHALLENGE_LIFE_MS);
	ck_assert_mem_ne(first, challenge, sizeof(first));
}
END_TEST

START_TEST(a_proven_sender_is_asked_again_when_its_clock_is_old)
{
	const struct questioned of = sender_with(BELIEF_PROVEN, NULL);
	struct questions q = QUESTIONS_NONE;

	questions_probe(&q, BELIEF_UNPROVEN, 1000);
	questions_tick(&q, &of, 1000);
	ck_assert_int_eq(questions_proven(&q, 1004), 1000);
	ck_assert_int_eq(q.round_trip_ms, 4);
	probes = 0;
	ck_assert_int_eq(questions_tick(&q, &of, 1005), 1004 + CLOCK_LIFE_MS + 1);
	ck_assert_uint_eq(probes, 0);
	questions_tick(&q, &of, 1004 + CLOCK_LIFE_MS + 1);
	ck_assert_uint_eq(probes, 1);
}
END_TEST

START_TEST(missing_numbers_are_asked_for_until_they_are_here)
{
	struct heard_numbers numbers = { 0 };
	struct questioned of = sender_with(BELIEF_PROVEN, &numbers);
	struct questions q = QUESTIONS_NONE;
	uint64_t missed = 0;

	q.clock_asked_ms = 1000;
	heard_numbers_extend(&numbers, 3);
	ck_assert_int_eq(questions_ask_soon(&q, 1000), 1005); /* they may only be late */
	ck_assert_int_eq(questions_tick(&q, &of, 1004), 1005);
	ck_assert_uint_eq(gaps, 0);
	ck_assert_int_eq(questions_tick(&q, &of, 1005), 1015);
	ck_assert_uint_eq(gaps, 1);
	ck_assert_uint_eq(gap_first, 1);
	ck_assert_uint_eq(gap_last, 3);
	of.heard_ms = 1015;
	for (uint64_t number = 1; number <= 3; number++)
		heard_numbers_take(&numbers, number, &missed);
	questions_tick(&q, &of, 1015);
	ck_assert_uint_eq(gaps, 1);
	ck_assert(q.ask_at_ms == NEVER);
	free(numbers.missing);
}
END_TEST

START_TEST(a_silent_sender_is_asked_when_it_is_heard_again)
{
	struct heard_numbers numbers = { 0 };
	struct questioned of = sender_with(BELIEF_PROVEN, &numbers);
	struct questions q = QUESTIONS_NONE;

	q.clock_asked_ms = 1000 + STALE_MS;
	heard_numbers_extend(&numbers, 3);
	questions_ask_soon(&q, 1000 + STALE_MS);
	questions_tick(&q, &of, 1005 + STALE_MS);
	ck_assert_uint_eq(gaps, 0);
	of.heard_ms = 1010 + STALE_MS;
	questions_tick(&q, &of, q.ask_at_ms);
	ck_assert_uint_eq(gaps, 1);
	free(numbers.missing);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_sender_without_a_key_is_asked_for_no_proof);
	tcase_add_test(tcase, a_proof_is_asked_for_more_and_more_slowly);
	tcase_add_test(tcase, a_challenge_is_a_new_one_after_its_life);
	tcase_add_test(tcase, a_proven_sender_is_asked_again_when_its_clock_is_old);
	tcase_add_test(tcase, missing_numbers_are_asked_for_until_they_are_here);
	tcase_add_test(tcase, a_silent_sender_is_asked_when_it_is_heard_again);
}

UNIT(questions)
{
	return run_suite("questions", add);
}
