/* source_result.h: the counts and times of smtp-source (bench/measure/result.h), and its reports. */
#pragma once

#include <stdint.h>

#include "bench/measure/histogram.h"
#include "bench/measure/result.h"
#include "bench/measure/tally.h"

/* X(name, JSON key, sentence) */
#define SOURCE_COUNTS(X)                                                                                               \
	X(CONNECTIONS, "connections", "connections begun")                                                             \
	X(CONNECTED, "connected", "connections that TCP made")                                                         \
	X(FULL, "full", "full handshakes")                                                                             \
	X(RESUMED, "resumed", "resumptions")                                                                           \
	X(OFFERED, "offered", "sessions offered")                                                                      \
	X(SENT, "sent", "mails taken by the server")                                                                   \
	X(FAILED, "failed", "mails that were not taken")                                                               \
	X(RECIPIENTS, "recipients", "recipients of mails that were taken")                                             \
	X(BYTES, "bytes", "bytes of mails that were taken")                                                            \
	X(REFUSED_4, "refused_4xx", "replies 4xx")                                                                     \
	X(REFUSED_5, "refused_5xx", "replies 5xx")                                                                     \
	X(UNDECIDED, "undecided", "mails whose end was sent and not answered: perhaps taken")                          \
	X(LOST, "lost", "connections that ended at the wrong time")                                                    \
	X(TIMEOUTS, "timeouts", "connections given up after --timeout")                                                \
	X(CONNECT_FAILED, "connect_failed", "connects that failed")                                                    \
	X(HANDSHAKE_FAILED, "handshake_failed", "handshakes that failed")                                              \
	X(NOT_OFFERED, "not_offered", "connections whose server did not offer STARTTLS")                               \
	X(INJECTED, "injected", "connections with bytes in clear behind the reply to STARTTLS")                        \
	X(MALFORMED, "malformed", "connections with a reply that is none")

enum source_count {
#define X(name, key, sentence) SOURCE_##name,
	SOURCE_COUNTS(X)
#undef X
		SOURCE_COUNT_COUNT
};

/* X(name, JSON key, sentence) */
#define SOURCE_PHASES(X)                                                                                               \
	X(CONNECT, "connect", "TCP connect")                                                                           \
	X(BANNER, "banner", "banner")                                                                                  \
	X(EHLO, "ehlo", "EHLO")                                                                                        \
	X(STARTTLS, "starttls", "STARTTLS")                                                                            \
	X(HANDSHAKE_FULL, "handshake_full", "full handshake")                                                          \
	X(HANDSHAKE_RESUMED, "handshake_resumed", "resumption")                                                        \
	X(MAIL, "mail", "MAIL")                                                                                        \
	X(RCPT, "rcpt", "RCPT")                                                                                        \
	X(DATA, "data", "DATA")                                                                                        \
	X(END, "end", "content to its reply")                                                                          \
	X(MESSAGE, "message", "mail")                                                                                  \
	X(LATE, "late_start", "late start")

enum source_phase {
#define X(name, key, sentence) SOURCE_PHASE_##name,
	SOURCE_PHASES(X)
#undef X
		SOURCE_PHASE_COUNT
};

#define SOURCE_ERRORS_MAX  64u
#define SOURCE_REPLIES_MAX 256u

struct source_result {
	struct result_times times;
	uint64_t mails; /* to be sent */
	uint64_t counts[SOURCE_COUNT_COUNT];
	struct tally errors[SOURCE_ERRORS_MAX]; /* where and what */
	struct tally suites[TALLY_SUITES_MAX];
	struct tally replies[SOURCE_REPLIES_MAX]; /* code and receiver */
	struct histogram phases[SOURCE_PHASE_COUNT];
};

extern const struct result_kind source_result_kind;
