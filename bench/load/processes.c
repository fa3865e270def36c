/* processes.c: forks, waits, and passes signals on. Each process stops itself when it is ready, and the parent
 * continues all of them together.
 */
#include "bench/load/processes.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#define LOOK_NS  50000000 /* how often the parent looks for news */
#define NS_PER_S 1000000000u

struct processes {
	const struct processes_work *work;
	char *results, *sum, *before; /* shared, one for each process; their sum, now and at the last progress */
	uint64_t shown_ns;            /* the last progress */
	int status;
	pid_t pids[PROCESSES_MAX]; /* 0: it has ended */
};

static void add_up(struct processes *p)
{
	const struct result_kind *kind = p->work->kind;

	memset(p->sum, 0, kind->size);
	for (unsigned i = 0; i < p->work->count; i++)
		result_add(kind, p->sum, p->results + i * kind->size);
}

static pid_t fork_one(struct processes *p, unsigned index)
{
	const struct processes_work *w = p->work;
	const pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	/* However the parent ends, its processes end with it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(EXIT_FAILURE);
	exit(w->run(w->options, index, p->results + index * w->kind->size));
}

void processes_stand(void)
{
	sigset_t none;

	sigemptyset(&none);
	raise(SIGSTOP);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void signal_all(const struct processes *p, int signum)
{
	for (unsigned i = 0; i < p->work->count; i++) {
		if (p->pids[i] > 0)
			kill(p->pids[i], signum);
	}
}

/* 0: all were ready, and have begun. */
static int start_all(struct processes *p)
{
	int status;

	for (unsigned i = 0; i < p->work->count; i++) {
		if ((p->pids[i] = fork_one(p, i)) < 0)
			return -1;
	}
	for (unsigned i = 0; i < p->work->count; i++) {
		if (waitpid(p->pids[i], &status, WUNTRACED) < 0 || !WIFSTOPPED(status))
			return -1;
	}
	signal_all(p, SIGCONT);
	return 0;
}

/* How many are left. */
static unsigned processes_reap(struct processes *p)
{
	unsigned left = 0;
	int status;

	for (unsigned i = 0; i < p->work->count; i++) {
		const pid_t ended = p->pids[i] > 0 ? waitpid(p->pids[i], &status, WNOHANG) : -1;
		left += ended == 0;
		if (ended <= 0)
			continue;
		p->pids[i] = 0;
		if (status != 0)
			signal_all(p, SIGTERM);
		p->status |= status != 0;
	}
	return left;
}

static void processes_show_progress(struct processes *p)
{
	const struct result_kind *kind = p->work->kind;
	const uint64_t now = uv_hrtime();

	if (!p->work->shows_progress || now - p->shown_ns < NS_PER_S)
		return;
	memcpy(p->before, p->sum, kind->size);
	add_up(p);
	kind->progress(p->sum, p->before, (double)(now - p->shown_ns) / NS_PER_S);
	p->shown_ns = now;
}

static int run_all(struct processes *p)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	if (start_all(p)) /* those that stand end with this process */
		return EXIT_FAILURE;
	while (processes_reap(p) > 0) {
		const int signum = sigtimedwait(&signals, NULL, &look);
		if (signum == SIGTERM || signum == SIGINT)
			signal_all(p, SIGTERM);
		if (p->work->look)
			p->work->look(p->work->options, p->results);
		processes_show_progress(p);
	}
	add_up(p);
	return p->status;
}

static int processes_complain(const struct processes_work *w)
{
	fprintf(stderr, "%s: %s: %s\n", w->kind->command, w->save ? w->save : "no memory", strerror(errno));
	return EXIT_FAILURE;
}

/* The sum shares its memory with the result of one process that is the parent itself. */
int processes_run(const struct processes_work *w)
{
	const size_t size = w->kind->size;
	struct processes p = { .work = w, .shown_ns = uv_hrtime() };
	FILE *file = w->save ? fopen(w->save, "we") : NULL;

	p.results = mmap(NULL, (w->count + 2) * size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p.results == MAP_FAILED || (w->save && !file))
		return processes_complain(w);
	p.before = p.results + w->count * size;
	p.sum = p.before + size;
	int status = w->count == 1 && !w->look ? w->run(w->options, 0, p.sum = p.results) : run_all(&p);
	if (w->shows_progress && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
	if (((struct result_times *)p.sum)->begin_ns == 0) /* it has complained */
		return EXIT_FAILURE;
	status |= w->kind->report(p.sum, p.results, w->count, w->output);
	if (file && result_save(file, w->kind, p.sum))
		status = processes_complain(w);
	munmap(p.results, (w->count + 2) * size);
	return status;
}
