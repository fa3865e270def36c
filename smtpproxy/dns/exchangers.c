/* exchangers.c: asks for the MX records, then for all addresses of all servers at once. */
#include "smtpproxy/dns/exchangers.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "net/memory/container_of.h"
#include "net/socket/address.h"
#include "proto/error.h"
#include "smtp/domain.h"

#define ADDRESSES_MAX 64u

/* In the order in which a server's addresses are tried (RFC 6724 prefers IPv6, too). */
static const enum dns_type types[] = { DNS_AAAA, DNS_A };
#define TYPES (sizeof types / sizeof types[0])

/* The addresses of one type of one server. */
struct address_question {
	struct dns_question question;
	struct exchangers_search *search;
	enum dns_type type;
	enum dns_outcome outcome;
	unsigned count;
	struct sockaddr_storage at[8];
};

struct exchangers_search {
	struct exchangers *owner;
	struct resolver *resolver;
	struct worker *worker;
	struct dns_question mx;
	struct deadline at_once;
	uint16_t port;
	unsigned open; /* address questions without an answer */
	const char *own;
	char domain[DNS_NAME_TEXT];
	struct address_question addresses[MX_LIST_MAX][TYPES];
};

static void free_search(struct exchangers *x)
{
	struct exchangers_search *s = x->search;
	if (!s)
		return;
	dns_question_forget(&s->mx);
	deadline_cancel(&s->at_once);
	for (unsigned i = 0; i < MX_LIST_MAX; i++) {
		for (unsigned t = 0; t < TYPES; t++)
			dns_question_forget(&s->addresses[i][t].question);
	}
	free(s);
	x->search = NULL;
}

/* Its memory lasts as long as the delivery of a message. */
static void exchangers_shrink(struct exchangers *x)
{
	struct exchanger *smaller = realloc(x->at, (x->count ? x->count : 1) * sizeof x->at[0]);
	x->at = smaller ? smaller : x->at;
}

static void exchangers_end(struct exchangers *x, enum exchangers_verdict verdict, const char *why)
{
	x->verdict = verdict;
	x->why = why;
	free_search(x);
	exchangers_shrink(x);
	x->on_found(x);
}

static void exchangers_append(struct exchangers *x, const struct sockaddr_storage *to, unsigned host, uint16_t port)
{
	if (x->count == ADDRESSES_MAX)
		return;
	x->at[x->count] = (struct exchanger){ .to = *to, .host = host };
	address_set_port((struct sockaddr *)&x->at[x->count++].to, port);
}

/* Addresses */

/* No server of the domain has an address: is that so, or is it only not known? */
static enum exchangers_verdict verdict_without(enum dns_outcome worst)
{
	if (worst == DNS_BOGUS)
		return EXCHANGERS_BOGUS;
	return worst > DNS_BOGUS ? EXCHANGERS_FAILED : EXCHANGERS_NO_ADDRESS;
}

static void exchangers_collect(struct exchangers *x)
{
	const struct exchangers_search *s = x->search;
	enum dns_outcome worst = DNS_ANSWERED;
	for (unsigned i = 0; i < x->hosts.count; i++) {
		for (unsigned t = 0; t < TYPES; t++) {
			const struct address_question *q = &s->addresses[i][t];
			for (unsigned n = 0; n < q->count; n++)
				exchangers_append(x, &q->at[n], i, s->port);
			worst = q->outcome > worst ? q->outcome : worst;
		}
	}
	exchangers_end(x, x->count > 0 ? EXCHANGERS_FOUND : verdict_without(worst), dns_outcome_text(worst));
}

static void on_address(struct dns_question *q, const struct dns_answer *a)
{
	struct address_question *one = container_of(q, struct address_question, question);
	one->outcome = a->outcome;
	for (size_t i = 0; i < a->count && one->count < sizeof one->at / sizeof one->at[0]; i++)
		one->count += dns_address_read(a->records[i], one->type, &one->at[one->count]) == 0;
	if (--one->search->open == 0)
		exchangers_collect(one->search->owner);
}

static void ask_addresses(struct exchangers *x)
{
	struct exchangers_search *s = x->search;
	for (unsigned i = 0; i < x->hosts.count; i++) {
		for (unsigned t = 0; t < TYPES; t++) {
			struct address_question *q = &s->addresses[i][t];
			q->search = s;
			q->type = types[t];
			q->question.on_answer = on_address;
			s->open++;
			resolver_ask(s->resolver, &q->question, x->hosts.at[i].host, types[t]);
		}
	}
}

