/* turn_share.c: the line moves on in the second pass over the work at a turn's end. The first pass sends the output
 * of this turn.
 */
#include "net/turn_share.h"

#include <sched.h>

#include "net/container_of.h"

static void begin_turn(struct turn_share *t)
{
	const uint32_t turn = worker_turn(t->worker);

	if (t->turn == turn)
		return;
	t->turn = turn;
	t->worked_ns = 0;
}

static int has_time(const struct turn_share *t)
{
	return t->worked_ns < (worker_now_ms(t->worker) < t->small_until_ms ? t->small_ns : t->large_ns);
}

static void work(struct turn_share *t)
{
	t->line = TURN_SHARE_WORKS;
	while (t->first && has_time(t)) {
		struct turn_waiter *waiter = t->first;

		turn_share_leave(t, waiter);
		t->go_on(waiter->holder);
	}
	t->line = TURN_SHARE_RESTS;
}

/* On a busy processor: let the processes run that exchange records with this thread. A turn's end has several passes.
 */
static void yield_once(struct turn_share *t)
{
	if (t->yielded == t->turn)
		return;
	t->yielded = t->turn;
	sched_yield();
}

static void on_turn_end(struct turn_end *end)
{
	struct turn_share *t = container_of(end, struct turn_share, at_turn_end);

	begin_turn(t);
	if (t->flushed == t->turn) {
		work(t);
		if (t->first)
			yield_once(t);
	}
	t->flushed = t->turn;
	if (t->first)
		worker_at_turn_end(t->worker, end);
}

void turn_share_init(
	struct turn_share *t, struct worker *w, uint64_t small_ns, uint64_t large_ns, void (*go_on)(void *holder))
{
	*t = (struct turn_share){
		.worker = w, .small_ns = small_ns, .large_ns = large_ns, .go_on = go_on, .at_turn_end.fn = on_turn_end
	};
	t->last = &t->first;
}

void turn_share_others_came(struct turn_share *t)
{
	if (t->worker)
		t->small_until_ms = worker_now_ms(t->worker) + TURN_SHARE_SMALL_MS;
}

int turn_share_is_free(struct turn_share *t)
{
	if (!t->worker)
		return 1;
	begin_turn(t);
	return has_time(t) && (!t->first || t->line == TURN_SHARE_WORKS);
}

void turn_share_worked(struct turn_share *t, uint64_t ns)
{
	t->worked_ns += ns;
}

void turn_share_enter(struct turn_share *t, struct turn_waiter *waiter, void *holder)
{
	if (waiter->prev)
		return;
	*waiter = (struct turn_waiter){ .prev = t->last, .holder = holder };
	*t->last = waiter;
	t->last = &waiter->next;
	worker_at_turn_end(t->worker, &t->at_turn_end);
}

void turn_share_leave(struct turn_share *t, struct turn_waiter *waiter)
{
	if (!waiter->prev)
		return;
	*waiter->prev = waiter->next;
	if (waiter->next)
		waiter->next->prev = waiter->prev;
	else
		t->last = waiter->prev;
	waiter->next = NULL;
	waiter->prev = NULL;
}

int turn_waiter_waits(const struct turn_waiter *waiter)
{
	return waiter->prev != NULL;
}
