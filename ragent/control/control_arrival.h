/* control_arrival.h: connections to the control address that begin with a PROXY header. The header names the client,
 * and is removed before libmicrohttpd sees the rest.
 */
#ifndef CSSL_RAGENT_CONTROL_ARRIVAL_H
#define CSSL_RAGENT_CONTROL_ARRIVAL_H

#include <sys/socket.h>

struct control;

/* @fd is owned from now on. When the header is whole it goes to control_admit(); when no header comes in time it is
 * closed.
 */
void arrival_await(struct control *c, int fd, const struct sockaddr_storage *peer);

/* Close all connections that still wait for their header. */
void arrivals_end(struct control *c);

#endif
