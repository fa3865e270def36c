/* notice.h: the mail that tells a sender about recipients of his message (RFC 3464). A part of its own, because its
 * form is that of an RFC, and nobody but the settling sends one. */
#pragma once

#include "smtpproxy/delivery/courier.h"

/* The sender is to be told of a recipient: one has failed, or was passed on to a server that sends no reports although
 * the sender wants one (RFC 3461 5.2.2). */
bool notice_is_due(const struct courier *c);
/* Tell it. 0: the message is settled, or will be when the notice is stored. Other results are those of
 * queue_bounce(). */
int notice_send(struct courier *c);
