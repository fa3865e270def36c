/* tlsa.h: the TLSA records of a mail server (RFC 7672 2.2): looks for them, and keeps those that SMTP can use.
 *
 *   ADDRESS --secure--> TLSA of the name behind all aliases --none--> TLSA of the name itself
 *      '--insecure, an alias--> ALIAS --secure--> TLSA of the name itself
 *
 * A host whose address is not secure is not asked for TLSA records (RFC 7672 2.2.2): some old name servers fail then.
 */
#pragma once

#include "smtpproxy/dns/resolver.h"

/* The usable records of one name. Shared: freed with its last user. */
struct tlsa_set {
	unsigned users, count;
	char base[DNS_NAME_TEXT]; /* the name in SNI, and the one that the certificate must have (RFC 7672 3.2.3) */
	struct dns_tlsa at[DNS_RECORDS_MAX];
	uint8_t bytes[]; /* that they point to */
};

struct tlsa_set *tlsa_set_use(struct tlsa_set *s);
void tlsa_set_drop(struct tlsa_set *s); /* NULL is legal */

enum tlsa_verdict {
	TLSA_NONE,     /* none that are secure */
	TLSA_RECORDS,  /* the certificate must match one of them */
	TLSA_UNUSABLE, /* secure ones, and none that SMTP can use: TLS is required, but no certificate can be judged */
	TLSA_FAILED,   /* not known; perhaps somebody hides them */
};

enum tlsa_step { TLSA_IDLE, TLSA_ADDRESS, TLSA_ALIAS, TLSA_EXPANDED, TLSA_NAME };

/* Embedded, all zero but for on_found. */
struct tlsa_search {
	void (*on_found)(struct tlsa_search *s); /* the results below are there */
	enum tlsa_verdict verdict;
	struct tlsa_set *set; /* RECORDS: the search owns one use until the next search or tlsa_search_forget() */
	uint32_t ttl_s;
	const char *why; /* for logs; not behind on_found */
	enum tlsa_step step;
	struct resolver *resolver;
	uint16_t port;
	struct dns_question question;
	char host[DNS_NAME_TEXT], expanded[DNS_NAME_TEXT];
};

/* IDLE: on_found comes once, not from within this call. */
void tlsa_search_begin(struct tlsa_search *s, struct resolver *r, const char *host, uint16_t port);
/* There will be no on_found. In any state. */
void tlsa_search_forget(struct tlsa_search *s);
