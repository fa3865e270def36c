/* event_writer.c: a queue of jobs under one lock, and the thread that does them. A job is a line, or the path of the
 * file for those behind it. The file is the thread's alone once it runs. */
#include "smtpproxy/events/event_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "net/points/fault.h"
#include "net/report/error_text.h"
#include "net/report/log.h"
#include "proto/error.h"

enum writer_state { WRITER_IDLE, WRITER_RUNS, WRITER_ENDS, WRITER_ENDED };

enum job_kind { JOB_LINE, JOB_OPEN };

struct job {
	STAILQ_ENTRY(job) next;
	char *text; /* of LINE, or the path of OPEN; NULL: nowhere */
	size_t len; /* of LINE */
	enum job_kind kind;
};

struct event_writer {
	pthread_mutex_t lock;
	pthread_cond_t wake, ended;
	pthread_t thread;
	STAILQ_HEAD(, job) jobs;
	size_t bytes; /* of the lines of @jobs, and of the one that is being written */
	uint64_t lines, lost;
	enum writer_state state;
	int fd;                              /* -1: none */
	enum { LINE_WHOLE, LINE_TORN } last; /* in the file */
};

struct event_writer *event_writer_create(void)
{
	pthread_condattr_t monotonic;
	struct event_writer *w = calloc(1, sizeof *w);
	if (!w)
		return NULL;
	STAILQ_INIT(&w->jobs);
	w->fd = -1;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	pthread_cond_init(&w->ended, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return w;
}

/* The thread */

static void event_writer_use(struct event_writer *w, int fd)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = fd;
	w->last = LINE_WHOLE;
}

