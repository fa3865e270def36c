/* courier_settle.h: the fates of a message's recipients, and what the queue does with the message. A part of its own,
 * because here alone a message leaves the queue. */
#pragma once

#include "smtpproxy/delivery/courier.h"

/* RCPT: the reply decides the fate of that recipient; other states: of all that it concerns. */
void courier_note_reply(struct courier *c, const struct smtp_reply_line *line);
/* Decides by the fates of the recipients what the queue does with the message. */
void courier_settle(struct courier *c);
/* The message is older than queue.expire. */
bool courier_has_expired(const struct courier *c);
