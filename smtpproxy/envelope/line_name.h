/* line_name.h: the destination of the queue at which a message for a mailbox waits: the domain of the mailbox in lower
 * case, or the next hop of the file, unless the file has a row for the domain.
 */
#ifndef CSSL_SMTPPROXY_LINE_NAME_H
#define CSSL_SMTPPROXY_LINE_NAME_H

#include "conf/smtpproxy.h"
#include "smtp/span.h"

#define LINE_NAME_MAX 255u /* bytes */

/* 0; CSSL_E_NOT_FOUND: the mailbox has no domain; CSSL_E_TOO_LONG. */
int line_name_of(const struct smtpproxy_queue *conf, struct smtp_span mailbox, char out[static LINE_NAME_MAX + 1]);

/* Where a line of that name leads to without the DNS. 0 with @out; CSSL_E_NOT_FOUND: it is a domain or an address
 * literal. An address is the next hop of an earlier file. */
int line_name_address(const char *name, struct sockaddr_storage *out);

/* The first row of the file for that domain; NULL: it has none. */
const struct smtpproxy_domain *line_name_domain(const struct smtpproxy_queue *conf, const char *name);

#endif
