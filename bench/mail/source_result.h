/* source_result.h: the counts and times of smtp-source, and its reports. */
#ifndef CSSL_BENCH_MAIL_SOURCE_RESULT_H
#define CSSL_BENCH_MAIL_SOURCE_RESULT_H

#include <stdint.h>

#include "bench/mail/reply_codes.h"
#include "bench/mail/source_options.h"
#include "net/address.h"
#include "bench/measure/histogram.h"
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

#define SOURCE_ERRORS_MAX 64u

struct source_receiver {
	char address[ADDRESS_TEXT_MAX]; /* empty: there is none */
	struct reply_codes replies;
};

/* Plain memory without pointers: generator processes share it. */
struct source_result {
	uint64_t counts[SOURCE_COUNT_COUNT];
	struct tally errors[SOURCE_ERRORS_MAX]; /* where and what */
	struct tally suites[TALLY_SUITES_MAX];
	struct source_receiver receivers[SOURCE_TARGETS_MAX];
	uint64_t begin_ns, end_ns; /* the start, and the last counted event */
	uint64_t epoch_ns;         /* of these two: the wall clock when they are 0 */
	struct histogram phases[SOURCE_PHASE_COUNT];
};

/* Those of more than SOURCE_TARGETS_MAX receivers go to the last one. */
void source_result_add(struct source_result *sum, const struct source_result *r);

int source_result_has_failures(const struct source_result *r);
void source_result_text(const struct source_result *r);

/* 0 or CSSL_E_NO_MEMORY. */
int source_result_json(const struct source_result *r);
/* Reads what that wrote. @out is all zero before. 0, or CSSL_E_RANGE: it is something else. */
int source_result_read(const json_t *from, struct source_result *out);

/* One line on standard error; @is_terminal: over the line before. */
void source_result_progress(const struct source_result *r, uint64_t messages, uint64_t now_ns, int is_terminal);

#endif
