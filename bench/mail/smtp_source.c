/* smtp_source.c: `cssl-bench smtp-source`: options, and a load in this process or in several. */
#include <sodium.h>
#include <stdlib.h>

#include "bench/command/command.h"
#include "bench/load/processes.h"
#include "bench/mail/source_load.h"
#include "bench/mail/source_options.h"
#include "bench/mail/source_result.h"
#include "net/descriptors.h"
#include "net/log.h"

int smtp_source_main(int argc, char **argv)
{
	static struct source_options options;

	const enum option_parse parsed = source_options_parse(argc, argv, &options);

	if (parsed != OPTIONS_PARSED)
		return parsed;
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	descriptors_raise(0);
	log_open("cssl-bench", "smtp-source", LOG_TEXT, LOG_WARNING, NULL);
	const struct processes_work work = { &source_result_kind, &options, (unsigned)options.processes,
		source_load_run, NULL, options.save, options.output, options.progress != SOURCE_PROGRESS_NEVER };
	int status = processes_run(&work);
	log_close();
	return status;
}
