/* sink_options.h: the command line of cssl-bench smtp-sink. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "bench/command/option_table.h"
#include "bench/mail/sink_rules.h"
#include "net/socket/address.h"
#include "smtp/ehlo.h"

#define SINK_LISTEN_MAX  8u
#define SINK_TRUSTED_MAX 16u

enum sink_tls { SINK_CLEAR, SINK_STARTTLS, SINK_IMPLICIT };
enum sink_over { SINK_SAYS_421, SINK_LETS_WAIT }; /* to connections above --max-connections */
enum sink_line_ends { SINK_TAKES_LINE_ENDS, SINK_REFUSES_LINE_ENDS };
enum sink_needs { SINK_NEEDS_NOTHING, SINK_NEEDS_TLS };
enum sink_proxy { SINK_WITHOUT_PROXY, SINK_WITH_PROXY };
enum sink_output { SINK_TEXT, SINK_JSON };
enum sink_progress { SINK_NO_PROGRESS, SINK_PROGRESS };
enum sink_verbosity { SINK_SILENT, SINK_SAYS_DIALOGUE };

struct sink_options {
	struct sockaddr_storage listen[SINK_LISTEN_MAX];
	unsigned listen_count;
	struct address_net trusted[SINK_TRUSTED_MAX]; /* who may name transactions */
	unsigned trusted_count;
	uint64_t ids_max;
	struct sink_rules rules;
	struct smtp_ehlo offers; /* in clear; STARTTLS is taken out under TLS */
	uint64_t backlog, max_connections, max_per_source, max_mails, max_size, idle_ms, seed;
	unsigned tls, over, line_ends, needs, proxy, output, progress, verbosity; /* the enums above */
	const char *name, *certificate, *key, *dump;
};

/* Complains on standard error. @out points into @argv. */
enum option_parse sink_options_parse(int argc, char **argv, struct sink_options *out);
