/* watch.h: tells when a descriptor is readable that a library reads by itself (its epoll set, for example). */
#pragma once

struct worker;
struct watch;

/* Call @fn whenever @fd is readable. The caller still owns @fd. NULL: out of memory, or @fd cannot be polled. */
struct watch *watch_start(struct worker *w, int fd, void (*fn)(void *ctx), void *ctx);

/* NULL is legal. @fn is not called again, and @fd may be closed now. The memory is freed after the handle has closed.
 */
void watch_stop(struct watch *t);
