/* sink_options.c: the table of options, and the set of extensions that EHLO offers. */
#include "bench/mail/sink_options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "proto/error.h"
#include "smtp/span.h"

static int add_rule(void *options, const struct option_row *row, const char *value)
{
	struct sink_options *o = options;
	return sink_rules_add(&o->rules, (enum sink_rule_kind)row->unit, value);
}

static int sink_options_hide(void *options, const struct option_row *row, const char *value)
{
	struct sink_options *o = options;
	for (unsigned cap = 0; cap < SMTP_CAP_OTHER; cap++) {
		if (smtp_span_is(smtp_span_of(value), smtp_cap_keyword((enum smtp_cap)cap))) {
			smtp_ehlo_keep(&o->offers, SMTP_CAP_ALL & ~SMTP_CAP_BIT(cap));
			return 0;
		}
	}
	return CSSL_E_CONFIG;
}

static int add_trusted(void *options, const struct option_row *row, const char *value)
{
	struct sink_options *o = options;
	if (o->trusted_count == SINK_TRUSTED_MAX)
		return CSSL_E_FULL;
	return address_net_parse(value, &o->trusted[o->trusted_count++]);
}

#define NUMBER(letter, name, value, member, min, max, unit, help)                                                      \
	OPTION_NUMBER(letter, name, value, struct sink_options, member, min, max, unit, help)
#define TEXT(letter, name, value, member, help) OPTION_TEXT(letter, name, value, struct sink_options, member, help)
#define FLAG(letter, name, member, word, help)  OPTION_FLAG(letter, name, struct sink_options, member, word, help)
#define RULE(letter, name, value, kind, help)                                                                          \
	{                                                                                                              \
		letter, name, value, help, add_rule, 0, 0, 0, kind                                                     \
	}

static const struct option_row rows[] = {
	{ .help = "Misbehaviour. STEP: connect, ehlo, starttls, mail, rcpt, data, end, bdat, rset, noop, quit, other; "
		  "several "
		  "with\ncommas, or all. PERCENT: how often (default 100)" },
	RULE('W', "delay", "STEP:S[:PERCENT]", SINK_DELAYS,
		"wait so many seconds before the reply; STEP decide: before a complete mail is taken or refused"),
	RULE(0, "reply", "STEP:REPLY[:PERCENT]", SINK_REPLIES, "another reply, '450 4.7.1 Later'; 421 also closes"),
	RULE(0, "drop", "STEP[:PERCENT]", SINK_DROPS, "close without a reply"),
	RULE(0, "tarpit", "STEP:S[:PERCENT]", SINK_TARPITS,
		"send the reply byte by byte, with so many seconds between"),
	NUMBER(0, "seed", "N", seed, 0, 1e15, 1, "of the random numbers"),
	{ .help = "Limits" },
	NUMBER('m', "max-connections", "N", max_connections, 1, 1e6, 1, "connections at a time (default: no limit)"),
	NUMBER(0, "max-per-source", "N", max_per_source, 1, 1e6, 1,
		"connections at a time from one address; further ones get 421"),
	OPTION_WORD(0, "over", "421|wait", struct sink_options, over,
		"connections above --max-connections get 421, or are not accepted (default 421)"),
	NUMBER(0, "size", "BYTES", max_size, 1, 1e15, 1,
		"largest mail: EHLO lists SIZE, larger mails get 552 (default: no limit)"),
	NUMBER(0, "idle", "S", idle_ms, 0.001, 1e6, 1e3, "421 to clients that are silent for so long (default: never)"),
	NUMBER('M', "mails", "N", max_mails, 1, 1e12, 1, "end after so many mails"),
	NUMBER(0, "backlog", "N", backlog, 1, 65535, 1, "of the listening socket (default 4096)"),
	{ .help = "Protocol" },
	TEXT('h', "name", "HOST", name, "own name in banner and EHLO (default smtp-sink)"),
	{ 0, "hide", "KEYWORD", "an extension that EHLO does not list; may be repeated", sink_options_hide },
	FLAG(0, "refuse-line-ends", line_ends, SINK_REFUSES_LINE_ENDS, "550 to mails with bare CR or LF, or NUL"),
	FLAG(0, "proxy", proxy, SINK_WITH_PROXY, "each connection begins with a PROXY header v1 or v2"),
	{ 0, "xcssltx", "NET",
		"PROXY peers that may name transactions and ask for their fate: 10.0.0.0/8, ::1; may be repeated",
		add_trusted },
	NUMBER(0, "xcssltx-ids", "N", ids_max, 1, 1e9, 1, "ids whose transactions are remembered (default 10000)"),
	TEXT(0, "cert", "FILE", certificate, "PEM: offer STARTTLS"),
	TEXT(0, "key", "FILE", key, "its key"),
	FLAG(0, "tls", tls, SINK_IMPLICIT, "TLS from the first byte"),
	FLAG(0, "need-tls", needs, SINK_NEEDS_TLS, "530 to mail in clear"),
	{ .help = "Output, at SIGTERM or after --mails" },
	TEXT('D', "dump", "FILE", dump, "write all mails, each after its envelope"),
	FLAG('c', "counter", progress, SINK_PROGRESS, "progress once a second"),
	FLAG('v', "verbose", verbosity, SINK_SAYS_DIALOGUE, "each command and reply, on standard error"),
	FLAG(0, "json", output, SINK_JSON, "the summary as JSON on standard output"),
};

