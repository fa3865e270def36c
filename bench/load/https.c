/* https.c: `cssl-bench https`: forks the generators, waits, shows what they have done so far, and adds up.
 *
 * Each generator counts into its own part of one shared mapping. They begin together: each waits for the end of a pipe
 * that the parent closes once all of them are there.
 */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/command/command.h"
#include "bench/load/generator.h"
#include "bench/load/load_options.h"
#include "bench/load/load_report.h"
#include "bench/load/load_result.h"
#include "bench/server/pattern.h"
#include "net/descriptors.h"
#include "net/log.h"

#define LOOK_NS     50000000 /* how often the parent checks for news */
#define PROGRESS_NS 1000000000u
#define NS_PER_S    1000000000u

struct load_run {
	const struct load_options *options;
	struct load_result *each; /* shared, one a process */
	struct load_result sum, before;
	uint64_t progress_ns; /* of the last line */
	int ready[2], go[2];  /* pipes: a byte for each generator that is there; closed: go */
	unsigned alive;
	enum { HOLDING_UNSAID, HOLDING_SAID } holding;
	enum { ALL_WELL, A_GENERATOR_FAILED } generators;
	pid_t pids[LOAD_PROCESSES_MAX];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Generators */

static int generate(struct load_run *run, unsigned index, const sigset_t *signals)
{
	struct generator *g = generator_create(run->options, index, &run->each[index]);
	char byte = 0;

	if (!g || write(run->ready[1], &byte, 1) != 1)
		return EXIT_FAILURE;
	close(run->ready[1]);
	while (read(run->go[0], &byte, 1) < 0 && errno == EINTR)
		;
	sigprocmask(SIG_UNBLOCK, signals, NULL);
	generator_run(g);
	generator_destroy(g);
	return EXIT_SUCCESS;
}

static int fork_generator(struct load_run *run, unsigned index, const sigset_t *signals)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		return -1;
	if (pid > 0) {
		run->pids[index] = pid;
		run->alive++;
		return 0;
	}
	/* However the parent ends, its generators end with it. */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) || getppid() != parent)
		_exit(EXIT_FAILURE);
	close(run->ready[0]);
	close(run->go[1]);
	exit(generate(run, index, signals));
}

static void signal_generators(const struct load_run *run, int signum)
{
	for (unsigned i = 0; i < LOAD_PROCESSES_MAX; i++) {
		if (run->pids[i] > 0)
			kill(run->pids[i], signum);
	}
}

/* Wait until all are ready, or until one has failed. */
static int start_generators(struct load_run *run, const sigset_t *signals)
{
	unsigned there = 0;
	char byte;

	if (pipe(run->ready) || pipe(run->go))
		return -1;
	for (unsigned i = 0; i < run->options->processes; i++) {
		if (fork_generator(run, i, signals))
			return -1;
	}
	close(run->ready[1]);
	close(run->go[0]);
	while (there < run->options->processes && read(run->ready[0], &byte, 1) == 1)
		there++;
	close(run->ready[0]);
	if (there < run->options->processes)
		return -1;
	close(run->go[1]);
	return 0;
}

static void reap(struct load_run *run)
{
	int status;
	pid_t pid;

	while (run->alive > 0 && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
		run->alive--;
		for (unsigned i = 0; i < LOAD_PROCESSES_MAX; i++) {
			if (run->pids[i] == pid)
				run->pids[i] = 0;
		}
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			run->generators = A_GENERATOR_FAILED;
	}
}

/* Read the counts while the generators write. A figure may be a moment old. */

static void add_up(struct load_run *run)
{
	memset(&run->sum, 0, sizeof run->sum);
	for (unsigned i = 0; i < run->options->processes; i++)
		load_result_add(&run->sum, &run->each[i]);
}

static void show_progress(struct load_run *run)
{
	uint64_t now = now_ns();

	if (run->options->progress == LOAD_PROGRESS_HIDDEN || !isatty(STDERR_FILENO) ||
		now - run->progress_ns < PROGRESS_NS)
		return;
	add_up(run);
	load_report_progress(&run->sum, &run->before, (double)(now - run->progress_ns) / NS_PER_S);
	run->before = run->sum;
	run->progress_ns = now;
}

static void say_holding(struct load_run *run)
{
	uint64_t resting = 0, retired = 0;

	if (run->options->at_end != LOAD_HOLDS || run->holding == HOLDING_SAID)
		return;
	for (unsigned i = 0; i < run->options->processes; i++) {
		resting += run->each[i].resting;
		retired += run->each[i].retired;
	}
	if (resting == 0 || resting + retired < run->options->clients)
		return;
	printf("holding %llu connections\n", (unsigned long long)resting);
	fflush(stdout);
	run->holding = HOLDING_SAID;
}

static void wait_for_generators(struct load_run *run, const sigset_t *signals)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };

	run->progress_ns = now_ns();
	while (run->alive > 0) {
		int signum = sigtimedwait(signals, NULL, &look);
		if (signum == SIGTERM || signum == SIGINT)
			signal_generators(run, SIGTERM);
		reap(run);
		say_holding(run);
		show_progress(run);
	}
	if (run->before.begin_ns)
		fprintf(stderr, "\r\033[K");
}

static int report(struct load_run *run)
{
	add_up(run);
	if (run->options->output == LOAD_JSON) {
		if (load_report_json(run->options, &run->sum, run->each))
			return EXIT_FAILURE;
	} else {
		load_report_text(run->options, &run->sum, run->each);
	}
	return load_result_has_failures(&run->sum) || run->generators == A_GENERATOR_FAILED ? EXIT_FAILURE
											    : EXIT_SUCCESS;
}

static int run_load(struct load_run *run)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	if (start_generators(run, &signals)) {
		signal_generators(run, SIGKILL);
		return EXIT_FAILURE;
	}
	wait_for_generators(run, &signals);
	return report(run);
}

static int run_shared(const struct load_options *o)
{
	size_t len = o->processes * sizeof(struct load_result);
	struct load_run *run = calloc(1, sizeof *run);
	int r = EXIT_FAILURE;

	if (!run)
		return r;
	run->options = o;
	run->each = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (run->each != MAP_FAILED) {
		r = run_load(run);
		munmap(run->each, len);
	}
	free(run);
	return r;
}

int https_main(int argc, char **argv)
{
	static struct load_options options;

	switch (load_options_parse(argc, argv, &options)) {
	case LOAD_PARSED_HELP: fputs(load_options_help(), stdout); return EXIT_SUCCESS;
	case LOAD_PARSED_BAD: return 2;
	default: break;
	}
	descriptors_raise(0);
	pattern_make();
	log_open("cssl-bench", "https", LOG_TEXT, LOG_WARNING, NULL);
	int r = run_shared(&options);
	log_close();
	return r;
}
