/* questions.c: two timers, one of the proof and one of missing numbers. */
#include "sslagent/cluster/broadcast/questions.h"

#include <sodium.h>

#include "sslagent/counters.h"

#define PROBE_FIRST_MS   20 /* then twice that, and so on */
#define PROBE_SLOWEST_MS 500
#define REORDER_MS       5  /* a missing number may only be late */
#define ASK_FIRST_MS     10 /* and a round trip; then twice that, and so on */
#define ASK_SLOWEST_MS   200
#define ASK_RUNS_MAX     64u /* of each stream at a time */

static int64_t questions_earlier(int64_t a_ms, int64_t b_ms)
{
	return a_ms < b_ms ? a_ms : b_ms;
}

static bool questions_want_proof(const struct questions *q, enum sender_belief belief, int64_t now_ms)
{
	if (belief == BELIEF_NO_KEY)
		return false;
	return belief != BELIEF_PROVEN || now_ms - q->clock_asked_ms > CLOCK_LIFE_MS;
}

int64_t questions_probe(struct questions *q, enum sender_belief belief, int64_t now_ms)
{
	if (!questions_want_proof(q, belief, now_ms))
		return INT64_MAX;
	q->probe_every_ms = PROBE_FIRST_MS;
	q->probe_at_ms = now_ms;
	return now_ms;
}

int64_t questions_proven(struct questions *q, int64_t now_ms)
{
	const int64_t asked_ms = q->challenge_ms;

	q->round_trip_ms = now_ms - asked_ms;
	q->clock_asked_ms = now_ms;
	q->challenge_ms = NEVER;
	q->probe_every_ms = PROBE_FIRST_MS;
	return asked_ms;
}

int64_t questions_ask_soon(struct questions *q, int64_t now_ms)
{
	q->ask_every_ms = ASK_FIRST_MS + q->round_trip_ms;
	if (q->ask_at_ms == NEVER)
		q->ask_at_ms = now_ms + REORDER_MS;
	return q->ask_at_ms;
}

/* The same challenge for a while: the answer to an earlier probe proves as much. */
static void questions_say_probe(struct questions *q, const struct questioned *of, int64_t now_ms)
{
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .made_ms = now_ms,
		.what_case = CSSL__BROADCAST_MESSAGE__WHAT_PROBE };

	if (q->challenge_ms == NEVER || now_ms - q->challenge_ms > CHALLENGE_LIFE_MS) {
		randombytes_buf(q->challenge, sizeof q->challenge);
		q->challenge_ms = now_ms;
	}
	m.probe = bytes_of(q->challenge, CHALLENGE_LEN);
	of->say(of->ctx, of->sender, &m);
	count(COUNT_PROBES_SENT);
	q->probe_at_ms = now_ms + q->probe_every_ms;
	q->probe_every_ms = questions_earlier(q->probe_every_ms * 2, PROBE_SLOWEST_MS);
}

static void questions_say_gaps(struct questions *q, const struct questioned *of, int64_t now_ms)
{
	bool is_heard = of->heard_ms != NEVER && now_ms - of->heard_ms < STALE_MS;
	unsigned asked = is_heard ? 0 : 1; /* ask later, when the sender is heard again */
	Cssl__Gap gap = { MESSAGE(gap) };
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .made_ms = now_ms,
		.what_case = CSSL__BROADCAST_MESSAGE__WHAT_GAP, .gap = &gap };

	for (gap.worker = 0; is_heard && gap.worker <= of->workers; gap.worker++) {
		const struct heard_numbers *n = &of->numbers[gap.worker];

		for (unsigned run = 0; run < n->missing_count && run < ASK_RUNS_MAX; run++, asked++) {
			gap.first = n->missing[run].first;
			gap.last = n->missing[run].last;
			of->say(of->ctx, of->sender, &m);
		}
	}
	q->ask_at_ms = asked > 0 ? now_ms + q->ask_every_ms : NEVER;
	q->ask_every_ms = questions_earlier(q->ask_every_ms * 2, ASK_SLOWEST_MS + q->round_trip_ms);
}

int64_t questions_tick(struct questions *q, const struct questioned *of, int64_t now_ms)
{
	int64_t due_ms = INT64_MAX;

	if (questions_want_proof(q, of->belief, now_ms)) {
		if (q->probe_at_ms <= now_ms)
			questions_say_probe(q, of, now_ms);
		due_ms = q->probe_at_ms;
	} else if (of->belief != BELIEF_NO_KEY) {
		due_ms = q->clock_asked_ms + CLOCK_LIFE_MS + 1;
	}
	if (!of->numbers || q->ask_at_ms == NEVER)
		return due_ms;
	if (q->ask_at_ms <= now_ms)
		questions_say_gaps(q, of, now_ms);
	return q->ask_at_ms == NEVER ? due_ms : questions_earlier(due_ms, q->ask_at_ms);
}
