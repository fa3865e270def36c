/* tlsa.c: one question after the other; what each answer means is in on_tlsa_answer(). */
#include "smtpproxy/dns/tlsa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"

/* Sets */

struct tlsa_set *tlsa_set_use(struct tlsa_set *s)
{
	s->users++;
	return s;
}

void tlsa_set_drop(struct tlsa_set *s)
{
	if (s && --s->users == 0)
		free(s);
}

static void tlsa_add(struct tlsa_set *s, uint8_t **free_bytes, struct dns_record record)
{
	struct dns_tlsa *t = &s->at[s->count];
	if (dns_tlsa_read(record, t) != 0 || !dns_tlsa_is_usable(t))
		return;
	memcpy(*free_bytes, t->data, t->len);
	t->data = *free_bytes;
	*free_bytes += t->len;
	s->count++;
}

/* NULL: out of memory. */
static struct tlsa_set *make_set(const struct dns_answer *a, const char *base)
{
	size_t all = 0;
	for (size_t i = 0; i < a->count; i++)
		all += a->records[i].len;
	struct tlsa_set *s = calloc(1, sizeof *s + all);
	if (!s)
		return NULL;
	uint8_t *free_bytes = s->bytes;
	s->users = 1;
	snprintf(s->base, sizeof s->base, "%s", base);
	for (size_t i = 0; i < a->count; i++)
		tlsa_add(s, &free_bytes, a->records[i]);
	return s;
}

/* The search */

static void tlsa_end(struct tlsa_search *s, enum tlsa_verdict verdict, const char *why)
{
	s->step = TLSA_IDLE;
	s->verdict = verdict;
	s->why = why;
	s->on_found(s);
}

static void tlsa_ask(struct tlsa_search *s, enum tlsa_step step, const char *host)
{
	char name[DNS_NAME_TEXT + sizeof "_65535._tcp."];
	s->step = step;
	snprintf(name, sizeof name, "_%u._tcp.%s", s->port, host);
	resolver_ask(s->resolver, &s->question, name, DNS_TLSA);
}

static void on_address(struct tlsa_search *s, const struct dns_answer *a)
{
	const bool is_alias = strcmp(a->name, s->host) != 0;
	snprintf(s->expanded, sizeof s->expanded, "%s", a->name);
	if (a->trust == DNS_SECURE && is_alias) {
		tlsa_ask(s, TLSA_EXPANDED, s->expanded);
	} else if (a->trust == DNS_SECURE) {
		tlsa_ask(s, TLSA_NAME, s->host);
	} else if (is_alias) {
		s->step = TLSA_ALIAS;
		resolver_ask(s->resolver, &s->question, s->host, DNS_CNAME);
	} else {
		tlsa_end(s, TLSA_NONE, "its address is not secure");
	}
}

static void on_alias(struct tlsa_search *s, const struct dns_answer *a)
{
	if (a->outcome == DNS_ANSWERED && a->trust == DNS_SECURE)
		tlsa_ask(s, TLSA_NAME, s->host);
	else
		tlsa_end(s, TLSA_NONE, "its address is not secure");
}

static void on_records(struct tlsa_search *s, const struct dns_answer *a)
{
	const bool has = a->outcome == DNS_ANSWERED && a->trust == DNS_SECURE;
	if (!has && s->step == TLSA_EXPANDED) {
		tlsa_ask(s, TLSA_NAME, s->host);
		return;
	}
	if (!has) {
		tlsa_end(s, TLSA_NONE, a->outcome == DNS_ANSWERED ? "they are not secure" : a->why);
		return;
	}
	s->set = make_set(a, s->step == TLSA_EXPANDED ? s->expanded : s->host);
	if (!s->set)
		tlsa_end(s, TLSA_FAILED, "out of memory");
	else
		tlsa_end(s, s->set->count > 0 ? TLSA_RECORDS : TLSA_UNUSABLE, "found");
}

static void on_tlsa_answer(struct dns_question *q, const struct dns_answer *a)
{
	static void (*const ons[])(struct tlsa_search * s, const struct dns_answer *a) = {
		[TLSA_ADDRESS] = on_address,
		[TLSA_ALIAS] = on_alias,
		[TLSA_EXPANDED] = on_records,
		[TLSA_NAME] = on_records,
	};
	struct tlsa_search *s = container_of(q, struct tlsa_search, question);
	if (a->ttl_s < s->ttl_s)
		s->ttl_s = a->ttl_s;
	if (a->outcome >= DNS_BOGUS)
		tlsa_end(s, TLSA_FAILED, a->why);
	else
		ons[s->step](s, a);
}

void tlsa_search_begin(struct tlsa_search *s, struct resolver *r, const char *host, uint16_t port)
{
	tlsa_search_forget(s);
	s->resolver = r;
	s->port = port;
	s->ttl_s = UINT32_MAX;
	s->step = TLSA_ADDRESS;
	s->question.on_answer = on_tlsa_answer;
	snprintf(s->host, sizeof s->host, "%s", host);
	resolver_ask(r, &s->question, host, DNS_A);
}

void tlsa_search_forget(struct tlsa_search *s)
{
	dns_question_forget(&s->question);
	tlsa_set_drop(s->set);
	s->set = NULL;
	s->step = TLSA_IDLE;
}
