/* dane.c: the table of dane.h, and how long an answer of the DNS counts. */
#include "smtpproxy/outward/dane.h"

#include "net/memory/container_of.h"
#include "net/report/log.h"
#include "net/socket/address.h"

#define FRESH_MIN_MS 1000u
#define FRESH_MAX_MS 3600000u

static bool is_dane(enum smtpproxy_tls tls)
{
	return tls == SMTPPROXY_TLS_DANE || tls == SMTPPROXY_TLS_DANE_ONLY;
}

/* A failure does not count at all: the next connection asks again. libunbound remembers failures for some time. */
static uint64_t fresh_ms(const struct tlsa_search *s)
{
	const uint64_t ms = (uint64_t)s->ttl_s * 1000;
	if (s->verdict == TLSA_FAILED)
		return 0;
	if (ms < FRESH_MIN_MS)
		return FRESH_MIN_MS;
	return ms < FRESH_MAX_MS ? ms : FRESH_MAX_MS;
}

static void on_found(struct tlsa_search *s)
{
	struct dane *d = container_of(s, struct dane, search);
	log_event(s->verdict == TLSA_FAILED ? LOG_WARNING : LOG_DEBUG, NULL, "TLSA records",
		"host=%s result=%s cause=%s", s->host, dane_word(d), s->why);
	d->state = DANE_KNOWN;
	d->fresh_till_ms = worker_now_ms(d->home->worker) + fresh_ms(s);
	d->home->counters->tlsa_failed += s->verdict == TLSA_FAILED;
	d->on_known(d);
}

/* The name must be known for sure: a forged one would have TLSA records that fit the forger's certificate. */
static bool has_sure_name(const struct onward_route *r)
{
	return r->name && r->name_trust == DNS_SECURE;
}

bool dane_is_known(struct dane *d, const struct outward_home *home, const struct onward_route *route)
{
	const uint64_t now_ms = worker_now_ms(home->worker);
	if (!is_dane(route->tls) || !has_sure_name(route))
		return true;
	if (d->state == DANE_KNOWN && now_ms < d->fresh_till_ms)
		return true;
	if (d->state == DANE_ASKS)
		return false;
	d->state = DANE_ASKS;
	d->home = home;
	d->search.on_found = on_found;
	tlsa_search_begin(&d->search, home->resolver, route->name, address_port((const struct sockaddr *)&route->to));
	return false;
}

enum smtp_own dane_demand(const struct dane *d, const struct onward_route *route, struct onward_demand *out)
{
	static const struct {
		enum smtpproxy_tls tls;
		enum smtp_own why;
	} rows[][2] = {
		[TLSA_NONE] = { { SMTPPROXY_TLS_MAY, SMTP_OWN_NONE }, { .why = SMTP_OWN_NO_DANE } },
		[TLSA_RECORDS] = { { SMTPPROXY_TLS_DANE, SMTP_OWN_NONE }, { SMTPPROXY_TLS_DANE, SMTP_OWN_NONE } },
		[TLSA_UNUSABLE] = { { SMTPPROXY_TLS_ENCRYPT, SMTP_OWN_NONE }, { .why = SMTP_OWN_NO_DANE } },
		[TLSA_FAILED] = { { .why = SMTP_OWN_DANE_UNKNOWN }, { .why = SMTP_OWN_DANE_UNKNOWN } },
	};
	*out = (struct onward_demand){ .tls = route->tls, .name = route->name };
	if (!is_dane(route->tls))
		return SMTP_OWN_NONE;
	const enum tlsa_verdict verdict = has_sure_name(route) ? d->search.verdict : TLSA_NONE;
	const int only = route->tls == SMTPPROXY_TLS_DANE_ONLY;
	out->tls = rows[verdict][only].tls;
	if (out->tls == SMTPPROXY_TLS_DANE)
		out->set = tlsa_set_use(d->search.set);
	return rows[verdict][only].why;
}

void dane_forget(struct dane *d)
{
	tlsa_search_forget(&d->search);
	d->state = DANE_NEW;
}

const char *dane_word(const struct dane *d)
{
	static const char *const words[] = {
		[TLSA_NONE] = "none",
		[TLSA_RECORDS] = "usable",
		[TLSA_UNUSABLE] = "unusable",
		[TLSA_FAILED] = "not known",
	};
	return d->state == DANE_NEW ? "not asked for" : words[d->search.verdict];
}