/* Servers */

static void on_mx_records(struct exchangers *x, const struct dns_answer *a)
{
	static const enum exchangers_verdict ends[] = {
		[MX_NULL] = EXCHANGERS_NO_MAIL,
		[MX_LOOP] = EXCHANGERS_LOOP,
		[MX_BROKEN] = EXCHANGERS_NO_ADDRESS,
	};
	const enum mx_verdict verdict =
		mx_list_read(&x->hosts, a->records, a->count, x->search->own, randombytes_uniform);
	if (verdict == MX_HOSTS)
		ask_addresses(x);
	else
		exchangers_end(x, ends[verdict], "its MX records");
}

/* The domain is its own server (RFC 5321 5.1). */
static void use_domain_itself(struct exchangers *x)
{
	x->hosts.count = 1;
	x->hosts.at[0] = (struct dns_mx){ .preference = 0 };
	snprintf(x->hosts.at[0].host, sizeof x->hosts.at[0].host, "%s", x->search->domain);
	if (strcasecmp(x->search->domain, x->search->own) == 0)
		exchangers_end(x, EXCHANGERS_LOOP, "it is our name");
	else
		ask_addresses(x);
}

static void on_mx(struct dns_question *q, const struct dns_answer *a)
{
	struct exchangers *x = container_of(q, struct exchangers_search, mx)->owner;
	x->trust = a->trust;
	switch (a->outcome) {
	case DNS_ANSWERED: on_mx_records(x, a); break;
	case DNS_NO_RECORDS: use_domain_itself(x); break;
	case DNS_NO_NAME: exchangers_end(x, EXCHANGERS_NO_DOMAIN, a->why); break;
	case DNS_BOGUS: exchangers_end(x, EXCHANGERS_BOGUS, a->why); break;
	case DNS_FAILED:
	case DNS_TIMED_OUT: exchangers_end(x, EXCHANGERS_FAILED, a->why); break;
	}
}

/* Address literals (RFC 5321 4.1.3) */

static int read_literal(const char *domain, struct sockaddr_storage *out)
{
	static const char v6[] = "IPv6:";
	struct smtp_span text = smtp_span_of(domain);
	char host[64];
	const enum smtp_domain_kind kind = smtp_domain_kind(text, 0);
	if (kind != SMTP_DOMAIN_IPV4 && kind != SMTP_DOMAIN_IPV6)
		return CSSL_E_RANGE;
	const size_t skip = kind == SMTP_DOMAIN_IPV6 ? 1 + strlen(v6) : 1;
	text = (struct smtp_span){ text.at + skip, text.len - skip - 1 };
	const int r = smtp_span_copy(text, host, sizeof host);
	return r ? r : address_parse_host(host, out);
}

static void on_at_once(struct deadline *d)
{
	struct exchangers *x = container_of(d, struct exchangers_search, at_once)->owner;
	struct sockaddr_storage to;
	if (read_literal(x->search->domain, &to) == 0)
		exchangers_append(x, &to, 0, x->search->port);
	exchangers_end(x, x->count > 0 ? EXCHANGERS_FOUND : EXCHANGERS_NO_DOMAIN, "an address literal");
}

/* Life */

int exchangers_find(
	struct exchangers *x, struct worker *w, struct resolver *r, const char *domain, const char *own, uint16_t port)
{
	struct exchangers_search *s = x->search = calloc(1, sizeof *s);
	x->at = calloc(ADDRESSES_MAX, sizeof x->at[0]);
	if (!s || !x->at) {
		exchangers_forget(x);
		return CSSL_E_NO_MEMORY;
	}
	s->owner = x;
	s->resolver = r;
	s->worker = w;
	s->own = own;
	s->port = port;
	s->mx.on_answer = on_mx;
	s->at_once.fn = on_at_once;
	const bool fits = snprintf(s->domain, sizeof s->domain, "%s", domain) < (int)sizeof s->domain;
	if (domain[0] == '[' || !fits)
		deadline_set(w, &s->at_once, 0);
	else
		resolver_ask(r, &s->mx, domain, DNS_MX);
	return 0;
}

void exchangers_cut(struct exchangers *x, unsigned at)
{
	const uint16_t preference = x->hosts.at[x->at[at].host].preference;
	unsigned left = 0;
	while (left < x->count && x->hosts.at[x->at[left].host].preference < preference)
		left++;
	x->count = left;
}

void exchangers_forget(struct exchangers *x)
{
	free_search(x);
	free(x->at);
	x->at = NULL;
	x->count = 0;
}
