/* log.c: the places that lines go to. log_line.c makes the lines.
 *
 * Writing to the descriptor never blocks. A file of our own is opened non-blocking. An inherited standard error
 * shares its flags with other processes, so they stay as they are. It is opened again by way of /proc where that
 * works (pipes, files, terminals). A socket is written with MSG_DONTWAIT. For all others, poll() first tells whether
 * there is room.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/report/log.h"
#include "net/report/log_file.h"
#include "net/report/log_line.h"

enum log_sink { SINK_POLLED, SINK_OWN, SINK_SOCKET };

struct log_output {
	int fd;
	enum log_sink sink;
	enum log_origin origin; /* of the file at @path */
	char path[4096];        /* "": standard error, or for the access log: there is none */
};

static struct log_output outputs[LOG_FILE_COUNT] = {
	[LOG_EVENTS] = { .fd = STDERR_FILENO, .sink = SINK_POLLED },
	[LOG_ACCESS] = { .fd = -1, .sink = SINK_OWN },
};

static struct {
	enum log_format format;
	char component[32], node[64];
} log_as = { .component = "cssl" };

static _Atomic uint64_t dropped, dropped_told;
/* The kernel, too, lets one line at a time into a file. */
static pthread_mutex_t writing[LOG_FILE_COUNT] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };

static void output_open_stderr(struct log_output *o)
{
	struct stat st;
	int fd = -1;

	if (fstat(STDERR_FILENO, &st) == 0 && S_ISSOCK(st.st_mode)) {
		o->sink = SINK_SOCKET;
		o->fd = STDERR_FILENO;
		return;
	}
	fd = open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	o->sink = fd < 0 ? SINK_POLLED : SINK_OWN;
	o->fd = fd < 0 ? STDERR_FILENO : fd;
}

static int output_open_file(struct log_output *o, const char *path)
{
	if (strlen(path) >= sizeof o->path)
		return -ENAMETOOLONG;
	int fd = log_open_file(path, &o->origin);
	if (fd < 0)
		return fd;
	if (o->fd > STDERR_FILENO)
		close(o->fd);
	o->fd = fd;
	o->sink = SINK_OWN;
	snprintf(o->path, sizeof o->path, "%s", path);
	return 0;
}

int log_open(const char *component, const char *node, enum log_format format, enum log_level level, const char *path)
{
	struct log_output fresh = { .fd = -1 };
	int r = path ? output_open_file(&fresh, path) : 0;

	if (r < 0)
		return r;
	if (!path)
		output_open_stderr(&fresh);
	log_close();
	outputs[LOG_EVENTS] = fresh;
	snprintf(log_as.component, sizeof log_as.component, "%s", component);
	snprintf(log_as.node, sizeof log_as.node, "%s", node ? node : "");
	log_as.format = format;
	log_configure_level(level);
	return 0;
}

int log_open_access(const char *path)
{
	return output_open_file(&outputs[LOG_ACCESS], path);
}

static int output_reopen(struct log_output *o)
{
	if (!o->path[0])
		return 0;
	const int fd = log_open_file(o->path, &o->origin);
	/* in place: other threads may be writing to this number right now */
	const int r = fd < 0 ? fd : dup3(fd, o->fd, O_CLOEXEC) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	if (r < 0)
		log_event(LOG_ERROR, NULL, "log not opened again", "path=%s cause=%s effect=\"the old file goes on\"",
			o->path, strerror(-r));
	return r;
}

int log_reopen(void)
{
	int events = output_reopen(&outputs[LOG_EVENTS]), access = output_reopen(&outputs[LOG_ACCESS]);

	return events < 0 ? events : access;
}

int log_give(uid_t user, gid_t group)
{
	int r = 0;

	for (unsigned i = 0; i < LOG_FILE_COUNT; i++) {
		if (outputs[i].origin == LOG_FILE_MADE && fchown(outputs[i].fd, user, group) < 0)
			r = -errno;
	}
	return r;
}

static void output_close(struct log_output *o, int fd_from_now_on)
{
	if (o->fd > STDERR_FILENO)
		close(o->fd);
	*o = (struct log_output){ .fd = fd_from_now_on, .sink = SINK_POLLED };
}

