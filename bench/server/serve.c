/* serve.c: `cssl-bench serve`: options, one worker, signals. */
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/command/command.h"
#include "bench/command/option_table.h"
#include "bench/server/pattern.h"
#include "bench/server/server.h"
#include "net/address.h"
#include "net/descriptors.h"
#include "net/log.h"
#include "net/signals.h"
#include "net/worker.h"
#include "proto/error.h"

#define MS_MAX 86400000

struct serve_options {
	struct server_options server;
	unsigned log_format, log_level; /* enum log_format, enum log_level */
};

static int add_listen(void *options, const struct option_row *row, const char *value)
{
	struct server_options *o = options;
	return o->listen_count == SERVER_LISTEN_MAX ? CSSL_E_FULL : address_parse(value, &o->listen[o->listen_count++]);
}

static int add_agent(void *options, const struct option_row *row, const char *value)
{
	return agent_map_add(option_member(options, row), value);
}

static const struct option_row rows[] = {
	{ 0, "listen", "ADDRESS", "127.0.0.1:8080, [::1]:0 or unix:/path; up to 8 (default 127.0.0.1:0)", add_listen },
	{ 0, "agent", "NAME=ADDRESS", "answers to this source address have X-CSSL-Agent: NAME", add_agent,
		offsetof(struct serve_options, server.agents) },
	OPTION_WORD(0, "proxy-protocol", "off|accept|require", struct serve_options, server.proxy,
		"a PROXY header in front of each connection (default off)"),
	OPTION_NUMBER(0, "idle-ms", "N", struct serve_options, server.idle_ms, 0, MS_MAX, 1,
		"close a connection that is silent for so long (default 0: never)"),
	OPTION_NUMBER(0, "grace-ms", "N", struct serve_options, server.grace_ms, 0, MS_MAX, 1,
		"after SIGTERM, time for answers under way (default 5000)"),
	OPTION_WORD(0, "log-format", "text|json", struct serve_options, log_format, "(default text)"),
	OPTION_WORD(0, "log-level", "debug|info|warning|error", struct serve_options, log_level, "(default info)"),
};

static const struct option_command command = { "serve",
	"cssl-bench serve [OPTIONS]: an HTTP/1.1 backend whose paths describe its answers.\n\n",
	"\nGET / lists the paths. Standard output gets each listening address, one a line.\n", rows,
	sizeof rows / sizeof rows[0], OPTIONS_ONLY };

struct service {
	struct server *server;
	struct signals *signals;
};

static void on_signal(void *ctx, int signum)
{
	struct service *service = ctx;
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
	struct serve_options o = { .server = { .grace_ms = 5000 }, .log_level = LOG_INFO };
	const enum option_parse parsed = option_table_parse(&command, argc, argv, &o);

	if (parsed != OPTIONS_PARSED)
		return parsed;
	if (o.server.listen_count == 0)
		address_parse("127.0.0.1:0", &o.server.listen[o.server.listen_count++]);
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	descriptors_raise(0);
	pattern_make();
	log_open("cssl-bench", "serve", (enum log_format)o.log_format, (enum log_level)o.log_level, NULL);
	int r = serve(&o.server);
	log_close();
	return r;
}