static const struct option_command command = { "smtp-sink",
	"cssl-bench smtp-sink [OPTIONS] ADDRESS...: takes mails, counts them, and drops them.\n"
	"ADDRESS is 127.0.0.1:25 or [::1]:0; each is printed on standard output when it listens. A mail of "
	"smtp-source\n"
	"is compared with what its header says, and mails that come twice are counted.\n",
	"\nExit status: 0; 1: a mail's body was wrong, or smtp-sink could not start; 2: bad options.\n", rows,
	sizeof rows / sizeof rows[0], OPTIONS_AND_WORDS };

static const char *sink_options_contradiction(const struct sink_options *o)
{
	if (o->listen_count == 0)
		return "an ADDRESS is needed";
	if (!o->certificate != !o->key)
		return "--cert and --key go together";
	if (o->trusted_count > 0 && o->proxy != SINK_WITH_PROXY)
		return "--xcssltx needs --proxy";
	if (!o->certificate && (o->tls == SINK_IMPLICIT || o->needs == SINK_NEEDS_TLS))
		return "TLS needs --cert and --key";
	return NULL;
}

static int add_addresses(struct sink_options *o, int argc, char **argv)
{
	for (int i = optind; i < argc; i++) {
		const char *text = strncmp(argv[i], "inet:", 5) == 0 ? argv[i] + 5 : argv[i];
		if (o->listen_count == SINK_LISTEN_MAX || address_parse(text, &o->listen[o->listen_count]) < 0) {
			fprintf(stderr, "smtp-sink: bad address '%s'\n", text);
			return CSSL_E_CONFIG;
		}
		o->listen_count++;
	}
	return 0;
}

static enum option_parse sink_options_complete(struct sink_options *o, int argc, char **argv)
{
	char size[40];
	if (add_addresses(o, argc, argv) < 0)
		return OPTIONS_BAD;
	const char *wrong = sink_options_contradiction(o);
	if (wrong) {
		fprintf(stderr, "smtp-sink: %s\n", wrong);
		return OPTIONS_BAD;
	}
	snprintf(size, sizeof size, "SIZE %llu", (unsigned long long)o->max_size);
	smtp_ehlo_add(&o->offers, smtp_span_of(size));
	if (o->certificate && o->tls != SINK_IMPLICIT) {
		o->tls = SINK_STARTTLS;
		smtp_ehlo_add(&o->offers, smtp_span_of("STARTTLS"));
	}
	o->rules.dice = o->seed;
	return OPTIONS_PARSED;
}

enum option_parse sink_options_parse(int argc, char **argv, struct sink_options *out)
{
	static const char *const offers[] = { "PIPELINING", "8BITMIME", "SMTPUTF8", "DSN", "ENHANCEDSTATUSCODES",
		"CHUNKING", "BINARYMIME" };
	memset(out, 0, sizeof *out);
	out->backlog = 4096;
	out->ids_max = 10000;
	out->name = "smtp-sink";
	for (unsigned i = 0; i < sizeof offers / sizeof offers[0]; i++)
		smtp_ehlo_add(&out->offers, smtp_span_of(offers[i]));
	enum option_parse parsed = option_table_parse(&command, argc, argv, out);
	return parsed == OPTIONS_PARSED ? sink_options_complete(out, argc, argv) : parsed;
}
