/* log.c: where lines go. log_line.c makes them.
 *
 * The descriptor never blocks us. A file of our own is opened non-blocking. An inherited standard error shares its
 * flags with other processes, so they are left alone: it is opened anew by way of /proc where that works (pipes, files,
 * terminals), a socket is written with MSG_DONTWAIT, and for the rest poll() says beforehand whether there is room.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/log_inside.h"
#include "net/log_line.h"

enum log_sink { SINK_POLLED, SINK_OWN, SINK_SOCKET };

static struct {
	int fd;
	enum log_sink sink;
	enum log_format format;
	char component[32], node[64], path[4096]; /* path "": standard error */
} log_to = { .fd = STDERR_FILENO, .sink = SINK_POLLED, .component = "cssl" };

static _Atomic uint64_t dropped;

static int open_path(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0640);

	return fd < 0 ? -errno : fd;
}

static void open_stderr(void)
{
	struct stat st;
	int fd = -1;

	if (fstat(STDERR_FILENO, &st) == 0 && S_ISSOCK(st.st_mode)) {
		log_to.sink = SINK_SOCKET;
		log_to.fd = STDERR_FILENO;
		return;
	}
	fd = open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	log_to.sink = fd < 0 ? SINK_POLLED : SINK_OWN;
	log_to.fd = fd < 0 ? STDERR_FILENO : fd;
}

int log_open(const char *component, const char *node, enum log_format format, enum log_level level, const char *path)
{
	int fd = path ? open_path(path) : 0;
	if (fd < 0)
		return fd;
	if (path && strlen(path) >= sizeof log_to.path) {
		close(fd);
		return -ENAMETOOLONG;
	}

	log_close();
	if (path) {
		log_to.fd = fd;
		log_to.sink = SINK_OWN;
		snprintf(log_to.path, sizeof log_to.path, "%s", path);
	} else {
		open_stderr();
	}
	snprintf(log_to.component, sizeof log_to.component, "%s", component);
	snprintf(log_to.node, sizeof log_to.node, "%s", node ? node : "");
	log_to.format = format;
	log_configure_level(level);
	return 0;
}

int log_reopen(void)
{
	if (!log_to.path[0])
		return 0;
	int fd = open_path(log_to.path);
	if (fd < 0)
		return fd;
	/* in place: other threads may be writing to this number right now */
	int r = dup3(fd, log_to.fd, O_CLOEXEC) < 0 ? -errno : 0;
	close(fd);
	return r;
}

void log_close(void)
{
	if (log_to.fd > STDERR_FILENO)
		close(log_to.fd);
	log_to.fd = STDERR_FILENO;
	log_to.sink = SINK_POLLED;
	log_to.path[0] = '\0';
}

uint64_t log_dropped(void)
{
	return atomic_load_explicit(&dropped, memory_order_relaxed);
}

static ssize_t log_write(const char *line, size_t len)
{
	struct pollfd room = { .fd = log_to.fd, .events = POLLOUT };

	switch (log_to.sink) {
	case SINK_SOCKET: return send(log_to.fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	case SINK_POLLED:
		if (poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT))
			return -1;
		return write(log_to.fd, line, len);
	case SINK_OWN: return write(log_to.fd, line, len);
	}
	return -1;
}

void log_event_va(enum log_level level, const struct connection_id *connection, const char *event, const char *fields,
	va_list args)
{
	char line[LOG_LINE_MAX];
	int saved_errno = errno;
	struct log_line l = { .out = line, .cap = sizeof line, .format = log_to.format };

	log_line_begin(&l, level, log_to.component, log_to.node, connection ? connection->bytes : NULL, event);
	log_line_fields(&l, fields, args);
	size_t len = log_line_end(&l);
	ssize_t n = log_write(line, len);
	if (n < 0 || (size_t)n < len)
		atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
	errno = saved_errno;
}

void log_event(enum log_level level, const struct connection_id *connection, const char *event, const char *fields, ...)
{
	va_list args;

	if (!log_enabled(level))
		return;
	va_start(args, fields);
	log_event_va(level, connection, event, fields, args);
	va_end(args);
}
