/* want.c: the sessions that wait at a destination, for its extensions or for a connection. */
#include "smtpproxy/outward/want.h"

#include <assert.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "smtpproxy/outward/onward.h"

void wants_init(struct wants *all, struct worker *worker, struct turn_end *step)
{
	turns_init(&all->turns);
	TAILQ_INIT(&all->offers);
	all->worker = worker;
	all->step = step;
}

void want_offers(struct want *w, struct wants *all)
{
	assert(w->state == WANT_NOTHING);
	w->state = WANT_OFFERS;
	w->wants = all;
	TAILQ_INSERT_TAIL(&all->offers, w, next);
	worker_at_turn_end(all->worker, all->step);
}

int want_turn(struct want *w, struct wants *all)
{
	assert(w->state == WANT_NOTHING);
	int r = turns_add(&all->turns, &w->turn, &w->sender, w->weight);
	if (r < 0)
		return r;
	w->state = WANT_TURN;
	w->wants = all;
	w->since_ms = worker_now_ms(all->worker);
	worker_at_turn_end(all->worker, all->step);
	return 0;
}

void want_nothing(struct want *w)
{
	if (w->state == WANT_OFFERS)
		TAILQ_REMOVE(&w->wants->offers, w, next);
	if (w->state == WANT_TURN)
		turns_remove(&w->wants->turns, &w->turn);
	if (w->state == WANT_PROMISED) {
		w->promised->promised = NULL;
		turns_give_back(&w->wants->turns, w->turn.holder);
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

void wants_fail(struct wants *all, enum smtp_own why)
{
	struct want *w;
	struct turn *t;
	while ((w = TAILQ_FIRST(&all->offers)))
		want_fail(w, why);
	while ((t = turns_first(&all->turns)))
		want_fail(container_of(t, struct want, turn), why);
}

void wants_tell_offers(struct wants *all)
{
	struct want *w;
	while ((w = TAILQ_FIRST(&all->offers))) {
		want_nothing(w);
		w->ops->on_offers(w);
	}
}

/* Without memory it may never have waited at a destination. */
const char *want_said(const struct want *w, enum smtp_own why)
{
	return why == SMTP_OWN_OVERLOADED ? "" : w->wants->said;
}

static int turn_has_name(const struct turn *turn, const void *name)
{
	return strcmp(container_of(turn, const struct want, turn)->name, name) == 0;
}

struct want *wants_find_named(const struct wants *all, const char *name)
{
	struct turn *t = turns_find(&all->turns, turn_has_name, name);
	struct want *w;
	if (t)
		return container_of(t, struct want, turn);
	TAILQ_FOREACH(w, &all->offers, next)
	{
		if (strcmp(w->name, name) == 0)
			break;
	}
	return w;
}

struct smtp_span wants_first_name(const struct wants *all)
{
	const struct turn *t = turns_first(&all->turns);
	const struct want *w = t ? container_of(t, const struct want, turn) : TAILQ_FIRST(&all->offers);
	return smtp_span_of(w->name);
}

static int may_roam(const struct turn *turn, const void *what)
{
	return container_of(turn, const struct want, turn)->roams;
}

void wants_send_elsewhere(struct wants *all)
{
	struct turn *t;
	while ((t = turns_find(&all->turns, may_roam, NULL)))
		want_fail(container_of(t, struct want, turn), SMTP_OWN_CONGESTED);
}
