/* listener.h: a listening TCP (IPv6 only for IPv6 addresses) or UNIX socket on one worker. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct worker;
struct listener;

struct listener_ops {
	/* A connection came; the callee owns @fd (non-blocking, close-on-exec). May pause or close the listener. */
	void (*on_accept)(void *ctx, int fd, const struct sockaddr_storage *peer);
	/* The listener is freed. */
	void (*on_closed)(void *ctx);
};

/* Listen where no process listens yet, else UV_EADDRINUSE: two daemons on one port would each get half of the clients.
 * @backlog: the length of the accept queue. @mode: permission bits of a UNIX socket (0: leave), set before a client can
 * connect. A UNIX socket file that no process listens on is replaced. The file stays after closing. NULL: *uv_error is
 * set. */
struct listener *listener_create(struct worker *w, const struct sockaddr *address, int backlog, unsigned mode,
	const struct listener_ops *ops, void *ctx, int *uv_error);

/* Listen beside another worker of this process: the kernel spreads clients over both (SO_REUSEPORT). TCP only. */
struct listener *listener_create_beside(struct worker *w, const struct sockaddr *address, int backlog,
	const struct listener_ops *ops, void *ctx, int *uv_error);

/* The file of a UNIX socket on which this process listens, so that it removes no other. Zeroed: it has none. */
struct listener_file {
	dev_t device;
	ino_t inode;
};
/* From now on it is the file that is at @path; zeroed if there is none. */
void listener_note_file(struct listener_file *f, const char *path);
/* Remove the file, if it is still at @path. 0, or negative errno: it stays, as another user cannot remove it. */
int listener_remove_file(const struct listener_file *f, const char *path);
/* Give the socket that this process has bound to another user or group (-1: leave). Another user may own its folder: so
 * only a socket of this user with no second name is given. 0, or negative errno (-ENOTSOCK: something else is there).
 */
int listener_give_file(const char *path, uid_t user, gid_t group);

/* Take over a listening socket that another process passed. @fd is closed on failure. */
struct listener *listener_create_fd(struct worker *w, int fd, const struct listener_ops *ops, void *ctx, int *uv_error);

/* Stop accepting until listener_resume(); clients wait in the accept queue. */
void listener_pause(struct listener *l);
void listener_resume(struct listener *l);

/* TCP: refuse clients (a reset; those that wait in the accept queue, too) until listener_listen(). The address stays
 * bound, so that no other process takes it, and a process that became another user can listen again. 0 or a libuv
 * error.
 */
int listener_refuse(struct listener *l);
int listener_listen(struct listener *l, int backlog);

/* TCP: accept a connection after its client has sent something, or after about a second. The kernel keeps silent
 * clients, up to the backlog. 0 or a libuv error. */
int listener_await_data(struct listener *l);

/* How often a limit of descriptors or memory stopped accepting. Each is logged once, and tried again every 100 ms. */
uint64_t listener_starved(const struct listener *l);

/* NULL is legal. on_closed comes later, once; on_accept no more. */
void listener_close(struct listener *l);

/* Refuse a connection that was accepted, and close @fd: with a reset; or, where @len is not 0, with @words and FIN. */
void listener_refuse_accepted(int fd, const void *words, size_t len);

/* The address in use, with the port that the kernel chose for 0. 0 or a libuv error. */
int listener_address(const struct listener *l, struct sockaddr_storage *out);

/* To pass it to another process; the listener still owns it. */
int listener_fd(const struct listener *l);
