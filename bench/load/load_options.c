/* load_options.c: a table of options: name, kind of value, where it goes; then what must be true of all of them. */
#include "bench/load/load_options.h"

#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/load/processes.h"
#include "bench/server/resource.h"
#include "net/address.h"
#include "proto/error.h"

static const char help[] =
	"cssl-bench https --connect ADDRESS [OPTIONS]: many TLS clients, and what they were served.\n"
	"\n"
	"Where and from where\n"
	"  --connect ADDRESS    127.0.0.1:443 or [::1]:443; up to 16: each connection of a client goes to the next\n"
	"  --source RANGE       127.0.1.1-127.0.1.20 or one address; repeated; client after client takes the next\n"
	"How much\n"
	"  --clients N          pseudo clients, each with at most one connection (default 16)\n"
	"  --connections N      end when so many were begun; and / or\n"
	"  --equal              each client makes an equal part of --connections; without it the faster make more\n"
	"  --duration S         end after so many seconds (default 10 where --connections is not said)\n"
	"  --requests N         requests on each connection (default 1; 0: as many as there is time for)\n"
	"  --rate R             open loop: R requests a second, whatever the server does; latencies count from the\n"
	"                       moment at which a request was due. Without it: closed loop\n"
	"  --ramp S             reach the rate, or start the clients, evenly over so many seconds\n"
	"  --think-ms N         closed loop: pause between an answer and the next request of a connection\n"
	"  --hold               keep connections after their requests; standard output says 'holding N connections'\n"
	"                       when all are there; they close at the end of --duration or by SIGTERM\n"
	"  --processes N        generator processes (default 1)\n"
	"  --timeout-ms N       give a connection up that makes no progress for so long (default 10000)\n"
	"What\n"
	"  --path PATH          repeated: in turn (default /5k)\n"
	"  --length N           an answer of another length is wrong\n"
	"  --check              paths are those of cssl-bench serve: compare length and every byte\n"
	"  --handshake-only     no requests\n"
	"  --mix FULL:RESUMED   of a client's connections so many full, then so many offer the newest session\n"
	"                       (default 1:0)\n"
	"TLS\n"
	"  --version 1.2|1.3|any   (default any)\n"
	"  --suite NAME         an OpenSSL cipher list (TLS 1.2) or suite (TLS 1.3)\n"
	"  --group LIST         X25519:P-256 ...\n"
	"  --no-tickets         TLS 1.2 resumes by session id\n"
	"  --sni NAME           server name, also of Host (default localhost)\n"
	"  --alpn NAME          one protocol\n"
	"  --ca FILE            verify the server against these; without it nothing is verified\n"
	"Output: also what each generator process used itself, and whether that was the limit\n"
	"  --json               the result as JSON on standard output\n"
	"  --save FILE          all that was counted, for cssl-bench merge\n"
	"  --quiet              no progress on the terminal\n"
	"\n"
	"Exit status: 0; 1: something failed or was wrong; 2: bad options.\n";

struct option_row {
	const char *name;
	int (*set)(struct load_options *o, const struct option_row *row, const char *value);
	size_t at;       /* the member's offset in struct load_options */
	double min, max; /* bounds of a number, as the user writes it */
	double unit;     /* a number is multiplied by this before it is stored; for a flag: the value to store */
};

static void *member(struct load_options *o, const struct option_row *row)
{
	return (char *)o + row->at;
}

static int parse_number(const struct option_row *row, const char *value, double *out)
{
	char *end;

	*out = strtod(value, &end);
	return end == value || *end || !(*out >= row->min && *out <= row->max) ? CSSL_E_RANGE : 0;
}

static int set_number(struct load_options *o, const struct option_row *row, const char *value)
{
	double n;
	int r = parse_number(row, value, &n);

	if (r == 0 && row->unit == 1 && n != floor(n))
		r = CSSL_E_RANGE;
	if (r == 0)
		*(uint64_t *)member(o, row) = (uint64_t)(n * row->unit);
	return r;
}

static int set_rate(struct load_options *o, const struct option_row *row, const char *value)
{
	return parse_number(row, value, &o->schedule.rate);
}

static int set_text(struct load_options *o, const struct option_row *row, const char *value)
{
	*(const char **)member(o, row) = value;
	return value[0] ? 0 : CSSL_E_CONFIG;
}

static int set_flag(struct load_options *o, const struct option_row *row, const char *value)
{
	*(unsigned *)member(o, row) = (unsigned)row->unit;
	return 0;
}

static int add_target(struct load_options *o, const struct option_row *row, const char *value)
{
	if (o->target_count == LOAD_TARGETS_MAX)
		return CSSL_E_FULL;
	return address_parse(value, &o->targets[o->target_count++]);
}

static int add_source(struct load_options *o, const struct option_row *row, const char *value)
{
	return source_ranges_add(&o->sources, value);
}

static int add_path(struct load_options *o, const struct option_row *row, const char *value)
{
	if (o->path_count == LOAD_PATHS_MAX || value[0] != '/' || strpbrk(value, " \r\n"))
		return CSSL_E_CONFIG;
	o->paths[o->path_count++].path = value;
	return 0;
}

