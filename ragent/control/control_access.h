/* control_access.h: may this request be asked by who asks it? On the UNIX socket the file's permission has decided;
 * over the network a token or a client certificate has to (control_tokens.h): reading for GET, operating for the rest.
 */
#ifndef CSSL_RAGENT_CONTROL_ACCESS_H
#define CSSL_RAGENT_CONTROL_ACCESS_H

#include "ragent/control/control_exchange.h"

/* 1, or 0 and the exchange is answered: 401, 403, or 429 to a source that failed too often. */
int access_granted(struct exchange *e);

/* For the log: who asked. */
const char *access_name(const struct exchange *e);

#endif
