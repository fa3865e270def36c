/* smtp_source.c: `cssl-bench smtp-source`: options, one mail, one load, one report. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/command/command.h"
#include "bench/mail/source_load.h"
#include "bench/mail/source_mail.h"
#include "bench/mail/source_options.h"
#include "bench/mail/source_result.h"
#include "net/descriptors.h"
#include "net/log.h"

static int report(const struct source_options *o, const struct source_result *r)
{
	if (o->output == SOURCE_TEXT)
		source_result_text(r);
	else if (source_result_json(r) < 0)
		return EXIT_FAILURE;
	return source_result_has_failures(r) ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int send_all(const struct source_options *o)
{
	struct source_mail mail;
	struct source_load *load = NULL;
	struct source_result *result = calloc(1, sizeof *result);
	int status = EXIT_FAILURE;

	if (result && source_mail_make(&mail, o) == 0) {
		load = source_load_create(o, &mail, result);
		if (load) {
			source_load_run(load);
			status = report(o, result);
		}
		source_load_destroy(load);
		source_mail_free(&mail);
	}
	free(result);
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
