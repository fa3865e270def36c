/* connection_parting.h: when a connection has to end although nobody failed: it was silent for too long, an operator or
 * a stop wants it. Its owner says goodbye where it can, because only it knows what is open. See also connection.h.
 */
#ifndef CSSL_RAGENT_CONNECTION_PARTING_H
#define CSSL_RAGENT_CONNECTION_PARTING_H

#include "ragent/connection/connection.h"

/* Ending it now cuts nothing off, because all requests are answered. */
bool connection_is_answered(const struct connection *c);
/* While draining: end it if connection_is_answered(). */
void connection_drain_if_idle(struct connection *c);
/* It was silent for @silent_ms, and that is longer than its idle time-out. */
void connection_end_silence(struct connection *c, uint64_t silent_ms);

#endif
