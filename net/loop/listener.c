/* listener.c: uv_poll and accept4, a bounded number a turn. Out of descriptors or memory the socket stays readable, so
 * polling stops for a moment instead of spinning.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/loop/listener.h"
#include "net/loop/wheel.h"
#include "net/loop/worker.h"
#include "net/memory/container_of.h"
#include "net/report/log.h"
#include "net/socket/discard.h"
#include "net/socket/socket.h"

#define ACCEPTS_PER_TURN 64u
#define STARVED_RETRY_MS 100u

enum listener_state {
	LISTENER_ACCEPTING,
	LISTENER_STARVED, /* out of descriptors or memory: retry is set */
	LISTENER_PAUSED,
	LISTENER_CLOSING,
};

struct listener {
	uv_poll_t poll;
	struct worker *worker;
	const struct listener_ops *ops;
	void *ctx;
	struct deadline retry;
	uint64_t starved;
	int fd;
	enum listener_state state;
	enum { SUPPLY_ENOUGH, SUPPLY_SHORT } supply; /* SHORT: logged, until a connection is accepted again */
};

/* Accepting */

static void on_readable(uv_poll_t *poll, int status, int events);

static void listener_start(struct listener *l)
{
	l->state = LISTENER_ACCEPTING;
	uv_poll_start(&l->poll, UV_READABLE, on_readable);
}

static void on_retry(struct deadline *d)
{
	struct listener *l = container_of(d, struct listener, retry);

	if (l->state == LISTENER_STARVED)
		listener_start(l);
}

static void listener_starve(struct listener *l, int error)
{
	uv_poll_stop(&l->poll);
	l->state = LISTENER_STARVED;
	l->starved++;
	deadline_set(l->worker, &l->retry, STARVED_RETRY_MS);
	if (l->supply == SUPPLY_ENOUGH)
		log_event(LOG_ERROR, NULL, "no connection can be accepted",
			"worker=%s cause=%s effect=\"clients wait in the accept queue\"", worker_name(l->worker),
			strerror(error));
	l->supply = SUPPLY_SHORT;
}

