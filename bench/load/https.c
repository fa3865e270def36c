/* https.c: `cssl-bench https`: starts the generators, shows what they have done so far, and reports. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/command/command.h"
#include "bench/load/generator.h"
#include "bench/load/load_options.h"
#include "bench/load/load_report.h"
#include "bench/load/load_result.h"
#include "bench/load/processes.h"
#include "bench/server/pattern.h"
#include "net/descriptors.h"
#include "net/log.h"

#define PROGRESS_NS 1000000000u
#define NS_PER_S    1000000000u

struct load_run {
	const struct load_options *options;
	struct load_result sum, before;
	uint64_t progress_ns; /* of the last line */
	enum { HOLDING_UNSAID, HOLDING_SAID } holding;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void *create(void *ctx, unsigned index, void *result)
{
	const struct load_run *run = ctx;

	return generator_create(run->options, index, result);
}

static void generate(void *load)
{
	generator_run(load);
}

static void destroy(void *load)
{
	generator_destroy(load);
}

static void add_up(struct load_run *run, const struct load_result *each)
{
	memset(&run->sum, 0, sizeof run->sum);
	for (unsigned i = 0; i < run->options->processes; i++)
		load_result_add(&run->sum, &each[i]);
}

static void show_progress(struct load_run *run, const struct load_result *each)
{
	uint64_t now = now_ns();

	if (run->options->progress == LOAD_PROGRESS_HIDDEN || !isatty(STDERR_FILENO) ||
		now - run->progress_ns < PROGRESS_NS)
		return;
	add_up(run, each);
	load_report_progress(&run->sum, &run->before, (double)(now - run->progress_ns) / NS_PER_S);
	run->before = run->sum;
	run->progress_ns = now;
}

static void say_holding(struct load_run *run, const struct load_result *each)
{
	uint64_t resting = 0, retired = 0;

	if (run->options->at_end != LOAD_HOLDS || run->holding == HOLDING_SAID)
		return;
	for (unsigned i = 0; i < run->options->processes; i++) {
		resting += each[i].resting;
		retired += each[i].retired;
	}
	if (resting == 0 || resting + retired < run->options->clients)
		return;
	printf("holding %llu connections\n", (unsigned long long)resting);
	fflush(stdout);
	run->holding = HOLDING_SAID;
}

static int on_look(void *ctx, const void *results)
{
	say_holding(ctx, results);
	show_progress(ctx, results);
	return 0;
}

static int on_end(void *ctx, const void *results)
{
	struct load_run *run = ctx;
	const unsigned processes = (unsigned)run->options->processes;

	if (run->before.begin_ns)
		fprintf(stderr, "\r\033[K");
	add_up(run, results);
	if (run->options->output == LOAD_TEXT)
		load_report_text(&run->sum, results, processes);
	else if (load_report_json(&run->sum, results, processes))
		return EXIT_FAILURE;
	return load_result_has_failures(&run->sum) ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run_load(const struct load_options *o)
{
	struct load_run *run = calloc(1, sizeof *run);
	const struct processes_work work = { .count = (unsigned)o->processes,
		.result_size = sizeof(struct load_result),
		.create = create,
		.run = generate,
		.destroy = destroy,
		.on_look = on_look,
		.on_end = on_end,
		.ctx = run };

	if (!run)
		return EXIT_FAILURE;
	run->options = o;
	run->progress_ns = now_ns();
	int status = processes_run(&work);
	free(run);
	return status;
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
	int r = run_load(&options);
	log_close();
	return r;
}
