/* load_result.h: the counts and times of a load generator (bench/measure/result.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/measure/histogram.h"
#include "bench/measure/result.h"
#include "bench/measure/tally.h"

/* X(name, JSON key, sentence) */
#define LOAD_COUNTS(X)                                                                                                 \
	X(CONNECTIONS, "connections", "connections begun")                                                             \
	X(CONNECTED, "connected", "connections that TCP made")                                                         \
	X(FULL, "full", "full handshakes")                                                                             \
	X(RESUMED, "resumed", "resumptions")                                                                           \
	X(OFFERED, "offered", "sessions offered")                                                                      \
	X(HANDSHAKE_FAILED, "handshake_failed", "handshakes that failed")                                              \
	X(REQUESTS, "requests", "requests sent")                                                                       \
	X(ANSWERS, "answers", "answers that came whole")                                                               \
	X(BYTES, "bytes", "bytes of bodies")                                                                           \
	X(OTHER_STATUS, "other_status", "answers of another status than 2xx")                                          \
	X(WRONG_LENGTH, "wrong_length", "answers of a wrong length")                                                   \
	X(WRONG_BYTES, "wrong_bytes", "answers with wrong bytes")                                                      \
	X(MALFORMED, "malformed", "answers that are no HTTP")                                                          \
	X(CUT, "cut", "connections that ended in mid-answer")                                                          \
	X(UNANSWERED, "unanswered", "connections that ended with a request and no byte of its answer")                 \
	X(TIMEOUTS, "timeouts", "connections given up after --timeout-ms")                                             \
	X(CLOSED, "closed", "connections that the server ended between answers, with close_notify")                    \
	X(CLOSED_BARE, "closed_bare", "the same without close_notify")                                                 \
	X(RESET, "reset", "the same by a TCP reset")                                                                   \
	X(ALERTS, "alerts", "fatal alerts received")                                                                   \
	X(MOVED, "moved", "answers by another agent than the one before on their connection")

enum load_count {
#define X(name, key, sentence) LOAD_##name,
	LOAD_COUNTS(X)
#undef X
		LOAD_COUNT_COUNT
};

/* X(name, JSON key, sentence) */
#define LOAD_PHASES(X)                                                                                                 \
	X(CONNECT, "connect", "TCP connect")                                                                           \
	X(HANDSHAKE_FULL, "handshake_full", "full handshake")                                                          \
	X(HANDSHAKE_RESUMED, "handshake_resumed", "resumption")                                                        \
	X(FIRST_BYTE, "first_byte", "first byte")                                                                      \
	X(FULL, "full", "full")                                                                                        \
	X(LATE, "late_start", "late start")

enum load_phase {
#define X(name, key, sentence) LOAD_PHASE_##name,
	LOAD_PHASES(X)
#undef X
		LOAD_PHASE_COUNT
};

#define LOAD_AGENTS_MAX 64u
#define LOAD_ERRORS_MAX 16u
#define LOAD_ALERTS_MAX 256u

struct load_result {
	struct result_times times;
	uint64_t counts[LOAD_COUNT_COUNT];
	uint64_t alerts[LOAD_ALERTS_MAX]; /* by AlertDescription, RFC 8446 6 */
	struct tally agents[LOAD_AGENTS_MAX];
	struct tally suites[TALLY_SUITES_MAX]; /* versions and suites of handshakes */
	struct tally errors[LOAD_ERRORS_MAX];
	uint64_t cpu_ns, waiting_ns;        /* of this process in that time: on a CPU, and waiting for a CPU */
	uint64_t wall_ns;                   /* that time; the sum for several processes */
	uint32_t clients, resting, retired; /* all; with a connection and no more requests; finished */
	struct histogram phases[LOAD_PHASE_COUNT];
};

extern const struct result_kind load_result_kind;

/* Whether a generator process had enough CPU. */
enum load_effort { LOAD_AT_EASE, LOAD_SATURATED, LOAD_STARVED };
enum load_effort load_effort_of(const struct load_result *r);

/* 1 if something failed at the server or in the network, else 0. */
bool load_result_has_failures(const struct load_result *r);
