/* signals.c: one uv_signal per number. */
#include <signal.h>
#include <stdlib.h>

#include "net/loop/signals.h"

#include "net/loop/worker.h"

struct signals {
	struct worker *worker;
	void (*fn)(void *ctx, int signum);
	void *ctx;
	unsigned open_handles;
	unsigned count;
	uv_signal_t handles[];
};

static void on_signal(uv_signal_t *handle, int signum)
{
	struct signals *s = handle->data;

	s->fn(s->ctx, signum);
}

static void on_signal_closed(uv_handle_t *handle)
{
	struct signals *s = handle->data;
	struct worker *w = s->worker;

	if (--s->open_handles == 0)
		free(s);
	worker_release(w);
}

static int signals_add(struct signals *s, int signum)
{
	uv_signal_t *handle = &s->handles[s->count];
	int r = uv_signal_init(worker_loop(s->worker), handle);

	if (r < 0)
		return r;
	handle->data = s;
	s->count++;
	s->open_handles++;
	worker_hold(s->worker);
	return uv_signal_start(handle, on_signal, signum);
}

struct signals *signals_create(
	struct worker *w, const int *signums, unsigned count, void (*fn)(void *ctx, int signum), void *ctx)
{
	struct signals *s = calloc(1, sizeof *s + count * sizeof s->handles[0]);
	if (!s)
		return NULL;
	signal(SIGPIPE, SIG_IGN);
	s->worker = w;
	s->fn = fn;
	s->ctx = ctx;
	for (unsigned i = 0; i < count; i++)
		if (signals_add(s, signums[i]) < 0) {
			signals_destroy(s);
			return NULL;
		}
	return s;
}

/* The kernel's default action comes back when libuv lets a signal go. While it is blocked, none can arrive before it is
 * ignored. */
static void signals_close(struct signals *s)
{
	sigset_t numbers, before;

	sigemptyset(&numbers);
	for (unsigned i = 0; i < s->count; i++)
		sigaddset(&numbers, s->handles[i].signum);
	pthread_sigmask(SIG_BLOCK, &numbers, &before);
	for (unsigned i = 0; i < s->count; i++) {
		int signum = s->handles[i].signum;
		uv_close((uv_handle_t *)&s->handles[i], on_signal_closed);
		signal(signum, SIG_IGN);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void signals_destroy(struct signals *s)
{
	if (!s)
		return;
	if (s->count)
		signals_close(s); /* the last close callback frees */
	else
		free(s);
}
