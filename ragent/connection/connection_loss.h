/* connection_loss.h: the link of an owner or adopter is lost. The owner may still have the connection: then it waits in
 * state REATTACHING until that link is up again, and goes on. Else takeover.h decides what becomes of it.
 */
#ifndef CSSL_RAGENT_CONNECTION_LOSS_H
#define CSSL_RAGENT_CONNECTION_LOSS_H

#include "ragent/connection/connection_body.h"

/* If it is REATTACHING and the link to its owner is up: ask for it. */
void connection_reattach_if_up(struct connection *c);
/* All that are REATTACHING wait from now on: agents have kept their streams until now. */
void connection_reattach_anew(struct connection_home *home);
/* REATTACHED: its owner has it. A handler of frames; this one has no message. */
int connection_in_reattached(struct connection *c, const struct frame *f, const void *message);
/* REATTACHING: its owner does not have it any more, or does not answer. This may end it. */
void connection_reattach_refused(struct connection *c);
void connection_reattach_failed(struct connection *c);

#endif