static bool is_starvation(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Non-zero: no more this turn. */
static bool accept_one(struct listener *l)
{
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof peer;
	int fd = accept4(l->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		l->supply = SUPPLY_ENOUGH;
		l->ops->on_accept(l->ctx, fd, &peer);
		return false;
	}
	if (is_starvation(errno))
		listener_starve(l, errno);
	/* any other error concerns that one connection only: ECONNABORTED, or a network error (accept(2)) */
	return errno == EAGAIN || is_starvation(errno);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct listener *l = poll->data;

	/* an error shows in accept4 */
	for (unsigned i = 0; i < ACCEPTS_PER_TURN && l->state == LISTENER_ACCEPTING; i++)
		if (accept_one(l))
			return;
}

void listener_pause(struct listener *l)
{
	if (l->state == LISTENER_CLOSING)
		return;
	uv_poll_stop(&l->poll);
	deadline_cancel(&l->retry);
	l->state = LISTENER_PAUSED;
}

void listener_resume(struct listener *l)
{
	if (l->state == LISTENER_PAUSED)
		listener_start(l);
}

/* In Linux, a shutdown ends the listening and leaves the socket bound. */
int listener_refuse(struct listener *l)
{
	listener_pause(l);
	return shutdown(l->fd, SHUT_RD) < 0 ? -errno : 0;
}

int listener_listen(struct listener *l, int backlog)
{
	if (listen(l->fd, backlog) < 0)
		return -errno;
	listener_resume(l);
	return 0;
}

int listener_await_data(struct listener *l)
{
	const int seconds = 1;

	return setsockopt(l->fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds) < 0 ? -errno : 0;
}

uint64_t listener_starved(const struct listener *l)
{
	return l->starved;
}

/* Opening */

/* Remove a socket file that no process listens on. 0, or UV_EADDRINUSE. */
static int remove_stale(const struct sockaddr_un *un)
{
	struct stat st;

	if (lstat(un->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return UV_EADDRINUSE;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	bool refused = connect(fd, (const struct sockaddr *)un, sizeof *un) < 0 && errno == ECONNREFUSED;
	close(fd);
	if (!refused)
		return UV_EADDRINUSE;
	return unlink(un->sun_path) < 0 ? -errno : 0;
}

static int bind_unix(int fd, const struct sockaddr_un *un, unsigned mode)
{
	int r = remove_stale(un);
	if (r < 0)
		return r;
	/* The file has its mode from the beginning: behind bind(), another file may stand at the path. */
	const mode_t mask = mode ? umask(0777 & ~mode) : 0;
	r = bind(fd, (const struct sockaddr *)un, sizeof *un) < 0 ? -errno : 0;
	if (mode)
		umask(mask);
	return r;
}

static int bind_tcp(int fd, const struct sockaddr *address, enum socket_place place)
{
	int r = socket_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);

	return r < 0 ? r : socket_bind(fd, address, place);
}

/* What accepted sockets inherit: no delay of a segment that is not full; and urgent bytes in order, because otherwise
 * they would be in no read, but in the kernel's count of bytes that were read (net/socket/tcp_counts.h). */
static void set_inherited(int fd)
{
	socket_option(fd, SOL_SOCKET, SO_OOBINLINE, 1);
	socket_option(fd, IPPROTO_TCP, TCP_NODELAY, 1); /* UNIX sockets have no such delay */
}

static int open_socket(const struct sockaddr *address, int backlog, unsigned mode, enum socket_place place)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;

	int r = address->sa_family == AF_UNIX ? bind_unix(fd, (const struct sockaddr_un *)address, mode)
					      : bind_tcp(fd, address, place);
	set_inherited(fd);
	if (r == 0 && listen(fd, backlog) < 0)
		r = -errno;
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

struct listener *listener_create_fd(struct worker *w, int fd, const struct listener_ops *ops, void *ctx, int *uv_error)
{
	struct listener *l = calloc(1, sizeof *l);

	*uv_error = l ? uv_poll_init(worker_loop(w), &l->poll, fd) : UV_ENOMEM;
	if (*uv_error < 0) {
		close(fd);
		free(l);
		return NULL;
	}
	l->poll.data = l;
	l->worker = w;
	l->ops = ops;
	l->ctx = ctx;
	l->retry.fn = on_retry;
	l->fd = fd;
	set_inherited(fd); /* another process may have opened it */
	worker_hold(w);
	listener_start(l);
	return l;
}

static struct listener *listener_make(
	struct worker *w, int fd, const struct listener_ops *ops, void *ctx, int *uv_error)
{
	if (fd < 0) {
		*uv_error = fd;
		return NULL;
	}
	return listener_create_fd(w, fd, ops, ctx, uv_error);
}

struct listener *listener_create(struct worker *w, const struct sockaddr *address, int backlog, unsigned mode,
	const struct listener_ops *ops, void *ctx, int *uv_error)
{
	return listener_make(w, open_socket(address, backlog, mode, SOCKET_FIRST), ops, ctx, uv_error);
}

struct listener *listener_create_beside(struct worker *w, const struct sockaddr *address, int backlog,
	const struct listener_ops *ops, void *ctx, int *uv_error)
{
	return listener_make(w, open_socket(address, backlog, 0, SOCKET_BESIDE), ops, ctx, uv_error);
}

/* The file of a UNIX socket */

void listener_note_file(struct listener_file *f, const char *path)
{
	struct stat st;

	*f = stat(path, &st) == 0 ? (struct listener_file){ st.st_dev, st.st_ino } : (struct listener_file){ 0 };
}

int listener_remove_file(const struct listener_file *f, const char *path)
{
	struct listener_file now;

	listener_note_file(&now, path);
	if (f->inode == 0 || now.inode != f->inode || now.device != f->device)
		return 0;
	return unlink(path) < 0 ? -errno : 0;
}

int listener_give_file(const char *path, uid_t user, gid_t group)
{
	struct stat st;
	const int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;

	if (r == 0 && (fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode) || st.st_nlink != 1 || st.st_uid != geteuid()))
		r = -ENOTSOCK;
	if (r == 0 && fchownat(fd, "", user, group, AT_EMPTY_PATH) < 0)
		r = -errno;
	if (fd >= 0)
		close(fd);
	return r;
}

/* Closing */

static void on_poll_closed(uv_handle_t *handle)
{
	struct listener *l = handle->data;
	struct worker *w = l->worker;
	const struct listener_ops *ops = l->ops;
	void *ctx = l->ctx;

	free(l);
	worker_release(w);
	ops->on_closed(ctx);
}

void listener_close(struct listener *l)
{
	if (!l || l->state == LISTENER_CLOSING)
		return;
	l->state = LISTENER_CLOSING;
	deadline_cancel(&l->retry);
	uv_close((uv_handle_t *)&l->poll, on_poll_closed);
	close(l->fd);
	l->fd = -1;
}

void listener_refuse_accepted(int fd, const void *words, size_t len)
{
	const struct linger reset = { .l_onoff = 1 };

	if (!discard_behind_words(fd, words, len))
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	close(fd);
}

int listener_address(const struct listener *l, struct sockaddr_storage *out)
{
	socklen_t len = sizeof *out;

	memset(out, 0, sizeof *out);
	return getsockname(l->fd, (struct sockaddr *)out, &len) < 0 ? -errno : 0;
}

int listener_fd(const struct listener *l)
{
	return l->fd;
}
