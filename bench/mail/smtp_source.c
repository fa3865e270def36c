/* smtp_source.c: `cssl-bench smtp-source`: options, one mail, a load in this process or in several, one report. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "bench/command/command.h"
#include "bench/load/processes.h"
#include "bench/mail/source_load.h"
#include "bench/mail/source_mail.h"
#include "bench/mail/source_options.h"
#include "bench/mail/source_result.h"
#include "net/descriptors.h"
#include "net/log.h"

#define PROGRESS_NS 1000000000u

struct source_run {
	const struct source_options *options;
	struct source_mail mail;
	struct source_result sum;
	uint64_t progress_ns; /* of the last line */
};

static int report(struct source_run *run)
{
	if (run->options->output == SOURCE_TEXT)
		source_result_text(&run->sum);
	else if (source_result_json(&run->sum) < 0)
		return EXIT_FAILURE;
	return source_result_has_failures(&run->sum) ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void *create(void *ctx, unsigned index, void *result)
{
	struct source_run *run = ctx;
	return source_load_create(run->options, index, &run->mail, result);
}

static void send_mails(void *load)
{
	source_load_run(load);
}

static void destroy(void *load)
{
	source_load_destroy(load);
}

/* In this process: its memory is that of the load. */
static int run_here(struct source_run *run)
{
	void *load = create(run, 0, &run->sum);
	if (!load)
		return EXIT_FAILURE;
	send_mails(load);
	int status = report(run);
	destroy(load);
	return status;
}

/* Several processes */

static void add_up(struct source_run *run, const struct source_result *each)
{
	memset(&run->sum, 0, sizeof run->sum);
	for (unsigned i = 0; i < run->options->processes; i++)
		source_result_add(&run->sum, &each[i]);
}

static void show_progress(struct source_run *run, const struct source_result *each)
{
	const struct source_options *o = run->options;
	const int is_terminal = isatty(STDERR_FILENO);
	const uint64_t now = uv_hrtime();
	if (o->progress == SOURCE_PROGRESS_NEVER || (o->progress == SOURCE_PROGRESS_ON_TERMINALS && !is_terminal) ||
		now - run->progress_ns < PROGRESS_NS)
		return;
	add_up(run, each);
	source_result_progress(&run->sum, o->messages, now, is_terminal);
	run->progress_ns = now;
}

/* Without --keep-going, the first failure of one process ends all. */
static int on_look(void *ctx, const void *results)
{
	struct source_run *run = ctx;
	const struct source_result *each = results;
	uint64_t failed = 0;
	show_progress(run, each);
	for (unsigned i = 0; i < run->options->processes; i++)
		failed += each[i].counts[SOURCE_FAILED];
	return failed > 0 && run->options->on_failure == SOURCE_GIVES_UP;
}

static int on_end(void *ctx, const void *results)
{
	struct source_run *run = ctx;
	if (run->sum.begin_ns && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
	add_up(run, results);
	return report(run);
}

static int run_several(struct source_run *run)
{
	const struct processes_work work = { .count = (unsigned)run->options->processes,
		.result_size = sizeof(struct source_result),
		.create = create,
		.run = send_mails,
		.destroy = destroy,
		.on_look = on_look,
		.on_end = on_end,
		.ctx = run };
	run->progress_ns = uv_hrtime();
	return processes_run(&work);
}

static int send_all(const struct source_options *o)
{
	struct source_run *run = calloc(1, sizeof *run);
	int status = EXIT_FAILURE;

	if (!run)
		return status;
	run->options = o;
	if (source_mail_make(&run->mail, o) == 0) {
		status = o->processes > 1 ? run_several(run) : run_here(run);
		source_mail_free(&run->mail);
	}
	free(run);
	return status;
}

int smtp_source_main(int argc, char **argv)
{
	static struct source_options options;

	switch (source_options_parse(argc, argv, &options)) {
	case OPTIONS_HELP: source_options_help(stdout); return EXIT_SUCCESS;
	case OPTIONS_BAD: return 2;
	default: break;
	}
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	descriptors_raise(0);
	log_open("cssl-bench", "smtp-source", LOG_TEXT, LOG_WARNING, NULL);
	int status = send_all(&options);
	log_close();
	return status;
}
