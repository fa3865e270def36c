/* control_arrival.h: connections to the control address that begin with a PROXY header: the header says who the client
 * is, and is taken off before libmicrohttpd sees the rest.
 */
#ifndef CSSL_RAGENT_CONTROL_ARRIVAL_H
#define CSSL_RAGENT_CONTROL_ARRIVAL_H

#include <sys/socket.h>

struct control;

/* @fd is owned from now on; control_admit() when the header is whole, closed when it is none or does not come in time.
 */
void arrival_await(struct control *c, int fd, const struct sockaddr_storage *peer);

/* Close those that are awaited still. */
void arrivals_end(struct control *c);

#endif
