/* drain.c: relaxed atomics: slightly old figures are good enough. Only the state changes by compare-and-exchange, so
 * that exactly one worker sees the end of the drain.
 */
#include "ragent/dispatch/drain.h"

#include <assert.h>
#include <stdatomic.h>

#define GET(field)    atomic_load_explicit(&(field), memory_order_relaxed)
#define SET(field, v) atomic_store_explicit(&(field), (v), memory_order_relaxed)
#define ADD(field, n) atomic_fetch_add_explicit(&(field), (n), memory_order_relaxed)

#define TO(name) (1u << DRAIN_##name)

static const struct {
	const char *text;
	unsigned may_go_to;
} states[DRAIN_STATE_COUNT] = {
	[DRAIN_NONE] = { "none", TO(UNDER_WAY) },
	[DRAIN_UNDER_WAY] = { "draining", TO(DONE) | TO(TIMED_OUT) | TO(NONE) },
	[DRAIN_DONE] = { "drained", TO(UNDER_WAY) | TO(NONE) },
	[DRAIN_TIMED_OUT] = { "timed out", TO(UNDER_WAY) | TO(NONE) },
};

bool drain_may_go(enum drain_state from, enum drain_state to)
{
	return (states[from].may_go_to >> to) & 1;
}

/* false: another thread was faster. */
static bool drain_move(struct drain *d, enum drain_state from, enum drain_state to)
{
	uint32_t expected = from;

	assert(drain_may_go(from, to));
	return atomic_compare_exchange_strong(&d->state, &expected, to);
}

enum drain_state drain_state(const struct drain *d)
{
	return (enum drain_state)GET(d->state);
}

void drain_begin(struct drain *d, enum drain_reason reason, uint64_t now_ms, uint64_t timeout_ms, uint64_t held)
{
	SET(d->reason, reason);
	SET(d->deadline_ms, now_ms + timeout_ms);
	if (drain_state(d) == DRAIN_UNDER_WAY)
		return; /* another deadline for the same drain */
	SET(d->began_ms, now_ms);
	SET(d->total, held);
	SET(d->moved, 0);
	SET(d->rested, 0);
	SET(d->ended, 0);
	SET(d->longest_pause_us, 0);
	SET(d->summed_pause_us, 0);
	drain_move(d, drain_state(d), DRAIN_UNDER_WAY);
}

void drain_end(struct drain *d)
{
	enum drain_state from;

	while ((from = drain_state(d)) != DRAIN_NONE && !drain_move(d, from, DRAIN_NONE))
		;
}

bool drain_settle(struct drain *d, uint64_t now_ms, uint64_t held)
{
	enum drain_state over = held == 0                       ? DRAIN_DONE
				: drain_left_ms(d, now_ms) == 0 ? DRAIN_TIMED_OUT
								: DRAIN_UNDER_WAY;

	if (over == DRAIN_UNDER_WAY || drain_state(d) != DRAIN_UNDER_WAY || !drain_move(d, DRAIN_UNDER_WAY, over))
		return false;
	SET(d->over_ms, now_ms);
	return true;
}

uint64_t drain_left_ms(const struct drain *d, uint64_t now_ms)
{
	uint64_t deadline_ms = GET(d->deadline_ms);

	return now_ms < deadline_ms ? deadline_ms - now_ms : 0;
}

uint64_t drain_spent_ms(const struct drain *d, uint64_t now_ms)
{
	uint64_t began_ms = GET(d->began_ms);

	return now_ms > began_ms ? now_ms - began_ms : 0;
}

void drain_note_moved(struct drain *d, uint64_t pause_us)
{
	uint64_t longest = GET(d->longest_pause_us);

	ADD(d->moved, 1);
	ADD(d->summed_pause_us, pause_us);
	while (pause_us > longest && !atomic_compare_exchange_weak(&d->longest_pause_us, &longest, pause_us))
		;
}

void drain_note_rested(struct drain *d)
{
	ADD(d->rested, 1);
}

void drain_note_ended(struct drain *d)
{
	ADD(d->ended, 1);
}

void drain_describe(const struct drain *d, uint64_t now_ms, uint64_t held, struct drain_report *out)
{
	static const char *const reasons[] = { [DRAIN_BY_OPERATOR] = "operator", [DRAIN_LEAVING] = "leaving" };
	enum drain_state state = drain_state(d);

	*out = (struct drain_report){ .state = states[state].text };
	if (state == DRAIN_NONE)
		return;
	uint64_t until_ms = state == DRAIN_UNDER_WAY ? now_ms : GET(d->over_ms);
	out->reason = reasons[GET(d->reason)];
	out->elapsed_ms = drain_spent_ms(d, until_ms);
	out->total = GET(d->total);
	out->left = held;
	out->moved = GET(d->moved);
	out->rested = GET(d->rested);
	out->ended = GET(d->ended);
	out->longest_pause_us = GET(d->longest_pause_us);
	out->summed_pause_us = GET(d->summed_pause_us);
}

void drain_say(const struct drain *d, struct drain_word *out)
{
	*out = (struct drain_word){ .began_ms = GET(d->began_ms),
		.over_ms = GET(d->over_ms),
		.deadline_ms = GET(d->deadline_ms),
		.total = GET(d->total),
		.moved = GET(d->moved),
		.rested = GET(d->rested),
		.ended = GET(d->ended),
		.longest_pause_us = GET(d->longest_pause_us),
		.summed_pause_us = GET(d->summed_pause_us),
		.state = GET(d->state),
		.reason = GET(d->reason) };
}

void drain_believe(struct drain *d, const struct drain_word *word)
{
	SET(d->began_ms, word->began_ms);
	SET(d->over_ms, word->over_ms);
	SET(d->deadline_ms, word->deadline_ms);
	SET(d->total, word->total);
	SET(d->moved, word->moved);
	SET(d->rested, word->rested);
	SET(d->ended, word->ended);
	SET(d->longest_pause_us, word->longest_pause_us);
	SET(d->summed_pause_us, word->summed_pause_us);
	SET(d->reason, word->reason);
	SET(d->state, word->state);
}
