/* watch.h: a descriptor that a library reads and writes by itself (its epoll set, for example): this only says when. */
#ifndef CSSL_NET_WATCH_H
#define CSSL_NET_WATCH_H

#include "net/worker.h"

struct watch;

/* @fn is called whenever @fd is readable. @fd stays the caller's. NULL: out of memory, or no descriptor that can be
 * polled. */
struct watch *watch_start(struct worker *w, int fd, void (*fn)(void *ctx), void *ctx);

/* NULL is legal; @fn is not called again, @fd may be closed from now on; memory is freed after the handle closed. */
void watch_stop(struct watch *t);

#endif
