/* load_options.h: the command line of cssl-bench https. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "bench/command/option_table.h"
#include "bench/load/client_tls.h"
#include "bench/load/reply.h"
#include "bench/load/schedule.h"
#include "bench/load/source_range.h"

#define LOAD_TARGETS_MAX 16u
#define LOAD_PATHS_MAX   16u
#define LOAD_REQUEST_MAX 1024u
#define LOAD_LENGTH_ANY  UINT64_MAX

/* A path and the whole request for it. */
struct load_path {
	const char *path;
	uint32_t request_len;
	char request[LOAD_REQUEST_MAX];
	struct reply_expectation expected;
};

enum load_at_end { LOAD_CLOSES, LOAD_HOLDS };           /* a connection whose requests are made */
enum load_parts { LOAD_PARTS_TAKEN, LOAD_PARTS_EQUAL }; /* of the connections, by the clients */
enum load_asks { LOAD_ASKS, LOAD_HANDSHAKE_ONLY };
enum load_check { LOAD_UNCHECKED, LOAD_CHECKED }; /* the bytes of answers */
enum load_progress { LOAD_PROGRESS_SHOWN, LOAD_PROGRESS_HIDDEN };

struct load_options {
	struct sockaddr_storage targets[LOAD_TARGETS_MAX];
	struct load_path paths[LOAD_PATHS_MAX];
	struct source_ranges sources;
	struct mix mix;
	struct schedule schedule; /* rate 0: closed loop */
	unsigned target_count, path_count;
	uint64_t clients, processes;
	uint64_t connections;             /* 0: as many as there is time for */
	uint64_t requests;                /* of each connection; 0 likewise */
	uint64_t duration_ms, timeout_ms; /* duration 0: until all connections were made */
	uint64_t think_ms;
	uint64_t length;                                       /* of every answer; LOAD_LENGTH_ANY */
	unsigned at_end, parts, asks, check, output, progress; /* the enums above, and enum result_output */
	const char *save;                                      /* a file for the result */
	struct client_tls_options tls;
};

/* Complains on standard error. @out points into @argv. */
enum option_parse load_options_parse(int argc, char **argv, struct load_options *out);
