/* turn_share.c: the lines move on in the second pass over the work at a turn's end. The first pass sends the output
 * of this turn.
 */
#include "net/loop/turn_share.h"

#include <assert.h>
#include <sched.h>

#include "net/memory/container_of.h"

static void begin_turn(struct turn_share *t)
{
	const uint32_t turn = worker_turn(t->worker);

	if (t->turn == turn)
		return;
	t->turn = turn;
	t->began_ns = uv_hrtime();
}

static bool has_time(const struct turn_share *t)
{
	return uv_hrtime() - t->began_ns < (worker_now_ms(t->worker) < t->small_until_ms ? t->small_ns : t->large_ns);
}

static_assert(TURN_SHARE_LINES == 32, "a bit of .waiting for each");

/* The next line behind the one that was served last. Somebody waits. */
static struct turn_waiter *next_waiter(struct turn_share *t)
{
	const uint32_t behind = t->waiting & ~(((uint32_t)2 << t->served) - 1);

	t->served = (uint32_t)__builtin_ctz(behind ? behind : t->waiting);
	return TAILQ_FIRST(&t->lines[t->served]);
}

/* A turn's end has several passes. */
static bool is_first(struct turn_share *t)
{
	const bool is = t->worked != t->turn;

	t->worked = t->turn;
	return is;
}

static void work(struct turn_share *t)
{
	t->state = is_first(t) ? TURN_SHARE_BEGINS : TURN_SHARE_WORKS;
	while (t->waiting && (t->state == TURN_SHARE_BEGINS || has_time(t))) {
		struct turn_waiter *waiter = next_waiter(t);

		turn_share_leave(t, waiter);
		t->go_on(waiter->holder);
		t->state = TURN_SHARE_WORKS;
	}
	t->state = TURN_SHARE_RESTS;
}

/* On a busy processor: let the processes run that exchange records with this thread. */
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
		if (t->waiting)
			yield_once(t);
	}
	t->flushed = t->turn;
	if (t->waiting)
		worker_at_turn_end(t->worker, end);
}

void turn_share_init(
	struct turn_share *t, struct worker *w, uint64_t small_ns, uint64_t large_ns, void (*go_on)(void *holder))
{
	*t = (struct turn_share){
		.worker = w, .small_ns = small_ns, .large_ns = large_ns, .go_on = go_on, .at_turn_end.fn = on_turn_end
	};
	for (unsigned i = 0; i < TURN_SHARE_LINES; i++)
		TAILQ_INIT(&t->lines[i]);
}

void turn_share_others_came(struct turn_share *t)
{
	if (t->worker)
		t->small_until_ms = worker_now_ms(t->worker) + TURN_SHARE_SMALL_MS;
}

bool turn_share_is_free(struct turn_share *t)
{
	if (!t->worker)
		return true;
	begin_turn(t);
	if (t->state == TURN_SHARE_BEGINS)
		return true;
	return has_time(t) && (!t->waiting || t->state == TURN_SHARE_WORKS);
}

void turn_share_enter(struct turn_share *t, struct turn_waiter *waiter, uint32_t source, void *holder)
{
	const uint32_t number = source % TURN_SHARE_LINES;

	if (turn_waiter_waits(waiter))
		return;
	*waiter = (struct turn_waiter){ .holder = holder, .line = number };
	TAILQ_INSERT_TAIL(&t->lines[number], waiter, in);
	t->waiting |= (uint32_t)1 << number;
	worker_at_turn_end(t->worker, &t->at_turn_end);
}

void turn_share_leave(struct turn_share *t, struct turn_waiter *waiter)
{
	struct turn_line *line = &t->lines[waiter->line];

	if (!turn_waiter_waits(waiter))
		return;
	TAILQ_REMOVE(line, waiter, in);
	if (TAILQ_EMPTY(line))
		t->waiting &= ~((uint32_t)1 << waiter->line);
	waiter->in.tqe_prev = NULL;
}

bool turn_waiter_waits(const struct turn_waiter *waiter)
{
	return waiter->in.tqe_prev != NULL;
}
