/* fallback.h: where TLS is not demanded, a receiver whose TLS is broken or too old gets its mail in clear, as from
 * Postfix at level `may`. Whoever can break a handshake could as well take STARTTLS out of the offers.
 */
#ifndef CSSL_SMTPPROXY_FALLBACK_H
#define CSSL_SMTPPROXY_FALLBACK_H

#include "smtp/reply.h"
#include "smtpproxy/outward/onward.h"

/* Embedded in a destination; begins with zeros. */
struct fallback {
	uint64_t till_ms; /* new connections are in clear until then */
};

/* @o to @host (may be empty) has failed. The fallback begins only if TLS itself failed in the handshake: a reset, an
 * end or silence may come from the network, or from a receiver that restarts, and says nothing about its TLS. */
void fallback_begin(struct fallback *f, const struct onward *o, const char *host);

/* The receiver demands TLS. If there is no fallback, it has refused STARTTLS: nothing ends, and this is logged. */
void fallback_end(struct fallback *f, const char *host);

/* Changes what a new connection demands. */
void fallback_apply(const struct fallback *f, struct onward_demand *demand, uint64_t now_ms);

/* True when @line, a line of the reply to MAIL, demands TLS, and @o is in clear only because TLS failed before. So the
 * reply is about the connection and not about the mail: destination_give_up_clear(). */
int fallback_is_refused(const struct onward *o, const struct smtp_reply_line *line);

/* The words alone: @line demands TLS. */
int fallback_demands_tls(const struct smtp_reply_line *line);

#endif
