/* wheel.h: one timer for each of thousands of clients, to the millisecond. */
#pragma once

#include <stdint.h>

#define WHEEL_SLOTS 1024u

struct wheel_timer {
	struct wheel_timer *next, **prev; /* prev NULL: not set */
	uint64_t at_ms;
};

struct wheel {
	uint64_t looked_ms; /* everything due before is out */
	struct wheel_timer *slots[WHEEL_SLOTS];
};

uint64_t clock_us(void); /* monotonic, the same for all processes of a machine */

/* Setting a set one moves it. What is due already is found by the next wheel_due(). */
void wheel_set(struct wheel *w, struct wheel_timer *t, uint64_t at_ms);
void wheel_cancel(struct wheel_timer *t);
/* Take out a timer that is due. NULL: no other one is due now. */
struct wheel_timer *wheel_due(struct wheel *w, uint64_t now_ms);