static int set_mix(struct load_options *o, const struct option_row *row, const char *value)
{
	return mix_parse(value, &o->mix);
}

static int set_version(struct load_options *o, const struct option_row *row, const char *value)
{
	return client_tls_version_parse(value, &o->tls.version);
}

#define AT(member) offsetof(struct load_options, member)
#define NUMBER(name, member, min, max)                                                                                 \
	{                                                                                                              \
		name, set_number, AT(member), min, max, 1                                                              \
	}
#define TEXT(name, member)                                                                                             \
	{                                                                                                              \
		name, set_text, AT(member)                                                                             \
	}
#define FLAG(name, member, value)                                                                                      \
	{                                                                                                              \
		name, set_flag, AT(member), 0, 0, value                                                                \
	}
#define NUMBER_MAX          1e12
#define DURATION_DEFAULT_MS 10000

static const struct option_row rows[] = {
	{ "connect", add_target },
	{ "source", add_source },
	NUMBER("clients", clients, 1, 1e6),
	NUMBER("connections", connections, 1, NUMBER_MAX),
	{ "duration", set_number, AT(duration_ms), 0.001, 1e6, 1e3 },
	NUMBER("requests", requests, 0, NUMBER_MAX),
	{ "rate", set_rate, 0, 1e-3, 1e7 },
	{ "ramp", set_number, AT(schedule.ramp_ns), 0, 1e5, 1e9 },
	NUMBER("think-ms", think_ms, 0, 1e7),
	FLAG("equal", parts, LOAD_PARTS_EQUAL),
	FLAG("hold", at_end, LOAD_HOLDS),
	NUMBER("processes", processes, 1, PROCESSES_MAX),
	NUMBER("timeout-ms", timeout_ms, 1, 1e7),
	{ "path", add_path },
	NUMBER("length", length, 0, NUMBER_MAX),
	FLAG("check", check, LOAD_CHECKED),
	FLAG("handshake-only", asks, LOAD_HANDSHAKE_ONLY),
	{ "mix", set_mix },
	{ "version", set_version },
	TEXT("suite", tls.suite),
	TEXT("group", tls.groups),
	FLAG("no-tickets", tls.tickets, CLIENT_TLS_NO_TICKETS),
	TEXT("sni", tls.server_name),
	TEXT("alpn", tls.alpn),
	TEXT("ca", tls.ca),
	FLAG("json", output, RESULT_JSON),
	TEXT("save", save),
	FLAG("quiet", progress, LOAD_PROGRESS_HIDDEN),
};

#define ROWS (sizeof rows / sizeof rows[0])

/* getopt's view of the rows, and --help. */
static void long_options(struct option out[static ROWS + 2])
{
	for (unsigned i = 0; i < ROWS; i++)
		out[i] = (struct option){ rows[i].name, rows[i].set == set_flag ? no_argument : required_argument, NULL,
			(int)i + 1 };
	out[ROWS] = (struct option){ "help", no_argument, NULL, (int)ROWS + 1 };
	out[ROWS + 1] = (struct option){ NULL, 0, NULL, 0 };
}

/* A sentence about a contradiction between the options, or NULL. */
static const char *contradiction(const struct load_options *o)
{
	if (o->target_count == 0)
		return "--connect is needed";
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

static enum load_parse complete(struct load_options *o)
{
	fill_in(o);
	const char *wrong = contradiction(o);
	if (wrong) {
		fprintf(stderr, "https: %s\n", wrong);
		return LOAD_PARSED_BAD;
	}
	for (unsigned i = 0; i < o->path_count; i++) {
		if (prepare_path(o, &o->paths[i])) {
			fprintf(stderr, "https: --path %s: %s\n", o->paths[i].path,
				o->check == LOAD_CHECKED ? "--check needs a path like /5k" : "too long");
			return LOAD_PARSED_BAD;
		}
	}
	return LOAD_PARSED;
}

enum load_parse load_options_parse(int argc, char **argv, struct load_options *out)
{
	struct option options[ROWS + 2];
	int row;

	*out = (struct load_options){ .mix = { 1, 0 },
		.clients = 16,
		.processes = 1,
		.requests = 1,
		.timeout_ms = 10000,
		.length = LOAD_LENGTH_ANY,
		.tls = { .who = "https", .server_name = "localhost" } };
	long_options(options);
	optind = 1;
	while ((row = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (row == '?')
			return LOAD_PARSED_BAD;
		if (row == (int)ROWS + 1)
			return LOAD_PARSED_HELP;
		if (rows[row - 1].set(out, &rows[row - 1], optarg)) {
			fprintf(stderr, "https: --%s: bad value '%s'\n", rows[row - 1].name, optarg);
			return LOAD_PARSED_BAD;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "https: unexpected '%s'\n", argv[optind]);
		return LOAD_PARSED_BAD;
	}
	return complete(out);
}

const char *load_options_help(void)
{
	return help;
}
