/* processes.c: forks, waits, and passes signals on. Each process begins at the end of a pipe that the parent closes
 * once all of them are there.
 */
#include "bench/load/processes.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS 50000000 /* how often the parent checks for news */

struct processes {
	const struct processes_work *work;
	char *results;       /* shared, one for each process */
	int ready[2], go[2]; /* pipes: a byte for each process that is there; closed: go */
	unsigned alive;
	enum { PROCESSES_WELL, PROCESSES_FAILED } state;
	pid_t pids[PROCESSES_MAX];
};

static int work_on(struct processes *p, unsigned index, const sigset_t *signals)
{
	const struct processes_work *w = p->work;
	void *load = w->create(w->ctx, index, p->results + index * w->result_size);
	char byte = 0;

	if (!load || write(p->ready[1], &byte, 1) != 1)
		return EXIT_FAILURE;
	close(p->ready[1]);
	while (read(p->go[0], &byte, 1) < 0 && errno == EINTR)
		;
	sigprocmask(SIG_UNBLOCK, signals, NULL);
	w->run(load);
	w->destroy(load);
	return EXIT_SUCCESS;
}

static int fork_one(struct processes *p, unsigned index, const sigset_t *signals)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		return -1;
	if (pid > 0) {
		p->pids[index] = pid;
		p->alive++;
		return 0;
	}
	/* However the parent ends, its processes end with it. */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) || getppid() != parent)
		_exit(EXIT_FAILURE);
	close(p->ready[0]);
	close(p->go[1]);
	exit(work_on(p, index, signals));
}

static void signal_all(const struct processes *p, int signum)
{
	for (unsigned i = 0; i < PROCESSES_MAX; i++) {
		if (p->pids[i] > 0)
			kill(p->pids[i], signum);
	}
}

/* Wait until all are ready, or until one has failed. */
static int start_all(struct processes *p, const sigset_t *signals)
{
	unsigned there = 0;
	char byte;

	if (pipe(p->ready) || pipe(p->go))
		return -1;
	for (unsigned i = 0; i < p->work->count; i++) {
		if (fork_one(p, i, signals))
			return -1;
	}
	close(p->ready[1]);
	close(p->go[0]);
	while (there < p->work->count && read(p->ready[0], &byte, 1) == 1)
		there++;
	close(p->ready[0]);
	if (there < p->work->count)
		return -1;
	close(p->go[1]);
	return 0;
}

static void reap(struct processes *p)
{
	int status;
	pid_t pid;

	while (p->alive > 0 && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
		p->alive--;
		for (unsigned i = 0; i < PROCESSES_MAX; i++) {
			if (p->pids[i] == pid)
				p->pids[i] = 0;
		}
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			p->state = PROCESSES_FAILED;
	}
}

static void wait_for_all(struct processes *p, const sigset_t *signals)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };

	while (p->alive > 0) {
		int signum = sigtimedwait(signals, NULL, &look);
		if (signum == SIGTERM || signum == SIGINT)
			signal_all(p, SIGTERM);
		reap(p);
		if (p->work->on_look(p->work->ctx, p->results))
			signal_all(p, SIGTERM);
	}
}

static int run(struct processes *p)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	if (start_all(p, &signals)) {
		signal_all(p, SIGKILL);
		return EXIT_FAILURE;
	}
	wait_for_all(p, &signals);
	int status = p->work->on_end(p->work->ctx, p->results);
	return p->state == PROCESSES_WELL ? status : EXIT_FAILURE;
}

int processes_run(const struct processes_work *work)
{
	struct processes p = { .work = work };
	size_t len = work->count * work->result_size;
	int status = EXIT_FAILURE;

	p.results = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p.results != MAP_FAILED) {
		status = run(&p);
		munmap(p.results, len);
	}
	return status;
}
