/* connection_arrival.h: the way of a client from accept() to the agent of its handshake: its address, limits, the
 * choice of an agent, and the wait for one. Nothing of it matters any more once an agent keeps the connection.
 */
#ifndef CSSL_RAGENT_CONNECTION_ARRIVAL_H
#define CSSL_RAGENT_CONNECTION_ARRIVAL_H

#include "ragent/connection/connection_body.h"

/* Takes the facts about the client from a balancer's header. 0 or CSSL_E_NO_MEMORY. */
int connection_take_header(struct connection *c, const struct proxy_header *h);

/* PROXY: returns how many bytes the header has; 0: it waits for more. Then, when these count as used, the client's
 * address is certain. Both may end it. */
size_t connection_take_proxy(struct connection *c, uint8_t *data, size_t len);
void connection_header_is_over(struct connection *c);

/* HELLO: its first bytes. It waits for more; or an agent begins the handshake, or is awaited; or it has ended. */
enum arrival { ARRIVAL_WAITS, ARRIVAL_BEGINS, ARRIVAL_IS_OVER };
enum arrival connection_take_hello(struct connection *c, uint8_t *data, size_t len);

/* WAITING: try again; @left_ms are left of the time for handshakes. */
void connection_open_again(struct connection *c, uint64_t left_ms);
/* The agent of the handshake refused it. */
void connection_open_refused(struct connection *c, Cssl__LinkRefused__Reason reason);
/* That agent is lost. At once, on another one; if that one is lost as well, a little later. */
void connection_open_anew(struct connection *c, int lost);

#endif
