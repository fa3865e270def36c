/* https.c: `cssl-bench https`: options, generators, and the moment at which all their connections are held. */
#include <stdio.h>
#include <unistd.h>

#include "bench/command/command.h"
#include "bench/load/generator.h"
#include "bench/load/load_options.h"
#include "bench/load/load_result.h"
#include "bench/load/processes.h"
#include "bench/server/pattern.h"
#include "net/process/descriptors.h"
#include "net/report/log.h"

static void say_holding(const void *options, const void *results)
{
	static enum { HOLDING_UNSAID, HOLDING_SAID } holding;
	const struct load_options *o = options;
	const struct load_result *each = results;
	uint64_t resting = 0, retired = 0;

	if (o->at_end != LOAD_HOLDS || holding == HOLDING_SAID)
		return;
	for (unsigned i = 0; i < o->processes; i++) {
		resting += each[i].resting;
		retired += each[i].retired;
	}
	if (resting == 0 || resting + retired < o->clients)
		return;
	printf("holding %llu connections\n", (unsigned long long)resting);
	fflush(stdout);
	holding = HOLDING_SAID;
}

int https_main(int argc, char **argv)
{
	static struct load_options options;

	const enum option_parse parsed = load_options_parse(argc, argv, &options);

	if (parsed != OPTIONS_PARSED)
		return parsed;
	descriptors_raise(0);
	pattern_make();
	log_open("cssl-bench", "https", LOG_TEXT, LOG_WARNING, NULL);
	const struct processes_work work = { &load_result_kind, &options, (unsigned)options.processes, generator_run,
		say_holding, options.save, options.output,
		options.progress == LOAD_PROGRESS_SHOWN && isatty(STDERR_FILENO) };
	int r = processes_run(&work);
	log_close();
	return r;
}
