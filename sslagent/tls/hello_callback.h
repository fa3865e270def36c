/* hello_callback.h: what happens between a ClientHello's arrival and OpenSSL's look at it: choose the certificates by
 * server name, see whether a session it offers is still elsewhere (then the handshake parks), allow TLS 1.2 tickets
 * where the listener does. */
#ifndef CSSL_SSLAGENT_HELLO_CALLBACK_H
#define CSSL_SSLAGENT_HELLO_CALLBACK_H

#include <openssl/ssl.h>

void hello_callback_set(SSL_CTX *ctx);

#endif
