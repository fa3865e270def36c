/* listings.c: listings take turns, so that a page does not wait for the end of a long count. A listing that ends with
 * its first step, as most pages do, has no pause. */
#include "sslagent/sessions/listings.h"

#include <stdlib.h>

#include "net/timer.h"
#include "proto/error.h"

#define PAUSE_MS 1u /* a step is some 0.3 ms */

struct listings {
	struct worker *worker;
	struct listing_job *first, **last;
	struct timer *timer; /* NULL: none waits */
	enum { LISTINGS_OPEN, LISTINGS_CLOSED } state;
};

static void stop_timer(struct listings *l)
{
	timer_stop(l->timer);
	l->timer = NULL;
}

static struct listing_job *take_first(struct listings *l)
{
	struct listing_job *j = l->first;

	l->first = j->next;
	if (!l->first)
		l->last = &l->first;
	return j;
}

static void on_turn(void *ctx);

static void wait_turn(struct listings *l, struct listing_job *j)
{
	if (!l->timer)
		l->timer = timer_start(l->worker, on_turn, l, PAUSE_MS, PAUSE_MS);
	if (!l->timer) {
		j->done(j, CSSL_E_NO_MEMORY);
		return;
	}
	j->next = NULL;
	*l->last = j;
	l->last = &j->next;
}

static void step(struct listings *l, struct listing_job *j)
{
	const int result = session_listing_step(j->listing);

	if (result > 0)
		wait_turn(l, j);
	else
		j->done(j, result);
}

static void on_turn(void *ctx)
{
	struct listings *l = ctx;

	if (l->first)
		step(l, take_first(l));
	if (!l->first)
		stop_timer(l);
}

struct listings *listings_create(struct worker *w)
{
	struct listings *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	l->worker = w;
	l->last = &l->first;
	return l;
}

void listings_close(struct listings *l)
{
	l->state = LISTINGS_CLOSED;
	stop_timer(l);
	while (l->first) {
		struct listing_job *j = take_first(l);
		j->done(j, CSSL_E_STATE);
	}
}

void listings_destroy(struct listings *l)
{
	free(l);
}

void listings_add(struct listings *l, struct listing_job *j)
{
	if (l->state == LISTINGS_CLOSED)
		j->done(j, CSSL_E_STATE);
	else if (l->first)
		wait_turn(l, j);
	else
		step(l, j);
}
