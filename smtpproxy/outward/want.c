/* want.c: the sessions that wait at a destination, for its extensions or for a connection. */
#include <assert.h>
#include <string.h>

#include "net/container_of.h"
#include "smtpproxy/outward/destination.h"
#include "smtpproxy/outward/outward.h"

void want_offers(struct want *w, struct destination *d)
{
	assert(w->state == WANT_NOTHING);
	w->state = WANT_OFFERS;
	w->destination = d;
	TAILQ_INSERT_TAIL(&d->offers_wanted, w, next);
	destination_ask_for_step(d);
}

int want_turn(struct want *w, struct destination *d)
{
	assert(w->state == WANT_NOTHING);
	int r = turns_add(&d->turns, &w->turn, &w->sender, w->weight);
	if (r < 0)
		return r;
	w->state = WANT_TURN;
	w->destination = d;
	w->since_ms = worker_now_ms(outward_home(d->outward)->worker);
	destination_ask_for_step(d);
	return 0;
}

void want_nothing(struct want *w)
{
	struct destination *d = w->destination;
	if (w->state == WANT_OFFERS)
		TAILQ_REMOVE(&d->offers_wanted, w, next);
	if (w->state == WANT_TURN)
		turns_remove(&d->turns, &w->turn);
	if (w->state == WANT_PROMISED) {
		w->promised->promised = NULL;
		turns_give_back(&d->turns, w->turn.holder);
		w->turn.holder = NULL;
	}
	w->state = WANT_NOTHING;
	w->promised = NULL;
}

void want_fail(struct want *w, enum smtp_own why)
{
	want_nothing(w);
	w->ops->on_failed(w, why);
}

void wants_fail(struct destination *d, enum smtp_own why)
{
	struct want *w;
	struct turn *t;
	while ((w = TAILQ_FIRST(&d->offers_wanted)))
		want_fail(w, why);
	while ((t = turns_first(&d->turns)))
		want_fail(container_of(t, struct want, turn), why);
}

/* Without memory it may never have waited at a destination. */
const char *want_said(const struct want *w, enum smtp_own why)
{
	return why == SMTP_OWN_OVERLOADED ? "" : w->destination->said;
}

static int turn_has_name(const struct turn *turn, const void *name)
{
	return strcmp(container_of(turn, const struct want, turn)->name, name) == 0;
}

struct want *wants_find_named(const struct destination *d, const char *name)
{
	struct turn *t = turns_find(&d->turns, turn_has_name, name);
	struct want *w;
	if (t)
		return container_of(t, struct want, turn);
	TAILQ_FOREACH(w, &d->offers_wanted, next)
	{
		if (strcmp(w->name, name) == 0)
			break;
	}
	return w;
}

struct smtp_span wants_first_name(const struct destination *d)
{
	const struct turn *t = turns_first(&d->turns);
	const struct want *w = t ? container_of(t, const struct want, turn) : TAILQ_FIRST(&d->offers_wanted);
	return smtp_span_of(w->name);
}

static int may_roam(const struct turn *turn, const void *what)
{
	return container_of(turn, const struct want, turn)->roams;
}

void wants_send_elsewhere(struct destination *d)
{
	struct turn *t;
	while ((t = turns_find(&d->turns, may_roam, NULL)))
		want_fail(container_of(t, struct want, turn), SMTP_OWN_CONGESTED);
}
