/* mx_list.h: the mail servers of a domain in the order in which they are tried (RFC 5321 5.1): by preference, and those
 * of the same preference in random order. No sockets, no clock.
 */
#ifndef CSSL_SMTPPROXY_MX_LIST_H
#define CSSL_SMTPPROXY_MX_LIST_H

#include "smtpproxy/dns/records.h"

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

#endif
