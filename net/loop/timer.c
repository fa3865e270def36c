/* timer.c: timers with a handle of their own. */
#include <stdlib.h>

#include "net/loop/timer.h"

#include "net/loop/worker.h"

struct timer {
	uv_timer_t uv;
	struct worker *worker;
	void (*fn)(void *ctx);
	void *ctx;
};

static void on_timer(uv_timer_t *uv)
{
	struct timer *t = uv->data;

	t->fn(t->ctx);
}

struct timer *timer_start(struct worker *w, void (*fn)(void *ctx), void *ctx, uint64_t first_ms, uint64_t every_ms)
{
	struct timer *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->worker = w;
	t->fn = fn;
	t->ctx = ctx;
	uv_timer_init(worker_loop(w), &t->uv);
	t->uv.data = t;
	worker_hold(w);
	uv_timer_start(&t->uv, on_timer, first_ms, every_ms);
	return t;
}

void timer_set_every(struct timer *t, uint64_t every_ms)
{
	uv_timer_start(&t->uv, on_timer, every_ms, every_ms);
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct timer *t = handle->data;
	struct worker *w = t->worker;

	free(t);
	worker_release(w);
}

void timer_stop(struct timer *t)
{
	if (t && !uv_is_closing((uv_handle_t *)&t->uv))
		uv_close((uv_handle_t *)&t->uv, on_timer_closed);
}
