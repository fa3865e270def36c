/* source_options.c: the table of options, and the checks that concern several of them. */
#include "bench/mail/source_options.h"

#include <getopt.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/load/processes.h"
#include "net/socket/address.h"
#include "proto/error.h"
#include "smtp/path.h"

#define NUMBER_MAX 1e12
#define SMTP_PORT  "25"

/* --- the server: an address, or a name --- */

static int source_look_up(const char *host, const char *port, int family, struct sockaddr_storage *out)
{
	const struct addrinfo wanted = { .ai_family = family, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;

	if (getaddrinfo(host, port, &wanted, &found))
		return CSSL_E_CONFIG;
	memcpy(out, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}

/* As Postfix splits it: HOST or [HOST], and perhaps a port. NULL: it is neither. */
static const char *source_split(const char *text, char host[static NI_MAXHOST])
{
	const int bracketed = *text == '[';
	const char *begin = text + bracketed;
	const size_t len = strcspn(begin, bracketed ? "]" : ":");
	const char *rest = begin + len;

	if (len == 0 || len >= NI_MAXHOST || (bracketed && *rest++ != ']'))
		return NULL;
	snprintf(host, NI_MAXHOST, "%.*s", (int)len, begin);
	if (*rest == 0)
		return SMTP_PORT;
	return rest[0] == ':' && rest[1] && !strchr(rest + 1, ':') ? rest + 1 : NULL;
}

/* @text: "127.0.0.1:25", "[::1]:25", "mx.example:25" or "[mx.example]:25", also behind "inet:" and without the port 25;
 * or "unix:/path". An address is taken as it is; a name is looked up, which may take seconds, and its first address
 * counts. @family: AF_INET, AF_INET6, or AF_UNSPEC for any; it does not concern "unix:". 0, or CSSL_E_CONFIG: it is no
 * address, or the name has none of the family. */
static int find_target(const char *text, int family, struct sockaddr_storage *out)
{
	char host[NI_MAXHOST];

	if (strncmp(text, "inet:", 5) == 0)
		text += 5;
	if (address_parse(text, out) == 0)
		return family == AF_UNSPEC || out->ss_family == AF_UNIX || out->ss_family == family ? 0 : CSSL_E_CONFIG;
	const char *port = source_split(text, host);
	return port ? source_look_up(host, port, family, out) : CSSL_E_CONFIG;
}

/* --- the options --- */

static int set_address(void *options, const struct option_row *row, const char *value)
{
	struct smtp_span rest = smtp_span_of(value);
	struct smtp_path path;
	char bracketed[SMTP_PATH_MAX + 1];
	if (snprintf(bracketed, sizeof bracketed, "<%s>", value) >= (int)sizeof bracketed)
		return CSSL_E_TOO_LONG;
	rest = smtp_span_of(bracketed);
	*(const char **)option_member(options, row) = value;
	return smtp_path_take(&rest, SMTP_PARSE_UTF8 | SMTP_PARSE_LENIENT, &path);
}

static int set_resume(void *options, const struct option_row *row, const char *value)
{
	struct source_options *o = options;
	o->mix = (struct mix){ 1, 1000000 };
	return 0;
}

#define AT(member) offsetof(struct source_options, member)
#define NUMBER(letter, name, value, member, min, max, unit, help)                                                      \
	OPTION_NUMBER(letter, name, value, struct source_options, member, min, max, unit, help)
#define TEXT(letter, name, value, member, help) OPTION_TEXT(letter, name, value, struct source_options, member, help)
#define FLAG(letter, name, member, word, help)  OPTION_FLAG(letter, name, struct source_options, member, word, help)

static const struct option_row rows[] = {
	{ .help = "How much" },
	NUMBER('s', "sessions", "N", sessions, 1, 1e6, 1, "sessions at a time (default 1)"),
	NUMBER('m', "messages", "N", messages, 1, NUMBER_MAX, 1, "mails in all (default 1)"),
	NUMBER(0, "processes", "N", processes, 1, PROCESSES_MAX, 1,
		"generator processes, each with its part of the sessions and mails (default 1)"),
	NUMBER(0, "duration", "S", duration_ms, 0.001, 1e6, 1e3, "end after so many seconds"),
	FLAG('d', "stay", after, SOURCE_STAYS, "one connection for all mails of a session"),
	NUMBER(0, "per-connection", "N", per_connection, 1, NUMBER_MAX, 1, "mails on each connection (default 1)"),
	{ 0, "rate", "R", "open loop: R mails a second; latencies count from the time when a mail was due",
		option_set_real, AT(schedule.rate), 1e-3, 1e7 },
	NUMBER(0, "ramp", "S", schedule.ramp_ns, 0, 1e5, 1e9, "let the rate rise evenly for so many seconds"),
	NUMBER('w', "wait", "S", pause_ms, 0, 1e5, 1e3, "pause between the mails of a session"),
	NUMBER('R', "random-wait", "S", random_pause_ms, 0, 1e5, 1e3, "random pause of at most so many seconds"),
	NUMBER(0, "connects", "N", connects, 1, 1e6, 1, "connects under way at a time, in each process (default 1)"),
	NUMBER('C', "connect-tries", "N", connect_tries, 1, 1e6, 1,
		"connects before a mail counts as failed (default 1)"),
	NUMBER(0, "timeout", "S", timeout_ms, 0.001, 1e5, 1e3,
		"give up a connection on which nothing passes for so long (default 30)"),
	FLAG('A', "keep-going", on_failure, SOURCE_GOES_ON,
		"count failures and go on; without it the first failure ends the run"),
	{ .help = "What" },
	{ 'f', "from", "ADDRESS", "sender (default foo@<name>)", set_address, AT(from) },
	{ 't', "to", "ADDRESS", "recipient (default foo@<name>)", set_address, AT(to) },
	NUMBER('r', "recipients", "N", recipients, 1, 1e5, 1,
		"recipients of each mail; a number precedes the recipient's name"),
	FLAG('N', "numbered", names, SOURCE_NUMBERED_NAMES, "a new recipient for each mail"),
	NUMBER('l', "length", "N", length, 1, 1e9, 1, "bytes of the body (default: some lines)"),
	TEXT('F', "file", "FILE", file, "send this mail, head and body, with LF or CR LF"),
	TEXT('S', "subject", "TEXT", subject, "(default: the mail's id)"),
	TEXT('M', "name", "HOST", name, "own name for HELO and addresses (default smtp-source.localdomain)"),
	FLAG(0, "helo", greeting, SOURCE_HELO, "HELO instead of EHLO"),
	FLAG('L', "lmtp", greeting, SOURCE_LHLO, "LMTP: each recipient has a reply of its own to a mail (RFC 2033)"),
	FLAG('o', "no-greeting", greeting, SOURCE_NO_GREETING,
		"neither HELO nor EHLO; unlike with Postfix's -o, mails keep their header, with X-CSSL-Mail"),
	FLAG(0, "pipelining", grouping, SOURCE_PIPELINING,
		"send commands in groups if the server offers it (RFC 2920)"),
	FLAG(0, "chunking", content, SOURCE_CHUNKS, "BDAT if the server offers it (RFC 3030)"),
	NUMBER(0, "chunk", "N", chunk_len, 1, 1e9, 1, "bytes of a chunk (default: all)"),
	{ .help = "From where and to where" },
	FLAG('4', "ipv4", family, AF_INET, "only to an IPv4 address"),
	FLAG('6', "ipv6", family, AF_INET6, "only to an IPv6 address"),
	{ 0, "source", "RANGE", "127.0.1.1-127.0.1.20 or one address; may be repeated; sessions use them in turn",
		option_add_sources, AT(sources) },
	{ 0, "proxy", "v1|v2", "a PROXY header in front of each connection", option_set_word, AT(proxy_version), 0, 0,
		1 },
	{ 0, "proxy-source", "RANGE", "client addresses for the PROXY headers, used in turn (default: the socket's)",
		option_add_sources, AT(claimed) },
	NUMBER('T', "window", "N", window, 1, 1e9, 1, "bytes of the receive buffer"),
	{ .help = "TLS" },
	FLAG(0, "starttls", tls, SOURCE_STARTTLS, "use STARTTLS; if the server does not offer it, the mail fails"),
	FLAG(0, "tls", tls, SOURCE_IMPLICIT, "TLS from the first byte"),
	{ 0, "resume", NULL, "the first handshake of an SMTP session is full; the others offer its newest TLS session",
		set_resume },
	{ 0, "mix", "FULL:RESUMED", "per SMTP session: so many full handshakes, then so many resumed (default 1:0)",
		option_set_mix, AT(mix) },
	OPTION_WORD(0, "tls-version", CLIENT_TLS_VERSIONS, struct source_options, tls_options.version, ""),
	TEXT(0, "suite", "NAME", tls_options.suite, "an OpenSSL cipher list (TLS 1.2) or suite (TLS 1.3)"),
	TEXT(0, "group", "LIST", tls_options.groups, "X25519:P-256 ..."),
	FLAG(0, "no-tickets", tls_options.tickets, CLIENT_TLS_NO_TICKETS, "TLS 1.2 resumes by session id"),
	TEXT(0, "sni", "NAME", tls_options.server_name, "server name (default localhost)"),
	TEXT(0, "ca", "FILE", tls_options.ca,
		"verify the server by these CAs and --sni; without this option nothing is verified"),
	{ .help = "Output" },
	FLAG('c', "counter", progress, SOURCE_PROGRESS_ALWAYS, "progress once a second, also without a terminal"),
	FLAG('q', "quiet", progress, SOURCE_PROGRESS_NEVER, "no progress"),
	FLAG('v', "verbose", verbosity, SOURCE_SAYS_DIALOGUE, "all lines sent and received, on standard error"),
	FLAG(0, "json", output, RESULT_JSON, "the result as JSON on standard output"),
	TEXT(0, "save", "FILE", save, "all that was counted, for cssl-bench merge"),
};

static const struct option_command command = { "smtp-source",
	"cssl-bench smtp-source [OPTIONS] ADDRESS...: many mails over SMTP, and how they were taken.\n"
	"ADDRESS is HOST[:PORT], as 127.0.0.1:25, [::1]:25 or mx.example (port 25), or unix:PATH; up to 16, in "
	"turn.\nEach mail has a header X-CSSL-Mail by which smtp-sink checks it.\n",
	"\nExit status: 0; 1: something failed; 2: bad options.\n", rows, sizeof rows / sizeof rows[0],
	OPTIONS_AND_WORDS };

/* A sentence about a contradiction between the options, or NULL. */
static const char *source_options_contradiction(const struct source_options *o)
{
	if (o->target_count == 0)
		return "an ADDRESS is needed";
	/* Each process gets its part of the sessions and of the messages, and no part may be empty. */
	if (o->processes > o->sessions || o->processes > o->messages)
		return "more --processes than --sessions or --messages";
	if (o->schedule.rate > 0 && (o->pause_ms > 0 || o->random_pause_ms > 0))
		return "--wait and --random-wait are for a closed loop";
	if (o->greeting != SOURCE_EHLO && o->greeting != SOURCE_LHLO &&
		(o->tls == SOURCE_STARTTLS || o->grouping == SOURCE_PIPELINING || o->content == SOURCE_CHUNKS))
		return "without EHLO there are no extensions: no --starttls, --pipelining or --chunking";
	if (o->file && o->length > 0)
		return "--length or --file";
	if (source_ranges_count(&o->claimed) > 0 && o->proxy_version == 0)
		return "--proxy-source needs --proxy";
	for (unsigned i = 0; i < o->target_count; i++) {
		if (o->targets[i].ss_family == AF_UNIX && source_ranges_count(&o->sources) > 0)
			return "--source is for TCP";
	}
	return NULL;
}

static enum option_parse source_options_complete(struct source_options *o, int argc, char **argv)
{
	o->target_names = argv + optind;
	for (int i = optind; i < argc; i++) {
		if (o->target_count < SOURCE_TARGETS_MAX &&
			find_target(argv[i], (int)o->family, &o->targets[o->target_count++]) == 0)
			continue;
		fprintf(stderr, "smtp-source: bad address '%s': expected HOST[:PORT] of this family, or unix:PATH\n",
			argv[i]);
		return OPTIONS_BAD;
	}
	if (o->progress == SOURCE_PROGRESS_ON_TERMINALS && !isatty(STDERR_FILENO))
		o->progress = SOURCE_PROGRESS_NEVER;
	if (o->after == SOURCE_STAYS)
		o->per_connection = 0;
	const char *wrong = source_options_contradiction(o);
	if (wrong)
		fprintf(stderr, "smtp-source: %s\n", wrong);
	return wrong ? OPTIONS_BAD : OPTIONS_PARSED;
}

enum option_parse source_options_parse(int argc, char **argv, struct source_options *out)
{
	*out = (struct source_options){ .mix = { 1, 0 },
		.sessions = 1,
		.messages = 1,
		.processes = 1,
		.per_connection = 1,
		.recipients = 1,
		.connects = 1,
		.connect_tries = 1,
		.timeout_ms = 30000,
		.name = "smtp-source.localdomain",
		.tls_options = { .who = "smtp-source", .server_name = "localhost" } };
	enum option_parse parsed = option_table_parse(&command, argc, argv, out);
	return parsed == OPTIONS_PARSED ? source_options_complete(out, argc, argv) : parsed;
}
