/* pace.h: how long a sender lets others wait within one transaction, for its connection to the receiver or for the
 * memory that its message takes. It has some time in all, and more for each byte that it sends. No sockets; the time is
 * an argument.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum pace_turn { PACE_RECEIVER, PACE_SENDER };

/* Embedded; zero begins a transaction, in which the receiver has to act. */
struct pace {
	uint64_t waited_ms; /* for the sender, up to since_ms */
	uint64_t all_ms;    /* the same, and no bytes pay for it */
	uint64_t since_ms;  /* SENDER: when it became its turn */
	uint64_t bytes;     /* that it has sent */
	uint8_t turn;       /* enum pace_turn: the side that has to act now */
};

struct pace_rules {
	uint32_t patience_ms; /* for the whole transaction, beside the time for its bytes */
	uint32_t least_rate;  /* bytes a second, not 0 */
};

void pace_set_turn(struct pace *p, enum pace_turn turn, uint64_t now_ms);
void pace_count(struct pace *p, size_t bytes);

/* The bytes that the sender sent so far have paid for its time so far, and pay for no later pause. So bytes give it
 * time only if they come at least_rate. */
void pace_settle(struct pace *p, const struct pace_rules *rules, uint64_t now_ms);

/* Milliseconds in which it was the sender's turn in this transaction. */
uint64_t pace_all_ms(const struct pace *p, uint64_t now_ms);

/* Milliseconds that the sender may still let wait. 0: it is too slow. */
uint64_t pace_left_ms(const struct pace *p, const struct pace_rules *rules, uint64_t now_ms);
