/* handshaking.h: HANDSHAKING and PARKED. It is a part by itself, because OpenSSL has the connection until its end.
 * (connection_open() is in connection.h.)
 */
#pragma once

#include "sslagent/connection/connection_events.h"

connection_reaction handshaking_takes; /* all that brings the handshake on, or ends it */
