/* direct.h: an agent's own TLS listener, for use behind any layer-4 balancer (CSSL-SL without RAgent): TCP connections
 * of clients as carriers. Such a connection stays here until it ends; its session is shared like any other.
 */
#ifndef CSSL_SSLAGENT_DIRECT_H
#define CSSL_SSLAGENT_DIRECT_H

#include "sslagent/carrier/carrier_home.h"

struct direct_listener;

/* NULL: the address cannot be bound (logged). The listener joins home->directs; clients wait in its queue. */
struct direct_listener *direct_listen(struct carrier_home *home, const struct conf_direct *conf);
void direct_accept(struct carrier_home *home); /* from now on */
/* Accept no new connections (a stop that waits for the others). */
void direct_stop_accepting(struct carrier_home *home);
/* Say goodbye to idle connections, or to all; or reset those of blocked networks. */
enum direct_whom { DIRECT_IDLE, DIRECT_ALL, DIRECT_BLOCKED };
void direct_finish(struct carrier_home *home, enum direct_whom whom);
/* The number of clients' TCP connections whose connection has ended. */
uint32_t direct_lingering(const struct carrier_home *home);
/* For log_pace_tell(), on any thread. */
void direct_tell_left_out(struct carrier_home *home);
/* Closes listeners and connections. */
void direct_close_all(struct carrier_home *home);
/* Frees the listeners' memory, when every handle is closed. */
void direct_release_all(struct carrier_home *home);

#endif
