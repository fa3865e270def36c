/* export.h: the callbacks that watch a handshake for what its export needs. */
#ifndef CSSL_SSLAGENT_EXPORT_H
#define CSSL_SSLAGENT_EXPORT_H

#include "sslagent/tls/handshake_internal.h"

/* TLS 1.3: our records behind server Finished (message callback), and with OpenSSL's own key schedule the secrets that
 * export_watch() sees otherwise. */
void export_callbacks_set(SSL_CTX *ctx, enum tls_algorithms a);

/* TLS 1.3, own key schedule: what this thread derives are @h's secrets; NULL: nobody's. Around each step of OpenSSL. */
void export_watch(struct handshake *h);

/* TLS 1.2: look through output that was not seen yet for the explicit nonce of our Finished. After each step of
 * OpenSSL. */
void export_watch_output(struct handshake *h);

#endif
