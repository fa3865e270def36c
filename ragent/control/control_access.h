/* control_access.h: decides whether a client may make a request. On the UNIX socket the file's permission has decided
 * already. Over the network a token or a client certificate decides (control_tokens.h): role read for GET, operate for
 * the rest. A certificate alone changes nothing for a page of another site.
 */
#ifndef CSSL_RAGENT_CONTROL_ACCESS_H
#define CSSL_RAGENT_CONTROL_ACCESS_H

#include "ragent/control/control_exchange.h"

/* 1, or 0 and the exchange is answered: 401, 403, or 429 to a source that failed too often. */
int access_granted(struct exchange *e);

/* The name of the client, for the log. */
const char *access_name(const struct exchange *e);

#endif
