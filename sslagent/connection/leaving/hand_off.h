/* hand_off.h: the freeze of an owner. It is a part by itself, because law 7 is kept in this one function. */
#pragma once

#include "sslagent/connection/connection.h"

/* The next owner: an agent now, or any agent when the client's next record comes. */
enum heir { HEIR_NOW, HEIR_AT_WAKE };

/* OWNER or PASSING: freeze, and send HANDED_OFF. May end the connection instead. */
void hand_off_connection(struct connection *c, Cssl__BackendHalf backend, enum heir heir);
/* REFUSED: it stays. */
void hand_off_refuse(struct connection *c, const char *why);
#define NOT_AN_OWNER "not an owner that can move"
