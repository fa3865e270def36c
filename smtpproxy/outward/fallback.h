/* fallback.h: where TLS is not demanded, a receiver whose TLS is broken or too old gets its mail in clear. Postfix at
 * level `may` does so after each handshake that fails, lost connections included; here, one that is lost is no sign of
 * broken TLS, but several in a row are. Whoever can break a handshake could as well take STARTTLS out of the offers.
 */
#pragma once

#include "smtp/reply.h"
#include "smtpproxy/outward/onward.h"

/* Embedded in a receiver's share; begins with zeros. */
struct fallback {
	uint64_t till_ms;           /* new connections are in clear until then */
	uint32_t lost;              /* handshakes since the last one that worked */
	uint64_t first_ms, last_ms; /* of @lost */
};

/* A handshake with @host (may be empty) has ended, by which the fallback may begin: at once if TLS itself failed. A
 * reset, an end or silence may come from the network, or from a receiver that restarts. That counts only when it is the
 * third in a row, some minutes behind the first. Our own lack of memory never counts. */
void fallback_note(struct fallback *f, const struct onward *o, const char *host, uint64_t now_ms);

/* How long it is to be remembered; 0: there is nothing to remember. */
uint64_t fallback_kept_ms(const struct fallback *f, uint64_t now_ms);

/* The receiver demands TLS. If there is no fallback, it has refused STARTTLS: nothing ends, and this is logged. */
void fallback_end(struct fallback *f, const char *host);

/* Changes what a new connection demands. */
void fallback_apply(const struct fallback *f, struct onward_demand *demand, uint64_t now_ms);

/* True when @line, a line of the reply to MAIL, demands TLS, and @o is in clear only because TLS failed before. So the
 * reply is about the connection and not about the mail: destination_give_up_clear(). */
bool fallback_is_refused(const struct onward *o, const struct smtp_reply_line *line);

/* The words alone: @line demands TLS. */
bool fallback_demands_tls(const struct smtp_reply_line *line);
