/* onwards.c: the list of a destination's connections, and the counts of them. */
#include "smtpproxy/outward/onwards.h"

#include <string.h>

void onwards_init(struct onwards *all, uint32_t shared[static DESTINATION_PLACES])
{
	TAILQ_INIT(&all->all);
	all->shared = shared;
}

uint32_t onwards_count(const uint32_t in[static DESTINATION_PLACES])
{
	uint32_t all = 0;
	for (unsigned i = 0; i < DESTINATION_PLACES; i++)
		all += in[i];
	return all;
}

uint32_t onwards_usable(const uint32_t in[static DESTINATION_PLACES])
{
	return in[DESTINATION_IDLE] + in[DESTINATION_LEASED];
}

static void onwards_come(struct onwards *all, struct onward *o, enum destination_place to)
{
	all->in[to]++;
	all->shared[to]++;
	o->place = (uint8_t)to;
}

static void onwards_go(struct onwards *all, const struct onward *o)
{
	all->in[o->place]--;
	all->shared[o->place]--;
}

void onwards_add(struct onwards *all, struct onward *o)
{
	TAILQ_INSERT_TAIL(&all->all, o, next);
	onwards_come(all, o, DESTINATION_OPENING);
	o->age = all->age;
}

void onwards_place(struct onwards *all, struct onward *o, enum destination_place to)
{
	onwards_go(all, o);
	onwards_come(all, o, to);
}

void onwards_remove(struct onwards *all, struct onward *o)
{
	onwards_go(all, o);
	TAILQ_REMOVE(&all->all, o, next);
}

struct onward *onwards_find_idle(const struct onwards *all, const char *name)
{
	struct onward *o, *any = NULL;
	TAILQ_FOREACH(o, &all->all, next)
	{
		if (o->place != DESTINATION_IDLE)
			continue;
		if (strcmp(o->greeting.name, name) == 0)
			return o;
		any = o;
	}
	return any;
}

/* It has TLS, or is about to try. */
static bool may_have_tls(const struct onward *o)
{
	return o->tls || (!o->taken && o->demand.clear == ONWARD_CLEAR_BY_FILE);
}

void onwards_age_clear_ones(struct onwards *all)
{
	const uint32_t before = all->age++;
	struct onward *o;
	TAILQ_FOREACH(o, &all->all, next)
	{
		if (o->age == before && may_have_tls(o))
			o->age = all->age;
	}
}
