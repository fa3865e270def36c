/* dormant.c: an epoll set of its own. The loop watches the descriptor of the set. */
#include "net/loop/dormant.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "net/loop/watch.h"

#define READY_MAX 64 /* in one turn; if more are ready, the set stays readable */

struct dormant {
	struct watch *watch;
	void (*on_input)(void *holder);
	int epoll;
	int ready_count; /* holder NULL: it was removed before its on_input */
	struct epoll_event ready[READY_MAX];
};

static void on_readable(void *ctx)
{
	struct dormant *d = ctx;

	d->ready_count = epoll_wait(d->epoll, d->ready, READY_MAX, 0);
	for (int i = 0; i < d->ready_count; i++)
		if (d->ready[i].data.ptr)
			d->on_input(d->ready[i].data.ptr);
	d->ready_count = 0;
}

struct dormant *dormant_create(struct worker *w, void (*on_input)(void *holder))
{
	struct dormant *d = calloc(1, sizeof *d);

	if (!d)
		return NULL;
	d->on_input = on_input;
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	d->watch = d->epoll < 0 ? NULL : watch_start(w, d->epoll, on_readable, d);
	if (d->watch)
		return d;
	if (d->epoll >= 0)
		close(d->epoll);
	free(d);
	return NULL;
}

void dormant_destroy(struct dormant *d)
{
	if (!d)
		return;
	watch_stop(d->watch);
	close(d->epoll);
	free(d);
}

int dormant_add(struct dormant *d, int fd, void *holder)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = holder };

	return epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

void dormant_remove(struct dormant *d, int fd, const void *holder)
{
	struct epoll_event unused;

	epoll_ctl(d->epoll, EPOLL_CTL_DEL, fd, &unused);
	for (int i = 0; i < d->ready_count; i++)
		if (d->ready[i].data.ptr == holder)
			d->ready[i].data.ptr = NULL;
}
