/* listener.h: a listening TCP (SO_REUSEPORT, IPv6 only for IPv6 addresses) or UNIX socket on one worker. */
#ifndef CSSL_NET_LISTENER_H
#define CSSL_NET_LISTENER_H

#include <sys/socket.h>

#include "net/worker.h"

struct listener;

struct listener_ops {
	/* A connection came; the callee owns @fd (non-blocking, close-on-exec). */
	void (*on_accept)(void *ctx, int fd, const struct sockaddr_storage *peer);
	void (*on_closed)(void *ctx);
};

/* @backlog: also the accept queue. @mode: permission bits of a UNIX socket (0: leave). A stale UNIX socket file is replaced, one that is
 * in use is not. NULL with *uv_error set. */
struct listener *listener_create(struct worker *w, const struct sockaddr *address, int backlog, unsigned mode,
				 const struct listener_ops *ops, void *ctx, int *uv_error);
/* Stop taking connections and give a descriptor limit time to recover; listener_resume() goes on. */
void listener_pause(struct listener *l);
void listener_resume(struct listener *l);
void listener_close(struct listener *l);
/* The address really bound (port 0 resolved). */
int listener_address(const struct listener *l, struct sockaddr_storage *out);

#endif
