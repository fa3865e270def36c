/* handshaking.h: HANDSHAKING and PARKED. It is a part by itself, because OpenSSL has the connection until its end.
 * (connection_open() is in connection.h.)
 */
#ifndef CSSL_SSLAGENT_CONNECTION_HANDSHAKING_H
#define CSSL_SSLAGENT_CONNECTION_HANDSHAKING_H

#include "sslagent/connection/connection_events.h"

connection_reaction handshaking_takes; /* all that brings the handshake on, or ends it */

#endif
