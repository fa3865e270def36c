/* call.h: one hook, in one transaction: what a protocol of hooks sees of the question, and how it answers. A part of
 * its own, because the protocols (milter.c, http_judge.c) know neither each other nor the order of the hooks, which is
 * filter.c's: it owns the calls, their connections and their time limits. */
#pragma once

#include <jansson.h>
#include <llhttp.h>

#include "net/loop/wheel.h"
#include "net/stream/stream.h"
#include "smtpproxy/hooks/filter.h"
#include "smtpproxy/hooks/milter_wire.h"

/* The conversation with a milter, of one transaction. Each command waits for its reply. */

/* Its parts, in this order. RCPT comes once for each recipient, FIELD and CHUNK until all is said. */
enum milter_part {
	MILTER_PART_OPTIONS,
	MILTER_PART_CONNECT,
	MILTER_PART_HELO,
	MILTER_PART_MAIL,
	MILTER_PART_RCPT,
	MILTER_PART_DATA,
	MILTER_PART_FIELD,
	MILTER_PART_GAP,
	MILTER_PART_CHUNK,
	MILTER_PART_END,
	MILTER_PARTS
};

#define MILTER_CHANGES_MAX 256u /* of the header */

/* Made when the milter has accepted the message, so that a milter that fails later leaves no part of them. */
struct milter_change {
	uint8_t letter; /* enum milter_reply */
	uint32_t at;
	struct smtp_span name, value; /* in @memory */
	char *memory;
};

/* Embedded; zero begins. */
struct milter {
	struct milter_options options;
	enum milter_part part; /* the next one, or the one that waits for a reply */
	enum { MILTER_SAYS, MILTER_WAITS } turn;
	size_t field, at; /* of the message: the next to be said */
	struct milter_change *changes;
	unsigned change_count;
};

/* That with an HTTP server. */

#define HTTP_JUDGE_ANSWER_MAX 8192u

struct http_judge {
	llhttp_t parser;
	size_t len; /* of the answer's content */
	char content[HTTP_JUDGE_ANSWER_MAX];
};

/* NEW -> ASKED <-> RESTS
 * NEW, ASKED, RESTS -> LOST: it failed, and each question gets the answer of its on_failure
 * all -> OVER: it is not asked any more, and has nothing against the mail */
enum call_state { CALL_NEW, CALL_ASKED, CALL_RESTS, CALL_LOST, CALL_OVER };

struct call;

/* A protocol. */
struct call_kind {
	unsigned steps; /* bits 1 << enum filter_step: it judges these */
	/* Write the question of filter->step. */
	void (*ask)(struct call *c);
	/* The hook's bytes. Returns those that were used. */
	size_t (*take)(struct call *c, const uint8_t *data, size_t len);
	/* The kernel took output. NULL: nothing waits for that. */
	void (*room)(struct call *c);
	/* It has sent all that it will. NULL: a failure. */
	void (*ended)(struct call *c);
	/* Write the last words before its connection ends; NULL: there are none. */
	void (*bye)(struct call *c);
	/* Free its memory; NULL: it has none. */
	void (*end)(struct call *c);
};

extern const struct call_kind milter_kind, http_judge_kind;

/* One hook, in one transaction. */
struct call {
	struct stream stream;
	struct filter *filter;
	struct hook *hook;
	const struct call_kind *kind;
	struct deadline deadline;
	enum call_state state;
	union {
		struct milter milter;
		struct http_judge http;
	} u;
};

struct filter {
	struct hooks *hooks;
	filter_verdict_fn *fn; /* NULL: left */
	void *ctx;
	struct turn_end later;
	enum filter_step step;
	uint32_t most_ms[FILTER_STEPS];
	uint64_t last_ms; /* of this question, for all hooks together */
	struct smtp_span address, params;
	struct message *message;
	json_t *recipients;
	char *sender, *last_recipient;
	struct sockaddr_storage client;
	char *listener, *destination, hello[SMTP_DOMAIN_MAX + 1];
	char id[24];   /* of the transaction, for the hooks' logs */
	unsigned asks; /* the call that is asked; count: all have answered */
	unsigned open; /* connections that have not closed */
	enum filter_verdict verdict;
	size_t reply_len;
	char reply[FILTER_REPLY_MAX];
	unsigned count;
	struct call calls[];
};

/* ASKED: the answers. None of the caller's state is valid afterwards. */
void call_continues(struct call *c);
/* The same, and it need not be asked in this transaction any more. */
void call_accepts(struct call *c);
/* @reply: an SMTP reply with CRLF. */
void call_refuses(struct call *c, struct smtp_span reply);
void call_discards(struct call *c);
/* Its connection failed, or it broke its protocol. */
void call_fails(struct call *c, const char *cause);
/* It is still working: it gets its time again, within that of the question. */
void call_progresses(struct call *c);

extern const struct smtp_span call_reply_rejects, call_reply_defers;
