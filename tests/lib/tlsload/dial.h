/* dial.h: the socket and the TLS client of a new connection. */
#pragma once

#include <openssl/ssl.h>
#include <stdint.h>

struct group;

/* On its way to the group's target, from an address of its own if the group has several. -1: errno says why. */
int dial(const struct group *g, unsigned client, uint16_t *port);
/* On it; @session may be NULL. NULL: no memory. */
SSL *dial_tls(const struct group *g, unsigned client, int fd, SSL_SESSION *session);
