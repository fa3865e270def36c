/* xtext.h: RFC 3461 4: printable ASCII, with '+' and two capital hex digits for '+', '=' and everything else. ENVID,
 * ORCPT (RFC 3461), AUTH= (RFC 4954 5), and Postfix's XCLIENT and XFORWARD carry their values so.
 */
#ifndef CSSL_SMTP_XTEXT_H
#define CSSL_SMTP_XTEXT_H

#include "proto/wire.h"
#include "smtp/span.h"

/* Appends the decoded bytes of @xtext. Any byte may come out, so write the result only by smtp_text_write(). 0,
 * or CSSL_E_RANGE: not an xtext. Small hex digits are accepted, because peers of Postfix send them. */
int smtp_xtext_read(struct wire_writer *w, struct smtp_span xtext);

#endif
