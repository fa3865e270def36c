/* smtp_sink.c: `cssl-bench smtp-sink`: options, one server, one summary. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/command/command.h"
#include "bench/mail/sink_options.h"
#include "bench/mail/sink_result.h"
#include "bench/mail/sink_server.h"
#include "net/descriptors.h"
#include "net/log.h"

static int report(const struct sink_options *o, const struct sink_result *r)
{
	if (o->output == SINK_TEXT)
		sink_result_text(r);
	else if (sink_result_json(r) < 0)
		return EXIT_FAILURE;
	return r->counts[SINK_WRONG] > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int serve(struct sink_options *o)
{
	int status = EXIT_FAILURE;
	struct sink_result *result = sink_result_create();
	struct sink_server *server = result ? sink_server_create(o, result) : NULL;

	if (server) {
		sink_server_run(server);
		status = report(o, result);
	}
	sink_server_destroy(server);
	sink_result_destroy(result);
	return status;
}

int smtp_sink_main(int argc, char **argv)
{
	static struct sink_options options;

	const enum option_parse parsed = sink_options_parse(argc, argv, &options);

	if (parsed != OPTIONS_PARSED)
		return parsed;
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	descriptors_raise(0);
	log_open("cssl-bench", "smtp-sink", LOG_TEXT, LOG_WARNING, NULL);
	int status = serve(&options);
	log_close();
	return status;
}
