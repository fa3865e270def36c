/* load_options.c: a table of options, then what must be true of all of them. */
#include "bench/load/load_options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "bench/load/processes.h"
#include "bench/server/resource.h"
#include "net/socket/address.h"
#include "proto/error.h"

static int add_target(void *options, const struct option_row *row, const char *value)
{
	struct load_options *o = options;

	if (o->target_count == LOAD_TARGETS_MAX)
		return CSSL_E_FULL;
	return address_parse(value, &o->targets[o->target_count++]);
}

static int add_path(void *options, const struct option_row *row, const char *value)
{
	struct load_options *o = options;

	if (o->path_count == LOAD_PATHS_MAX || value[0] != '/' || strpbrk(value, " \r\n"))
		return CSSL_E_CONFIG;
	o->paths[o->path_count++].path = value;
	return 0;
}

#define AT(member)                           offsetof(struct load_options, member)
#define NUMBER(name, member, min, max, help) OPTION_NUMBER(0, name, "N", struct load_options, member, min, max, 1, help)
#define SECONDS(name, member, min, max, unit, help)                                                                    \
	OPTION_NUMBER(0, name, "S", struct load_options, member, min, max, unit, help)
#define TEXT(name, value, member, help) OPTION_TEXT(0, name, value, struct load_options, member, help)
#define FLAG(name, member, word, help)  OPTION_FLAG(0, name, struct load_options, member, word, help)
#define NUMBER_MAX                      1e12
#define DURATION_DEFAULT_MS             10000

static const struct option_row rows[] = {
	{ .help = "Where and from where" },
	{ 0, "connect", "ADDRESS", "127.0.0.1:443 or [::1]:443; up to 16: each connection of a client goes to the next",
		add_target },
	{ 0, "source", "RANGE", "127.0.1.1-127.0.1.20 or one address; repeated; client after client takes the next",
		option_add_sources, AT(sources) },
	{ .help = "How much" },
	NUMBER("clients", clients, 1, 1e6, "pseudo clients, each with at most one connection (default 16)"),
	NUMBER("connections", connections, 1, NUMBER_MAX, "end when so many were begun; and / or --duration"),
	FLAG("equal", parts, LOAD_PARTS_EQUAL,
		"each client makes an equal part of --connections; without this option faster clients make more"),
	SECONDS("duration", duration_ms, 0.001, 1e6, 1e3,
		"end after so many seconds (default 10, if --connections is not there)"),
	NUMBER("requests", requests, 0, NUMBER_MAX,
		"requests on each connection (default 1; 0: as many as there is time for)"),
	{ 0, "rate", "R",
		"open loop: R requests a second, whatever the server does; latencies count from the moment at\n"
		"which a request was due. Without it: closed loop",
		option_set_real, AT(schedule.rate), 1e-3, 1e7 },
	SECONDS("ramp", schedule.ramp_ns, 0, 1e5, 1e9,
		"reach the rate, or start the clients, evenly over so many seconds"),
	NUMBER("think-ms", think_ms, 0, 1e7,
		"closed loop: pause between an answer and the next request of a connection"),
	FLAG("hold", at_end, LOAD_HOLDS,
		"keep connections after their requests; standard output says 'holding N connections'\n"
		"when all are there; they close at the end of --duration or by SIGTERM"),
	NUMBER("processes", processes, 1, PROCESSES_MAX, "generator processes (default 1)"),
	NUMBER("timeout-ms", timeout_ms, 1, 1e7,
		"give up a connection that makes no progress for so long (default 10000)"),
	{ .help = "What" },
	{ 0, "path", "PATH", "repeated: in turn (default /5k)", add_path },
	NUMBER("length", length, 0, NUMBER_MAX, "an answer of another length is wrong"),
	FLAG("check", check, LOAD_CHECKED, "paths are those of cssl-bench serve: compare length and every byte"),
	FLAG("handshake-only", asks, LOAD_HANDSHAKE_ONLY, "no requests"),
	{ 0, "mix", "FULL:RESUMED",
		"so many full handshakes of a client, then so many that offer the newest session (default 1:0)",
		option_set_mix, AT(mix) },
	{ .help = "TLS" },
	OPTION_WORD(0, "version", CLIENT_TLS_VERSIONS, struct load_options, tls.version, "(default any)"),
	TEXT("suite", "NAME", tls.suite, "an OpenSSL cipher list (TLS 1.2) or suite (TLS 1.3)"),
	TEXT("group", "LIST", tls.groups, "X25519:P-256 ..."),
	FLAG("no-tickets", tls.tickets, CLIENT_TLS_NO_TICKETS, "TLS 1.2 resumes by session id"),
	TEXT("sni", "NAME", tls.server_name, "server name, also of Host (default localhost)"),
	TEXT("alpn", "NAME", tls.alpn, "one protocol"),
	TEXT("ca", "FILE", tls.ca, "verify the server by these CAs; without this option nothing is verified"),
	{ .help = "Output: also what each generator process used itself, and whether that was the limit" },
	FLAG("json", output, RESULT_JSON, "the result as JSON on standard output"),
	TEXT("save", "FILE", save, "all that was counted, for cssl-bench merge"),
	FLAG("quiet", progress, LOAD_PROGRESS_HIDDEN, "no progress on the terminal"),
};

