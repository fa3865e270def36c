/* main.c: cssl-bench COMMAND: finds the command's row and runs it. */
#include <stdio.h>
#include <string.h>

#include "bench/command/command.h"
#include "conf/program.h"

static const struct command {
	const char *name, *help;
	int (*main)(int argc, char **argv);
} commands[] = {
	{ "serve", "the embedded HTTP/1.1 backend", serve_main },
	{ "https", "many TLS clients: load, counts and latencies", https_main },
	{ "broadcast", "the cost of sending a session to the other agents", broadcast_main },
	{ "delay", "a slow wire: delays packets between two TUN devices", delay_main },
	{ "smtp-source", "many mails over SMTP: load, counts and latencies", smtp_source_main },
	{ "smtp-sink", "a mail server that takes all mails, or misbehaves as asked", smtp_sink_main },
	{ "merge", "the results of several hosts as one: https, smtp-source", merge_main },
	{ "queue", "the mail queue without SMTP: stores messages in Redis servers, and reads them back",
		queue_load_main },
};

#define COMMANDS (sizeof commands / sizeof commands[0])

static void bench_print_help(FILE *to)
{
	fprintf(to, "cssl-bench COMMAND [OPTIONS]\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-11s %s\n", commands[i].name, commands[i].help);
	fprintf(to, "\ncssl-bench COMMAND --help says more; cssl-bench --version.\n");
}

static void print_manual(FILE *to)
{
	roff_page("cssl-bench", 1, CSSL_VERSION, "load, backend and experiments for CSSL", to);
	fputs(".SH SYNOPSIS\n\\fBcssl\\-bench\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH COMMANDS\n", to);
	for (size_t i = 0; i < COMMANDS; i++) {
		roff_tag(commands[i].name, NULL, to);
		roff_line(commands[i].help, to);
	}
	fputs(".SH OPTIONS\nEach command describes its own with \\fB\\-\\-help\\fR.\n", to);
	fputs(".SH SEE ALSO\nragent(8), sslagent(8), csslctl(1)\n", to);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	/* The commands know --help only; -h may be an option of theirs. */
	if (argc == 3 && strcmp(argv[2], "-h") == 0)
		argv[2] = (char *)"--help";
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		bench_print_help(stdout);
		return 0;
	}
	if (strcmp(name, "--manual") == 0) {
		print_manual(stdout);
		return 0;
	}
	if (strcmp(name, "--version") == 0) {
		printf("cssl-bench %s\n", CSSL_VERSION);
		return 0;
	}
	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(name, commands[i].name) == 0)
			return commands[i].main(argc - 1, argv + 1);
	}
	bench_print_help(stderr);
	return 2;
}
