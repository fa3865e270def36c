/* filter.h: the hooks of one transaction. Each step of it is judged by all of them, one after the other; the first one
 * that refuses decides. A hook has a connection of its own for each transaction.
 */
#pragma once

#include "smtpproxy/hooks/hooks.h"
#include "smtpproxy/hooks/message.h"

#define FILTER_REPLY_MAX 1024u

struct filter;

/* MESSAGE: all of it has come. */
enum filter_step { FILTER_MAIL, FILTER_RCPT, FILTER_DATA, FILTER_MESSAGE, FILTER_STEPS };

/* REFUSES: with a reply for the sender. DISCARDS: the sender gets a 250, and nobody gets the message. */
enum filter_verdict { FILTER_CONTINUES, FILTER_REFUSES, FILTER_DISCARDS };

/* @reply: with CRLF, for REFUSES. Never from within a function of filter.h. */
typedef void filter_verdict_fn(void *ctx, enum filter_verdict verdict, struct smtp_span reply);

/* About a transaction. The texts are copied. */
struct filter_facts {
	const char *listener; /* our own name */
	const char *hello;    /* of the sender's EHLO */
	struct sockaddr_storage client;
	const char *destination;
	uint64_t connection;            /* number of the session */
	uint32_t most_ms[FILTER_STEPS]; /* for the answers of all hooks to one question */
};

/* NULL: out of memory. */
struct filter *filter_create(struct hooks *hooks, const struct smtpproxy_listener *listener,
	const struct filter_facts *facts, filter_verdict_fn *fn, void *ctx);
/* Nothing more is wanted. The memory is freed when the connections have closed. NULL is legal. */
void filter_leave(struct filter *f);

/* One of its hooks judges the message itself, so the message has to be kept. */
bool filter_holds(const struct filter *f);

/* One question at a time; @fn gets the verdict. @address and @params: of MAIL and RCPT, valid until then. */
void filter_ask(struct filter *f, enum filter_step step, struct smtp_span address, struct smtp_span params);
/* Hooks may change @m, which is valid until the verdict. */
void filter_ask_message(struct filter *f, struct message *m);
/* The receiver took the recipient of the last question. */
void filter_note_recipient(struct filter *f);
