/* main.c: smtpproxy, the transparent SMTP proxy. Arguments, configuration file, one root object. */
#include <getopt.h> /* optarg, optind */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conf/program.h"
#include "conf/smtpproxy.h"
#include "conf/start.h"
#include "net/points/fault.h"
#include "net/process/daemon.h"
#include "net/process/descriptors.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "smtpproxy/process/proxy.h"

#define CONFIG_DEFAULT "/etc/cssl/smtpproxy.yaml"
#define ERROR_MAX      8192u

enum action { ACTION_RUN, ACTION_CHECK };
enum place { PLACE_FOREGROUND, PLACE_BACKGROUND };

static const struct program program = {
	.name = "smtpproxy",
	.section = 8,
	.version = CSSL_VERSION,
	.summary = "transparent SMTP proxy",
	.synopsis = "[--config FILE] [--replace] [--background] [--check]",
	.description =
		"Relays mail between senders and the receivers that they wanted to reach. Senders to one receiver take "
		"turns, transaction by transaction. The 250 for a mail is the receiver's own. With `deliver: queue` "
		"smtpproxy is a mail gateway: it says 250 when two Redis servers hold the message, and then delivers "
		"the message.",
	.options =
		(const struct program_option[]){
			{ "config", "FILE", "the configuration file (default " CONFIG_DEFAULT ")", 'c' },
			{ "replace", NULL,
				"take over the listening sockets of the running process, which goes on with its "
				"sessions",
				'r' },
			{ "background", NULL, "run in the background: return when the new process serves", 'B' },
			{ "check", NULL, "check the configuration file and the files that it names, and exit", 'C' },
			PROGRAM_QUESTIONS("configuration file"),
		},
	.signals = "SIGTERM: sessions end after their transactions; a second SIGTERM cuts transactions, a third ends "
		   "at once. SIGHUP reads the file again and opens the logs anew: no session ends.",
	.see_also = "ragent(8), sslagent(8), csslctl(1)",
	.help_config = conf_smtpproxy_help_print,
};

struct arguments {
	const char *config;
	enum action action;
	enum proxy_start start;
	enum place place;
};

/* Exits the process on --help, --version and mistakes. */
static struct arguments smtpproxy_parse(int argc, char **argv)
{
	struct arguments a = { .config = CONFIG_DEFAULT };
	int key;

	while ((key = program_next_option(&program, argc, argv)) != -1) {
		switch (key) {
		case 'c': a.config = optarg; break;
		case 'r': a.start = PROXY_REPLACES; break;
		case 'B': a.place = PLACE_BACKGROUND; break;
		case 'C': a.action = ACTION_CHECK; break;
		default: program_answer(&program, key);
		}
	}
	if (optind < argc)
		program_answer(&program, '?');
	return a;
}

static int smtpproxy_run(const struct conf_smtpproxy *c, const struct arguments *a, char *error)
{
	if (a->place == PLACE_BACKGROUND && background_begin() < 0) {
		perror("smtpproxy: cannot go into the background");
		return EXIT_FAILURE;
	}
	if (start_log(program.name, NULL, &c->log, NULL) < 0)
		return EXIT_FAILURE;
	fault_start(program.name);
	/* each session has up to two */
	descriptors_raise(c->limits.sessions ? 2 * (uint64_t)c->limits.sessions + DESCRIPTORS_BESIDE : 0);
	int r = CSSL_E_CONFIG;
	struct proxy *p = proxy_create(c, a->start, error, ERROR_MAX);
	if (p) {
		log_event(LOG_INFO, NULL, "started", NULL);
		service_notify_ready(getpid());
		background_settle(EXIT_SUCCESS);
		r = proxy_run(p);
		log_event(LOG_INFO, NULL, "stopped", NULL);
	} else {
		log_event(LOG_ERROR, NULL, "not started", "cause=%s", error);
		fprintf(stderr, "smtpproxy: not started: %s\n", error);
	}
	proxy_destroy(p);
	fault_stop();
	log_close();
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* As root it becomes the configured user. */
static int smtpproxy_check(const struct conf_smtpproxy *c, char *error)
{
	struct proxy *p = proxy_create(c, PROXY_CHECKS, error, ERROR_MAX);

	proxy_destroy(p);
	if (!p) {
		fprintf(stderr, "%s\n", error);
		return EXIT_FAILURE;
	}
	printf("%s: good\n", c->file.path);
	conf_smtpproxy_memory_print(c, stdout);
	conf_smtpproxy_role_print(c, stdout);
	if (conf_smtpproxy_tls_gap(c))
		printf("%s\n", conf_smtpproxy_tls_gap(c));
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static char error[ERROR_MAX];
	struct conf_smtpproxy *c = NULL;
	int result = EXIT_FAILURE;
	struct arguments a = smtpproxy_parse(argc, argv);

	if (start_protected(program.name) < 0)
		return EXIT_FAILURE;
	if (conf_smtpproxy_load(a.config, &c, error, sizeof error) == 0 &&
		conf_smtpproxy_check_files(c, error, sizeof error) == 0 &&
		conf_smtpproxy_check_host(c, error, sizeof error) == 0)
		result = a.action == ACTION_CHECK ? smtpproxy_check(c, error) : smtpproxy_run(c, &a, error);
	else
		fprintf(stderr, "%s\n", error);
	conf_smtpproxy_destroy(c);
	return result;
}
