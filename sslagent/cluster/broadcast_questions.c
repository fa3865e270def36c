/* broadcast_questions.c: the questions of a receiver. It asks a sender for a proof that it lives, and for missing
 * numbers. It repeats each question, more and more slowly, until the answer comes. */
#include <sodium.h>

#include "sslagent/cluster/broadcast_receiver_internal.h"
#include "sslagent/counters.h"

#define PROBE_FIRST_MS   20 /* then twice that, and so on */
#define PROBE_SLOWEST_MS 500
#define REORDER_MS       5  /* a missing number may only be late */
#define ASK_FIRST_MS     10 /* and a round trip; then twice that, and so on */
#define ASK_SLOWEST_MS   200
#define ASK_RUNS_MAX     64u /* of each stream at a time */

static void due(struct broadcast_receiver *r, int64_t at_ms)
{
	if (at_ms < r->due_ms)
		r->due_ms = at_ms;
}

static bool wants_proof(const struct sender *s, int64_t now_ms)
{
	if (s->key_count == 0)
		return false;
	return !sender_believes(s, s->keys[s->key_in_use]) || now_ms - s->clock_asked_ms > CLOCK_LIFE_MS;
}

void questions_probe(struct broadcast_receiver *r, struct sender *s, int64_t now_ms)
{
	if (!wants_proof(s, now_ms))
		return;
	s->probe_every_ms = PROBE_FIRST_MS;
	s->probe_at_ms = now_ms;
	due(r, now_ms);
}

void questions_proven(struct sender *s)
{
	s->challenge_ms = NEVER;
	s->probe_every_ms = PROBE_FIRST_MS;
}

void questions_ask_soon(struct broadcast_receiver *r, struct sender *s, int64_t now_ms)
{
	s->ask_every_ms = ASK_FIRST_MS + s->round_trip_ms;
	if (s->ask_at_ms == NEVER)
		s->ask_at_ms = now_ms + REORDER_MS;
	due(r, s->ask_at_ms);
}

static void say(struct broadcast_receiver *r, unsigned sender, Cssl__BroadcastMessage *m, int64_t now_ms)
{
	m->made_ms = now_ms;
	r->ops.say(r->ctx, sender, m);
}

static void probe(struct broadcast_receiver *r, unsigned sender, int64_t now_ms)
{
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .what_case = CSSL__BROADCAST_MESSAGE__WHAT_PROBE };
	struct sender *s = &r->senders[sender];

	if (s->challenge_ms == NEVER || now_ms - s->challenge_ms > CHALLENGE_LIFE_MS) {
		randombytes_buf(s->challenge, sizeof s->challenge);
		s->challenge_ms = now_ms;
	}
	m.probe = bytes_of(s->challenge, CHALLENGE_LEN);
	say(r, sender, &m, now_ms);
	count(COUNT_PROBES_SENT);
	s->probe_at_ms = now_ms + s->probe_every_ms;
	s->probe_every_ms = s->probe_every_ms * 2 < PROBE_SLOWEST_MS ? s->probe_every_ms * 2 : PROBE_SLOWEST_MS;
}

static void ask_for_run(
	struct broadcast_receiver *r, unsigned sender, unsigned worker, const struct number_run *run, int64_t now_ms)
{
	Cssl__Gap gap = { MESSAGE(gap), .worker = worker, .first = run->first, .last = run->last };
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .what_case = CSSL__BROADCAST_MESSAGE__WHAT_GAP,
		.gap = &gap };

	say(r, sender, &m, now_ms);
}

static void ask(struct broadcast_receiver *r, unsigned sender, int64_t now_ms)
{
	struct sender *s = &r->senders[sender];
	int64_t slowest_ms = ASK_SLOWEST_MS + s->round_trip_ms;
	bool is_heard = s->heard_ms != NEVER && now_ms - s->heard_ms < STALE_MS;
	unsigned asked = is_heard ? 0 : 1; /* ask later, when the sender is heard again */

	for (unsigned worker = 0; is_heard && worker <= s->workers; worker++) {
		const struct heard_numbers *n = &s->numbers[worker];

		for (unsigned run = 0; run < n->missing_count && run < ASK_RUNS_MAX; run++, asked++)
			ask_for_run(r, sender, worker, &n->missing[run], now_ms);
	}
	s->ask_at_ms = asked > 0 ? now_ms + s->ask_every_ms : NEVER;
	s->ask_every_ms = s->ask_every_ms * 2 < slowest_ms ? s->ask_every_ms * 2 : slowest_ms;
}

static void tick_sender(struct broadcast_receiver *r, unsigned sender, int64_t now_ms)
{
	struct sender *s = &r->senders[sender];

	if (!s->numbers)
		return;
	if (wants_proof(s, now_ms)) {
		if (s->probe_at_ms <= now_ms)
			probe(r, sender, now_ms);
		due(r, s->probe_at_ms);
	} else if (s->key_count > 0) {
		due(r, s->clock_asked_ms + CLOCK_LIFE_MS + 1);
	}
	if (r->repair == REPAIR_HELD || s->ask_at_ms == NEVER)
		return;
	if (s->ask_at_ms <= now_ms)
		ask(r, sender, now_ms);
	if (s->ask_at_ms != NEVER)
		due(r, s->ask_at_ms);
}

void broadcast_receiver_tick(struct broadcast_receiver *r, int64_t now_ms)
{
	if (now_ms < r->due_ms)
		return;
	receiver_lock(r);
	r->due_ms = INT64_MAX;
	for (unsigned sender = 0; sender < r->sender_count; sender++)
		tick_sender(r, sender, now_ms);
	receiver_unlock(r);
}

int64_t broadcast_receiver_due_ms(const struct broadcast_receiver *r)
{
	return r->due_ms;
}

void broadcast_receiver_repair(struct broadcast_receiver *r, enum receiver_repair repair)
{
	receiver_lock(r);
	r->repair = repair;
	r->due_ms = NEVER;
	receiver_unlock(r);
}
