/* records.h: the data of DNS records as C values: names, MX (RFC 1035 3.3.9), A, AAAA and TLSA (RFC 6698 2.1). Bytes
 * in, values out: no sockets, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define DNS_NAME_MAX  253u /* RFC 1035 2.3.4, as text without the last dot */
#define DNS_NAME_TEXT (DNS_NAME_MAX + 1)

enum dns_type { DNS_A = 1, DNS_CNAME = 5, DNS_MX = 15, DNS_AAAA = 28, DNS_TLSA = 52 };

/* The data of one record, which others own. */
struct dns_record {
	const uint8_t *data;
	size_t len;
};

struct dns_mx {
	uint16_t preference;
	char host[DNS_NAME_TEXT]; /* in lower case; empty: the root, which means "no mail" (RFC 7505) */
};

/* 0; CSSL_E_TRUNCATED, CSSL_E_TRAILING, or CSSL_E_RANGE: a host that is no host name. */
int dns_mx_read(struct dns_record r, struct dns_mx *out);

/* @type A or AAAA. 0 with port 0, or CSSL_E_RANGE. */
int dns_address_read(struct dns_record r, enum dns_type type, struct sockaddr_storage *out);

enum dns_tlsa_usage { DNS_TLSA_PKIX_TA, DNS_TLSA_PKIX_EE, DNS_TLSA_DANE_TA, DNS_TLSA_DANE_EE };

/* Points into the record. */
struct dns_tlsa {
	uint8_t usage, selector, matching;
	const uint8_t *data;
	size_t len;
};

/* 0 or CSSL_E_TRUNCATED. */
int dns_tlsa_read(struct dns_record r, struct dns_tlsa *out);

/* Can SMTP use it (RFC 7672 3.1)? DANE-TA or DANE-EE, with a selector and a matching type that we know, and a digest
 * of the right length. */
bool dns_tlsa_is_usable(const struct dns_tlsa *t);

/* The mail servers of a domain in the order in which they are tried (RFC 5321 5.1): by preference, and those of the
 * same preference in random order. */

#define MX_LIST_MAX 16u /* servers that are tried; RFC 5321 5.1 asks for at least two addresses */

enum mx_verdict {
	MX_HOSTS,
	MX_NULL,   /* one record with the root: the domain takes no mail (RFC 7505) */
	MX_LOOP,   /* we are its best server: there is nobody to pass the mail on to */
	MX_BROKEN, /* no record can be read */
};

struct mx_list {
	unsigned count;
	struct dns_mx at[MX_LIST_MAX];
};

/* @own: our name. It and all servers that are not better are left out, so that mail between servers of one domain comes
 * to an end. @random: a number below its argument. */
enum mx_verdict mx_list_read(struct mx_list *l, const struct dns_record *records, size_t count, const char *own,
	uint32_t (*random)(uint32_t below));
