/* resolver.h: asks the DNS over libunbound, which validates answers (RFC 4035) and keeps each for its time to live.
 *
 * libunbound has a thread of its own. A resolver and its questions belong to one worker's thread, and callbacks come
 * there; none comes before the call that asked has returned.
 */
#pragma once

#include "conf/smtpproxy.h"
#include "net/loop/wheel.h"
#include "smtpproxy/dns/records.h"

#define DNS_RECORDS_MAX 64u /* of an answer; further ones are left out */

struct resolver;

/* @conf is copied. NULL with @error. The trust anchor is read here. */
struct resolver *resolver_create(struct worker *w, const struct smtpproxy_dns *conf, char *error, size_t cap);
/* All questions are answered or forgotten. Then call it, before the worker's last turn. NULL is legal. */
void resolver_destroy(struct resolver *r);

enum dns_outcome {
	DNS_ANSWERED,
	DNS_NO_RECORDS, /* the name has none of that type */
	DNS_NO_NAME,
	DNS_BOGUS,     /* the signatures do not confirm the answer (RFC 4035 5.5) */
	DNS_FAILED,    /* the servers gave no answer, or an error */
	DNS_TIMED_OUT, /* of the question */
};

/* Does the whole chain of signatures, from the trust anchor on, confirm the answer? Also that there are no records. */
enum dns_trust { DNS_INSECURE, DNS_SECURE };

/* It lasts as long as the callback. */
struct dns_answer {
	enum dns_outcome outcome;
	enum dns_trust trust;
	uint32_t ttl_s;
	char name[DNS_NAME_TEXT]; /* behind all aliases (CNAME), in lower case; as asked if it is no host name */
	const char *why;          /* BOGUS and FAILED: for logs */
	size_t count;
	struct dns_record records[DNS_RECORDS_MAX];
};

enum dns_question_state { DNS_QUESTION_IDLE, DNS_QUESTION_ASKED, DNS_QUESTION_NOT_ASKED };

/* Embedded, all zero but for on_answer. */
struct dns_question {
	void (*on_answer)(struct dns_question *q, const struct dns_answer *a);
	struct resolver *resolver;
	struct deadline deadline;
	int id; /* of libunbound */
	enum dns_question_state state;
	char name[DNS_NAME_TEXT];
};

/* IDLE: ask. on_answer comes once. A name that is too long fails there. */
void resolver_ask(struct resolver *r, struct dns_question *q, const char *name, enum dns_type type);
/* There will be no on_answer. In any state. */
void dns_question_forget(struct dns_question *q);

/* For logs. */
const char *dns_outcome_text(enum dns_outcome o);
