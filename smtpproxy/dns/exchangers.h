/* exchangers.h: the mail servers of a domain as addresses, in the order in which they are tried (RFC 5321 5.1): those
 * of its MX records, or else the domain's own; or the one address of an address literal.
 */
#pragma once

#include "smtpproxy/dns/records.h"
#include "smtpproxy/dns/resolver.h"

struct exchanger {
	struct sockaddr_storage to;
	unsigned host; /* its place in hosts */
};

enum exchangers_verdict {
	EXCHANGERS_FOUND,      /* at least one address */
	EXCHANGERS_NO_DOMAIN,  /* the domain does not exist */
	EXCHANGERS_NO_ADDRESS, /* no server of the domain has an address */
	EXCHANGERS_NO_MAIL,    /* the domain takes no mail (RFC 7505) */
	EXCHANGERS_LOOP,       /* we are its best server */
	EXCHANGERS_BOGUS,      /* DNSSEC does not confirm what was answered */
	EXCHANGERS_FAILED,     /* the DNS does not answer now */
};

struct exchangers_search;

/* Embedded, all zero but for on_found. */
struct exchangers {
	void (*on_found)(struct exchangers *x); /* the results below are there */
	enum exchangers_verdict verdict;
	enum dns_trust trust; /* of the MX records, or of the proof that there are none; a literal: INSECURE */
	struct mx_list hosts; /* empty for a literal */
	struct exchanger *at; /* of @count */
	unsigned count;
	const char *why;                  /* for logs; not behind on_found */
	struct exchangers_search *search; /* while it goes on */
};

/* @domain as behind the '@' of a mailbox; @own: our name, which never is a next hop. 0: on_found comes once, not from
 * within this call; or CSSL_E_NO_MEMORY. */
int exchangers_find(
	struct exchangers *x, struct worker *w, struct resolver *r, const char *domain, const char *own, uint16_t port);

/* One of them turned out to be ourselves: leave out its host and those that are not better (RFC 5321 5.1). */
void exchangers_cut(struct exchangers *x, unsigned at);

/* There will be no on_found; frees what it holds. In any state. */
void exchangers_forget(struct exchangers *x);
