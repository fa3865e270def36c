/* source_options.h: the command line of cssl-bench smtp-source. Short options are those of Postfix's smtp-source. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "bench/command/option_table.h"
#include "bench/load/client_tls.h"
#include "bench/load/schedule.h"
#include "bench/load/source_range.h"

enum source_tls { SOURCE_CLEAR, SOURCE_STARTTLS, SOURCE_IMPLICIT };
enum source_greeting { SOURCE_EHLO, SOURCE_HELO, SOURCE_NO_GREETING, SOURCE_LHLO }; /* LHLO: LMTP */
enum source_after { SOURCE_QUITS, SOURCE_STAYS };                                   /* after each mail */
enum source_names { SOURCE_SAME_NAMES, SOURCE_NUMBERED_NAMES };                     /* of recipients, over all mails */
enum source_grouping { SOURCE_ONE_BY_ONE, SOURCE_PIPELINING };
enum source_content { SOURCE_DATA, SOURCE_CHUNKS };
enum source_on_failure { SOURCE_GIVES_UP, SOURCE_GOES_ON };
enum source_progress { SOURCE_PROGRESS_ON_TERMINALS, SOURCE_PROGRESS_ALWAYS, SOURCE_PROGRESS_NEVER };
enum source_verbosity { SOURCE_SILENT, SOURCE_SAYS_DIALOGUE };

#define SOURCE_TARGETS_MAX 16u

struct source_options {
	struct sockaddr_storage targets[SOURCE_TARGETS_MAX]; /* each connection of a session goes to the next */
	char *const *target_names;                           /* as they were given */
	unsigned target_count;
	struct source_ranges sources, claimed; /* claimed: in PROXY headers */
	struct schedule schedule;              /* rate 0: closed loop */
	struct mix mix;
	struct client_tls_options tls_options;
	uint64_t sessions, messages, per_connection; /* per_connection 0: no limit */
	uint64_t processes;
	uint64_t recipients, length, chunk_len;
	uint64_t pause_ms, random_pause_ms;
	uint64_t timeout_ms, duration_ms, connect_tries, connects, window;
	unsigned proxy_version;                                                                   /* 0: no header */
	unsigned tls, greeting, after, names, grouping, content, on_failure, progress, verbosity; /* above */
	unsigned family, output;                              /* AF_INET, AF_INET6 or AF_UNSPEC; enum result_output */
	const char *from, *to, *name, *subject, *file, *save; /* file NULL: a generated mail; save: the result */
};

/* Complains on standard error. @out points into @argv. */
enum option_parse source_options_parse(int argc, char **argv, struct source_options *out);
