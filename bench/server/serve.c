/* serve.c: `cssl-bench serve`: options, one worker, signals. */
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/command/command.h"
#include "bench/server/pattern.h"
#include "bench/server/server.h"
#include "net/address.h"
#include "net/descriptors.h"
#include "net/log.h"
#include "net/signals.h"
#include "net/worker.h"

static const char help[] =
	"cssl-bench serve [OPTIONS]: an HTTP/1.1 backend whose paths describe its answers.\n"
	"\n"
	"  --listen ADDRESS          127.0.0.1:8080, [::1]:0 or unix:/path; up to 8 (default 127.0.0.1:0)\n"
	"  --agent NAME=ADDRESS      answers to this source address have X-CSSL-Agent: NAME\n"
	"  --proxy-protocol WORD     off (default), accept or require a PROXY header in front of each connection\n"
	"  --idle-ms N               close a connection that is silent for so long (default 0: never)\n"
	"  --grace-ms N              after SIGTERM, time for answers under way (default 5000)\n"
	"  --log-format text|json    (default text), --log-level debug|info|warning|error (default info)\n"
	"  --help\n"
	"\n"
	"GET / lists the paths. Standard output gets each listening address, one a line.\n";

enum serve_option {
	OPTION_LISTEN = 1,
	OPTION_AGENT,
	OPTION_PROXY,
	OPTION_IDLE,
	OPTION_GRACE,
	OPTION_LOG_FORMAT,
	OPTION_LOG_LEVEL,
	OPTION_HELP,
};

static const struct option options[] = {
	{ "listen", required_argument, NULL, OPTION_LISTEN },
	{ "agent", required_argument, NULL, OPTION_AGENT },
	{ "proxy-protocol", required_argument, NULL, OPTION_PROXY },
	{ "idle-ms", required_argument, NULL, OPTION_IDLE },
	{ "grace-ms", required_argument, NULL, OPTION_GRACE },
	{ "log-format", required_argument, NULL, OPTION_LOG_FORMAT },
	{ "log-level", required_argument, NULL, OPTION_LOG_LEVEL },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ NULL, 0, NULL, 0 },
};

struct serve_setup {
	struct server_options server;
	unsigned log_format, log_level;
};

enum { PARSED, PARSED_HELP, PARSED_BAD };

static int parse_ms(const char *text, uint32_t *out)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);
	if (end == text || *end || n > 86400000ul)
		return PARSED_BAD;
	*out = (uint32_t)n;
	return PARSED;
}

/* The index of @text in the NULL-ended @words. */
static int parse_word(const char *text, const char *const words[], unsigned *out)
{
	for (unsigned i = 0; words[i]; i++) {
		if (strcmp(text, words[i]) == 0) {
			*out = i;
			return PARSED;
		}
	}
	return PARSED_BAD;
}

static int parse_option(struct serve_setup *s, enum serve_option option, const char *value)
{
	static const char *const proxy_words[] = { "off", "accept", "require", NULL };
	static const char *const format_words[] = { "text", "json", NULL };
	static const char *const level_words[] = { "debug", "info", "warning", "error", NULL };
	struct server_options *o = &s->server;
	unsigned word = 0;
	int r;
	switch (option) {
	case OPTION_LISTEN:
		if (o->listen_count == SERVER_LISTEN_MAX || address_parse(value, &o->listen[o->listen_count]))
			return PARSED_BAD;
		o->listen_count++;
		return PARSED;
	case OPTION_AGENT: return agent_map_add(&o->agents, value) ? PARSED_BAD : PARSED;
	case OPTION_PROXY:
		r = parse_word(value, proxy_words, &word);
		o->proxy = (enum proxy_expectation)word;
		return r;
	case OPTION_IDLE: return parse_ms(value, &o->idle_ms);
	case OPTION_GRACE: return parse_ms(value, &o->grace_ms);
	case OPTION_LOG_FORMAT: return parse_word(value, format_words, &s->log_format);
	case OPTION_LOG_LEVEL: return parse_word(value, level_words, &s->log_level);
	case OPTION_HELP: return PARSED_HELP;
	}
	return PARSED_BAD;
}

static int parse_options(int argc, char **argv, struct serve_setup *s)
{
	int option, index = 0;
	while ((option = getopt_long(argc, argv, "", options, &index)) != -1) {
		if (option == '?')
			return PARSED_BAD;
		int r = parse_option(s, (enum serve_option)option, optarg);
		if (r == PARSED_BAD)
			fprintf(stderr, "serve: --%s: bad value '%s'\n", options[index].name, optarg);
		if (r != PARSED)
			return r;
	}
	if (optind < argc) {
		fprintf(stderr, "serve: unexpected '%s'\n", argv[optind]);
		return PARSED_BAD;
	}
	if (s->server.listen_count == 0)
		address_parse("127.0.0.1:0", &s->server.listen[s->server.listen_count++]);
	return PARSED;
}

struct service {
	struct server *server;
	struct signals *signals;
};

static void on_signal(void *ctx, int signum)
{
	struct service *service = ctx;
	(void)signum;
	server_stop(service->server);
}

static void on_stopped(void *ctx)
{
	struct service *service = ctx;
	signals_destroy(service->signals);
}

static void print_addresses(const struct server *s, unsigned count)
{
	char text[ADDRESS_TEXT_MAX];
	struct sockaddr_storage a;
	for (unsigned i = 0; i < count; i++) {
		if (server_address(s, i, &a) == 0)
			printf("listening on %s\n", address_format((const struct sockaddr *)&a, text));
	}
	fflush(stdout);
}

static int serve(const struct server_options *o)
{
	static const int stop_signals[] = { SIGTERM, SIGINT };
	struct service service = { NULL, NULL };
	int r = -1;
	struct worker *w = worker_create(0, "serve");
	if (!w)
		return EXIT_FAILURE;
	service.server = server_create(w, o, on_stopped, &service);
	if (!service.server)
		goto out;
	service.signals = signals_create(w, stop_signals, 2, on_signal, &service);
	if (service.signals)
		print_addresses(service.server, o->listen_count);
	else
		server_stop(service.server);
	r = worker_run(w);
out:
	server_destroy(service.server);
	worker_destroy(w);
	return r == 0 && service.signals ? EXIT_SUCCESS : EXIT_FAILURE;
}

int serve_main(int argc, char **argv)
{
	struct serve_setup setup = { .server = { .grace_ms = 5000 }, .log_level = LOG_INFO };
	switch (parse_options(argc, argv, &setup)) {
	case PARSED_HELP: fputs(help, stdout); return EXIT_SUCCESS;
	case PARSED_BAD: return 2;
	default: break;
	}
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	descriptors_raise(0);
	pattern_make();
	log_open("cssl-bench", "serve", (enum log_format)setup.log_format, (enum log_level)setup.log_level, NULL);
	int r = serve(&setup.server);
	log_close();
	return r;
}
