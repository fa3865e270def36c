/* main.c: ragent, the dispatcher of a CSSL cluster. Arguments, cluster file, one root object. */
#include <getopt.h> /* optarg, optind */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "conf/conf.h"
#include "conf/program.h"
#include "net/log.h"
#include "net/untraced.h"
#include "ragent/process/daemon.h"
#include "ragent/handover/handover_offer.h"
#include "ragent/process/ragent.h"

#define CONFIG_DEFAULT "/etc/cssl/cluster.yaml"
#define ERROR_MAX      8192u

enum action { ACTION_RUN, ACTION_CHECK };

struct arguments {
	const char *config, *name;
	enum ragent_start start;
	enum { PLACE_FOREGROUND, PLACE_BACKGROUND } place;
	enum action action;
};

static const struct program program = {
	.name = "ragent",
	.section = 8,
	.version = CSSL_VERSION,
	.summary = "dispatcher of a CSSL cluster",
	.synopsis = "[--config FILE] [--name NAME] [--replace] [--background] [--check]",
	.description =
		"Accepts TLS clients and forwards their records to the cluster's agents. It sees record headers and "
		"holds no TLS keys.",
	.options =
		(const struct program_option[]){
			{ "config", "FILE", "the cluster file (default " CONFIG_DEFAULT ")", 'c' },
			{ "name", "NAME", "which RAgent of the cluster file this is (default: the only one)", 'n' },
			{ "replace", NULL, "take over everything from the running process of that name", 'R' },
			{ "background", NULL, "return once it runs, or has replaced the other one", 'B' },
			{ "check", NULL, "check the cluster file and what it refers to, and exit", 'C' },
			{ "help-config", NULL, "describe every key of the cluster file", 'H' },
			{ "manual", NULL, "this text and more, for man(7)", 'M' },
			{ "help", NULL, "this text", 'h' },
			{ "version", NULL, "the version", 'V' },
			{ 0 },
		},
	.signals = "SIGTERM stops in order, a second one at once; SIGHUP opens the logs anew.",
	.see_also = "sslagent(8), csslctl(1), cssl.yaml(5)",
};

/* Exits for --help, --version and mistakes. */
static struct arguments parse(int argc, char **argv)
{
	struct arguments a = { .config = CONFIG_DEFAULT };
	int key;

	while ((key = program_next_option(&program, argc, argv)) != -1) {
		switch (key) {
		case 'c': a.config = optarg; break;
		case 'n': a.name = optarg; break;
		case 'R': a.start = RAGENT_REPLACES; break;
		case 'B': a.place = PLACE_BACKGROUND; break;
		case 'C': a.action = ACTION_CHECK; break;
		case 'H': conf_help_print(stdout); exit(EXIT_SUCCESS);
		case 'M': program_print_manual(&program, stdout); exit(EXIT_SUCCESS);
		case 'h': program_print_help(&program, stdout); exit(EXIT_SUCCESS);
		case 'V': printf("ragent %s\n", CSSL_VERSION); exit(EXIT_SUCCESS);
		default: program_print_help(&program, stderr); exit(EXIT_FAILURE);
		}
	}
	if (optind < argc) {
		program_print_help(&program, stderr);
		exit(EXIT_FAILURE);
	}
	return a;
}

static const struct conf_ragent *find_self(const struct conf *c, const char *name)
{
	if (name)
		return conf_ragent_find(c, name);
	return c->ragent_count == 1 ? &c->ragents[0] : NULL;
}

static int check(const struct conf *c, char *error)
{
	if (conf_check_files(c, CONF_FOR_RAGENT, error, ERROR_MAX) < 0) {
		fprintf(stderr, "%s\n", error);
		return EXIT_FAILURE;
	}
	conf_check_print(c, stdout);
	return EXIT_SUCCESS;
}

static int run(const struct conf *c, const struct conf_ragent *self, const struct arguments *a, char *error)
{
	if (conf_check_files(c, CONF_FOR_RAGENT, error, ERROR_MAX) < 0) {
		fprintf(stderr, "%s\n", error);
		return EXIT_FAILURE;
	}
	if (log_open("ragent", self->name, c->log.format, c->log.level, c->log.path) < 0) {
		fprintf(stderr, "ragent: cannot open the log %s\n", c->log.path);
		return EXIT_FAILURE;
	}
	if (self->access_log && log_open_access(self->access_log) < 0) {
		fprintf(stderr, "ragent: cannot open the log %s\n", self->access_log);
		return EXIT_FAILURE;
	}
#ifdef CSSL_TEST_POINTS
	if (getenv("CSSL_HANDOVER_FORMAT"))
		handover_know_no_later_format((unsigned)atoi(getenv("CSSL_HANDOVER_FORMAT")));
#endif
	if (a->place == PLACE_BACKGROUND && background_begin() < 0) {
		perror("ragent: cannot go into the background");
		return EXIT_FAILURE;
	}
	struct ragent *r = ragent_create(c, self, a->start, error, ERROR_MAX);
	if (!r) {
		log_event(LOG_ERROR, NULL, "not started", "cause=%s", error);
		fprintf(stderr, "ragent: not started: %s\n", error);
	} else if (a->start == RAGENT_STARTS) {
		background_settle(EXIT_SUCCESS);
	}
	int result = r ? ragent_run(r) : -1;
	ragent_destroy(r);
	log_close();
	return result < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static char error[ERROR_MAX];
	struct conf *c;
	int result = EXIT_FAILURE;

	if (untraced_begin() < 0) {
		perror("ragent: other processes could read its memory");
		return EXIT_FAILURE;
	}
	struct arguments a = parse(argc, argv);
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	if (conf_load(a.config, &c, error, sizeof error) < 0) {
		fprintf(stderr, "%s\n", error);
		return EXIT_FAILURE;
	}
	const struct conf_ragent *self = find_self(c, a.name);
	if (a.action == ACTION_CHECK)
		result = check(c, error);
	else if (self)
		result = run(c, self, &a, error);
	else
		fprintf(stderr, "%s: %s\n", a.config,
			a.name ? "no ragent of that name" : "several ragents: say --name");
	conf_destroy(c);
	return result;
}
