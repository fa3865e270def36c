/* envelope.h: the envelope of a stored message: its sender, its recipients, and the parameters of MAIL and RCPT that
 * belong to the message. No sockets, no clock.
 *
 *   version (1) and then texts, each with a NUL behind it:
 *   EHLO name, client, sender, parameters of MAIL, and for each recipient: mailbox, parameters of RCPT
 */
#ifndef CSSL_SMTPPROXY_ENVELOPE_H
#define CSSL_SMTPPROXY_ENVELOPE_H

#include <stddef.h>
#include <stdint.h>

#include "smtp/span.h"

/* Embedded; zero is empty. */
struct envelope_text {
	char *at;
	size_t len, cap;
};

void envelope_free(struct envelope_text *e);
/* @client: its address. 0 or CSSL_E_NO_MEMORY. Then the recipients, in order. */
int envelope_begin(struct envelope_text *e, struct smtp_span hello, struct smtp_span client, struct smtp_span sender,
	struct smtp_span params);
int envelope_add(struct envelope_text *e, struct smtp_span mailbox, struct smtp_span params);

/* One that was read; points into the text. */
struct envelope {
	struct smtp_span hello, client, sender, params;
	unsigned recipients;
	struct smtp_span rest; /* the recipients */
};

struct envelope_recipient {
	struct smtp_span mailbox, params;
};

/* 0; CSSL_E_TRUNCATED, CSSL_E_VERSION. */
int envelope_read(struct envelope *out, const char *text, size_t len);
/* The next recipient of @rest, which begins as a copy of envelope.rest. 1; 0: there is none. */
int envelope_next(struct smtp_span *rest, struct envelope_recipient *out);

/* The domain of a mailbox, from behind its last '@'; empty: it has none. */
struct smtp_span envelope_domain(struct smtp_span mailbox);

#endif
