/* virtual_wire.h: virtual time in milliseconds, and a network in it that delays and loses, the same way every time for
 * one seed. Things happen when due, in the order in which they were put there. */
#ifndef CSSL_BENCH_SIMULATION_VIRTUAL_WIRE_H
#define CSSL_BENCH_SIMULATION_VIRTUAL_WIRE_H

#include <stdint.h>

struct virtual_wire;

struct virtual_wire_conf {
	uint64_t seed;
	double loss;        /* 0..1 */
	unsigned delay_ms;  /* one way */
	unsigned jitter_ms; /* more, at most: reorders */
};

/* Embedded in what happens. @fn gets it back when due and owns it; events that never come due are given to @drop. */
struct wire_event {
	struct wire_event *next;
	int64_t due_ms;
	void (*fn)(void *ctx, struct wire_event *e);
};

/* NULL: out of memory. @ctx: of all events. */
struct virtual_wire *virtual_wire_create(const struct virtual_wire_conf *conf, void *ctx);
void virtual_wire_destroy(struct virtual_wire *w, void (*drop)(struct wire_event *e));

int64_t virtual_wire_now_ms(const struct virtual_wire *w);

/* In @ms from now, at least 1. */
void virtual_wire_after(struct virtual_wire *w, struct wire_event *e, int64_t ms);

#define WIRE_LOST 1

/* As far as the network lets it: 0, it arrives; WIRE_LOST: it does not, and is the caller's again. */
int virtual_wire_send(struct virtual_wire *w, struct wire_event *e);

/* One millisecond on. */
void virtual_wire_step(struct virtual_wire *w);

/* Uniform in [0, 1); below @n; how often something happened that happens @mean times on average. */
double virtual_wire_chance(struct virtual_wire *w);
unsigned virtual_wire_pick(struct virtual_wire *w, unsigned n);
unsigned virtual_wire_poisson(struct virtual_wire *w, double mean);

#endif