void log_close(void)
{
	output_close(&outputs[LOG_EVENTS], STDERR_FILENO);
	output_close(&outputs[LOG_ACCESS], -1);
}

bool log_has(int fd)
{
	for (unsigned i = 0; i < LOG_FILE_COUNT; i++)
		if (outputs[i].fd == fd)
			return true;
	return false;
}

bool log_is_apart(enum log_file file)
{
	return file == LOG_ACCESS && outputs[file].path[0];
}

bool log_takes(enum log_file to, enum log_level level)
{
	return log_enabled(level) || (log_is_apart(to) && level >= LOG_INFO);
}

/* Written under the lower one of both levels: nobody hides warnings unseen. */
int log_level_change(const char *word)
{
	if (!log_level_takes(word))
		return -1;
	const enum log_level level = log_level_of(word);
	if (level < log_level_now())
		log_set_level(level);
	log_event(LOG_WARNING, NULL, "log level changed", "level=%s", log_level_name(level));
	log_set_level(level);
	return 0;
}

/* --- writing --- */

uint64_t log_dropped(void)
{
	return atomic_load_explicit(&dropped, memory_order_relaxed);
}

/* RAgent and its keeper, which hardly ever writes, have one offset: a line of the other process that came between these
 * two calls would be cut. */
static ssize_t output_write_whole(const struct log_output *o, const char *line, size_t len)
{
	pthread_mutex_t *turn = &writing[o - outputs];

	pthread_mutex_lock(turn);
	ssize_t n = write(o->fd, line, len);
	if (n > 0 && (size_t)n < len && log_take_back(o->fd, (size_t)n))
		n = -1;
	pthread_mutex_unlock(turn);
	return n;
}

static ssize_t output_put(const struct log_output *o, const char *line, size_t len)
{
	struct pollfd room = { .fd = o->fd, .events = POLLOUT };

	switch (o->sink) {
	case SINK_SOCKET: return send(o->fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	case SINK_POLLED:
		if (poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT))
			return -1;
		return write(o->fd, line, len);
	case SINK_OWN: return output_write_whole(o, line, len);
	}
	return -1;
}

static void log_write(enum log_file to, enum log_level level, const char *event, const char *fields, ...)
	__attribute__((format(printf, 4, 5)));

/* Behind an event that could be written. This line may be lost, too; then a later one tells. */
static void log_tell_dropped(void)
{
	const uint64_t sum = log_dropped();

	if (atomic_exchange_explicit(&dropped_told, sum, memory_order_relaxed) != sum)
		log_write(LOG_EVENTS, LOG_WARNING, "log lines lost", "in_all=%llu", (unsigned long long)sum);
}

void log_write_va(enum log_file to, enum log_level level, const struct connection_id *connection, const char *event,
	const char *fields, va_list args)
{
	char line[LOG_LINE_MAX];
	int saved_errno = errno;
	struct log_line l = { .out = line, .cap = sizeof line, .format = log_as.format };

	log_line_begin(
		&l, log_level_name(level), log_as.component, log_as.node, connection ? connection->bytes : NULL, event);
	log_line_fields(&l, fields, args);
	size_t len = log_line_end(&l);
	const struct log_output *o = &outputs[outputs[to].path[0] ? to : LOG_EVENTS];
	if (output_put(o, line, len) != (ssize_t)len)
		atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
	else if (o == &outputs[LOG_EVENTS])
		log_tell_dropped();
	errno = saved_errno;
}

static void log_write(enum log_file to, enum log_level level, const char *event, const char *fields, ...)
{
	va_list args;

	va_start(args, fields);
	log_write_va(to, level, NULL, event, fields, args);
	va_end(args);
}

void log_event(enum log_level level, const struct connection_id *connection, const char *event, const char *fields, ...)
{
	va_list args;

	if (!log_enabled(level))
		return;
	va_start(args, fields);
	log_write_va(LOG_EVENTS, level, connection, event, fields, args);
	va_end(args);
}
