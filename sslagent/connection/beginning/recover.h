/* recover.h: an owner after a takeover, until it knows what the lost owner may have done. It is a part by itself,
 * because law 10 is kept here (recovery.h has the rule).
 */
#pragma once

#include "sslagent/connection/connection_events.h"

/* OWNER by SSL_ID, and RAgent knows of it: recover what was cut, or start at once. May end the connection. */
void recover_or_start(struct connection *c, const Cssl__LinkSslId *id);

connection_reaction recover_takes; /* RECOVERING: records, bytes of the backend, its end */
