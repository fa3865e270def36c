/* main.c: smtpproxy, the transparent SMTP proxy. Arguments, configuration file, one root object. */
#include <getopt.h> /* optarg, optind */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <sodium.h>

#include "conf/program.h"
#include "conf/smtpproxy.h"
#include "net/log.h"
#include "net/untraced.h"
#include "proto/error.h"
#include "smtpproxy/process/proxy.h"

#define CONFIG_DEFAULT "/etc/cssl/smtpproxy.yaml"
#define ERROR_MAX      8192u

enum action { ACTION_RUN, ACTION_CHECK };

static const struct program program = {
	.name = "smtpproxy",
	.section = 8,
	.version = CSSL_VERSION,
	.summary = "transparent SMTP proxy",
	.synopsis = "[--config FILE] [--replace | --check]",
	.description =
		"Relays mail between senders and the receivers that they wanted to reach, without a queue. Senders to "
		"one receiver take turns, transaction by transaction. No sender gets a 250 that the receiver did not "
		"give.",
	.options =
		(const struct program_option[]){
			{ "config", "FILE", "the configuration file (default " CONFIG_DEFAULT ")", 'c' },
			{ "replace", NULL,
				"take over the listening sockets of the process that runs; its sessions go on there",
				'r' },
			{ "check", NULL, "check the configuration file, and exit", 'C' },
			{ "help-config", NULL, "describe every key of the configuration file", 'H' },
			{ "manual", NULL, "print the manual page, for man(7)", 'M' },
			{ "help", NULL, "print this text", 'h' },
			{ "version", NULL, "print the version", 'V' },
			{ 0 },
		},
	.signals = "SIGTERM stops between transactions, a second one at once; SIGHUP reads the file again and opens "
		   "the logs anew: no session ends.",
	.see_also = "ragent(8), sslagent(8), csslctl(1)",
};

struct arguments {
	const char *config;
	enum action action;
	enum proxy_start start;
};

/* Exits the process on --help, --version and mistakes. */
static struct arguments parse(int argc, char **argv)
{
	struct arguments a = { .config = CONFIG_DEFAULT };
	int key;

	while ((key = program_next_option(&program, argc, argv)) != -1) {
		switch (key) {
		case 'c': a.config = optarg; break;
		case 'r': a.start = PROXY_REPLACES; break;
		case 'C': a.action = ACTION_CHECK; break;
		case 'H': conf_smtpproxy_help_print(stdout); exit(EXIT_SUCCESS);
		case 'M': program_print_manual(&program, stdout); exit(EXIT_SUCCESS);
		case 'h': program_print_help(&program, stdout); exit(EXIT_SUCCESS);
		case 'V': printf("smtpproxy %s\n", CSSL_VERSION); exit(EXIT_SUCCESS);
		default: program_print_help(&program, stderr); exit(EXIT_FAILURE);
		}
	}
	if (optind < argc) {
		program_print_help(&program, stderr);
		exit(EXIT_FAILURE);
	}
	return a;
}

/* Each session has up to two descriptors. */
static void raise_limits(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static int run(const struct conf_smtpproxy *c, enum proxy_start start, char *error)
{
	if (log_open("smtpproxy", NULL, c->log.format, c->log.level, c->log.path) < 0) {
		fprintf(stderr, "smtpproxy: cannot open the log %s\n", c->log.path);
		return EXIT_FAILURE;
	}
	raise_limits();
	int r = CSSL_E_CONFIG;
	struct proxy *p = proxy_create(c, start, error, ERROR_MAX);
	if (p) {
		log_event(LOG_INFO, NULL, "started", NULL);
		r = proxy_run(p);
		log_event(LOG_INFO, NULL, "stopped", NULL);
	} else {
		log_event(LOG_ERROR, NULL, "not started", "cause=%s", error);
		fprintf(stderr, "smtpproxy: not started: %s\n", error);
	}
	proxy_destroy(p);
	log_close();
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static char error[ERROR_MAX];
	struct conf_smtpproxy *c;
	struct arguments a = parse(argc, argv);

	if (untraced_begin() < 0) {
		perror("smtpproxy: other processes could read its memory");
		return EXIT_FAILURE;
	}
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	if (conf_smtpproxy_load(a.config, &c, error, sizeof error) < 0) {
		fprintf(stderr, "%s\n", error);
		return EXIT_FAILURE;
	}
	int result = a.action == ACTION_CHECK ? EXIT_SUCCESS : run(c, a.start, error);
	if (a.action == ACTION_CHECK)
		printf("%s: good\n", a.config);
	conf_smtpproxy_destroy(c);
	return result;
}
