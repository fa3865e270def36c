/* session_offers.h: the extensions for a sender, and whether the receiver has those that it uses. It is a part of its
 * own because what EHLO promises is decided in one place.
 */
#pragma once

#include "smtp/command.h"

struct session;

/* Send the receiver's extensions, in place of its reply to EHLO. */
void session_say_offers(struct session *s);
/* The same, as the reply to the EHLO that was just passed, as if a server had sent it. */
void session_answer_offers(struct session *s);
/* Compares the extensions that @c uses with those of the leased connection, or of the queue. NONE: pass @c on. The
 * connection has them, or the sender uses one that we never offered, and the receiver may refuse it. Otherwise: our own
 * reply, which asks the sender to come again; also if the sender's TLS would end here, and the file forbids that. */
enum smtp_own session_lack(const struct session *s, const struct smtp_command *c);

/* Bytes of the largest message that is taken here; UINT64_MAX: the receiver judges alone. */
uint64_t session_size_max(const struct session *s);
