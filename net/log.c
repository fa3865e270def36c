/* log.c: the places that lines go to. log_line.c makes the lines.
 *
 * Writing to the descriptor never blocks. A file of our own is opened non-blocking. An inherited standard error
 * shares its flags with other processes, so they stay as they are. It is opened again by way of /proc where that
 * works (pipes, files, terminals). A socket is written with MSG_DONTWAIT. For all others, poll() first tells whether
 * there is room.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/log_inside.h"
#include "net/log_line.h"

#define OPEN_FLAGS (O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
#define BACK_WORD  "configured"

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

static const char *const level_names[] = {
	[LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARNING] = "warning", [LOG_ERROR] = "error"
};

#define LEVEL_COUNT (sizeof level_names / sizeof level_names[0])

/* The lowest level that is written: the configured one, until it is changed at run time. */
static _Atomic int level_now = LOG_INFO, level_configured = LOG_INFO;

static _Atomic uint64_t dropped, dropped_told;
/* The kernel, too, lets one line at a time into a file. */
static pthread_mutex_t writing[LOG_FILE_COUNT] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };

/* Root may write in the folder of an ordinary user, who then must not choose the file by a link or a second name. As
 * for fs.protected_symlinks, a name that only root can have made is good. */
static bool may_be_chosen_by_others(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];
	struct stat link, of_folder;

	snprintf(folder, sizeof folder, "%.*s/", slash ? (int)(slash - path) : 1, slash ? path : ".");
	return geteuid() == 0 &&
	       (stat(folder, &of_folder) < 0 || of_folder.st_uid != 0 || of_folder.st_mode & S_IWOTH ||
		       (lstat(path, &link) == 0 && S_ISLNK(link.st_mode) && link.st_uid != 0));
}

/* @how: O_CREAT or 0. */
static int open_found(const char *path, int how)
{
	const bool is_doubtful = may_be_chosen_by_others(path);
	const int fd = open(path, OPEN_FLAGS | (is_doubtful ? O_NOFOLLOW : how), 0640);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!is_doubtful || (fstat(fd, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_nlink == 1)))
		return fd;
	close(fd);
	return -EMLINK;
}

int log_open_file(const char *path, enum log_origin *origin)
{
	const int is_root = geteuid() == 0, fd = is_root ? open(path, OPEN_FLAGS | O_CREAT | O_EXCL, 0640) : -1;

	*origin = fd < 0 ? LOG_FILE_FOUND : LOG_FILE_MADE;
	if (fd < 0 && (!is_root || errno == EEXIST))
		return open_found(path, O_CREAT);
	return fd < 0 ? -errno : fd;
}

int log_try_file(const char *path)
{
	struct stat st;
	const int r = may_be_chosen_by_others(path) ? lstat(path, &st) : stat(path, &st);

	/* the reader of a FIFO would see the end of its data */
	if (r == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
		return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0 ? -errno : 0;
	const int fd = open_found(path, 0);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void open_stderr(struct log_output *o)
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

static int open_file(struct log_output *o, const char *path)
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
	int r = path ? open_file(&fresh, path) : 0;

	if (r < 0)
		return r;
	if (!path)
		open_stderr(&fresh);
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
	return open_file(&outputs[LOG_ACCESS], path);
}

static int reopen(struct log_output *o)
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
	int events = reopen(&outputs[LOG_EVENTS]), access = reopen(&outputs[LOG_ACCESS]);

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

static void close_output(struct log_output *o, int fd_from_now_on)
{
	if (o->fd > STDERR_FILENO)
		close(o->fd);
	*o = (struct log_output){ .fd = fd_from_now_on, .sink = SINK_POLLED };
}

void log_close(void)
{
	close_output(&outputs[LOG_EVENTS], STDERR_FILENO);
	close_output(&outputs[LOG_ACCESS], -1);
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

/* --- the level --- */

const char *log_level_name(enum log_level level)
{
	return level_names[level];
}

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&level_now, (int)level, memory_order_relaxed);
}

void log_configure_level(enum log_level level)
{
	atomic_store_explicit(&level_configured, (int)level, memory_order_relaxed);
	log_set_level(level);
}

enum log_level log_level_now(void)
{
	return (enum log_level)atomic_load_explicit(&level_now, memory_order_relaxed);
}

enum log_level log_level_configured(void)
{
	return (enum log_level)atomic_load_explicit(&level_configured, memory_order_relaxed);
}

bool log_enabled(enum log_level level)
{
	return level >= log_level_now();
}

static size_t find_level(const char *word)
{
	size_t i = 0;

	while (i < LEVEL_COUNT && strcmp(level_names[i], word) != 0)
		i++;
	return i;
}

int log_level_takes(const char *word)
{
	return strcmp(word, BACK_WORD) == 0 || find_level(word) < LEVEL_COUNT;
}

/* Written under the lower one of both levels: nobody hides warnings unseen. */
int log_level_change(const char *word)
{
	const size_t found = find_level(word);
	const enum log_level level = found < LEVEL_COUNT ? (enum log_level)found : log_level_configured();

	if (!log_level_takes(word))
		return -1;
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

bool log_take_back(int fd, size_t len)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && lseek(fd, 0, SEEK_CUR) == st.st_size &&
	       ftruncate(fd, st.st_size - (off_t)len) == 0;
}

/* RAgent and its keeper, which hardly ever writes, have one offset: a line of the other process that came between these
 * two calls would be cut. */
static ssize_t write_whole(const struct log_output *o, const char *line, size_t len)
{
	pthread_mutex_t *turn = &writing[o - outputs];

	pthread_mutex_lock(turn);
	ssize_t n = write(o->fd, line, len);
	if (n > 0 && (size_t)n < len && log_take_back(o->fd, (size_t)n))
		n = -1;
	pthread_mutex_unlock(turn);
	return n;
}

static ssize_t put_line(const struct log_output *o, const char *line, size_t len)
{
	struct pollfd room = { .fd = o->fd, .events = POLLOUT };

	switch (o->sink) {
	case SINK_SOCKET: return send(o->fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	case SINK_POLLED:
		if (poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT))
			return -1;
		return write(o->fd, line, len);
	case SINK_OWN: return write_whole(o, line, len);
	}
	return -1;
}

/* Behind an event that could be written. This line may be lost, too; then a later one tells. */
static void tell_dropped(void)
{
	const uint64_t sum = log_dropped();

	if (atomic_exchange_explicit(&dropped_told, sum, memory_order_relaxed) != sum)
		log_write(LOG_EVENTS, LOG_WARNING, NULL, "log lines lost", "in_all=%llu", (unsigned long long)sum);
}

void log_write_va(enum log_file to, enum log_level level, const struct connection_id *connection, const char *event,
	const char *fields, va_list args)
{
	char line[LOG_LINE_MAX];
	int saved_errno = errno;
	struct log_line l = { .out = line, .cap = sizeof line, .format = log_as.format };

	log_line_begin(&l, level, log_as.component, log_as.node, connection ? connection->bytes : NULL, event);
	log_line_fields(&l, fields, args);
	size_t len = log_line_end(&l);
	const struct log_output *o = &outputs[outputs[to].path[0] ? to : LOG_EVENTS];
	if (put_line(o, line, len) != (ssize_t)len)
		atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
	else if (o == &outputs[LOG_EVENTS])
		tell_dropped();
	errno = saved_errno;
}

void log_write(enum log_file to, enum log_level level, const struct connection_id *connection, const char *event,
	const char *fields, ...)
{
	va_list args;

	va_start(args, fields);
	log_write_va(to, level, connection, event, fields, args);
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
