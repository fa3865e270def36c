/* hello_callback.h: runs before OpenSSL reads a ClientHello. It chooses the certificates by server name, parks the
 * handshake if an offered session is still elsewhere, and allows TLS 1.2 tickets where the listener does. */
#ifndef CSSL_SSLAGENT_HELLO_CALLBACK_H
#define CSSL_SSLAGENT_HELLO_CALLBACK_H

#include <openssl/ssl.h>

struct handshake;
/* A handshake message of the client, with its header: if it is a hello, its facts are noted. */
void hello_read(struct handshake *h, const uint8_t *message, size_t len);

void hello_callback_set(SSL_CTX *ctx);

#endif
