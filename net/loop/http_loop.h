/* http_loop.h: libmicrohttpd on a worker's loop. The library has an epoll set of its own, which the loop watches, and
 * it says when it wants to run without a ready descriptor.
 */
#pragma once

#include "net/loop/wheel.h"

struct MHD_Daemon;
struct watch;

/* Embedded in its owner. */
struct http_loop {
	struct worker *worker;
	struct MHD_Daemon *daemon; /* NULL: stopped, or not started */
	struct watch *watch;
	struct deadline later;
};

/* From now on @daemon runs when it has to. It was started with MHD_USE_EPOLL and without threads; it stays the
 * caller's. 0 or CSSL_E_NO_MEMORY. */
int http_loop_start(struct http_loop *l, struct worker *w, struct MHD_Daemon *daemon);
/* Run it now. Its callbacks run before this returns. */
void http_loop_run(struct http_loop *l);
/* It does not run any more; the caller stops the daemon next. Legal before the start, and twice. */
void http_loop_stop(struct http_loop *l);
