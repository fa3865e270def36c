/* http_loop.c: as long as libmicrohttpd wants to run at once it does so, but a bounded number of times in a loop turn.
 */
#include "net/loop/http_loop.h"

#include <microhttpd.h>

#include "net/loop/watch.h"
#include "net/memory/container_of.h"
#include "proto/error.h"

#define RUNS_PER_TURN 16u

void http_loop_run(struct http_loop *l)
{
	MHD_UNSIGNED_LONG_LONG ms = 0;

	for (unsigned i = 0; l->daemon && i < RUNS_PER_TURN; i++) {
		MHD_run(l->daemon);
		if (MHD_get_timeout(l->daemon, &ms) != MHD_YES) {
			deadline_cancel(&l->later);
			return;
		}
		if (ms > 0)
			break;
	}
	if (l->daemon)
		deadline_set(l->worker, &l->later, ms);
}

static void on_watch(void *ctx)
{
	http_loop_run(ctx);
}

static void on_later(struct deadline *d)
{
	http_loop_run(container_of(d, struct http_loop, later));
}

int http_loop_start(struct http_loop *l, struct worker *w, struct MHD_Daemon *daemon)
{
	const int epoll_fd = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;

	l->worker = w;
	l->daemon = daemon;
	l->later.fn = on_later;
	l->watch = watch_start(w, epoll_fd, on_watch, l);
	return l->watch ? 0 : CSSL_E_NO_MEMORY;
}

void http_loop_stop(struct http_loop *l)
{
	watch_stop(l->watch);
	deadline_cancel(&l->later);
	l->watch = NULL;
	l->daemon = NULL;
}
