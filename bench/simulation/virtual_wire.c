/* virtual_wire.c: a wheel of milliseconds; what is due later than one round stays in its slot for another. */
#include "bench/simulation/virtual_wire.h"

#include <math.h>
#include <stdlib.h>

#define WHEEL 16384u

struct slot {
	struct wire_event *first, **end;
};

struct virtual_wire {
	struct virtual_wire_conf conf;
	void *ctx;
	int64_t now_ms;
	uint64_t random;
	struct slot wheel[WHEEL];
};

static void slot_clear(struct slot *s)
{
	s->first = NULL;
	s->end = &s->first;
}

static void slot_add(struct slot *s, struct wire_event *e)
{
	e->next = NULL;
	*s->end = e;
	s->end = &e->next;
}

struct virtual_wire *virtual_wire_create(const struct virtual_wire_conf *conf, void *ctx)
{
	struct virtual_wire *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->conf = *conf;
	w->ctx = ctx;
	w->random = conf->seed * 2 + 1;
	for (unsigned i = 0; i < WHEEL; i++)
		slot_clear(&w->wheel[i]);
	return w;
}

void virtual_wire_destroy(struct virtual_wire *w, void (*drop)(struct wire_event *e))
{
	if (!w)
		return;
	for (unsigned i = 0; i < WHEEL; i++) {
		for (struct wire_event *next, *e = w->wheel[i].first; e; e = next) {
			next = e->next;
			drop(e);
		}
	}
	free(w);
}

int64_t virtual_wire_now_ms(const struct virtual_wire *w)
{
	return w->now_ms;
}

void virtual_wire_after(struct virtual_wire *w, struct wire_event *e, int64_t ms)
{
	e->due_ms = w->now_ms + (ms > 0 ? ms : 1);
	slot_add(&w->wheel[(uint64_t)e->due_ms % WHEEL], e);
}

int virtual_wire_send(struct virtual_wire *w, struct wire_event *e)
{
	if (virtual_wire_chance(w) < w->conf.loss)
		return WIRE_LOST;
	virtual_wire_after(w, e, w->conf.delay_ms + virtual_wire_pick(w, w->conf.jitter_ms + 1));
	return 0;
}

void virtual_wire_step(struct virtual_wire *w)
{
	struct slot *slot = &w->wheel[(uint64_t)++w->now_ms % WHEEL];
	struct wire_event *e = slot->first;

	slot_clear(slot);
	for (struct wire_event *next; e; e = next) {
		next = e->next;
		if (e->due_ms > w->now_ms)
			slot_add(slot, e);
		else
			e->fn(w->ctx, e);
	}
}

/* xorshift64*. */
double virtual_wire_chance(struct virtual_wire *w)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return (double)((w->random * UINT64_C(2685821657736338717)) >> 11) / (double)(UINT64_C(1) << 53);
}

unsigned virtual_wire_pick(struct virtual_wire *w, unsigned n)
{
	return (unsigned)(virtual_wire_chance(w) * n);
}

/* Draws exponential waits one after another, and counts how many of them fit. */
unsigned virtual_wire_poisson(struct virtual_wire *w, double mean)
{
	unsigned happened = 0;

	for (double at = -log(1 - virtual_wire_chance(w)); at < mean; happened++)
		at += -log(1 - virtual_wire_chance(w));
	return happened;
}
