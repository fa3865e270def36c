/* main.c: sslagent's command line. */
#include <getopt.h> /* optarg, optind */
#include <stdio.h>
#include <stdlib.h>

#include <sodium.h>

#include "conf/program.h"
#include "net/fault.h"
#include "net/log.h"
#include "net/untraced.h"
#include "proto/sess_obj.h"
#include "sslagent/process/agent.h"

#define MESSAGE_CAP 8192u

static const struct program program = {
	.name = "sslagent",
	.section = 8,
	.version = CSSL_VERSION,
	.summary = "agent of a CSSL cluster",
	.synopsis = "--config FILE --name NAME",
	.description =
		"Makes TLS handshakes, shares sessions and live connections with the cluster's other agents, and gives "
		"plaintext to backends.",
	.options =
		(const struct program_option[]){
			{ "config", "FILE", "the cluster file", 'c' },
			{ "name", "NAME", "the name of this agent in the cluster file", 'n' },
			{ "check", NULL, "check the cluster file and the files that it names, and exit", 'C' },
			{ "help-config", NULL, "describe every key of the cluster file", 'H' },
			{ "manual", NULL, "print the manual page, for man(7)", 'M' },
			{ "manual-config", NULL, "print cssl.yaml(5), for man(7)", 'Y' },
			{ "help", NULL, "print this text", 'h' },
			{ "version", NULL, "print the version", 'V' },
			{ 0 },
		},
	.signals =
		"SIGTERM: accept no new connections, and stop when RAgent has moved all connections away; a second one "
		"stops it at once. SIGHUP: open the log again, and read certificates and keys again.",
	.see_also = "ragent(8), csslctl(1), cssl.yaml(5)",
};

struct arguments {
	const char *config, *name;
	enum { RUN, CHECK } what;
};

/* 0: go on. 1: exit with *status. */
static int parse(int argc, char **argv, struct arguments *out, int *status)
{
	int option;

	*status = EXIT_SUCCESS;
	while ((option = program_next_option(&program, argc, argv)) != -1) {
		switch (option) {
		case 'c': out->config = optarg; break;
		case 'n': out->name = optarg; break;
		case 'C': out->what = CHECK; break;
		case 'H': conf_help_print(stdout); return 1;
		case 'M': program_print_manual(&program, stdout); return 1;
		case 'Y': conf_manual_print(stdout, CSSL_VERSION); return 1;
		case 'V': puts("sslagent " CSSL_VERSION); return 1;
		case 'h': program_print_help(&program, stdout); return 1;
		default: *status = EXIT_FAILURE; return 1;
		}
	}
	if (out->config && (out->name || out->what == CHECK) && optind == argc)
		return 0;
	fprintf(stderr, "sslagent: --config FILE and --name NAME are required; see sslagent --help\n");
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

	if (untraced_begin() < 0) {
		perror("sslagent: other processes could read its memory");
		return EXIT_FAILURE;
	}
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
