/* path.h: the paths of MAIL and RCPT (RFC 5321 4.1.2, with UTF-8 as RFC 6531 3.3 says). */
#pragma once

#include "smtp/domain.h"
#include "smtp/span.h"

#define SMTP_LOCAL_MAX 64u  /* RFC 5321 4.5.3.1.1 */
#define SMTP_PATH_MAX  256u /* RFC 5321 4.5.3.1.3, with the angle brackets */

enum smtp_path_kind {
	SMTP_PATH_NULL,       /* <>: the sender of notifications (RFC 5321 4.5.5) */
	SMTP_PATH_MAILBOX,    /* <local@domain> */
	SMTP_PATH_POSTMASTER, /* <Postmaster> without a domain (RFC 5321 4.1.1.3) */
};

/* All spans point into the line that was read. */
struct smtp_path {
	enum smtp_path_kind kind;
	struct smtp_span route;   /* the source route with its colon; obsolete, to be ignored (RFC 5321 appendix C) */
	struct smtp_span mailbox; /* as written, without brackets and route, and without a dot at the end */
	struct smtp_span local, domain;
	enum smtp_domain_kind domain_kind;
	int utf8; /* bytes above 127 are in the mailbox: allowed only in a SMTPUTF8 transaction */
};

/* Takes a path from the head of @rest. 0, or CSSL_E_RANGE. UTF-8 is read with SMTP_PARSE_UTF8. Lenient: no brackets,
 * blanks inside of them, a local part longer than 64, dots anywhere in it, a mailbox without a domain, and what
 * domain.h says. */
int smtp_path_take(struct smtp_span *rest, unsigned flags, struct smtp_path *out);
