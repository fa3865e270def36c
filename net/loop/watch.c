/* watch.c: one uv_poll. */
#include <stdlib.h>

#include "net/loop/watch.h"

#include "net/loop/worker.h"

struct watch {
	uv_poll_t uv;
	struct worker *worker;
	void (*fn)(void *ctx);
	void *ctx;
};

static void on_readable(uv_poll_t *uv, int status, int events)
{
	struct watch *t = uv->data;

	/* the library finds errors itself */
	t->fn(t->ctx);
}

struct watch *watch_start(struct worker *w, int fd, void (*fn)(void *ctx), void *ctx)
{
	struct watch *t = calloc(1, sizeof *t);
	if (!t || uv_poll_init(worker_loop(w), &t->uv, fd) < 0) {
		free(t);
		return NULL;
	}
	t->uv.data = t;
	t->worker = w;
	t->fn = fn;
	t->ctx = ctx;
	worker_hold(w);
	uv_poll_start(&t->uv, UV_READABLE, on_readable);
	return t;
}

static void on_watch_closed(uv_handle_t *handle)
{
	struct watch *t = handle->data;
	struct worker *w = t->worker;

	free(t);
	worker_release(w);
}

void watch_stop(struct watch *t)
{
	if (t && !uv_is_closing((uv_handle_t *)&t->uv))
		uv_close((uv_handle_t *)&t->uv, on_watch_closed);
}
