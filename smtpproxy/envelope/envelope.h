/* envelope.h: the envelope of a stored message: its sender, its recipients, and the parameters of MAIL and RCPT that
 * belong to the message. No sockets, no clock.
 *
 * Its bytes: the version (1), then texts that each end with NUL: the EHLO name, the client's address, the sender, the
 * parameters of MAIL; and for each recipient the mailbox and the parameters of RCPT.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

#include "conf/smtpproxy.h"
#include "smtp/span.h"

/* At the end of the parameters of MAIL: the message came with TLS. No sender's own REQUIRETLS is taken. */
#define ENVELOPE_SECURED " REQUIRETLS"

/* An envelope that is written. Embedded in its owner; all zero is an empty one. */
struct envelope_text {
	char *at;
	size_t len, cap;
};

void envelope_free(struct envelope_text *e);
/* Begin with the sender; @client is the address of the client. Then add the recipients, in order. 0 or
 * CSSL_E_NO_MEMORY. */
int envelope_begin(struct envelope_text *e, struct smtp_span hello, struct smtp_span client, struct smtp_span sender,
	struct smtp_span params);
int envelope_add(struct envelope_text *e, struct smtp_span mailbox, struct smtp_span params);
/* @e is empty. 0 or CSSL_E_NO_MEMORY. */
int envelope_copy(struct envelope_text *e, const struct envelope_text *from);

/* An envelope that was read. It points into the bytes that it was read from. */
struct envelope {
	struct smtp_span hello, client, sender, params;
	unsigned recipients;
	struct smtp_span rest; /* the recipients */
};

struct envelope_recipient {
	struct smtp_span mailbox, params;
};

/* Read an envelope. 0, CSSL_E_TRUNCATED or CSSL_E_VERSION. */
int envelope_read(struct envelope *out, const char *text, size_t len);
/* Take the next recipient from @rest, which begins as a copy of envelope.rest. 1, or 0 when there is none. */
bool envelope_next(struct smtp_span *rest, struct envelope_recipient *out);

/* 1: it came with TLS. */
bool envelope_is_secured(const struct envelope *e);

/* The domain of a mailbox: the text behind its last '@'. Empty if there is no '@'. */
struct smtp_span envelope_domain(struct smtp_span mailbox);

/* The destination of the queue at which a message for a mailbox waits: the domain of the mailbox in lower case, or the
 * next hop of the file, unless the file has a row for the domain. */

#define LINE_NAME_MAX 255u /* bytes */

/* 0; CSSL_E_NOT_FOUND: the mailbox has no domain; CSSL_E_TOO_LONG. */
int line_name_of(const struct smtpproxy_queue *conf, struct smtp_span mailbox, char out[static LINE_NAME_MAX + 1]);

/* Where a line of that name leads to without the DNS. 0 with @out; CSSL_E_NOT_FOUND: it is a domain or an address
 * literal. An address is the next hop of an earlier file. */
int line_name_address(const char *name, struct sockaddr_storage *out);

/* The first row of the file for that domain; NULL: it has none. */
const struct smtpproxy_domain *line_name_domain(const struct smtpproxy_queue *conf, const char *name);

/* The Received field of a message that the queue takes (RFC 5321 4.4, RFC 3848). */

#define RECEIVED_MAX 1024u

struct received {
	const char *hello;             /* the sender's name for itself; any text */
	const struct sockaddr *client; /* an IP address */
	const char *by, *id;           /* this host; a word that names the message */
	const char *with;              /* the protocol, as "ESMTPS" */
	time_t time;
};

/* Returns its length, with the CRLF at its end. */
size_t received_write(const struct received *r, char out[static RECEIVED_MAX]);
