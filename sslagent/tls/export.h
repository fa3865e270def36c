/* export.h: the callbacks that collect, during a handshake, the facts for its export. */
#ifndef CSSL_SSLAGENT_EXPORT_H
#define CSSL_SSLAGENT_EXPORT_H

#include "sslagent/tls/handshake_internal.h"

/* TLS 1.3: count our records after the server's Finished (message callback). With OpenSSL's own key schedule, also
 * collect the secrets; otherwise export_watch() collects them. */
void export_callbacks_set(SSL_CTX *ctx, enum tls_algorithms a);

/* With the agent's own key schedule and PRF: traffic secrets and key blocks that this thread derives from now on belong
 * to @h; NULL: to no handshake. Call it before and after each step of OpenSSL. */
void export_watch(struct handshake *h);

/* TLS 1.2: search new output for the explicit nonce of our Finished. Call it after each step of OpenSSL. */
void export_watch_output(struct handshake *h);

#endif
