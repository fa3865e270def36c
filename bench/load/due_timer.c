/* due_timer.c: a timerfd in the loop. */
#include "bench/load/due_timer.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "net/loop/watch.h"

#define NS_PER_S 1000000000u

struct due_timer {
	int fd;
	struct watch *watch;
	void (*fn)(void *ctx);
	void *ctx;
};

static void on_due_timer_readable(void *ctx)
{
	struct due_timer *t = ctx;
	uint64_t expirations;
	ssize_t n = read(t->fd, &expirations, sizeof expirations);

	(void)n; /* reading clears it; the value does not matter */
	t->fn(t->ctx);
}

struct due_timer *due_timer_create(struct worker *w, void (*fn)(void *ctx), void *ctx)
{
	struct due_timer *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	t->fn = fn;
	t->ctx = ctx;
	t->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	t->watch = t->fd >= 0 ? watch_start(w, t->fd, on_due_timer_readable, t) : NULL;
	if (t->watch)
		return t;
	due_timer_destroy(t);
	return NULL;
}

void due_timer_set(struct due_timer *t, uint64_t at_ns)
{
	struct itimerspec at = { .it_value = { (time_t)(at_ns / NS_PER_S), (long)(at_ns % NS_PER_S) } };

	if (at_ns == 0)
		at.it_value.tv_nsec = 1; /* 0 would disarm it */
	timerfd_settime(t->fd, TFD_TIMER_ABSTIME, &at, NULL);
}

void due_timer_destroy(struct due_timer *t)
{
	if (!t)
		return;
	watch_stop(t->watch);
	if (t->fd >= 0)
		close(t->fd);
	free(t);
}
