/* serve.c: `cssl-bench serve`, the embedded backend: options, listeners and connections on one worker, and a graceful
 * end. Ended connections wait in a free list. So no request allocates memory, and after the first ones no connection
 * does.
 */
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/command/command.h"
#include "bench/command/option_table.h"
#include "bench/server/http_connection.h"
#include "bench/server/pattern.h"
#include "net/loop/listener.h"
#include "net/loop/signals.h"
#include "net/memory/container_of.h"
#include "net/process/descriptors.h"
#include "net/report/log.h"
#include "net/socket/address.h"
#include "proto/error.h"

#define LISTEN_MAX  8u
#define BACKLOG     4096
#define MS_MAX      86400000
#define SOCKET_MODE 0666u /* a UNIX socket of the backend: its folder decides who may connect */

struct serve_options {
	struct sockaddr_storage listen[LISTEN_MAX];
	unsigned listen_count;
	struct agent_map agents;
	unsigned proxy; /* enum proxy_expectation */
	uint64_t idle_ms;
	uint64_t grace_ms;              /* for answers under way when the server is told to stop */
	unsigned log_format, log_level; /* enum log_format, enum log_level */
};

static int add_listen(void *options, const struct option_row *row, const char *value)
{
	struct serve_options *o = options;
	return o->listen_count == LISTEN_MAX ? CSSL_E_FULL : address_parse(value, &o->listen[o->listen_count++]);
}

static int add_agent(void *options, const struct option_row *row, const char *value)
{
	return agent_map_add(option_member(options, row), value);
}

static const struct option_row rows[] = {
	{ 0, "listen", "ADDRESS", "127.0.0.1:8080, [::1]:0 or unix:/path; up to 8 (default 127.0.0.1:0)", add_listen },
	{ 0, "agent", "NAME=ADDRESS", "answers to this source address have X-CSSL-Agent: NAME", add_agent,
		offsetof(struct serve_options, agents) },
	OPTION_WORD(0, "proxy-protocol", "off|accept|require", struct serve_options, proxy,
		"whether connections begin with a PROXY header (default off)"),
	OPTION_NUMBER(0, "idle-ms", "N", struct serve_options, idle_ms, 0, MS_MAX, 1,
		"close a connection that is silent for so long (default 0: never)"),
	OPTION_NUMBER(0, "grace-ms", "N", struct serve_options, grace_ms, 0, MS_MAX, 1,
		"after SIGTERM, time for answers under way (default 5000)"),
	OPTION_WORD(0, "log-format", "text|json", struct serve_options, log_format, "(default text)"),
	OPTION_WORD(0, "log-level", "debug|info|warning|error", struct serve_options, log_level, "(default info)"),
};

static const struct option_command command = { "serve",
	"cssl-bench serve [OPTIONS]: an HTTP/1.1 backend whose paths describe its answers.\n\n",
	"\nGET / lists the paths. Standard output gets each listening address, one a line.\n", rows,
	sizeof rows / sizeof rows[0], OPTIONS_ONLY };

struct server {
	struct http_host host;
	enum { SERVER_OPEN, SERVER_DRAINING, SERVER_CLOSED } state;
	uint64_t grace_ms;
	struct deadline grace;
	struct signals *signals;
	unsigned listener_count, listeners_open;
	struct listener *listeners[LISTEN_MAX];
	LIST_HEAD(, http_connection) open, free;
	uint64_t accepted;
};

static void stop_when_empty(struct server *s)
{
	if (s->state == SERVER_OPEN || !LIST_EMPTY(&s->open) || s->listeners_open > 0)
		return;
	deadline_cancel(&s->grace);
	worker_stop(s->host.worker);
	signals_destroy(s->signals);
	s->signals = NULL;
}

static void on_server_connection_gone(struct http_host *host, struct http_connection *c)
{
	struct server *s = container_of(host, struct server, host);
	LIST_REMOVE(c, in);
	LIST_INSERT_HEAD(&s->free, c, in);
	stop_when_empty(s);
}

static struct http_connection *take_connection(struct server *s)
{
	struct http_connection *c = LIST_FIRST(&s->free);
	if (!c)
		return calloc(1, sizeof *c);
	LIST_REMOVE(c, in);
	return c;
}

static void on_server_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct server *s = ctx;
	struct http_connection *c = take_connection(s);
	if (!c) {
		log_event(LOG_WARNING, NULL, "connection refused", "cause=memory");
		close(fd);
		return;
	}
	int r = http_connection_open(c, &s->host, fd, (const struct sockaddr *)peer);
	if (r) {
		log_event(LOG_WARNING, NULL, "connection refused", "cause=%s", uv_strerror(r));
		LIST_INSERT_HEAD(&s->free, c, in);
		return;
	}
	s->accepted++;
	LIST_INSERT_HEAD(&s->open, c, in);
}

