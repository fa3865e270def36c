/* sink_result.h: the counts of smtp-sink: in all, by sender, and of mails that came twice. */
#pragma once

#include <stdint.h>

#include "bench/mail/mail_mark.h"
#include "bench/measure/tally.h"
#include "smtp/span.h"

/* X(name, JSON key, sentence) */
#define SINK_COUNTS(X)                                                                                                 \
	X(CONNECTIONS, "connections", "connections taken")                                                             \
	X(OVER, "over", "connections above a limit, told 421")                                                         \
	X(FULL, "full", "full handshakes")                                                                             \
	X(RESUMED, "resumed", "resumptions")                                                                           \
	X(HANDSHAKE_FAILED, "handshake_failed", "handshakes that failed")                                              \
	X(MAILS, "mails", "mails taken")                                                                               \
	X(RECIPIENTS, "recipients", "recipients of mails taken")                                                       \
	X(BYTES, "bytes", "bytes of mails taken")                                                                      \
	X(RIGHT, "right", "mails whose body is what their mark says")                                                  \
	X(WRONG, "wrong", "mails whose body is not")                                                                   \
	X(UNMARKED, "unmarked", "mails without a mark")                                                                \
	X(DUPLICATES, "duplicates", "mails taken that had been taken before")                                          \
	X(REFUSED, "refused", "mails answered 4xx or 5xx at their end")                                                \
	X(TOO_BIG, "too_big", "mails above --size")                                                                    \
	X(SMUGGLING, "smuggling", "mails with a lone dot between ends of lines that are not CR LF")                    \
	X(BARE, "bare", "mails with a bare CR or LF")                                                                  \
	X(CUT, "cut", "mails whose connection ended before they did")                                                  \
	X(BAD_COMMANDS, "bad_commands", "commands answered 5xx")                                                       \
	X(BY_RULE, "by_rule", "replies that a rule changed")                                                           \
	X(DELAYED, "delayed", "replies that a rule delayed")                                                           \
	X(DROPPED, "dropped", "connections that a rule closed")                                                        \
	X(PROXIED, "proxied", "connections with a PROXY header")                                                       \
	X(PROXY_BAD, "proxy_bad", "connections closed for want of a good one")                                         \
	X(TX_NAMED, "tx_named", "transactions with a name (XCSSLTX)")                                                  \
	X(TX_DECIDED, "tx_decided", "questions answered: decided")                                                     \
	X(TX_NEVER, "tx_never", "questions answered: never")                                                           \
	X(TX_UNKNOWN, "tx_unknown", "questions answered: unknown")                                                     \
	X(TX_WAITED, "tx_waited", "questions that waited for a decision")                                              \
	X(TX_EVICTED, "tx_evicted", "ids that were forgotten to make room")                                            \
	X(IDLE, "idle", "connections that said nothing for too long")

enum sink_count {
#define X(name, key, sentence) SINK_##name,
	SINK_COUNTS(X)
#undef X
		SINK_COUNT_COUNT
};

#define SINK_SENDERS_MAX 4096u /* further ones count as "others" */
#define SINK_REPLIES_MAX 64u

struct sink_sender {
	char *name;
	uint64_t mails, bytes, first_ns, last_ns;
};

struct sink_result {
	uint64_t counts[SINK_COUNT_COUNT];
	struct tally suites[TALLY_SUITES_MAX];
	struct tally replies[SINK_REPLIES_MAX]; /* by code; a late one, too, whose client does not wait for it */
	uint64_t begin_ns, first_ns, last_ns;   /* of mails */
	uint64_t open, most_open;               /* connections */
	unsigned sender_count;
	struct sink_sender senders[2 * SINK_SENDERS_MAX]; /* a hash table */
	struct count_table *ids;
};

/* NULL: out of memory. */
struct sink_result *sink_result_create(void);
void sink_result_destroy(struct sink_result *r);

/* A mail was taken: @mark NULL without one. */
void sink_result_mail(struct sink_result *r, struct smtp_span sender, uint64_t bytes, uint64_t recipients,
	enum mail_verdict verdict, const struct mail_mark *mark, uint64_t now_ns);

void sink_result_text(const struct sink_result *r);
/* 0 or CSSL_E_NO_MEMORY. */
int sink_result_json(const struct sink_result *r);
/* One line on standard error. */
void sink_result_progress(const struct sink_result *r, uint64_t now_ns);
