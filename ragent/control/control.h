/* control.h: RAgent's control socket: HTTP/1.1 + JSON over a UNIX socket (mode 0600), on the main worker's loop. It
 * joins the parts: a client (http/) claims to be somebody (access/), and its request goes to a route (routes/), which
 * calls an operation (operations/). If the client is gone, the answer is too late, or the socket is closed, it drops
 * the answer. ragent/process owns it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "conf/conf.h"
#include "ragent/control/http/control_exchange.h"

struct control;
struct operations;

/* Bind @path and serve. It replaces a stale socket file. A socket that answers, or a file that is no socket, stays and
 * is an error. @fd > 0: it listens at @path already, and another process passed it (owned, closed on failure).
 * @operations outlive the control. @limits NULL: the defaults. NULL: @error has the reason. */
struct control *control_create(struct worker *w, int fd, const char *path, struct operations *operations,
	const struct control_limits *limits, char *error, size_t error_cap);

/* Serve at @address too, for holders of a token of that file. 0, or negative with the reason in @error. */
struct control_front {
	const struct sockaddr *address;
	enum conf_switch proxy_protocol; /* connections begin with a PROXY header */
	const char *tokens;
	int fd; /* > 0: it listens there already; owned */
};
int control_serve_address(struct control *c, const struct control_front *f, char *error, size_t error_cap);
/* Read the tokens again. On failure the old ones stay. */
int control_reload_tokens(struct control *c, const char *path, char *error, size_t error_cap);

/* The sockets, to pass them to another process; the control still owns them. -1: there is none. */
int control_fd(const struct control *c);
int control_address_fd(const struct control *c);
/* Call it while another process serves on the same sockets: accept no client, and keep the socket file. */
void control_pause(struct control *c);
void control_resume(struct control *c);

/* Stop serving, remove the socket file; operations may still answer open requests; these answers are dropped. Memory
 * is freed when the handles have closed. May be NULL. */
void control_destroy(struct control *c);
