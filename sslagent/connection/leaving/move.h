/* move.h: MOVE: to another agent, with or without the backend connection, or to rest. It is a part by itself, because
 * only RAgent orders it, and only here it is decided how.
 */
#pragma once

#include "sslagent/connection/connection_events.h"

connection_reaction move_order;   /* OWNER */
connection_reaction move_passing; /* PASSING: all that may end this state */
