/* main.c: sslagent's command line. */
#include <getopt.h> /* optarg, optind */
#include <stdio.h>
#include <stdlib.h>

#include "conf/program.h"
#include "conf/start.h"
#include "net/memory/secret_heap.h"
#include "net/points/fault.h"
#include "net/report/log.h"
#include "proto/sess_obj.h"
#include "sslagent/carrier/link_acceptor.h"
#include "sslagent/process/agent.h"
#include "sslagent/tls/tls_contexts.h"

static const struct program program = {
	.name = "sslagent",
	.section = 8,
	.version = CSSL_VERSION,
	.summary = "agent of a CSSL cluster",
	.synopsis = "--config FILE --name NAME [--check]",
	.description =
		"Makes TLS handshakes, shares sessions and live connections with the cluster's other agents, and gives "
		"plaintext to backends.",
	.options =
		(const struct program_option[]){
			{ "config", "FILE", "the cluster file", 'c' },
			{ "name", "NAME", "the name of this agent in the cluster file", 'n' },
			{ "check", NULL, "check the cluster file and the files that it names, and exit", 'C' },
			{ "manual-config", NULL, "print cssl.yaml(5), for man(7)", 'Y' },
			PROGRAM_QUESTIONS("cluster file"),
		},
	.signals =
		"SIGTERM: accept no new connections, and stop when RAgent has moved all connections away; a second "
		"SIGTERM stops the agent at once. SIGHUP: open the log again, and read certificates and their private "
		"keys again.",
	.see_also = "ragent(8), csslctl(1), cssl.yaml(5)",
	.help_config = conf_help_print,
};

struct arguments {
	const char *config, *name;
	enum { RUN, CHECK } what;
};

/* Exits the process on --help, --version and mistakes. */
static struct arguments agent_parse(int argc, char **argv)
{
	struct arguments a = { 0 };
	int key;

	while ((key = program_next_option(&program, argc, argv)) != -1) {
		switch (key) {
		case 'c': a.config = optarg; break;
		case 'n': a.name = optarg; break;
		case 'C': a.what = CHECK; break;
		case 'Y': conf_manual_print(stdout, CSSL_VERSION); exit(EXIT_SUCCESS);
		default: program_answer(&program, key);
		}
	}
	if (a.config && (a.name || a.what == CHECK) && optind == argc)
		return a;
	fprintf(stderr, "sslagent: --config FILE and --name NAME are required; see sslagent --help\n");
	exit(EXIT_FAILURE);
}

/* Judges the PEM files as the start and a reload do. @self NULL: no agent was named. */
static int agent_check_files(const struct conf *c, const struct conf_agent *self)
{
	char faults[TLS_FAULTS_MAX];
	struct tls_contexts *contexts = tls_contexts_create(c, NULL, faults, sizeof faults);
	if (contexts && self)
		link_acceptor_warn(c, self);
	const bool good = contexts && (!self || agent_become_user(c, self, faults, sizeof faults) == 0);

	if (good)
		conf_check_print(c, stdout);
	if (good && !self)
		puts("not looked at, without --name: user, link_group and folders of sockets of an agent");
	if (!good)
		fprintf(stderr, "%s\n", faults);
	tls_contexts_unref(contexts);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Takes over @c. */
static int agent_serve(struct conf *c, const struct conf_agent *self)
{
	fault_start(self->name);
#ifdef CSSL_TEST_POINTS
	if (getenv("CSSL_NEXT_FORMAT")) {
		sess_obj_write_next_format();
		log_event(LOG_WARNING, NULL, "writes the next format", "format=%u", SESS_OBJ_FORMAT_NEXT);
	}
#endif
	struct agent *agent = agent_create(c, self);
	if (!agent)
		return EXIT_FAILURE;
	int result = agent_run(agent) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	agent_destroy(agent);
	fault_stop();
	log_close();
	return result;
}

int main(int argc, char **argv)
{
	const struct conf_agent *self = NULL;
	char faults[TLS_FAULTS_MAX];
	int result = EXIT_FAILURE;

	if (start_protected(program.name) < 0)
		return EXIT_FAILURE;
	if (secret_heap_for_openssl() < 0 || tls_library_begin() < 0) {
		fprintf(stderr, "sslagent: OpenSSL cannot be prepared: it takes no heap for its secrets\n");
		return EXIT_FAILURE;
	}
	const struct arguments a = agent_parse(argc, argv);
	struct conf *c = start_load(a.config, CONF_FOR_AGENT);
	if (!c)
		return EXIT_FAILURE;
	if (a.name && !(self = conf_agent_find(c, a.name)))
		fprintf(stderr, "%s: no agent is named '%s'\n", a.config, a.name);
	else if (conf_check_node(c, NULL, self, faults, sizeof faults) < 0)
		fprintf(stderr, "%s\n", faults);
	else if (a.what == CHECK)
		result = agent_check_files(c, self);
	else if (start_log(program.name, self->name, &c->log, self->access_log) == 0)
		return agent_serve(c, self);
	conf_destroy(c);
	return result;
}
