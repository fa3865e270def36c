/* dane.h: DANE toward one destination (RFC 7672): whether its TLSA records are known, and what TLS with it has to be.
 * Policies other than `dane` and `dane-only` say it themselves.
 *
 *   TLSA records             dane                    dane-only
 *   usable                   must match              must match
 *   only unusable ones       TLS, any certificate    no mail
 *   none that are secure     TLS where it is offered no mail
 *   not known                no mail                 no mail
 *
 * "No mail" is temporary for senders: they try again.
 */
#pragma once

#include "smtpproxy/dns/tlsa.h"
#include "smtpproxy/outward/onward.h"

/* NEW -> ASKS -> KNOWN; KNOWN -> ASKS when the records are old */
enum dane_state { DANE_NEW, DANE_ASKS, DANE_KNOWN };

/* Embedded, all zero but for on_known. */
struct dane {
	struct tlsa_search search;
	const struct outward_home *home;
	uint64_t fresh_till_ms;
	enum dane_state state;
	void (*on_known)(struct dane *d); /* the records are known, or that they cannot be: dane_demand() says it now */
};

/* 1: dane_demand() may be called. 0: the DNS was asked, and on_known comes. */
bool dane_is_known(struct dane *d, const struct outward_home *home, const struct onward_route *route);

/* Fills @out with what a new connection has to demand; @out owns one use of its set. NONE; or why no connection may be
 * opened. */
enum smtp_own dane_demand(const struct dane *d, const struct onward_route *route, struct onward_demand *out);

/* Another policy, or the end: what is known is dropped, and on_known does not come. */
void dane_forget(struct dane *d);

/* For the control API. */
const char *dane_word(const struct dane *d);
