/* control_routes.h: what the control socket answers to: one table, which is also the index (GET /v1) and the manual. */
#ifndef CSSL_RAGENT_CONTROL_ROUTES_H
#define CSSL_RAGENT_CONTROL_ROUTES_H

#include "ragent/control/control_exchange.h"

/* Find the route of @e and follow it: when this returns, @e was answered, or the provider holds its request. */
void routes_dispatch(struct exchange *e);

/* Nobody needs a token for it: 1 or 0. */
int routes_open(const char *method, const char *path);

#endif