/* A file takes all of it, unless it is full. Behind a part of a line that stays, the next one begins a new line. */
static int write_line(struct event_writer *w, const char *text, size_t len)
{
	ssize_t n;
	uint64_t ms = 0;
	if (fault_at("events.write", NULL, &ms) == FAULT_DELAY)
		nanosleep(&(struct timespec){ (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 }, NULL);
	if (w->last == LINE_TORN && write(w->fd, "\n", 1) != 1)
		return -errno;
	w->last = LINE_WHOLE;
	for (size_t done = 0; done < len; done += (size_t)n) {
		n = write(w->fd, text + done, len - done);
		if (n < 0 && errno == EINTR)
			n = 0;
		if (n < 0) {
			const int r = -errno;
			w->last = done == 0 || log_take_back(w->fd, done) ? LINE_WHOLE : LINE_TORN;
			return r;
		}
	}
	return 0;
}

/* A FIFO without a reader is an error, and later write_line() may wait for its reader. */
int event_writer_open_file(const char *path, enum log_origin *origin)
{
	const int fd = log_open_file(path, origin);
	if (fd >= 0)
		fcntl(fd, F_SETFL, O_APPEND);
	return fd;
}

static void use_path(struct event_writer *w, const char *path)
{
	enum log_origin origin;
	const int fd = path ? event_writer_open_file(path, &origin) : -1;
	if (fd >= 0 || !path)
		event_writer_use(w, fd);
	else
		log_event(LOG_WARNING, NULL, "event log not opened", "path=%s cause=%s effect=\"%s\"", path,
			error_text(fd), w->fd < 0 ? "events are dropped" : "events go to the old file");
}

/* 0; negative: a line was lost. */
static int do_job(struct event_writer *w, struct job *j)
{
	if (j->kind == JOB_LINE)
		return w->fd < 0 ? CSSL_E_STATE : write_line(w, j->text, j->len);
	use_path(w, j->text);
	return 0;
}

static struct job *take_first(struct event_writer *w)
{
	struct job *j = STAILQ_FIRST(&w->jobs);
	if (j)
		STAILQ_REMOVE_HEAD(&w->jobs, next);
	return j;
}

static void free_job(struct event_writer *w, struct job *j)
{
	w->bytes -= j->len;
	w->lines -= j->kind == JOB_LINE;
	free(j->text);
	free(j);
}

static void *event_writer_run(void *arg)
{
	struct event_writer *w = arg;
	struct job *j;
	pthread_mutex_lock(&w->lock);
	for (;;) {
		while (STAILQ_EMPTY(&w->jobs) && w->state == WRITER_RUNS)
			pthread_cond_wait(&w->wake, &w->lock);
		if (!(j = take_first(w)))
			break;
		pthread_mutex_unlock(&w->lock);
		const int r = do_job(w, j);
		pthread_mutex_lock(&w->lock);
		w->lost += r < 0;
		free_job(w, j);
	}
	w->state = WRITER_ENDED;
	pthread_cond_signal(&w->ended);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* Signals are for the loop's thread. */
static int event_writer_start(struct event_writer *w)
{
	sigset_t all, before;
	if (w->state != WRITER_IDLE)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int r = pthread_create(&w->thread, NULL, event_writer_run, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0)
		return -r;
	w->state = WRITER_RUNS;
	return 0;
}

/* The loop's side */

static int start_and_push(struct event_writer *w, struct job *j)
{
	if (w->bytes + j->len > EVENT_WRITER_MAX)
		return CSSL_E_FULL;
	const int r = event_writer_start(w);
	if (r < 0)
		return r;
	STAILQ_INSERT_TAIL(&w->jobs, j, next);
	w->bytes += j->len;
	w->lines += j->kind == JOB_LINE;
	pthread_cond_signal(&w->wake);
	return 0;
}

/* Takes over @text, also if it fails. */
static int event_writer_queue(struct event_writer *w, enum job_kind kind, char *text, size_t len)
{
	struct job *j = calloc(1, sizeof *j);
	int r = CSSL_E_NO_MEMORY;
	if (j) {
		*j = (struct job){ .text = text, .len = len, .kind = kind };
		pthread_mutex_lock(&w->lock);
		r = start_and_push(w, j);
		pthread_mutex_unlock(&w->lock);
	}
	if (r < 0) {
		free(text);
		free(j);
	}
	return r;
}

int event_writer_add(struct event_writer *w, char *text, size_t len)
{
	return event_writer_queue(w, JOB_LINE, text, len);
}

int event_writer_open(struct event_writer *w, const char *path)
{
	char *copy = path ? strdup(path) : NULL;
	return copy || !path ? event_writer_queue(w, JOB_OPEN, copy, 0) : CSSL_E_NO_MEMORY;
}

void event_writer_begin(struct event_writer *w, int fd)
{
	event_writer_use(w, fd);
}

uint64_t event_writer_lost(struct event_writer *w)
{
	pthread_mutex_lock(&w->lock);
	const uint64_t lost = w->lost;
	pthread_mutex_unlock(&w->lock);
	return lost;
}

/* The end */

static struct timespec event_writer_after(uint64_t ms)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	const uint64_t ns = (uint64_t)t.tv_nsec + ms % 1000 * 1000000;
	return (struct timespec){ t.tv_sec + (time_t)(ms / 1000 + ns / 1000000000), (long)(ns % 1000000000) };
}

enum thread_end { THREAD_ENDED, THREAD_STAYS };

/* *left: the lines that are not written. */
static enum thread_end end_thread(struct event_writer *w, uint64_t wait_ms, uint64_t *left)
{
	const struct timespec till = event_writer_after(wait_ms);
	int r = 0;
	pthread_mutex_lock(&w->lock);
	w->state = WRITER_ENDS;
	pthread_cond_signal(&w->wake);
	while (r == 0 && w->state != WRITER_ENDED)
		r = pthread_cond_timedwait(&w->ended, &w->lock, &till);
	*left = w->lines;
	const enum writer_state state = w->state;
	pthread_mutex_unlock(&w->lock);
	if (state == WRITER_ENDED)
		pthread_join(w->thread, NULL);
	else
		pthread_detach(w->thread);
	return state == WRITER_ENDED ? THREAD_ENDED : THREAD_STAYS;
}

uint64_t event_writer_destroy(struct event_writer *w, uint64_t wait_ms)
{
	uint64_t left = 0;
	if (!w)
		return 0;
	if (w->state == WRITER_RUNS && end_thread(w, wait_ms, &left) == THREAD_STAYS)
		return left;
	event_writer_use(w, -1);
	pthread_cond_destroy(&w->ended);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return left;
}
