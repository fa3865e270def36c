/* sink_rules.h: the misbehaviour of smtp-sink: delays, other replies, disconnects and tarpits for each command, each
 * with a probability. The random numbers have a seed, so that a run can be repeated.
 */
#pragma once

#include <stdint.h>

/* X(name, word on the command line) */
#define SINK_STEPS(X)                                                                                                  \
	X(CONNECT, "connect")                                                                                          \
	X(HELLO, "ehlo")                                                                                               \
	X(STARTTLS, "starttls")                                                                                        \
	X(MAIL, "mail")                                                                                                \
	X(RCPT, "rcpt")                                                                                                \
	X(DATA, "data")                                                                                                \
	X(END, "end")                                                                                                  \
	X(DECIDE, "decide")                                                                                            \
	X(BDAT, "bdat")                                                                                                \
	X(RSET, "rset")                                                                                                \
	X(NOOP, "noop")                                                                                                \
	X(QUIT, "quit")                                                                                                \
	X(OTHER, "other")

enum sink_step {
#define X(name, word) SINK_STEP_##name,
	SINK_STEPS(X) SINK_STEP_COUNT
#undef X
};

enum sink_rule_kind { SINK_DELAYS, SINK_REPLIES, SINK_DROPS, SINK_TARPITS };

#define SINK_RULES_MAX 64u
#define SINK_REPLY_MAX 128u

struct sink_rule {
	uint32_t steps; /* bit per enum sink_step */
	enum sink_rule_kind kind;
	uint32_t ms;                /* DELAYS; TARPITS: between bytes */
	char reply[SINK_REPLY_MAX]; /* REPLIES: code and text */
	double odds;                /* 0 to 1 */
};

struct sink_rules {
	unsigned count;
	uint64_t dice; /* seed, then state */
	struct sink_rule rules[SINK_RULES_MAX];
};

/* DECIDE, between a mail's end and what becomes of it, takes delays only, and is not among "all".
 * "rcpt:2.5" (seconds), "data,end:451 4.3.0 No:10" (percent), "mail", "all:0.1:50". 0; CSSL_E_CONFIG; CSSL_E_FULL. */
int sink_rules_add(struct sink_rules *all, enum sink_rule_kind kind, const char *text);

struct sink_decision {
	uint32_t delay_ms, tarpit_ms;
	const char *reply; /* NULL: the usual one */
	uint8_t drops;
};

/* Decide each rule of the step by its probability. */
struct sink_decision sink_rules_decide(struct sink_rules *all, enum sink_step step);
