/* control_routes.h: the routes of the control socket: one table, which is also the index (GET /v1) and the manual. */
#ifndef CSSL_RAGENT_CONTROL_ROUTES_H
#define CSSL_RAGENT_CONTROL_ROUTES_H

#include "ragent/control/control_exchange.h"
#include "ragent/control/control_tokens.h"

/* Find the route of @e and follow it: when this returns, @e was answered, or the provider holds its request. */
void routes_dispatch(struct exchange *e);

/* The role that a request needs. A method that the path does not have needs only the role read, because it changes
 * nothing. */
enum control_role routes_role(const char *method, const char *path);

#endif