static void on_server_listener_closed(void *ctx)
{
	struct server *s = ctx;
	s->listeners_open--;
	stop_when_empty(s);
}

static const struct listener_ops listener_ops = { .on_accept = on_server_accept,
	.on_closed = on_server_listener_closed };

static int server_listen_on(struct server *s, const struct sockaddr *address)
{
	char text[ADDRESS_TEXT_MAX];
	struct sockaddr_storage bound;
	int r = 0;
	struct listener *l = listener_create(s->host.worker, address, BACKLOG, SOCKET_MODE, &listener_ops, s, &r);
	if (!l) {
		log_event(LOG_ERROR, NULL, "cannot listen", "address=%s cause=%s", address_format(address, text),
			uv_strerror(r));
		return -1;
	}
	s->listeners[s->listener_count++] = l;
	s->listeners_open++;
	if (listener_address(l, &bound) == 0)
		printf("listening on %s\n", address_format((const struct sockaddr *)&bound, text));
	return 0;
}

static void close_connections(struct server *s)
{
	for (struct http_connection *c = LIST_FIRST(&s->open), *next; c; c = next) {
		next = LIST_NEXT(c, in);
		http_connection_close(c);
	}
}

static void on_grace_over(struct deadline *d)
{
	struct server *s = container_of(d, struct server, grace);
	s->state = SERVER_CLOSED;
	close_connections(s);
}

static void server_drain(struct server *s)
{
	s->host.persistence = HTTP_CLOSE;
	for (unsigned i = 0; i < s->listener_count; i++)
		listener_close(s->listeners[i]);
	for (struct http_connection *c = LIST_FIRST(&s->open), *next; c; c = next) {
		next = LIST_NEXT(c, in);
		http_connection_drain(c);
	}
	deadline_set(s->host.worker, &s->grace, s->grace_ms);
}

/* Take no more connections, and finish the answers under way, within the grace time. A second call closes all at once.
 */
static void server_stop(struct server *s)
{
	if (s->state == SERVER_OPEN) {
		s->state = SERVER_DRAINING;
		log_event(LOG_INFO, NULL, "stopping", "connections=%llu requests=%llu", (unsigned long long)s->accepted,
			(unsigned long long)s->host.requests);
		server_drain(s);
	} else {
		s->state = SERVER_CLOSED;
		close_connections(s);
	}
	/* Closing is never done at once, except when there was nothing to close. */
	if (s->listener_count == 0)
		stop_when_empty(s);
}

static void server_clear(struct server *s)
{
	for (struct http_connection *c = LIST_FIRST(&s->free), *next; c; c = next) {
		next = LIST_NEXT(c, in);
		http_connection_wipe(c);
		free(c);
	}
	EVP_MD_free(s->host.sha256);
	resources_destroy(s->host.resources);
	worker_destroy(s->host.worker);
}

static void on_server_signal(void *ctx, int signum)
{
	server_stop(ctx);
}

/* Logs what failed. */
static int server_prepare(struct server *s, const struct serve_options *o)
{
	static const int stop_signals[] = { SIGTERM, SIGINT };
	s->host.resources = resources_create();
	s->host.sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (!s->host.resources || !s->host.sha256)
		return -1;
	s->signals = signals_create(s->host.worker, stop_signals, 2, on_server_signal, s);
	if (!s->signals)
		return -1;
	for (unsigned i = 0; i < o->listen_count; i++) {
		if (server_listen_on(s, (const struct sockaddr *)&o->listen[i]))
			return -1;
	}
	fflush(stdout);
	return 0;
}

static int server_serve(const struct serve_options *o)
{
	static struct server s = { .grace.fn = on_grace_over };
	s.host = (struct http_host){ .worker = worker_create(0, "serve"),
		.agents = o->agents,
		.proxy = o->proxy,
		.idle_ms = o->idle_ms,
		.persistence = HTTP_KEEP_ALIVE,
		.on_gone = on_server_connection_gone };
	s.grace_ms = o->grace_ms;
	if (!s.host.worker)
		return EXIT_FAILURE;
	const int failed = server_prepare(&s, o);
	if (failed)
		server_stop(&s); /* the worker has to turn until all is closed */
	const int r = worker_run(s.host.worker);
	server_clear(&s);
	return r == 0 && !failed ? EXIT_SUCCESS : EXIT_FAILURE;
}

int serve_main(int argc, char **argv)
{
	struct serve_options o = { .grace_ms = 5000, .log_level = LOG_INFO };
	const enum option_parse parsed = option_table_parse(&command, argc, argv, &o);

	if (parsed != OPTIONS_PARSED)
		return parsed;
	if (o.listen_count == 0)
		address_parse("127.0.0.1:0", &o.listen[o.listen_count++]);
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	descriptors_raise(0);
	pattern_make();
	log_open("cssl-bench", "serve", (enum log_format)o.log_format, (enum log_level)o.log_level, NULL);
	int r = server_serve(&o);
	log_close();
	return r;
}
