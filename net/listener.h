/* listener.h: a listening TCP (IPv6 only for IPv6 addresses) or UNIX socket on one worker. */
#ifndef CSSL_NET_LISTENER_H
#define CSSL_NET_LISTENER_H

#include <stdint.h>
#include <sys/socket.h>

#include "net/worker.h"

struct listener;

struct listener_ops {
	/* A connection came; the callee owns @fd (non-blocking, close-on-exec). May pause or close the listener. */
	void (*on_accept)(void *ctx, int fd, const struct sockaddr_storage *peer);
	/* The listener is freed. */
	void (*on_closed)(void *ctx);
};

/* Where nobody listens yet, else UV_EADDRINUSE: two daemons that took turns on one port would each get half of the
 * clients. @backlog: also the accept queue. @mode: permission bits of a UNIX socket (0: leave), set before anybody can
 * connect. A stale UNIX socket file is replaced, one that is in use is not; the file stays after closing. NULL with
 * *uv_error set. */
struct listener *listener_create(struct worker *w, const struct sockaddr *address, int backlog, unsigned mode,
	const struct listener_ops *ops, void *ctx, int *uv_error);

/* Where another worker of this process has made one: the kernel spreads clients over both (SO_REUSEPORT). TCP only. */
struct listener *listener_create_beside(struct worker *w, const struct sockaddr *address, int backlog,
	const struct listener_ops *ops, void *ctx, int *uv_error);

/* From a socket that listens already (passed by another process); @fd is owned from now on, closed on failure. */
struct listener *listener_create_fd(struct worker *w, int fd, const struct listener_ops *ops, void *ctx, int *uv_error);

/* Stop taking connections (they wait in the accept queue); listener_resume() goes on. */
void listener_pause(struct listener *l);
void listener_resume(struct listener *l);

/* TCP: a connection is accepted once its client has said something, or after about a second. The kernel keeps silent
 * ones apart, up to the backlog. 0 or a libuv error. */
int listener_await_data(struct listener *l);

/* How often the descriptor or memory limit stopped the accepting (logged once a time, tried again after 100 ms). */
uint64_t listener_starved(const struct listener *l);

/* NULL is legal. on_closed comes later, once; on_accept no more. */
void listener_close(struct listener *l);

/* The address really bound (port 0 resolved). 0 or a libuv error. */
int listener_address(const struct listener *l, struct sockaddr_storage *out);

/* For passing it on: still owned by the listener. */
int listener_fd(const struct listener *l);

#endif
