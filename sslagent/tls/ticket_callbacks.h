/* ticket_callbacks.h: TLS 1.2 tickets under the cluster's keys (RFC 5077), for listeners with tls12_tickets, and the
 * family that every session carries, with or without them. */
#ifndef CSSL_SSLAGENT_TICKET_CALLBACKS_H
#define CSSL_SSLAGENT_TICKET_CALLBACKS_H

#include "sslagent/tls/handshake_internal.h"

void ticket_callbacks_set(SSL_CTX *ctx, const struct tls_listener *l);

#endif