static const struct option_command command = { "https",
	"cssl-bench https --connect ADDRESS [OPTIONS]: many TLS clients, and what they were served.\n",
	"\nExit status: 0; 1: something failed or was wrong; 2: bad options.\n", rows, sizeof rows / sizeof rows[0],
	OPTIONS_ONLY };

/* A sentence about a contradiction between the options, or NULL. */
static const char *load_contradiction(const struct load_options *o)
{
	if (o->target_count == 0)
		return "--connect is needed";
	/* Each process gets its part of the clients and of the connections, and no part may be empty. */
	if (o->processes > o->clients)
		return "more --processes than --clients";
	if (o->parts == LOAD_PARTS_EQUAL && o->connections < o->clients)
		return "--equal needs --connections, one at least for each client";
	if (o->connections > 0 && o->connections < o->processes)
		return "more --processes than --connections";
	if (o->at_end == LOAD_HOLDS && o->requests == 0)
		return "--hold begins after the --requests";
	if (o->requests == 0 && o->duration_ms == 0)
		return "--requests 0 needs a --duration";
	if (o->schedule.rate > 0 && o->think_ms > 0)
		return "--think-ms is for a closed loop";
	if (o->schedule.rate > 0 && o->at_end == LOAD_HOLDS)
		return "--hold is for a closed loop";
	if (o->check == LOAD_CHECKED && o->length != LOAD_LENGTH_ANY)
		return "--check knows the length by itself";
	return NULL;
}

static int prepare_path(const struct load_options *o, struct load_path *p)
{
	int len = snprintf(
		p->request, sizeof p->request, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", p->path, o->tls.server_name);

	if (len < 0 || (size_t)len >= sizeof p->request)
		return CSSL_E_TOO_LONG;
	p->request_len = (uint32_t)len;
	if (o->length != LOAD_LENGTH_ANY)
		p->expected = (struct reply_expectation){ REPLY_THIS_LENGTH, o->length };
	if (o->check != LOAD_CHECKED)
		return 0;
	p->expected.kind = REPLY_PATTERN;
	return resource_parse_size(p->path + 1, &p->expected.length);
}

static void fill_in(struct load_options *o)
{
	if (o->path_count == 0)
		o->paths[o->path_count++].path = "/5k";
	if (o->asks == LOAD_HANDSHAKE_ONLY)
		o->requests = 1; /* one unit of work for each connection */
	if (o->at_end == LOAD_HOLDS && o->connections == 0)
		o->connections = o->clients;
	if (o->at_end == LOAD_HOLDS)
		o->tls.memory = CLIENT_TLS_SPARE;
	if (o->duration_ms == 0 && o->connections == 0)
		o->duration_ms = DURATION_DEFAULT_MS;
}

static enum option_parse load_complete(struct load_options *o)
{
	fill_in(o);
	const char *wrong = load_contradiction(o);
	if (wrong) {
		fprintf(stderr, "https: %s\n", wrong);
		return OPTIONS_BAD;
	}
	for (unsigned i = 0; i < o->path_count; i++) {
		if (prepare_path(o, &o->paths[i])) {
			fprintf(stderr, "https: --path %s: %s\n", o->paths[i].path,
				o->check == LOAD_CHECKED ? "--check needs a path like /5k" : "too long");
			return OPTIONS_BAD;
		}
	}
	return OPTIONS_PARSED;
}

enum option_parse load_options_parse(int argc, char **argv, struct load_options *out)
{
	*out = (struct load_options){ .mix = { 1, 0 },
		.clients = 16,
		.processes = 1,
		.requests = 1,
		.timeout_ms = 10000,
		.length = LOAD_LENGTH_ANY,
		.tls = { .who = "https", .server_name = "localhost" } };
	const enum option_parse parsed = option_table_parse(&command, argc, argv, out);
	return parsed == OPTIONS_PARSED ? load_complete(out) : parsed;
}
