/* main.c: sslagent's command line. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include <sodium.h>

#include "net/fault.h"
#include "net/log.h"
#include "proto/sess_obj.h"
#include "sslagent/agent.h"

#define MESSAGE_CAP 8192u

static const char usage[] =
	"Usage: sslagent --config FILE --name NAME\n"
	"\n"
	"An SSLAgent of a CSSL cluster: makes TLS handshakes, shares sessions and live connections with its peers.\n"
	"\n"
	"  -c, --config FILE   the cluster file\n"
	"  -n, --name NAME     which of its agents this is\n"
	"      --check         check the cluster file and the files it names, then exit\n"
	"      --help-config   describe every key of the cluster file\n"
	"      --version\n"
	"  -h, --help\n"
	"\n"
	"SIGTERM: take nothing new, stop when RAgent has moved the connections away; again: stop now.\n"
	"SIGHUP: reopen the log, reload certificates.\n";

struct arguments {
	const char *config, *name;
	enum { RUN, CHECK } what;
};

/* 0: go on; else exit with *status. */
static int parse(int argc, char **argv, struct arguments *out, int *status)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "name", required_argument, NULL, 'n' },
		{ "check", no_argument, NULL, 'C' },
		{ "help-config", no_argument, NULL, 'H' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	*status = EXIT_SUCCESS;
	while ((option = getopt_long(argc, argv, "c:n:h", options, NULL)) != -1) {
		switch (option) {
		case 'c': out->config = optarg; break;
		case 'n': out->name = optarg; break;
		case 'C': out->what = CHECK; break;
		case 'H': conf_help_print(stdout); return 1;
		case 'V': puts("sslagent " CSSL_VERSION); return 1;
		case 'h': fputs(usage, stdout); return 1;
		default: *status = EXIT_FAILURE; return 1;
		}
	}
	if (out->config && (out->name || out->what == CHECK) && optind == argc)
		return 0;
	fprintf(stderr, "sslagent: --config FILE and --name NAME are needed; see sslagent --help\n");
	*status = EXIT_FAILURE;
	return 1;
}

static struct conf *load(const struct arguments *args)
{
	char message[MESSAGE_CAP];
	struct conf *conf = NULL;

	if (conf_load(args->config, &conf, message, sizeof message) == 0 &&
		conf_check_files(conf, CONF_FOR_AGENT, message, sizeof message) == 0)
		return conf;
	fprintf(stderr, "%s\n", message);
	conf_destroy(conf);
	return NULL;
}

int main(int argc, char **argv)
{
	struct arguments args = { 0 };
	int status;

	if (parse(argc, argv, &args, &status) != 0)
		return status;
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	struct conf *conf = load(&args);
	if (!conf)
		return EXIT_FAILURE;
	if (args.what == CHECK) {
		conf_check_print(conf, stdout);
		conf_destroy(conf);
		return EXIT_SUCCESS;
	}
	const struct conf_agent *self = conf_agent_find(conf, args.name);
	if (!self) {
		fprintf(stderr, "%s: no agent is named '%s'\n", args.config, args.name);
		conf_destroy(conf);
		return EXIT_FAILURE;
	}
	log_open("sslagent", self->name, conf->log.format, conf->log.level, conf->log.path);
	fault_start(self->name);
#ifdef CSSL_TEST_POINTS
	if (getenv("CSSL_NEXT_FORMAT")) {
		sess_obj_write_next_format();
		log_event(LOG_WARNING, NULL, "writes the next format", "format=%u", SESS_OBJ_FORMAT + 1);
	}
#endif
	struct agent *agent = agent_create(conf, self);
	if (!agent)
		return EXIT_FAILURE;
	status = agent_run(agent) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	agent_destroy(agent);
	fault_stop();
	log_close();
	return status;
}
