/* fake_resolver.c: a list of open questions. */
#include "tests/unit/smtpproxy/dns/fake_resolver.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define MOST 64u

static struct {
	struct dns_question *question;
	enum dns_type type;
} asked[MOST];

void resolver_ask(struct resolver *r, struct dns_question *q, const char *name, enum dns_type type)
{
	unsigned i = 0;
	while (asked[i].question)
		ck_assert_uint_lt(++i, MOST);
	snprintf(q->name, sizeof q->name, "%s", name);
	asked[i].question = q;
	asked[i].type = type;
}

void dns_question_forget(struct dns_question *q)
{
	for (unsigned i = 0; i < MOST; i++) {
		if (asked[i].question == q)
			asked[i].question = NULL;
	}
}

const char *dns_outcome_text(enum dns_outcome o)
{
	return "fake";
}

static void answer(const char *name, enum dns_type type, struct dns_answer *a)
{
	for (unsigned i = 0; i < MOST; i++) {
		struct dns_question *q = asked[i].question;
		if (!q || asked[i].type != type || strcmp(q->name, name) != 0)
			continue;
		asked[i].question = NULL;
		q->on_answer(q, a);
		return;
	}
	ck_abort_msg("nobody asked for type %d of %s", type, name);
}

void fake_answer(const char *name, enum dns_type type, enum dns_outcome outcome, enum dns_trust trust)
{
	struct dns_answer a = { .outcome = outcome, .trust = trust, .ttl_s = 60, .why = "fake" };
	snprintf(a.name, sizeof a.name, "%s", name);
	answer(name, type, &a);
}

void fake_answer_with(
	const char *name, enum dns_type type, enum dns_trust trust, const char *expanded, struct dns_record record)
{
	struct dns_answer a = { .outcome = DNS_ANSWERED, .trust = trust, .ttl_s = 60, .why = "fake", .count = 1 };
	a.records[0] = record;
	snprintf(a.name, sizeof a.name, "%s", expanded);
	answer(name, type, &a);
}

unsigned fake_open(void)
{
	unsigned n = 0;
	for (unsigned i = 0; i < MOST; i++)
		n += asked[i].question != NULL;
	return n;
}
