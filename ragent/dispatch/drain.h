/* drain.h: the drain of one agent: its reason, begin and deadline, and the results for the agent's connections. All
 * workers write to it, by atomics. The agent table serialises begin and end. Pure: time comes as an argument.
 *
 *     NONE --begin--> UNDER_WAY --nothing left--> DONE
 *       ^                 |
 *       |                 +--deadline--> TIMED_OUT
 *       +-- end: from any of them
 *
 * A drain can begin again from DONE and TIMED_OUT. In all states but NONE the agent gets no new work.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum drain_state { DRAIN_NONE, DRAIN_UNDER_WAY, DRAIN_DONE, DRAIN_TIMED_OUT };
#define DRAIN_STATE_COUNT (DRAIN_TIMED_OUT + 1)

/* Who asked for the drain. */
enum drain_reason { DRAIN_BY_OPERATOR, DRAIN_LEAVING };

/* Embedded; zero is NONE. */
struct drain {
	_Atomic uint32_t state, reason;
	_Atomic uint64_t began_ms, over_ms, deadline_ms;
	_Atomic uint64_t total, moved, rested, ended;
	_Atomic uint64_t longest_pause_us, summed_pause_us;
};

/* @held: connections that the agent has now. */
void drain_begin(struct drain *d, enum drain_reason reason, uint64_t now_ms, uint64_t timeout_ms, uint64_t held);
void drain_end(struct drain *d);

/* End the drain if it is over. Did this call end it? */
bool drain_settle(struct drain *d, uint64_t now_ms, uint64_t held);

enum drain_state drain_state(const struct drain *d);
/* Time until the deadline; 0: it has passed. */
uint64_t drain_left_ms(const struct drain *d, uint64_t now_ms);
/* Time since the drain began. */
uint64_t drain_spent_ms(const struct drain *d, uint64_t now_ms);

/* Note the result for one connection. */
void drain_note_moved(struct drain *d, uint64_t pause_us);
void drain_note_rested(struct drain *d);
void drain_note_ended(struct drain *d);

struct drain_report {
	const char *state, *reason; /* @reason NULL: no drain */
	uint64_t elapsed_ms;
	uint64_t total, left, moved, rested, ended;
	uint64_t longest_pause_us, summed_pause_us;
};
void drain_describe(const struct drain *d, uint64_t now_ms, uint64_t held, struct drain_report *out);

/* The drain in the form in which a process gives it to its successor. */
struct drain_word {
	uint64_t began_ms, over_ms, deadline_ms;
	uint64_t total, moved, rested, ended;
	uint64_t longest_pause_us, summed_pause_us;
	uint32_t state, reason;
};
void drain_say(const struct drain *d, struct drain_word *out);
void drain_believe(struct drain *d, const struct drain_word *word);

/* 1 when the drawing above has this change, else 0. */
bool drain_may_go(enum drain_state from, enum drain_state to);
